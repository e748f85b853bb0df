"""Tests tasks made from a table of frequencies: the class of each API, and equal difficulty of the
classes.
"""

import pandas
from doors import refused

from lookuplab import paths
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.cloudapi.tasks import COMPOSITION
from lookuplab.paths import json_lines
from recipes.cloudapi import tasks
from recipes.cloudapi.frequency import read_frequencies

PUBLIC = paths.DATA / "public" / "cloudapi"


def test_every_class_has_the_same_providers_and_numbers_of_required_arguments():
    made = tasks.matched(load_index(), read_frequencies(PUBLIC / "frequencies.csv.gz"), seed=1)
    frame = pandas.DataFrame(made)
    assert frame.frequency.value_counts().to_dict() == COMPOSITION
    kinds = [frame.provider, frame.n_required.clip(upper=4)]
    shares = pandas.crosstab(kinds, frame.frequency, normalize="columns")
    assert (shares.max(axis=1) - shares.min(axis=1)).max() < 0.01


def test_counts_without_enough_frequent_apis_give_no_tasks():
    counts = pandas.DataFrame({"count_name": {"aws/s3.s3.put_object": 900}})
    index = ApiIndex(one for one in load_index().specs if one.service == "s3")
    with refused("too few APIs with the same required arguments"):
        tasks.matched(index, counts)


def test_the_public_counts_are_what_the_repositories_add_up_to():
    table = read_frequencies(PUBLIC / "frequencies.csv.gz")
    specs = load_index().operations
    table = table.loc[[spec.id for spec in specs]]
    names = pandas.Index([f"{spec.provider} {spec.name}" for spec in specs])
    rows = [
        {f"{one} {name}": n for one, name, n in record["names"]}
        for _, record in json_lines(PUBLIC / "per_repository.jsonl.gz")
    ]
    counts = pandas.DataFrame(rows).reindex(columns=names.unique()).fillna(0)
    assert [*table.count_name] == [*counts.sum()[names]]


def test_another_version_is_accepted_and_another_number_is_not():
    names = "read_u16", "read_u16_v2", "read_u32"
    specs = [ApiSpec("p", "m", "c", name, ()) for name in names]
    accepted = tasks.acceptable_targets(specs[0], ApiIndex(specs))
    assert accepted == (specs[0].id, specs[1].id)
