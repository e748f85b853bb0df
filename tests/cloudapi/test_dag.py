"""Documentation augmented generation: what is looked up, shown and asked, with a model that calls what it reads."""

import ast
import math
import random
from dataclasses import replace

import pytest
from reading_model import UNSURE, ReadingModel

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
from lookuplab.models.types import Completion
from lookuplab.retrieval.metrics import success_at

NAMES = (
    "put_object",
    "get_object",
    "delete_object",
    "list_objects",
    "put_bucket_policy",
    "get_bucket_policy",
)
INDEX = ApiIndex(
    [ApiSpec("aws", "s3", "s3", name, ()) for name in NAMES]
    + [ApiSpec("aws", "ec2", "ec2", "run_instances", ())]
)
REAL = load_tasks(limit=60)
POOL = ApiSpec(
    "aws",
    "cognito-sync",
    "cognito-sync",
    "list_pools",
    (Parameter("Next"), Parameter("Max"), Parameter("Pool", required=True)),
    description="Gets a list.",
)


def task(name, *others, frequency="low"):
    targets = tuple(f"aws/s3.s3.{api}" for api in (name, *others))
    return Task(
        f"{name}#1",
        f"# do it: {name[::-1]}\nclient.",
        "",
        targets,
        "aws",
        "s3",
        "s3",
        frequency,
        0,
        0,
        0,
    )


TASKS = [
    task("put_object", frequency="high"),
    task("get_object"),
    task("list_objects", "get_bucket_policy"),
]
MEMORY = {
    "put_object#1": "put_object",
    "get_object#1": "object_get",
    "list_objects#1": "delete_object",
}
OPTIONS = {"store": False, "index": INDEX}


@pytest.fixture
def model():
    return ReadingModel(MEMORY)


@pytest.mark.parametrize(
    ("design", "lines"),
    [
        ("name", ""),
        ("description", "Description: Gets a list.\n"),
        ("specification", "Required arguments: Pool\nOptional arguments: Next Max\n"),
        (
            "description_specification",
            "Description: Gets a list.\nRequired arguments: Pool\nOptional arguments: Next Max\n",
        ),
        ("full", "x\n"),
    ],
)
def test_a_design_shows_these_lines(design, lines):
    assert docstring([POOL], design, {POOL.id: " x "}) == (
        f'"""\nUse the following API information as reference:\n{RULE}\n'
        f'API name: list_pools\nService/Client name: cognito-sync\n{lines}{RULE}\n"""\n'
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_is_a_docstring_that_parses(design):
    module = ast.parse(docstring([POOL, POOL], design, {POOL.id: 'says """hello""" \n'}))
    assert "list_pools" in ast.get_docstring(module)


def test_an_unknown_design_is_refused():
    with pytest.raises(UserError, match="unknown augmentation design 'nam'"):
        docstring([POOL], "nam")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("list_objects_v2", "list objects v2"),
        ("ServiceFabricClientAPIs", "service fabric client apis"),
        ("CustomIPPrefixesOperations", "custom ip prefixes operations"),
        ("S3Client", "s3 client"),
        ("_", ""),
    ],
)
def test_names_are_split_into_lower_case_words(name, expected):
    assert words(name) == expected.split()


def test_a_key_is_service_client_words_name_and_name_words():
    spec = load_index().by_id["azure/blob.BlobClient.upload_blob"]
    assert key_terms(spec, spec.name) == "blob blob client upload_blob upload blob".split()
    assert key_terms(spec, "Get_it", service=False) == ["get_it", "get", "it"]
    assert key_terms(spec, math.nan) == key_terms(spec, None) == ["blob", "blob", "client"]


def test_the_exact_name_finds_its_api_and_only_operations_are_found():
    index, ranker = load_index(), api_ranker(load_index())
    operations = [spec for spec in index.specs if spec.operation]
    assert set(ranker.ids) == {spec.id for spec in operations}
    chosen = random.Random(0).sample(operations, 300)
    found = ranker.rank({spec.id: key_terms(spec, spec.name) for spec in chosen}, 1)
    assert sum(found[spec.id] == [spec.id] for spec in chosen) >= 297


def test_random_documents_are_distinct_never_acceptable_and_depend_on_task_and_seed_alone():
    drawn = random_documents(REAL, 5)
    assert {len(set(ids)) for ids in drawn.values()} == {5}
    assert not success_at(drawn, {task.id: task.targets for task in REAL}, 5).any()
    some = random_documents(REAL[5:9], 3)
    assert some == {task.id: drawn[task.id][:3] for task in REAL[5:9]}
    assert random_documents(REAL[5:9], 3, seed=1) != some


def test_the_hit_pass_always_shows_an_acceptable_api_and_the_miss_pass_never(model):
    found = passes(model, TASKS, **OPTIONS)
    assert found.hit.valid.all() and not found.miss.valid.any()
    assert list(found.retrieved) == [True, True, False]  # the last call is of another API
    assert len(model.asked) == 3 * len(TASKS)
    for frame in (found.first, found.hit, found.miss):
        assert list(frame.task) == [task.id for task in TASKS]


def test_a_target_that_was_not_found_is_the_last_of_the_hits(model):
    passes(
        model, TASKS, k=2, **OPTIONS
    )  # BM25 finds other objects' APIs for the wrong call of the last task
    hits = [
        prompt.text
        for prompt in model.asked
        if prompt.id == "list_objects#1" and "API name" in prompt.text
    ][0]
    assert hits.count("API name:") == 2 and hits.index("delete_object") < hits.index("list_objects")


