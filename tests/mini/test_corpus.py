"""The mini corpus: exact counts, no benchmark wording, documented inventions, code that parses."""

import ast
import random
import re
from collections import Counter

import pytest

from lookuplab.cloudapi.augmentation import augment
from lookuplab.cloudapi.benchmark import frequency_class, load_tasks
from lookuplab.cloudapi.specs import Parameter, load_index
from lookuplab.mini import calls
from lookuplab.mini.counts import POOLS, RANGES, assign
from lookuplab.mini.documents import usage_documents
from lookuplab.mini.invented import invented_documents, spell
from lookuplab.mini.reserved import Reserved


@pytest.fixture(scope="module")
def index():
    return load_index()


@pytest.fixture(scope="module")
def reserved():
    return Reserved(task.comment for task in load_tasks())


@pytest.fixture(scope="module")
def usage(index, reserved):
    """The documents of some benchmark APIs of every class."""
    counts = assign(index)
    some = {task.target: counts.get(task.target, 0) for task in load_tasks()[::40]}
    return some, list(usage_documents(index, some, {}, reserved))


@pytest.fixture(scope="module")
def invented(index, reserved):
    return list(invented_documents(index, 300, reserved))


def test_counts_lie_in_their_class_and_the_pools_are_full(index):
    classes = Counter(frequency_class(count) for count in assign(index).values())
    assert classes == {name: sum(pool.values()) for name, pool in POOLS.items()}
    assert RANGES["low"][1] == 10 and RANGES["medium"] == (11, 100) and RANGES["high"][0] == 101


def test_an_api_is_called_exactly_as_often_as_assigned(usage):
    counts, documents = usage
    called = Counter()
    for source, text in documents:
        names = [n.func.attr for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        called[source.split("@")[0]] += names.count(source.split("@")[0].rsplit(".", 1)[1])
    assert called == Counter({api: n for api, n in counts.items() if n})


def test_no_document_holds_a_benchmark_comment(usage, invented, reserved):
    assert not [source for source, text in usage[1] + invented if reserved.found_in(text)]


def test_about_half_of_the_usage_documents_begin_with_documentation(usage):
    documented = sum(text.startswith('"""') for _, text in usage[1])
    assert 0.4 < documented / len(usage[1]) < 0.6


def test_every_invented_document_documents_the_api_it_calls(invented):
    for _, text in invented:
        for name in re.findall(r"client\.(\w+)\(", text.rsplit('"""', 1)[1]):
            assert f"API name: {name}\n" in text


def test_no_invented_api_exists_or_is_called_twice(index, invented):
    names = [name for _, text in invented for name in re.findall(r"client\.(\w+)\(", text.rsplit('"""', 1)[1])]
    assert len(set(names)) == len(names)
    assert not set(names) & {spec.name for spec in index.specs}


def test_every_document_is_valid_python(usage, invented):
    for _, text in usage[1] + invented:
        compile(text, "document", "exec", ast.PyCF_ONLY_AST)


def test_documents_are_the_same_every_time(index, reserved, invented):
    assert list(invented_documents(index, 20, reserved)) == invented[:20]


def test_reserved_wording_is_found_whatever_its_case_and_punctuation():
    reserved = Reserved(["Add a user to a group"])
    assert reserved.found_in("# now ADD a user,\nto a group!")
    assert not reserved.found_in("add a user to the group")


def test_values_are_python_even_for_keywords():
    for seed in range(20):
        ast.parse(calls.value(Parameter("With"), random.Random(seed)))


def test_identifiers_are_spelled_in_three_styles():
    assert [spell(["hook", "name"], case) for case in ("camel", "lower_camel", "snake")] == ["HookName", "hookName", "hook_name"]


def test_words_of_an_identifier():
    assert calls.words("DBClusterARNList2") == ["db", "cluster", "arn", "list", "2"]


def test_an_augmented_prompt_ends_as_the_prompt_did(index):
    task = load_tasks()[0]
    assert augment(task.prompt, [index.by_id[task.target]], "specification").endswith(task.prompt)
