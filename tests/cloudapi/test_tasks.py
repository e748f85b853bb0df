"""Tests how tasks are loaded, and which a limit selects."""

import json
from collections import Counter
from dataclasses import replace

from doors import refused

from lookuplab.cloudapi.tasks import load_tasks
from lookuplab.paths import write_lines


def test_a_limit_spreads_over_the_classes_whatever_their_names(tmp_path):
    assert not load_tasks(limit=0) and len(load_tasks(limit=700)) == 622
    assert sorted(Counter(task.frequency for task in load_tasks(limit=7)).values()) == [2, 2, 3]
    with refused("limit is -5"):
        load_tasks(limit=-5)
    rare = replace(load_tasks(limit=1)[0], frequency="rare")
    write_lines(tmp_path / "tasks.jsonl", [json.dumps(vars(rare))])
    assert load_tasks(tmp_path / "tasks.jsonl", 1) == [rare]
