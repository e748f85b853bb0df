"""Constrained names: always one of the choices, never run on, the same answers whatever the chains and the batch."""

import copy
import functools
import math
import re
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_architectures import ARCHITECTURES, byte_tokenizer, metaspace_tokenizer, save
from transformers import DynamicCache

from lookuplab.errors import UserError
from lookuplab.models import constraint as constraint_module
from lookuplab.models import states
from lookuplab.models.complete import complete
from lookuplab.models.constraint import NameConstraint, NameTries, restrict
from lookuplab.models.local import load_local
from lookuplab.models.remote import RemoteModel
from lookuplab.models.trie import TokenTrie
from lookuplab.models.types import Decoding, Prompt, Work

NAMES = ("put", "put_object", "put_objects", "get_waiter", "get_waiter_for_the_table", "naïve_名前", "名前", "_x", "wait")
PROMPTS = [Prompt(f"p{i}", "import boto3  # naïve 名前\n"[: 3 * i] + "x = 1\n" * (i % 3) + "response = client.",
                  choices=None if i % 3 == 2 else NAMES[i % 4 :: 1 + i % 2]) for i in range(8)]
LONG = Decoding(max_new_tokens=50)
TOKENIZERS = {"bytes": byte_tokenizer, "pieces": metaspace_tokenizer}


@pytest.fixture(scope="module", params=[(name, kind) for name in ARCHITECTURES for kind in TOKENIZERS
                                        if kind == "bytes" or name in ("llama", "t5")], ids="-".join)
def folder(request, tmp_path_factory):
    architecture, kind = request.param
    return save(tmp_path_factory.mktemp(architecture), architecture, TOKENIZERS[kind]())


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return load_local(save(tmp_path_factory.mktemp("llama"), "llama"), batch_size=8)


def answers(model, decoding=LONG, prompts=PROMPTS):
    requests = [(prompt, sample) for prompt in prompts for sample in range(decoding.n)]
    return {(done.id, done.sample): done for batch in model.generate(requests, decoding) for done in batch}


def first_name(text):
    return re.match(r"\w*", text)[0]


def plain_logprobs(model, completion, prompt):
    """One forward pass without cache, padding or batch."""
    prompt_ids, ids = model.tokenizer(prompt.text)["input_ids"], list(completion.token_ids)
    with torch.inference_mode():
        if model.module.config.is_encoder_decoder:
            start = model.module.config.decoder_start_token_id
            logits = model.module(input_ids=torch.tensor([prompt_ids]),
                                  decoder_input_ids=torch.tensor([[start, *ids[:-1]]])).logits[0]
        else:
            logits = model.module(input_ids=torch.tensor([prompt_ids + ids])).logits[0, len(prompt_ids) - 1 : -1]
    return logits.log_softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)].tolist()


def same(one, other):
    assert one.keys() == other.keys()
    for key, done in one.items():
        assert (done.token_ids, done.finish_reason) == (other[key].token_ids, other[key].finish_reason)
        assert done.token_logprobs == pytest.approx(other[key].token_logprobs, abs=1e-4)


@pytest.mark.parametrize("decoding", [LONG, replace(LONG, temperature=1.0, n=2)], ids=["greedy", "sampled"])
def test_every_first_name_is_one_of_the_choices(folder, decoding):
    model = load_local(folder, batch_size=5)
    for (prompt_id, _), done in answers(model, decoding).items():
        prompt = next(prompt for prompt in PROMPTS if prompt.id == prompt_id)
        assert prompt.choices is None or first_name(done.text) in prompt.choices


@pytest.mark.parametrize("decoding", [LONG, replace(LONG, temperature=1.0), replace(LONG, choices_below=0.2)],
                         ids=["greedy", "sampled", "gated"])
def test_chains_in_one_pass_give_the_answers_of_single_steps_at_any_batch_size(folder, decoding, monkeypatch):
    eight, one = (answers(load_local(folder, batch_size=size), decoding) for size in (8, 1))
    monkeypatch.setattr(NameConstraint, "forced", lambda self: ())
    steps = answers(load_local(folder, batch_size=8), decoding)
    same(eight, steps)
    same(one, steps)


def test_logprobs_are_those_of_the_unconstrained_distribution(folder):
    model = load_local(folder, batch_size=8)
    for (prompt_id, _), done in answers(model).items():
        prompt = next(prompt for prompt in PROMPTS if prompt.id == prompt_id)
        assert done.token_logprobs == pytest.approx(plain_logprobs(model, done, prompt), abs=1e-4)


def test_a_gate_of_zero_is_unconstrained_token_for_token(folder):
    model = load_local(folder, batch_size=8)
    free = answers(model, LONG, [replace(prompt, choices=None) for prompt in PROMPTS])
    assert answers(model, replace(LONG, choices_below=0.0)) == free
    assert answers(model, LONG, [replace(prompt, choices=()) for prompt in PROMPTS]) == free


