"""Measures how long the kit takes, compared with a literal implementation of the paper's method."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import nan
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
    """Run two implementations on ``items``, one after the other, and return rows of an artifact
    with the time that each takes.

    Both are warmed up alike: each first processes ``warm``, by default the first two items. If
    ``warm`` is given, further rows (``cold_...``) have the time of this first run.
    ``seconds_ratio`` is the literal implementation's wall-clock time divided by the kit's, and
    depends on the number of processors; ``processor_seconds_ratio`` compares the seconds summed
    over all processors. ``differing`` counts the items whose results are not equal.

    If ``every`` is above 1, the literal implementation processes only one in ``every`` items, and
    its times are scaled up to all items. The rows of its times and the row ``differing`` then have
    the number of items that it processed as ``n``. In the first run, both implementations process
    only one in ``every`` items, because times of the first run cannot be scaled up: they include
    the reading of files, and each file is read only once.
    """
    rows = []

    def measure(state, asked, part):
        ours, spent = metered(kit, asked)
        theirs, slower = metered(literal, part)
        for unit, seconds in spent.items():
            scaled = slower[unit] * len(asked) / len(part)
            # ``seconds`` is 0 if the items take less processor time than the clock resolves
            rows.append((f"{state}{unit}_ratio", scaled / (seconds or nan), len(asked)))
            rows.append((f"{state}{unit}_kit", seconds, len(asked)))
            rows.append((f"{state}{unit}_literal", scaled, len(part)))
        return ours, theirs

    first = (warm or items[:2])[::every]
    measure("cold_", first, first)
    if not warm:
        rows.clear()
    elif every > 1:
        kit(warm)  # warms the kit up on the items that only the kit processes
    ours, theirs = measure("", items, items[::every])
    differing = sum(one != other for one, other in zip(ours[::every], theirs, strict=True))
    rows.append(("differing", differing, len(theirs)))
    table = pd.DataFrame(rows, columns=["metric", "value", "n"])
    return table.assign(model=model, condition=condition)


def metered(run: Callable, *arguments: object) -> tuple[Any, dict[str, float]]:
    """Return two results: what ``run`` returns, and a dictionary with the wall-clock ``seconds``
    and the ``processor_seconds`` that it took.

    The processor time includes all processes that this process has started. On a busy machine,
    wall-clock time depends on other programs; processor time hardly does.
    """
    start = time.perf_counter()
    before = _processor_seconds()
    result = run(*arguments)
    spent = {"seconds": time.perf_counter() - start}
    return result, spent | {"processor_seconds": _processor_seconds() - before}


def _processor_seconds() -> float:
    """Return the processor time of this process and of all processes that it started. The time of
    an ended process is part of its parent's.
    """
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.Error):  # the process has just ended
            total += sum(process.cpu_times()[:4])
    return total
