"""Public counts: the rule of the classes, how sure they are, and the tasks made from them."""

import gzip
import json
from collections import Counter

import numpy as np
import pandas
import pytest
from click.testing import CliRunner

from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.errors import UserError
from recipes.cloudapi import frequency
from recipes.cloudapi.tasks import corrected
from recipes.cloudapi.tasks import main as tasks_recipe

FOLDER = frequency.FREQUENCIES.parent
SEED = int("f15c8efd", 16)  # of the commit that added the card: data/public/cloudapi/README.md


def test_stability_is_the_share_of_resamples_that_keep_the_class():
    """Two repositories, one of which calls the API: drawn again, it is missing in a quarter of the
    draws (0 0), once in a half, twice in a quarter; one or two repositories are medium. Nobody
    calls the other API: low in every draw.
    """
    index = ApiIndex([ApiSpec("aws", "s3", "s3", name, ()) for name in ("do_it", "drop_it")])
    found = np.zeros((3, 2, 2), bool)
    found[:, 0, 0] = True
    kept = frequency.stability(found, index, draws=4000)
    assert kept[0] == pytest.approx(0.75, abs=0.03) and kept[1] == 1


def test_the_table_is_what_the_counts_by_repository_add_up_to():
    """Its 17,054 APIs take every branch of the rule."""
    index, sums = load_index(), Counter()
    table = frequency.read_frequencies(frequency.FREQUENCIES)
    table = table.loc[[spec.id for spec in index.operations]]
    with gzip.open(FOLDER / frequency.BY_REPOSITORY, "rt") as lines:
        for row in map(json.loads, lines):
            sums.update({(provider, name): n for provider, name, n in row["names"]})
    assert [*table.count_name] == [sums[spec.provider, spec.name] for spec in index.operations]
    found = frequency.by_repository(FOLDER / frequency.BY_REPOSITORY, index)
    names = np.array([*frequency.FREQUENCY_CLASSES, ""])[
        frequency.classes(found.sum(axis=1), index)
    ]
    assert found.shape[1] == len(pandas.read_csv(FOLDER / "sources.csv")) == 405
    assert (table["class"] == names).all()
    drawn = frequency.stability(found, index, draws=100)
    assert np.abs(drawn - table.class_stability).max() < 0.25


def test_comments_that_fit_no_task_are_refused_in_one_line(tmp_path):
    path = tmp_path / "comments.csv"
    path.write_text("id,comment,targets\nx#1,Do it,\n")
    with pytest.raises(UserError, match=r"holds no comments for these tasks.*'x#1'"):
        corrected([], path, load_index())


def test_the_command_rebuilds_the_committed_tasks_and_says_which_provider_is_short(tmp_path):
    out = tmp_path / "tasks.jsonl"
    options = {"frequencies": frequency.FREQUENCIES, "comments": FOLDER / "comments.csv"}
    options |= {"seed": SEED, "output": out}
    words = [f"--{name}={value}" for name, value in options.items()]
    result = CliRunner().invoke(tasks_recipe, words)
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == (FOLDER / "tasks.jsonl").read_bytes()
    said = "high: azure has APIs for 53 of its 68 tasks; the other provider gives 15 more"
    assert said in result.output