def test_free_rows_are_the_same_beside_constrained_ones(folder):
    model = load_local(folder, batch_size=8)
    mixed, free = answers(model), answers(model, LONG, [replace(prompt, choices=None) for prompt in PROMPTS])
    unconstrained = [(prompt.id, 0) for prompt in PROMPTS if prompt.choices is None]
    same({key: mixed[key] for key in unconstrained}, {key: free[key] for key in unconstrained})


identifiers = st.from_regex(r"[a-z_é名][a-z_0-9é名]{0,9}", fullmatch=True).filter(str.isidentifier)
families = st.lists(st.tuples(identifiers, st.sampled_from(["", "s", "_by_id", "前", "t"])), min_size=1, max_size=6)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(families, st.sampled_from(["client.", "x = ", "client", "", "名"]), st.integers(0, 99))
def test_any_names_behind_any_prompt(llama, families, text, seed):
    names = tuple(name for stem, end in families for name in (stem, stem + end))
    decoding = Decoding(max_new_tokens=60, temperature=1.5, seed=seed)
    for done in answers(llama, decoding, [Prompt("p", text, choices=names)]).values():
        assert first_name(done.text) in names


def test_a_chain_costs_one_forward_pass(folder):
    name = "get_waiter_for_the_quite_long_table"
    model = load_local(folder)
    done = answers(model, Decoding(max_new_tokens=60, stop=(name,)), [Prompt("p", "client.", choices=(name,))])["p", 0]
    assert done.text == name and len(done.tokens) > 5
    assert (model.work.passes, model.work.new_tokens) == (2, len(done.tokens))  # the prompt, the chain


def test_two_names_cost_one_pass_more_than_one(llama):
    names = ("get_waiter_for_the_table", "get_waiter_for_the_queue_of_tables")
    model = replace(llama, work=Work())
    done = answers(model, Decoding(max_new_tokens=60, stop=names), [Prompt("p", "client.", choices=names)])["p", 0]
    assert done.text in names and model.work.passes == 3  # the prompt, up to where they part, the rest


def test_a_name_that_a_token_limit_cuts_is_a_beginning_of_it(llama):
    for limit in range(1, 8):
        done = answers(llama, Decoding(max_new_tokens=limit), [Prompt("p", "c.", choices=("get_waiter_for_it",))])
        assert len(done["p", 0].tokens) == limit and "get_waiter_for_it".startswith(first_name(done["p", 0].text))


def test_a_token_that_holds_the_end_of_a_name_and_a_bracket_is_a_path(llama):
    tokenizer = metaspace_tokenizer()
    text = "response = client."
    merged = next(token for token in tokenizer.get_vocab() if token[-1:] == "(" and token[:-1].isidentifier())
    tries = NameTries(tokenizer, frozenset())
    rule = tries.constraint(tokenizer(text)["input_ids"], (merged[:-1],), 1.0)
    token = tokenizer.convert_tokens_to_ids(merged)
    assert token in rule.allowed().tolist()
    rule.push(token, 0.0, True)
    assert rule.allowed() is None


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_break_begins_with_a_character_that_no_identifier_has(kind):
    tokenizer = TOKENIZERS[kind]()
    end = tokenizer.eos_token_id
    breaks = set(NameTries(tokenizer, frozenset([end])).breaks.tolist())
    begun = tokenizer("x", add_special_tokens=False)["input_ids"]
    assert end in breaks and tokenizer.pad_token_id not in breaks
    for token in range(len(tokenizer)):
        text = tokenizer.decode([*begun, token], skip_special_tokens=True)[1:]
        continues = not text or f"a{text[0]}".isidentifier() or text[0] == "\ufffd"
        assert (token in breaks) == (token == end or not continues)


def test_a_gate_leaves_sure_choices_free_and_stays_shut_once_it_was_closed():
    trie = TokenTrie([[1, 2, 3], [1, 4]])
    logits = torch.log(torch.tensor([[0.1, 0.2, 0.05, 0.05, 0.1, 0.5]]))
    rule = NameConstraint(trie, torch.tensor([0]), below=0.5)
    assert restrict(logits, [rule])[:2] == (logits, [False])  # 0.5 is not below 0.5
    assert rule.forced() == ()
    rule = NameConstraint(trie, torch.tensor([0]), below=0.51)
    restricted, masked, margin = restrict(logits, [rule])
    assert margin.tolist() == pytest.approx([0.01], abs=1e-6)  # 0.51 was asked for
    assert masked == [True] and restricted.argmax().item() == 1 and restricted.isfinite().sum() == 1
    rule.push(1, -1.6, masked=True)
    assert rule.below == 1.0
    rule.push(2, -1.6, masked=True)
    assert rule.forced() == (3,)


def test_a_free_choice_outside_of_the_names_frees_the_row():
    rule = NameConstraint(TokenTrie([[1, 2]]), torch.tensor([0]), below=0.5)
    rule.push(9, -0.1, masked=False)
    assert rule.allowed() is None and rule.forced() == ()


