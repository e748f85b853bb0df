"""Keys and queries, what BM25 finds with them over the committed index, and the two controls."""

import math
import random
from dataclasses import replace

import pytest

from lookuplab.cloudapi.benchmark import load_tasks
from lookuplab.cloudapi.retrieval import (
    api_ranker,
    check_targets,
    key_terms,
    oracle,
    query_terms,
    random_documents,
    retrieve,
    words,
)
from lookuplab.cloudapi.results import target_name
from lookuplab.cloudapi.specs import ApiIndex, load_index
from lookuplab.errors import UserError
from lookuplab.retrieval.metrics import success_at

TASKS = load_tasks(limit=60)
EXACT = {task.id: target_name(task) for task in TASKS}
TARGETS = {task.id: task.targets for task in TASKS}


@pytest.mark.parametrize(("name", "expected"), [
    ("list_objects_v2", "list objects v2"), ("acm-pca", "acm pca"), ("BlobClient", "blob client"), ("s3", "s3"),
    ("ServiceFabricClientAPIs", "service fabric client apis"), ("CustomIPPrefixesOperations",
                                                               "custom ip prefixes operations"),
    ("S3Client", "s3 client"), ("2FA", "2 fa"), ("_", ""),
])
def test_names_are_split_into_lower_case_words(name, expected):
    assert words(name) == expected.split()


def test_a_key_is_service_client_words_name_and_name_words():
    index = load_index()
    assert key_terms(index.by_id["aws/acm-pca.acm-pca.get_policy"]) == "acm-pca acm pca get_policy get policy".split()
    assert key_terms(index.by_id["azure/blob.BlobClient.upload_blob"]) == \
        "blob blob client upload_blob upload blob".split()


def test_the_query_of_the_right_name_is_the_key():
    index = load_index()
    assert all(query_terms(task, EXACT[task.id]) == key_terms(index.by_id[task.target]) for task in TASKS)


def test_the_ablation_leaves_the_service_out():
    assert query_terms(TASKS[0], "Get_it", service=False) == ["get_it", "get", "it"]


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_without_a_call_the_query_is_the_service_alone(nothing):
    assert query_terms(TASKS[0], nothing) == query_terms(TASKS[0], "")[:-1]
    assert query_terms(TASKS[0], nothing, service=False) == []


def test_the_exact_name_finds_its_api():
    operations = [spec for spec in load_index().specs if spec.operation]
    chosen = random.Random(0).sample(operations, 300)
    ranker = api_ranker(load_index())
    found = ranker.rank({spec.id: key_terms(spec) for spec in chosen}, 1)
    assert sum(found[spec.id] == [spec.id] for spec in chosen) >= 297


def test_only_operations_are_found():
    index = load_index()
    assert all(index.by_id[name].operation for name in api_ranker(index).ids)
    assert sum(spec.operation for spec in index.specs) == len(api_ranker(index).ids)


def test_the_service_helps_to_find_a_misspelt_name():
    plural = {task: name + "s" for task, name in EXACT.items()}
    with_service = success_at(retrieve(TASKS, plural, 5), TARGETS, 5)
    without = success_at(retrieve(TASKS, plural, 5, service=False), TARGETS, 5)
    assert with_service.mean() > without.mean()


def test_rankings_have_the_asked_depth_and_come_by_task():
    rankings = retrieve(TASKS, EXACT, 3)
    assert list(rankings) == [task.id for task in TASKS] and {len(set(ids)) for ids in rankings.values()} == {3}
    assert retrieve(TASKS[::-1], EXACT, 3) == rankings


def test_a_task_without_first_pass_is_one_clear_line():
    with pytest.raises(UserError, match="no first pass of 60 tasks"):
        retrieve(TASKS, {}, 3)


def test_the_oracle_gives_the_api_asked_for():
    assert oracle(TASKS) == {task.id: (task.target,) for task in TASKS}


def test_random_documents_are_distinct_and_never_acceptable():
    drawn = random_documents(TASKS, 5)
    assert {len(set(ids)) for ids in drawn.values()} == {5}
    assert not success_at(drawn, TARGETS, 5).any()
    assert len({name for ids in drawn.values() for name in ids}) > 250  # not the same ones for every task


def test_random_documents_depend_on_task_and_seed_alone():
    drawn = random_documents(TASKS, 3)
    assert random_documents(TASKS[5:9], 3) == {task.id: drawn[task.id] for task in TASKS[5:9]}
    assert {task: ids[:1] for task, ids in drawn.items()} == random_documents(TASKS, 1)
    assert random_documents(TASKS, 3, seed=1) != drawn


def test_random_documents_of_a_small_index_avoid_the_only_target():
    task = TASKS[0]
    others = [spec for spec in load_index().specs if spec.operation and spec.id not in task.targets][:2]
    small = ApiIndex([load_index().by_id[task.target], *others])
    task = replace(task, targets=(task.target,))
    assert set(random_documents([task], 2, index=small)[task.id]) == {spec.id for spec in others}
    with pytest.raises(UserError, match="too few for 3"):
        random_documents([task], 3, index=small)


@pytest.mark.parametrize("use", [
    check_targets, lambda tasks, index: retrieve(tasks, EXACT, 1, index=index),
    lambda tasks, index: oracle(tasks, index), lambda tasks, index: random_documents(tasks, 1, index=index),
], ids=["check_targets", "retrieve", "oracle", "random_documents"])
def test_an_index_without_the_target_is_one_clear_line(use):
    index = ApiIndex(spec for spec in load_index().specs if spec.id != TASKS[0].target)
    with pytest.raises(UserError, match=f"task {TASKS[0].id} asks for {TASKS[0].target}, which is not in the API index"):
        use(TASKS, index)


def test_k_below_one_is_refused():
    with pytest.raises(UserError, match="k is 0"):
        retrieve(TASKS, EXACT, 0)
    with pytest.raises(UserError, match="k is 0"):
        random_documents(TASKS, 0)
