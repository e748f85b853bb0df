"""What a piece of work costs, counted in small processes, and two ways to do the same."""

import subprocess
import sys

from lookuplab import speed


def test_the_processor_seconds_of_processes_that_were_started_count():
    """In a process of its own: this one may have others that work meanwhile."""
    script = """
import subprocess, sys
from lookuplab.speed import metered
work = "n = 0\\nfor i in range(3_000_000): n += i"
for run in (lambda: exec(work, {}), lambda: subprocess.run([sys.executable, "-c", work], check=True)):
    _, spent = metered(run)
    assert 0.02 < spent["processor_seconds"] < 1.2 * spent["seconds"] + 0.05, spent
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_both_ways_do_all_items_behind_the_same_warm_up_and_unequal_results_are_counted(
    monkeypatch,
):
    spans = iter(
        [(9.0, 8.0), (18.0, 4.0), (2.0, 3.0), (10.0, 6.0)]
    )  # cold, then warm; the kit first

    def metered(run, items):
        seconds, processor = next(spans)
        return run(items), {"seconds": seconds, "processor_seconds": processor}

    monkeypatch.setattr(speed, "metered", metered)
    asked = []

    def way(name, last):
        return lambda items: asked.append((name, items)) or [*items[:-1], last]

    ways = way("kit", 3), way("literal", 4)
    ours, theirs, rows = speed.compared("part", *ways, [1, 2, 3], [5, 6], "m")
    both = [("kit", [5, 6]), ("literal", [5, 6]), ("kit", [1, 2, 3]), ("literal", [1, 2, 3])]
    assert asked == both and (ours, theirs) == ([1, 2, 3], [1, 2, 4])
    found = dict(zip(rows.metric, rows.value, strict=True))
    assert (found["seconds_ratio"], found["processor_seconds_ratio"], found["differing"]) == (
        5,
        2,
        1,
    )
    assert (found["cold_seconds_ratio"], found["cold_processor_seconds_ratio"]) == (2, 0.5)
    assert (found["seconds_kit"], found["cold_seconds_literal"]) == (2, 18)
    assert set(rows.condition) == {"part"} and set(rows.n) == {3} and set(rows.model) == {"m"}


def test_two_items_warm_up_if_nothing_else_is_given(monkeypatch):
    took = {"seconds": 1.0, "processor_seconds": 1.0}
    monkeypatch.setattr(speed, "metered", lambda run, items: (run(items), took))
    asked = []
    rows = speed.compared("part", lambda items: asked.append(items) or items, list, [1, 2, 3])[2]
    assert asked == [[1, 2], [1, 2, 3]] and not rows.metric.str.startswith("cold").any()
