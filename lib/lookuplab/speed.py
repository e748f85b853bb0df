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
    every: int = 1,
) -> tuple[list, list, pd.DataFrame]:
    """The kit's result for each item, the literal reading's, and an artifact's rows on what either took, one after the
    other in this process.

    Both are warmed alike: each way first does ``warm``, by default the first two items. Where ``warm`` is given, the
    rows say what that took, too (``cold``). ``seconds_ratio`` is the literal way's time on the clock over the kit's,
    and hangs on the number of processors; ``processor_seconds_ratio`` is of the seconds of all processors.
    ``differing`` counts the items whose results are not equal.

    The literal way may do only one in ``every`` of the items. Its times are then scaled to all of them, and ``n`` of
    its rows, and of ``differing``, says how many it did. Cold both do that part, for what is read once does not scale.
    """
    ways, results, numbers = {"kit": kit, "literal": literal}, {}, {}
    first, part = (warm or items[:2])[::every], items[::every]
    for state, asked in (
        ("cold_", {"kit": first, "literal": first}),
        ("", {"kit": items, "literal": part}),
    ):
        spent = {}
        for name, way in ways.items():
            results[name], found = metered(way, asked[name])
            scale = len(asked["kit"]) / len(asked[name])
            spent[name] = {unit: took * scale for unit, took in found.items()}
        if warm or not state:
            for unit in ("seconds", "processor_seconds"):
                numbers[f"{state}{unit}_ratio"] = spent["literal"][unit] / spent["kit"][unit]
                numbers |= {f"{state}{unit}_{name}": spent[name][unit] for name in ways}
        if state and warm and every > 1:
            kit(warm)  # what the literal way leaves out
    ours, theirs = results["kit"], results["literal"]
    pairs = zip(ours[::every], theirs, strict=True)
    numbers["differing"] = sum(one != other for one, other in pairs)
    few = "seconds_literal", "processor_seconds_literal", "differing"
    rows = [
        {"model": model, "condition": condition, "metric": name, "value": float(value)}
        | {"n": len(first if "cold" in name else theirs if name in few else items)}
        for name, value in numbers.items()
    ]
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
