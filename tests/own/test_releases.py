"""Tests the comparison of two releases from an index that is a folder: what changed, and which
release a call fits.
"""

import textwrap

import pytest
from doors import refused
from pandas import DataFrame

from lookuplab import paths
from lookuplab_notebooks.own import releases
from recipes.cloudapi import offered

OLD = '''
    def open_the_shop(key):
        """Open the shop in the morning."""
    def count_all_money(currency, deep=False):
        """Count the money in the till."""
    def sell_one_thing(thing):
        """Remove a thing from the shelf."""
    def lock_the_door(*, backend=None): ...
'''
NEW = '''
    from .front import open_the_shop
    def count_all_money(currency, *, rounded=False, backend=None):
        """Count the money in the till."""
    def sell_many_things(things, backend=None):
        """Remove several things from the shelf."""
    def lock_the_door(*, backend=None): ...
'''
FRONT = '''
    def open_the_shop(key, *, backend=None):
        """Open the shop in the morning."""
'''


@pytest.fixture(scope="module")
def compared(tmp_path_factory, write_wheel):
    """Compare the two releases without the index from which they were downloaded."""
    index, place = tmp_path_factory.mktemp("index"), tmp_path_factory.mktemp("compared")
    for version, texts in ("1.0", {"__init__": OLD}), ("2.0", {"__init__": NEW, "front": FRONT}):
        files = {f"tinyshop/{name}.py": textwrap.dedent(text) for name, text in texts.items()}
        write_wheel(index, "tiny_shop", version, files)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "DOWNLOADS", place)
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(index))
        for version in ("1.0", "2.0"):
            offered.unpacked(f"tiny-shop=={version}")
        # the releases are unpacked, so the index is no longer needed
        patch.setenv("PIP_FIND_LINKS", str(place / "nothing"))
        with refused(r"pip cannot download tiny-shop==3\.0: "):
            offered.unpacked("tiny-shop==3.0")
        yield releases.compare("tiny-shop==1.0", "tiny-shop==2.0", place)


def test_tasks_ask_for_what_was_removed_added_or_changed(compared):
    """Two changes make no task: a function that moved but is still offered, and a new parameter
    that most functions got.
    """
    asked = {(task.frequency, task.target.rpartition(".")[2]) for task in compared.tasks}
    changes = {"removed": "sell_one_thing", "added": "sell_many_things"}
    assert asked == {*changes.items(), ("changed", "count_all_money")}


def test_a_call_is_judged_against_both_releases(compared):
    task = {task.frequency: task for task in compared.tasks}
    calls = {
        "sell_one_thing('tea')": "removed",
        "sell_many_things(['tea'])": "added",
        "count_all_money('EUR', True)": "changed",
        "count_all_money('EUR', rounded=True)": "changed",
        "count_all_money('EUR')": "changed",
        None: "changed",
    }
    asked = [*calls], [task[change] for change in calls.values()]
    assert releases.fits(*asked, compared.old).tolist() == [1, 0, 1, 0, 1, 0]
    assert releases.fits(*asked, compared.new).tolist() == [0, 1, 0, 1, 1, 0]


def test_every_call_counts_once_in_the_table(compared):
    tasks = [task for task in compared.tasks if task.frequency == "changed"] * 3
    calls = ["count_all_money('EUR', True)", "count_all_money('EUR')", "count_all_money()"]
    first = DataFrame({"call": calls, "frequency": "changed", "model": "m", "cluster": [1, 2, 3]})
    rows = releases.fit_rows(first, tasks, compared, "base")
    found = {row["condition"]: round(row["value"], 1) for row in rows if row["n"] == 3}
    assert found["base: only_old/changed"] == found["base: both/all"] == 33.3
    assert found["base: neither/all"] == 33.3 and found["base: only_new/all"] == 0
    assert found["base: new/all - base: old/all"] == -33.3
