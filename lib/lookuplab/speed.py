"""What a piece of work costs, and what the literal reading of a paper pays for the same."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd
import psutil


def compared(
    condition: str,
    kit: Callable[[Sequence], list],
    literal: Callable[[Sequence], list],
    items: Sequence,
    warm: Sequence = (),
    model: str = "kit",
    every: int = 1,
) -> pd.DataFrame:
    """An artifact's rows on what two ways take to do ``items``, one after the other in this process.

    Both are warmed alike: each way first does ``warm``, by default the first two items. Where ``warm`` is given, the
    rows say what that took, too (``cold``). ``seconds_ratio`` is the literal way's time on the clock over the kit's,
    and hangs on the number of processors; ``processor_seconds_ratio`` is of the seconds of all processors.
    ``differing`` counts the items whose results are not equal.

    The literal way may do only one in ``every`` of the items. Its times are then scaled to all of them, and ``n`` of
    its rows, and of ``differing``, says how many it did. Cold both do that part, for what is read once does not scale.
    """
    rows = []

    def measure(state, asked, part):
        ours, spent = metered(kit, asked)
        theirs, slower = metered(literal, part)
        for unit, seconds in spent.items():
            scaled = slower[unit] * len(asked) / len(part)
            rows.append((f"{state}{unit}_ratio", scaled / seconds, len(asked)))
            rows.append((f"{state}{unit}_kit", seconds, len(asked)))
            rows.append((f"{state}{unit}_literal", scaled, len(part)))
        return ours, theirs

    first = (warm or items[:2])[::every]
    measure("cold_", first, first)
    if not warm:
        rows.clear()
    elif every > 1:
        kit(warm)  # what the literal way leaves out
    ours, theirs = measure("", items, items[::every])
    differing = sum(one != other for one, other in zip(ours[::every], theirs, strict=True))
    rows.append(("differing", differing, len(theirs)))
    table = pd.DataFrame(rows, columns=["metric", "value", "n"])
    return table.assign(model=model, condition=condition)


def metered(run: Callable, *arguments: object) -> tuple[Any, dict[str, float]]:
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
