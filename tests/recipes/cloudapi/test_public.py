"""Public counts: the rule of the classes, how sure they are, and the tasks made from them."""

import numpy as np
import pandas
import pytest
from click.testing import CliRunner

from lookuplab.cloudapi.specs import load_index
from lookuplab.cloudapi.tasks import BOUNDS
from lookuplab.errors import UserError
from lookuplab.paths import json_lines
from lookuplab_notebooks.cloudapibench.balance import markdown
from recipes.cloudapi import frequency
from recipes.cloudapi.tasks import corrected
from recipes.cloudapi.tasks import main as tasks_recipe

FOLDER = frequency.FREQUENCIES.parent
SEED = int("f15c8efd", 16)  # of the commit that added the card: data/public/cloudapi/README.md


def test_the_table_is_what_the_counts_by_repository_add_up_to():
    """Its 17,054 APIs take every branch of the rule. ``class_stability`` is the share of resamples
    of the repositories, here of 100, in which the calls give the same class.
    """
    index = load_index()
    table = frequency.read_frequencies(frequency.FREQUENCIES)
    table = table.loc[[spec.id for spec in index.operations]]
    names = pandas.Index([f"{spec.provider} {spec.name}" for spec in index.operations])
    rows = [
        {f"{one} {name}": n for one, name, n in record["names"]}
        for _, record in json_lines(FOLDER / "per_repository.jsonl.gz")
    ]
    counts = np.nan_to_num([names.map(row) for row in rows]).astype("float32")
    assert [*table.count_name] == [*counts.sum(axis=0)]
    stated = np.array([*frequency.FREQUENCY_CLASSES, ""])[frequency.classes(table, index)]
    assert (table["class"] == stated).all()
    times = np.random.default_rng(1).multinomial(405, np.full(405, 1 / 405), size=100)
    sums = times.astype("float32") @ counts
    same = np.digitize(sums, BOUNDS, right=True) == np.digitize(counts.sum(0), BOUNDS, right=True)
    assert np.abs(same.mean(axis=0) - table.class_stability).max() < 0.25


def test_comments_that_fit_no_task_are_refused_in_one_line(tmp_path):
    path = tmp_path / "comments.csv"
    path.write_text("id,comment,targets\nx#1,Do it,\n")
    with pytest.raises(UserError, match=r"holds no comments for these tasks.*'x#1'"):
        corrected([], path, load_index())


def test_the_command_rebuilds_the_committed_tasks(tmp_path):
    out = tmp_path / "tasks.jsonl"
    files = {"frequencies": frequency.FREQUENCIES, "comments": FOLDER / "comments.csv"}
    options = files | {"known": FOLDER / "readings.csv", "seed": SEED, "output": out}
    words = [f"--{name}={value}" for name, value in options.items()]
    result = CliRunner().invoke(tasks_recipe, words)
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == (FOLDER / "tasks.jsonl").read_bytes()


def test_the_card_says_how_the_classes_differ():
    files = [FOLDER / "first_draw.jsonl.gz", FOLDER / "tasks.jsonl"]
    assert markdown(files).partition("--: |\n")[2] in (FOLDER / "README.md").read_text()
