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

    Before that each way is warmed: the kit does ``warm`` (by default all items; ``kit_cold_*`` is what this takes),
    the literal way the first two of them, and what that leaves on disk serves both. ``seconds_ratio`` is the literal
    way's time on the clock over the kit's, and hangs on the number of processors; ``processor_seconds_ratio`` is of
    the seconds of all processors. ``differing`` counts the items whose results are not equal.
    """
    warm = warm or items
    _, cold = metered(lambda: kit(warm))
    literal(warm[:2])
    (ours, fast), (theirs, slow) = metered(lambda: kit(items)), metered(lambda: literal(items))
    numbers = {f"{name}_ratio": slow[name] / fast[name] for name in fast}
    for way, spent in (("kit_cold", cold), ("kit", fast), ("literal", slow)):
        numbers |= {f"{way}_{name}": value for name, value in spent.items()}
    numbers["differing"] = sum(one != other for one, other in zip(ours, theirs, strict=True))
    named = {"model": model, "condition": condition, "n": len(items)}
    rows = [{**named, "metric": name, "value": float(value)} for name, value in numbers.items()]
    return ours, theirs, pd.DataFrame(rows)


def metered(run: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """What ``run`` returns, and its ``seconds`` on the clock and ``processor_seconds``: those of this process and of
    all that it started. On a busy machine the clock depends on others, processor time hardly.
    """
    start, before = time.perf_counter(), _processor_seconds()
    result = run()
    spent = {"seconds": time.perf_counter() - start}
    return result, spent | {"processor_seconds": _processor_seconds() - before}


def _processor_seconds() -> float:
    """Of this process and of those it started; those that have ended are in the times of their parent."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.Error):  # it has just ended
            total += sum(process.cpu_times()[:4])
    return total
