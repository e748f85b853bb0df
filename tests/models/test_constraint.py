"""Tests answers that must begin with one of a prompt's ``choices``. The first name of the answer is
exactly one of them, whatever the batch.
"""

import re
from dataclasses import replace

import pytest
import torch
from doors import refused
from tiny_architectures import (
    answered,
    assert_equal,
    assert_log_probabilities,
    byte_tokenizer,
    metaspace_tokenizer,
)

from lookuplab.models import Decoding, Prompt
from lookuplab.models.local import LocalModel
from lookuplab.models.tokens import NameTries

NAMES = tuple(
    "put put_object put_objects get_waiter get_waiter_for_the_table naïve_名前 名前 _x".split()
)
PROMPTS = [
    Prompt(
        f"p{i}",
        "import boto3  # naïve 名前\n"[: 3 * i] + "x = 1\n" * (i % 3) + "response = client.",
        choices=None if i % 3 == 2 else NAMES[i % 4 :: 1 + i % 2],
    )
    for i in range(8)
]
LONG = Decoding(max_new_tokens=30)  # the longest name has 24 letters


@pytest.fixture(scope="module", params=["gpt2", "pieces-llama", "pieces-t5"])
def model(request, checkpoint):
    return LocalModel(checkpoint(request.param), batch_size=8)


def test_first_names_are_choices_in_any_batch_and_probabilities_those_of_the_free_model(
    model, monkeypatch
):
    decoding = replace(LONG, temperature=1.0)
    together = answered(model, decoding, PROMPTS)
    monkeypatch.setattr(model, "batch_size", 1)
    assert_equal(answered(model, decoding, PROMPTS), together)
    prompts = {prompt.id: prompt for prompt in PROMPTS}
    for (name, _), done in together.items():
        prompt = prompts[name]
        assert not prompt.choices or re.match(r"\w*", done.text)[0] in prompt.choices
        assert_log_probabilities(model, prompt, done)


def test_a_token_that_holds_the_end_of_a_name_and_a_bracket_is_a_path():
    tokenizer = metaspace_tokenizer()
    merged, token = next(
        (text, token)
        for text, token in tokenizer.get_vocab().items()
        if text[-1:] == "(" and text[:-1].isidentifier()
    )
    prompt = tokenizer("response = client.")["input_ids"]
    logits = torch.zeros(len(tokenizer))
    rule = NameTries(tokenizer, frozenset()).constraint(prompt, [merged[:-1]])
    assert rule.restrict(logits)[0][token].isfinite()


def test_names_that_cannot_be_spelled_are_refused():
    tries = NameTries(byte_tokenizer(), frozenset())
    tries._spelled |= {((), "odd"): None, ((), "odd("): None}
    with refused("cannot spell 'odd'"):
        tries.constraint([], ["odd"])
