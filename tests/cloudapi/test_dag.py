"""Tests documentation augmented generation: which documents are looked up, and how they are shown
in prompts. The model in these tests calls the first API whose documentation it reads.
"""

import ast
import math
import random
import re
from dataclasses import replace

import pandas
import pytest
from beside import table
from doors import refused

from lookuplab.benchmark import evaluate
from lookuplab.cloudapi import dag
from lookuplab.cloudapi.bench import CloudApiBench, confidence
from lookuplab.cloudapi.dag import key_terms, passes
from lookuplab.cloudapi.prompts import ALL_DESIGNS, RULE, docstring, made_example
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter, load_index
from lookuplab.cloudapi.tasks import ApiTask, load_tasks
from lookuplab.cloudapi.validity import bind_error, parse_call
from lookuplab.models import Completion
from lookuplab.retrieval.rankers import Bm25
from lookuplab_notebooks.cloudapibench.precision import random_documents

CALLS = table(__file__, "calls.yaml")
NAMES = "delete_object get_bucket_policy get_object list_objects put_bucket_policy put_object"
SPECS = [ApiSpec("aws", "s3", "s3", name, ()) for name in NAMES.split()]
INDEX = ApiIndex([*SPECS, ApiSpec("aws", "ec2", "ec2", "run_instances", ())])
REAL = load_tasks(limit=60)


def task(name, *others):
    targets = tuple(f"aws/s3.s3.{api}" for api in (name, *others))
    prompt = f"# do it: {name[::-1]}\nclient."
    return ApiTask(name, prompt, "", targets, "aws", "s3", "s3", "low", 0, 0, 0)


TASKS = [task("put_object"), task("get_object"), task("list_objects", "get_bucket_policy")]
BENCH = CloudApiBench(TASKS, index=INDEX)
PUT = replace(BENCH, tasks=TASKS[:1])
MEMORY = {"put_object": "put_object", "get_object": "object_get", "list_objects": "delete_object"}


@pytest.fixture
def model(scripted):
    """Return a model that calls the first API documented in its prompt. If there is none, the model
    calls ``memory[task's id]``.
    """

    def answer(prompt, sample):
        read = re.search(r"^API name: (\w+)", prompt.text, re.MULTILINE)
        name = read[1] if read else made.memory[prompt.id]
        return Completion(prompt.id, sample, name + "()", (name, "()"), (0, 1), (-1, 0), "stop", 1)

    made = scripted(answer)
    made.memory = MEMORY
    return made


def test_a_design_shows_these_lines():
    arguments = Parameter("Next"), Parameter("Max"), Parameter("Pool", required=True)
    pool = ApiSpec("aws", "sync", "sync", "list_pools", arguments, description="Gets a list.")
    short = "Description: Gets a list.\n"
    long = "Required arguments: Pool\nOptional arguments: Next Max\n"
    shown = "", short, long, short + long, "x\n", "Example:\nresponse = client. x \n"
    for design, lines in zip(ALL_DESIGNS, shown, strict=True):
        assert docstring([pool], design, {pool.id: " x "}) == (
            f'"""\nUse the following API information as reference:\n{RULE}\n'
            f'API name: list_pools\nService/Client name: sync\n{lines}{RULE}\n"""\n'
        )
    twice = docstring([pool, pool], "full", {pool.id: 'says """hello""" \n'})
    assert ast.get_docstring(ast.parse(twice)).count("list_pools") == 2


def test_a_made_example_is_a_valid_call_with_the_required_arguments_alone():
    for spec in random.Random(0).sample(load_index().operations, 300):
        call = parse_call(made_example(spec))
        assert call.keywords == spec.required and not bind_error(spec, call), spec.id


def test_a_key_is_service_client_words_name_and_name_words():
    spec = load_index().by_id["azure/blob.BlobClient.upload_blob"]
    assert key_terms(spec, spec.name) == "blob blob client upload_blob upload blob".split()
    assert key_terms(spec, "S3_it2", service=False) == ["s3_it2", "s3", "it2"]
    assert key_terms(spec, math.nan) == key_terms(spec, None) == ["blob", "blob", "client"]


