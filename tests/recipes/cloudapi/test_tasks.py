"""The draw of tasks: candidates, acceptable targets, classes."""

from collections import Counter

import pandas
import pytest

from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.errors import UserError
from recipes.cloudapi import tasks


def _api(name, description, flags=()):
    return ApiSpec("aws", "s3", "s3", name, (), description=description, flags=flags)


def test_a_name_of_several_clients_is_asked_for_where_both_counts_agree():
    put, drop = "aws/s3.s3.put_object", "aws/sqs.sqs.delete_message"
    described, blobs = "aws/ec2.ec2.describe_instances", "azure/blob.ContainerClient.delete_blobs"
    rows = {put: (900, 101), drop: (10, 3), described: (900, 100), blobs: (54, 6)}
    counts = pandas.DataFrame.from_dict(rows, "index", columns=["count_name", "count_bound"])
    found = tasks.candidates(load_index(), counts)
    classes = {spec.id: place for place, specs in found.items() for spec in specs}
    asked = {put: ("high", "aws"), drop: ("low", "aws"), blobs: ("medium", "azure")}
    assert {api: classes.get(api) for api in rows} == {described: None} | asked


def test_versions_and_equal_descriptions_are_acceptable_targets_but_no_shared_notice():
    notice = "This operation is not supported by directory buckets. "
    a, b = _api("list_objects", "Returns objects."), _api("list_objects_v2", "Returns others.")
    c, d = _api("drop_thing", "Deletes an object."), _api("erase_thing", "Deletes an  object.")
    e, f = _api("get_it", notice + "Returns its Region."), _api("drop_it", notice + "Deletes it.")
    index = ApiIndex([a, b, c, d, e, f])
    assert tasks.acceptable_targets(a, index) == (a.id, b.id)
    assert tasks.acceptable_targets(d, index) == (d.id, c.id)
    assert tasks.acceptable_targets(e, index) == (e.id,)


def test_flagged_operations_and_those_without_a_verb_are_not_sampled():
    good = _api("delete_key", "Deletes a key of yours.")
    flagged = _api("get_key", "Gets a key of yours.", flags=("autofilled",))
    index = ApiIndex([good, flagged, _api("key_of", "A key.")])
    assert [bool(tasks.obstacle(one)) for one in index.operations] == [False, True, True]
    nowhere = pandas.DataFrame({"count_name": {}, "count_bound": {}})
    with pytest.raises(UserError, match="only 0 of 205 high-frequency tasks"):
        tasks.build(index, nowhere)


def test_where_no_class_is_stated_the_count_by_name_decides():
    apis = load_index().operations[:3]
    counts = {"count_name": [500, 50, 0], "count_bound": 5}
    counts = pandas.DataFrame(counts, index=[spec.id for spec in apis])
    pairs = [(spec, "Do it") for spec in apis]
    made = tasks.tasks_of(pairs, load_index(), counts, Counter())
    found = [(task.frequency, task.count_name, task.count_bound) for task in made]
    assert found == [("high", 500, 5), ("medium", 50, 5), ("low", 0, 5)]