def test_the_second_prompt_is_documentation_and_the_first_prompt_without_the_first_attempt(model):
    passes(model, TASKS, **OPTIONS)
    for text in [prompt.text for prompt in model.asked if prompt.id == "get_object#1"][1:]:
        assert (
            text.endswith(TASKS[1].prompt) and text.startswith('"""\n') and "object_get" not in text
        )


def test_confidence_and_existence_are_those_of_the_first_name(model):
    first = ask(model, TASKS, **OPTIONS)
    assert list(first.exists) == [True, False, True]
    assert first.minimum.tolist() == pytest.approx([math.exp(UNSURE)] * 3)


def test_a_name_of_another_client_exists_only_anywhere():
    first = ask(ReadingModel({"put_object#1": "run_instances"}), TASKS[:1], **OPTIONS)
    assert not first.exists.item() and first.exists_anywhere.item()


def test_k_0_is_refused(model):
    with pytest.raises(UserError, match="k is 0"):
        passes(model, TASKS, k=0, **OPTIONS)


class BoundModel(ReadingModel):
    """Held to choices that do not hold its name, it writes the first of them."""

    def generate(self, requests, decoding):
        for prompt, sample in requests:
            for [done] in super().generate([(prompt, sample)], decoding):
                name = done.tokens[0]
                name = name if name in (prompt.choices or [name]) else prompt.choices[0]
                yield [replace(done, text=name + "()", tokens=(name, "()"))]


def test_names_are_constrained_where_it_retrieves_and_with_the_documents_of_the_free_pass():
    model = BoundModel(MEMORY)
    free = passes(model, TASKS, **OPTIONS)
    retrieve = ~free.first.exists.to_numpy()
    held = constrained(model, TASKS, free, retrieve, **OPTIONS)
    assert held.first is free.first and retrieve.tolist() == [False, True, False]
    assert [prompt.choices for prompt in model.asked[-2:]] == [tuple(sorted(NAMES))] * 2
    for old, new in ((free.hit, held.hit), (free.miss, held.miss)):
        assert (
            new.task.tolist() == old.task.tolist()
            and new.prompt_tokens.tolist() == old.prompt_tokens.tolist()
        )
        assert new.exists.all()


@pytest.mark.parametrize(("chat", "valid"), [(None, False), (True, True)])
def test_only_a_chat_models_answer_loses_its_backticks(chat, valid):
    model = ReadingModel({"put_object#1": "`put_object()` or "})
    model.chat = chat
    assert ask(model, TASKS[:1], **OPTIONS).valid.tolist() == [valid]


def completion(*pairs):
    """A completion of (piece, probability) pairs."""
    pieces, probabilities = zip(*pairs, strict=True)
    logprobs = tuple(map(math.log, probabilities))
    return Completion(
        "t", 0, "".join(pieces), pieces, tuple(range(len(pieces))), logprobs, "stop", 1
    )


FIGURE_8 = completion(
    ("restart", 0.41), ("_", 0.83), ("partition", 0.21), ("(", 0.48), ("\n    ", 0.41), (")", 0.9)
)


def test_figure_8_has_a_confidence_of_021():
    assert confidence(FIGURE_8) == pytest.approx(
        {
            "minimum": 0.21,
            "mean": (0.41 + 0.83 + 0.21) / 3,
            "product": 0.41 * 0.83 * 0.21,
            "last": 0.21,
        }
    )


@pytest.mark.parametrize(
    ("pairs", "code", "least"),
    [
        ([("list", 0.9), ("(", 0.1), (")", 0.1)], None, 0.9),  # only the parenthesis
        ([("lis", 0.9), ("t(", 0.2), (")", 0.1)], None, 0.2),  # ends the name and opens the call
        (
            [("", 0.01), ("list", 0.9), ("", 0.02), ("(", 0.5), (")", 1)],
            None,
            0.9,
        ),  # spells nothing
        (
            [("list", 0.9), (" ", 0.1), ("(", 0.1), (")", 1)],
            None,
            0.9,
        ),  # a blank before the parenthesis
        ([("lis", 0.7), ("t", 0.6), ("\n", 0.1)], None, 0.6),  # a name without a call
        ([("\n", 0.9), ("#", 0.9)], None, 0),  # nothing named
        (
            [("caf", 0.9), ("", 0.3), ("é", 0.8), ("(", 0.1), (")", 1)],
            None,
            0.3,
        ),  # half a character
        (
            [("```\n", 0.1), ("list", 0.8), ("(", 0.3), (")", 0.3), ("\n```", 0.2)],
            "list()",
            0.8,
        ),  # chat
        (
            [
                ("Use `", 0.1),
                ("list", 0.2),
                ("()", 0.2),
                ("`:\n```\n", 0.1),
                ("list", 0.8),
                ("()", 0.3),
                ("\n```", 0.2),
            ],
            "list()",
            0.8,
        ),
    ],
)
def test_the_confidence_is_that_of_the_names_tokens(pairs, code, least):
    assert confidence(completion(*pairs), code)["minimum"] == pytest.approx(least)


def test_an_endpoint_without_log_probabilities_is_one_clear_line():
    with pytest.raises(UserError, match="no log-probabilities"):
        confidence(replace(FIGURE_8, token_logprobs=None))
