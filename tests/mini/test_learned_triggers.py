"""Models that ask: who is taught and who tested, and lookups by the mark's probability."""

import asking
import numpy as np
from learned_triggers import looked_up
from pandas import DataFrame

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import triggered
from lookuplab.cloudapi.tasks import load_tasks
from recipes.mini.corpus import DEVELOPMENT_TASKS, FURTHER


def test_half_of_the_drawn_apis_are_tested_on_two_tasks_at_most_and_no_development_api():
    further = load_tasks(FURTHER)
    tests = asking.tested(further[::-1])
    assert tests == asking.tested(further)  # whatever the order
    apis = [task.target for task in tests]
    assert len({*apis}) == 375 and max(map(apis.count, apis)) == 2
    never = {task.target for task in tests if not task.count_name}
    assert len(never) == 125
    assert not {*apis} & {task.target for task in load_tasks(DEVELOPMENT_TASKS)}


def test_no_text_that_teaches_calls_an_api_that_is_tested():
    further = load_tasks(FURTHER)
    apis = {api for task in asking.tested(further) for api in task.targets}
    calls = asking.taught(further)
    assert len(calls) > 1_300 and not {task.target for task in calls} & apis
    for task, written in calls.items():
        assert written.startswith(f"{task.target.rpartition('.')[2]}(")


def first_pass():
    frame = DataFrame({"asked": [0.9, 0.1, 0.6, 0.3], "minimum": [0.2, 0.4, 0.6, 0.8]})
    return frame.assign(
        model="m", valid=[False, True, False, True], exists=True, exists_anywhere=True
    )


def test_asked_looks_up_where_the_mark_is_likely():
    asked = triggered(first_pass(), "asked", [0.2, 0.5, 1])
    assert asked.T.astype(int).tolist() == [[1, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]


def test_at_equal_lookups_asking_helps_those_with_the_likeliest_mark():
    first = first_pass()
    right, wrong = first.assign(valid=True), first.assign(valid=False)
    p = Passes(1, first, right, wrong, np.full(4, True))
    ways = looked_up(p, "errors", [1, 2, 3, 4], [0, 0.5, 1], 100)
    assert ways["errors asked"].mean(axis=0).tolist() == [0.5, 1, 1]
    assert ways["errors confidence"].mean(axis=0).tolist() == [0.5, 0.75, 1]
    assert ways["errors random"].mean(axis=0).tolist() == [0.5, 0.75, 1]
    assert looked_up(p, "m", [1, 2, 3, 4], [0.25], 0)["m asked"].mean() == 0.5  # the mark was right
