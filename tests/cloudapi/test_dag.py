"""Documentation augmented generation: what is looked up, shown and asked, with a model that calls what it reads."""

import ast
import math
import random
import re
from dataclasses import replace

import pytest

from lookuplab.cloudapi.benchmark import Task, load_tasks
from lookuplab.cloudapi.dag import (
    api_ranker,
    ask,
    confidence,
    constrained,
    key_terms,
    passes,
    random_documents,
    words,
)
from lookuplab.cloudapi.prompts import DESIGNS, RULE, docstring
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter, load_index
from lookuplab.errors import UserError
from lookuplab.models import Completion

NAMES = (
    "delete_object get_bucket_policy get_object list_objects put_bucket_policy put_object".split()
)
OTHER = ApiSpec("aws", "ec2", "ec2", "run_instances", ())
INDEX = ApiIndex([*(ApiSpec("aws", "s3", "s3", name, ()) for name in NAMES), OTHER])
REAL = load_tasks(limit=60)
ARGUMENTS = Parameter("Next"), Parameter("Max"), Parameter("Pool", required=True)
PLACE = "aws", "cognito-sync", "cognito-sync", "list_pools"
POOL = ApiSpec(*PLACE, ARGUMENTS, description="Gets a list.")


def task(name, *others):
    targets = tuple(f"aws/s3.s3.{api}" for api in (name, *others))
    prompt = f"# do it: {name[::-1]}\nclient."
    return Task(name, prompt, "", targets, "aws", "s3", "s3", "low", 0, 0, 0)


TASKS = [task("put_object"), task("get_object"), task("list_objects", "get_bucket_policy")]
CALLED = ["put_object", "object_get", "delete_object"]
MEMORY = dict(zip((task.id for task in TASKS), CALLED, strict=True))
OPTIONS = {"store": False, "index": INDEX}


CERTAIN, UNSURE = (
    -0.01,
    -1.0,
)  # log-probabilities of a name that was read, and of one that was made up


class ReadingModel:
    """Calls the first API documented in its prompt, else what it remembers: ``memory`` {task id: name}. Keeps every
    prompt that it was asked.
    """

    name = "reader"
    identity = {"name": "reader"}

    def __init__(self, memory):
        self.memory, self.asked = memory, []

    def generate(self, requests, decoding):
        for prompt, sample in requests:
            self.asked.append(prompt)
            read = re.search(r"^API name: (\w+)", prompt.text, re.MULTILINE)
            name = read[1] if read else self.memory[prompt.id]
            name = name if name in (prompt.choices or [name]) else prompt.choices[0]
            sure, length = (CERTAIN if read else UNSURE, 0.0), len(prompt.text.split())
            tokens = name, "()"
            yield [Completion(prompt.id, sample, name + "()", tokens, (0, 1), sure, "stop", length)]


@pytest.fixture
def model():
    return ReadingModel(MEMORY)


SHORT, ARGUED = (
    "Description: Gets a list.\n",
    "Required arguments: Pool\nOptional arguments: Next Max\n",
)


def test_a_design_shows_these_lines():
    for design, lines in zip(DESIGNS, ("", SHORT, ARGUED, SHORT + ARGUED, "x\n"), strict=True):
        assert docstring([POOL], design, {POOL.id: " x "}) == (
            f'"""\nUse the following API information as reference:\n{RULE}\n'
            f'API name: list_pools\nService/Client name: cognito-sync\n{lines}{RULE}\n"""\n'
        )
        twice = docstring([POOL, POOL], design, {POOL.id: 'says """hello""" \n'})
        assert "list_pools" in ast.get_docstring(ast.parse(twice))
    with pytest.raises(UserError, match="unknown augmentation design 'nam'"):
        docstring([POOL], "nam")


def test_names_are_split_into_lower_case_words():
    names = "list_objects_v2 ServiceFabricClientAPIs CustomIPPrefixesOperations S3Client _"
    assert " / ".join(" ".join(words(name)) for name in names.split()) == (
        "list objects v2 / service fabric client apis / custom ip prefixes operations / s3 client / "
    )


def test_a_key_is_service_client_words_name_and_name_words():
    spec = load_index().by_id["azure/blob.BlobClient.upload_blob"]
    assert key_terms(spec, spec.name) == "blob blob client upload_blob upload blob".split()
    assert key_terms(spec, "Get_it", service=False) == ["get_it", "get", "it"]
    assert key_terms(spec, math.nan) == key_terms(spec, None) == ["blob", "blob", "client"]


def test_the_exact_name_finds_its_api_and_only_operations_are_found():
    operations, ranker = load_index().operations, api_ranker(load_index())
    assert set(ranker.ids) == {spec.id for spec in operations}
    chosen = random.Random(0).sample(operations, 300)
    found = ranker.rank({spec.id: key_terms(spec, spec.name) for spec in chosen}, 1)
    assert sum(found[spec.id] == [spec.id] for spec in chosen) >= 297


def test_random_documents_are_distinct_never_acceptable_and_depend_on_task_and_seed_alone():
    drawn = random_documents(REAL, 5)
    assert {len(set(ids)) for ids in drawn.values()} == {5}
    assert not any(set(drawn[task.id]) & set(task.targets) for task in REAL)
    some = random_documents(REAL[5:9], 3)
    assert some == {task.id: drawn[task.id][:3] for task in REAL[5:9]}
    assert random_documents(REAL[5:9], 3, seed=1) != some