def test_random_documents_are_distinct_never_acceptable_and_the_same_in_every_subset():
    drawn = random_documents(REAL, 5)
    some = REAL[5]
    for task in REAL:
        assert len({*drawn[task.id], *task.targets}) == 5 + len(task.targets)
    assert random_documents([some], 3)[some.id] == drawn[some.id][:3]


HITS = """\
c 3 abc abd True
za 2 ab bc True  # another acceptable one than the API asked for suffices
zf 3 abz abc False  # else that takes the last place
b 1 b a False
ac 3 abc bde True"""


@pytest.mark.parametrize("line", HITS.splitlines())
def test_hits_hold_a_target_and_misses_none(monkeypatch, line):
    """Each ``line`` of HITS has five fields, in which a letter is an API: the acceptable APIs, the
    number of documents, the documents shown as a hit, those shown as a miss, and whether BM25 found
    an acceptable API by itself.
    """
    targets, k, hit, miss, found = line.partition("#")[0].split()
    monkeypatch.setattr(Bm25, "rank", lambda _, ids, k: {id: [*"abcdef"[:k]] for id in ids})
    asked = replace(TASKS[0], targets=tuple(targets))
    first = pandas.DataFrame({"name": ["x"]})
    shown = dag.retrieved_documents([asked], first, int(k), index=INDEX)
    assert shown[:2] == ({asked.id: tuple(hit)}, {asked.id: tuple(miss)})
    assert [*map(str, shown.found)] == [found]


def test_more_documents_than_there_are_is_one_clear_line(model):
    for k in (0, 6):
        with refused(f"k is {k}; it must be from 1 to 5"):
            passes(model, BENCH, k, store=False)


def test_the_hit_pass_always_shows_an_acceptable_api_and_the_miss_pass_never(model):
    found = passes(model, BENCH, store=False)
    assert found.hit.valid.all() and not found.miss.valid.any()
    # BM25 searches for the API that the model has called; in the last task, this is a wrong API
    assert list(found.retrieved) == [True, True, False]
    again = [prompt.text for prompt in model.asked if prompt.id == "get_object"][1:]
    for text in again:  # documentation and the first prompt, without the first answer
        assert text.startswith('"""\n') and text.endswith(TASKS[1].prompt)
        assert "object_get" not in text
    assert len(again) == 2


def test_confidence_and_existence_are_those_of_the_first_name(model):
    with refused("augmentation design is 'nam'; it must be name, ex"):
        CloudApiBench(TASKS, design="nam")  # an error, even if no prompt shows documentation
    model.memory = MEMORY | {"put_object": "run_instances"}
    first = evaluate(model, BENCH, store=False)
    assert [*zip(first.exists, first.exists_anywhere, strict=True)] == [(0, 1), (0, 0), (1, 1)]
    assert first.minimum.tolist() == pytest.approx([math.exp(-1)] * 3)


def test_a_constrained_name_is_one_of_the_clients_operations():
    assert replace(BENCH, constrained=True).prompt(TASKS[0]).choices == tuple(NAMES.split())


def test_only_a_chat_models_answer_loses_its_backticks(model):
    model.memory = {"put_object": "`put_object()` or "}
    assert not evaluate(model, PUT, store=False).valid.item()
    model.chat = True
    assert evaluate(model, PUT, store=False).valid.item()


def completion(text, probabilities):
    """Return a completion. Bars divide ``text`` into its tokens, as in "put|_object|("."""
    pieces = tuple(text.split("|"))
    logprobs = tuple(map(math.log, probabilities))
    return Completion("t", 0, "".join(pieces), pieces, (0,) * len(pieces), logprobs, "stop", 1)


def test_figure_8_has_a_confidence_of_021():
    chances = 0.41, 0.83, 0.21, 0.48, 0.41, 0.9
    figure_8 = completion("restart|_|partition|(|\n    |)", chances)
    mean = sum(chances[:3]) / 3
    product = math.prod(chances[:3])
    found = {"minimum": 0.21, "mean": mean, "product": product, "last": 0.21}
    assert confidence(figure_8) == pytest.approx(found)


@pytest.mark.parametrize(("text", "probabilities", "code", "least"), CALLS["confidence"])
def test_the_confidence_is_that_of_the_names_tokens(text, probabilities, code, least):
    assert confidence(completion(text, probabilities), code)["minimum"] == pytest.approx(least)
