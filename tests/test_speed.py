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


def test_both_ways_do_all_items_once_behind_their_warm_up_and_unequal_results_are_counted(
    monkeypatch,
):
    spans = iter([(9.0, 8.0), (2.0, 3.0), (10.0, 6.0)])  # the kit cold, the kit, the literal way

    def metered(run):
        seconds, processor = next(spans)
        return run(), {"seconds": seconds, "processor_seconds": processor}

    monkeypatch.setattr(speed, "metered", metered)
    asked = []

    def way(name, last):
        return lambda items: asked.append((name, items)) or [*items[:-1], last]

    ours, theirs, rows = speed.compared(
        "part", way("kit", 3), way("literal", 4), [1, 2, 3], model="m"
    )
    assert asked == [
        ("kit", [1, 2, 3]),
        ("literal", [1, 2]),
        ("kit", [1, 2, 3]),
        ("literal", [1, 2, 3]),
    ]
    assert (ours, theirs) == ([1, 2, 3], [1, 2, 4])
    found = dict(zip(rows.metric, rows.value, strict=True))
    assert (found["seconds_ratio"], found["processor_seconds_ratio"], found["differing"]) == (
        5,
        2,
        1,
    )
    assert (found["kit_cold_seconds"], found["kit_seconds"], found["literal_seconds"]) == (9, 2, 10)
    assert set(rows.condition) == {"part"} and set(rows.n) == {3} and set(rows.model) == {"m"}
