"""What a piece of work costs, and what the literal reading of a paper pays for the same."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import pandas as pd
import psutil

Item, Result = TypeVar("Item"), TypeVar("Result")


def compared(
    condition: str,
    kit: Callable[[Sequence[Item]], list],
    literal: Callable[[Sequence[Item]], list],
    items: Sequence[Item],
    warm: Sequence[Item] = (),
    model: str = "kit",
) -> tuple[list, list, pd.DataFrame]:
    """The kit's result for each item, the literal reading's, and an artifact's rows on what either took, one after the
    other in this process.

    Both are warmed alike: each way first does ``warm``, by default the first two items. Where ``warm`` is given, the
    rows say what that took, too (``cold``). ``seconds_ratio`` is the literal way's time on the clock over the kit's,
    and hangs on the number of processors; ``processor_seconds_ratio`` is of the seconds of all processors.
    ``differing`` counts the items whose results are not equal.
    """
    ways, results, numbers = {"kit": kit, "literal": literal}, {}, {}
    for state, asked in (("cold_", warm or items[:2]), ("", items)):
        spent = {}
        for name, way in ways.items():
            results[name], spent[name] = metered(way, asked)
        if warm or asked is items:
            for unit in ("seconds", "processor_seconds"):
                numbers[f"{state}{unit}_ratio"] = spent["literal"][unit] / spent["kit"][unit]
                numbers |= {f"{state}{unit}_{name}": spent[name][unit] for name in ways}
    ours, theirs = results["kit"], results["literal"]
    numbers["differing"] = sum(one != other for one, other in zip(ours, theirs, strict=True))
    named = {"model": model, "condition": condition, "n": len(items)}
    rows = [{**named, "metric": name, "value": float(value)} for name, value in numbers.items()]
    return ours, theirs, pd.DataFrame(rows)


def metered(run: Callable[..., Result], *arguments: object) -> tuple[Result, dict[str, float]]:
    """What ``run`` returns, and its ``seconds`` on the clock and ``processor_seconds``: those of this process and of
    all that it started. On a busy machine the clock depends on others, processor time hardly.
    """
    start, before = time.perf_counter(), _processor_seconds()
    result = run(*arguments)
    spent = {"seconds": time.perf_counter() - start}
    return result, spent | {"processor_seconds": _processor_seconds() - before}


def _processor_seconds() -> float:
    """Of this process and of those it started; those that have ended are in the times of their parent."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.Error):  # it has just ended
            total += sum(process.cpu_times()[:4])
    return total
