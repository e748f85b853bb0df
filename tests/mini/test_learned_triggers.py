"""Tests models that ask for documentation by a mark: the tasks on which they are tested, and which
APIs are looked up at a given probability of the mark.
"""

from collections import Counter

import numpy as np
from pandas import DataFrame

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import triggered
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab_notebooks.cloudapibench.triggers import looked_up
from recipes.mini import asking
from recipes.mini.corpus import DEVELOPMENT_TASKS, FURTHER


def test_half_of_the_drawn_apis_are_tested_on_two_tasks_at_most_and_no_development_api():
    further = load_tasks(FURTHER)
    tests = asking.tested(further[::-1])
    assert tests == asking.tested(further)  # in whatever order the further tasks are
    apis = Counter(task.target for task in tests)
    assert len(apis) == 375 and max(apis.values()) == 2
    assert len({task.target for task in tests if not task.count_name}) == 125
    assert not apis.keys() & {task.target for task in load_tasks(DEVELOPMENT_TASKS)}


FIRST = DataFrame({"asked": [0.9, 0.1, 0.6, 0.3], "minimum": [0.2, 0.4, 0.6, 0.8]}).assign(
    model="m", valid=[False, True, False, True], exists=True, exists_anywhere=True
)


def test_asked_looks_up_where_the_mark_is_likely():
    asked = triggered(FIRST, "asked", [0.2, 0.5, 1])
    assert asked.T.astype(int).tolist() == [[1, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]


def test_at_equal_lookups_asking_helps_those_with_the_likeliest_mark():
    p = Passes(1, FIRST, FIRST.assign(valid=True), FIRST.assign(valid=False), np.full(4, True))
    ways = looked_up(p, [1, 2, 3, 4], [0, 0.5, 1], 100)
    for way, expected in {"asked": 1, "confidence": 0.75, "random": 0.75}.items():
        assert ways[way].mean(axis=0).tolist() == [0.5, expected, 1]
    # the answer to the task with the likeliest mark is already wrong, so a wrong document costs
    # nothing
    assert looked_up(p, [1, 2, 3, 4], [0.25], 0)["asked"].mean() == 0.5