def test_a_mask_is_one_scatter_and_leaves_free_rows_alone():
    trie = TokenTrie([[1], [3]])
    logits = torch.randn(3, 5)
    restricted, masked, margin = restrict(logits, [NameConstraint(trie, torch.tensor([0])), None, None])
    assert masked == [True, False, False] and margin.tolist() == [math.inf] * 3
    assert torch.equal(restricted[1:], logits[1:])
    assert restricted[0].isfinite().tolist() == [False, True, False, True, False]


class Rule:
    """Active from the third token on: writes 7, 8, 9 and then nothing of these."""

    below = 1.0

    def __init__(self):
        self.seen = []

    def allowed(self):
        return torch.tensor([7]) if len(self.seen) == 2 else None

    def condition(self):
        return None

    def push(self, token, logprob, masked):
        self.seen.append((token, masked))

    def forced(self):
        return (8, 9) if len(self.seen) == 3 else ()


def test_a_constraint_may_begin_in_the_middle_of_a_row(llama, monkeypatch):
    rules = {}

    def constraint(self, prompt_ids, names, below):
        return rules.setdefault(names, Rule())

    monkeypatch.setattr(constraint_module.NameTries, "constraint", constraint)
    prompts = [PROMPTS[2], Prompt("q", "client.", choices=("a",))]
    free = answers(llama, Decoding(max_new_tokens=9), [replace(prompt, choices=None) for prompt in prompts])
    done = answers(llama, Decoding(max_new_tokens=9), prompts)
    same({("p2", 0): done["p2", 0]}, {("p2", 0): free["p2", 0]})
    assert done["q", 0].token_ids[:5] == (*free["q", 0].token_ids[:2], 7, 8, 9)
    assert [masked for _, masked in rules["a",].seen] == [False, False, True, True, True, *[False] * 4]


def test_without_a_way_to_extend_rows_step_by_step_and_answer_the_same(llama, monkeypatch):
    expected = answers(llama)
    monkeypatch.setattr(states, "decoder_cache", lambda config: DynamicCache())
    same(answers(llama), expected)


def test_a_chat_prompt_an_endpoint_and_a_word_that_is_no_name_are_refused(llama):
    tokenizer = copy.deepcopy(llama.tokenizer)
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    chat = replace(llama, chat=True, checkpoint=replace(llama.checkpoint, tokenizer=tokenizer))
    for model, choices, message in [(chat, ("a",), "chat model's answer begins with backticks"),
                                    (RemoteModel("http://127.0.0.1:9/v1", "m"), ("a",), "cannot be held to"),
                                    (llama, ("a", "no name"), "'no name' is no name")]:
        with pytest.raises(UserError, match=message) as raised:
            complete(model, [Prompt("p", "client.", choices=choices)], store=False, progress=False)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("below", [-0.1, 1.1, float("nan")])
def test_a_gate_outside_of_0_to_1_is_refused(llama, below):
    with pytest.raises(UserError, match="choices_below is .* it must be a probability"):
        complete(llama, PROMPTS, Decoding(choices_below=below), store=False)


def test_the_same_end_of_a_prompt_and_names_share_one_trie(llama, monkeypatch):
    made = []
    build = NameTries._trie
    monkeypatch.setattr(NameTries, "_trie", functools.wraps(build)(lambda *args: made.append(1) or build(*args)))
    answers(replace(llama), Decoding(max_new_tokens=2),
            [Prompt(f"p{i}", f"# {i}\nx = 1\nresponse = client.", choices=NAMES) for i in range(9)])
    assert len(made) == 1


class Needs:
    """Asks for a probability of the tokens 0 and 1."""

    below = 1.0

    def __init__(self, least, binding=False, allowed=None):
        self._condition = constraint_module.Condition(torch.tensor([0, 1]), least, binding)
        self._allowed = allowed

    def allowed(self):
        return self._allowed

    def condition(self):
        return self._condition


@pytest.mark.parametrize(("rule", "left", "distance"), [
    (Needs(0.39), [0, 1, 2, 3], 0.01), (Needs(0.41), [2, 3], 0.01),  # the most likely of 0 and 1 has 0.4
    (Needs(0.39, binding=True), [0, 1], 0.01), (Needs(0.41, binding=True), [2, 3], 0.01),
    (Needs(0.09, True, torch.tensor([0, 2])), [0], 0.01), (Needs(0.39, True, torch.tensor([0, 2])), [2], 0.29)])
def test_tokens_under_a_condition_come_only_with_enough_probability(rule, left, distance):
    logits = torch.tensor([[0.1, 0.4, 0.3, 0.2]]).log().repeat(3, 1)
    restricted, masked, margin = restrict(logits, [None, rule, None])
    assert restricted[1].isfinite().nonzero().flatten().tolist() == left
    assert torch.equal(restricted[[0, 2]], logits[[0, 2]]) and masked == [False, rule._allowed is not None, False]
    assert margin.tolist() == pytest.approx([math.inf, distance, math.inf], abs=1e-6)
