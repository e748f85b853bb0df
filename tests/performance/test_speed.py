"""What a piece of work costs, counted in small processes, and two ways to do the same."""

from pathlib import Path

import speed


def test_the_processor_seconds_of_processes_that_were_started_count(run_python):
    """In a process of its own: this one may have others that work meanwhile."""
    script = """
import subprocess, sys
from speed import metered
work = "n = 0\\nfor i in range(3_000_000): n += i"
command = [sys.executable, "-c", work]
for run in (lambda: exec(work, {}), lambda: subprocess.run(command, check=True)):
    _, spent = metered(run)
    assert 0.02 < spent["processor_seconds"] < 1.2 * spent["seconds"] + 0.05, spent
"""
    run_python(script, cwd=Path(speed.__file__).parent)


def test_a_part_is_scaled_to_all_behind_the_same_warm_up_and_unequal_results_are_counted(
    monkeypatch,
):
    spans = iter([9, 18, 2, 10])  # cold, then warm; the kit first
    asked, done = [], []

    def metered(run, items):
        asked.append(items)
        return run(items), {"seconds": next(spans)}

    monkeypatch.setattr(speed, "metered", metered)

    def kit(items):
        done.append(items)
        return items

    rows = speed.compared(
        "part", kit, lambda items: [*items[:-1], 9], [1, 2, 3], [5, 6], "m", every=2
    )
    assert asked == [[5], [5], [1, 2, 3], [1, 3]] and done == [[5], [5, 6], [1, 2, 3]]
    found = {row.metric: (row.value, row.n) for row in rows.itertuples()}
    assert found == {
        "cold_seconds_ratio": (2, 1),
        "cold_seconds_kit": (9, 1),
        "cold_seconds_literal": (18, 1),
        "seconds_ratio": (7.5, 3),
        "seconds_kit": (2, 3),
        "seconds_literal": (15, 2),
        "differing": (1, 2),
    }