def test_the_hit_pass_always_shows_an_acceptable_api_and_the_miss_pass_never(model):
    found = passes(model, TASKS, **OPTIONS)
    assert found.hit.valid.all() and not found.miss.valid.any()
    assert list(found.retrieved) == [True, True, False]  # the last call is of another API
    for frame in (found.first, found.hit, found.miss):
        assert list(frame.task) == list(MEMORY)
    again = [prompt.text for prompt in model.asked if prompt.id == "get_object"][1:]
    for text in again:  # documentation and the first prompt, without the first attempt
        assert text.startswith('"""\n') and text.endswith(TASKS[1].prompt)
        assert "object_get" not in text
    assert len(again) == 2 and len(model.asked) == 9


def test_a_target_that_was_not_found_is_the_last_of_the_hits(model):
    """BM25 finds other objects' APIs for the wrong call of the last task."""
    passes(model, TASKS, k=2, **OPTIONS)
    hit = [prompt.text for prompt in model.asked if prompt.id == "list_objects"][1]
    assert hit.count("API name:") == 2 and hit.index("delete_object") < hit.index("list_objects")
    with pytest.raises(UserError, match="k is 0"):
        passes(model, TASKS, k=0, **OPTIONS)


def test_confidence_and_existence_are_those_of_the_first_name(model):
    first = ask(model, TASKS, **OPTIONS)
    assert list(first.exists) == [True, False, True]
    assert first.minimum.tolist() == pytest.approx([math.exp(UNSURE)] * 3)
    other = ask(ReadingModel({"put_object": "run_instances"}), TASKS[:1], **OPTIONS)
    assert not other.exists.item() and other.exists_anywhere.item()


def test_names_are_constrained_where_it_retrieves_and_with_the_documents_of_the_free_pass(model):
    free = passes(model, TASKS, **OPTIONS)
    retrieve = ~free.first.exists.to_numpy()
    held = constrained(model, TASKS, free, retrieve, **OPTIONS)
    assert held.first is free.first and retrieve.tolist() == [False, True, False]
    assert [prompt.choices for prompt in model.asked[-2:]] == [tuple(NAMES)] * 2
    for old, new in ((free.hit, held.hit), (free.miss, held.miss)):
        assert (new[["task", "prompt_tokens"]] == old[["task", "prompt_tokens"]]).all(None)
        assert new.exists.all()


@pytest.mark.parametrize(("chat", "valid"), [(None, False), (True, True)])
def test_only_a_chat_models_answer_loses_its_backticks(chat, valid):
    model = ReadingModel({"put_object": "`put_object()` or "})
    model.chat = chat
    assert ask(model, TASKS[:1], **OPTIONS).valid.tolist() == [valid]


def completion(text, probabilities):
    """A completion of the pieces between the bars of ``text``."""
    pieces, logprobs = tuple(text.split("|")), tuple(map(math.log, probabilities))
    return Completion("t", 0, "".join(pieces), pieces, (0,) * len(pieces), logprobs, "stop", 1)


FIGURE_8 = completion("restart|_|partition|(|\n    |)", (0.41, 0.83, 0.21, 0.48, 0.41, 0.9))


def test_figure_8_has_a_confidence_of_021():
    mean, product = (0.41 + 0.83 + 0.21) / 3, 0.41 * 0.83 * 0.21
    found = {"minimum": 0.21, "mean": mean, "product": product, "last": 0.21}
    assert confidence(FIGURE_8) == pytest.approx(found)
    with pytest.raises(UserError, match="no log-probabilities"):
        confidence(replace(FIGURE_8, token_logprobs=None))


CHAT = "Use `|list|()|`:\n```\n|list|()|\n```"


@pytest.mark.parametrize(
    ("text", "probabilities", "code", "least"),
    [
        ("list|(|)", (0.9, 0.1, 0.1), None, 0.9),  # only the parenthesis
        ("lis|t(|)", (0.9, 0.2, 0.1), None, 0.2),  # ends the name and opens the call
        ("|list||(|)", (0.01, 0.9, 0.02, 0.5, 1), None, 0.9),  # spells nothing
        ("list| |(|)", (0.9, 0.1, 0.1, 1), None, 0.9),  # a blank before the parenthesis
        ("lis|t|\n", (0.7, 0.6, 0.1), None, 0.6),  # a name without a call
        ("\n|#", (0.9, 0.9), None, 0),  # nothing named
        ("caf||é|(|)", (0.9, 0.3, 0.8, 0.1, 1), None, 0.3),  # half a character
        ("```\n|list|(|)|\n```", (0.1, 0.8, 0.3, 0.3, 0.2), "list()", 0.8),  # chat
        (CHAT, (0.1, 0.2, 0.2, 0.1, 0.8, 0.3, 0.2), "list()", 0.8),
    ],
)
def test_the_confidence_is_that_of_the_names_tokens(text, probabilities, code, least):
    assert confidence(completion(text, probabilities), code)["minimum"] == pytest.approx(least)
