"""The benchmark: composition, diversity, targets, reproducibility."""

from collections import Counter

import pandas
import pytest

from lookuplab.cloudapi import benchmark
from lookuplab.cloudapi.benchmark import COMPOSITION, frequency_class, load_tasks
from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.errors import UserError


@pytest.fixture(scope="module")
def tasks():
    return load_tasks()


def _api(name, description, flags=()):
    return ApiSpec("aws", "s3", "s3", name, (), description=description, flags=flags)


def test_a_count_decides_the_class():
    assert "".join(frequency_class(n)[0] for n in (0, 10, 11, 100, 101)) == "llmmh"


def test_the_committed_tasks_are_of_the_papers_numbers_and_kinds(tasks):
    assert Counter(task.frequency for task in tasks) == COMPOSITION
    for name in COMPOSITION:
        of_class = [task for task in tasks if task.frequency == name]
        assert {task.provider for task in of_class} == {"aws", "azure"}
        assert {0, 1, 2, 3, 4} <= {task.n_required for task in of_class}
    assert max(Counter(task.target for task in tasks).values()) == 3
    assert len({task.prompt for task in tasks}) == len({task.id for task in tasks}) == 622
    assert {api for task in tasks for api in task.targets} <= load_index().by_id.keys()


def test_a_name_of_several_clients_is_asked_for_where_both_counts_agree():
    put, drop = "aws/s3.s3.put_object", "aws/sqs.sqs.delete_message"
    described, blobs = "aws/ec2.ec2.describe_instances", "azure/blob.ContainerClient.delete_blobs"
    rows = {put: (900, 101), drop: (10, 3), described: (900, 100), blobs: (54, 6)}
    counts = pandas.DataFrame.from_dict(rows, "index", columns=["count_name", "count_bound"])
    found = benchmark.candidates(load_index(), counts)
    classes = {spec.id: place for place, specs in found.items() for spec in specs}
    asked = {put: ("high", "aws"), drop: ("low", "aws"), blobs: ("medium", "azure")}
    assert {api: classes.get(api) for api in rows} == {described: None} | asked


def test_versions_and_equal_descriptions_are_acceptable_targets_but_no_shared_notice():
    notice = "This operation is not supported by directory buckets. "
    a, b = _api("list_objects", "Returns objects."), _api("list_objects_v2", "Returns others.")
    c, d = _api("drop_thing", "Deletes an object."), _api("erase_thing", "Deletes an  object.")
    e, f = _api("get_it", notice + "Returns its Region."), _api("drop_it", notice + "Deletes it.")
    index = ApiIndex([a, b, c, d, e, f])
    assert benchmark.acceptable_targets(a, index) == (a.id, b.id)
    assert benchmark.acceptable_targets(d, index) == (d.id, c.id)
    assert benchmark.acceptable_targets(e, index) == (e.id,)


def test_flagged_operations_and_those_without_a_verb_are_not_sampled():
    good = _api("delete_key", "Deletes a key of yours.")
    flagged = _api("get_key", "Gets a key of yours.", flags=("autofilled",))
    index = ApiIndex([good, flagged, _api("key_of", "A key.")])
    assert [bool(benchmark.obstacle(one)) for one in index.operations] == [False, True, True]
    nowhere = pandas.DataFrame({"count_name": {}, "count_bound": {}})
    with pytest.raises(UserError, match="only 0 of 205 high-frequency tasks"):
        benchmark.build(index, nowhere)


def test_where_no_class_is_stated_the_count_by_name_decides():
    apis = load_index().operations[:3]
    counts = {"count_name": [500, 50, 0], "count_bound": 5}
    counts = pandas.DataFrame(counts, index=[spec.id for spec in apis])
    pairs = [(spec, "Do it") for spec in apis]
    made = benchmark.tasks_of(pairs, load_index(), counts, Counter())
    found = [(task.frequency, task.count_name, task.count_bound) for task in made]
    assert found == [("high", 500, 5), ("medium", 50, 5), ("low", 0, 5)]


def test_a_limit_spreads_over_the_classes():
    assert not load_tasks(limit=0) and len(load_tasks(limit=700)) == 622
    assert sorted(Counter(task.frequency for task in load_tasks(limit=7)).values()) == [2, 2, 3]


def test_the_prompts_are_the_papers():
    aws = ApiSpec("aws", "iam", "iam", "add_user_to_group", ())
    assert task_prompt(aws, "Add a user to an IAM group") == (
        'import boto3\n\n# initialize iam client\nclient = boto3.client("iam")\n\n'
        "# Add a user to an IAM group\nresponse = client."
    )
    azure = ApiSpec("azure", "blob", "ContainerClient", "", (), module="azure.storage.blob")
    assert task_prompt(azure, "Mark blobs or snapshots for deletion") == (
        "from azure.storage.blob import ContainerClient\n"
        "from consts import client_args, client_kwargs\n\n# initialize blob client\n"
        "client = ContainerClient(*client_args, **client_kwargs)\n\n"
        "# Mark blobs or snapshots for deletion\nresponse = client."
    )
