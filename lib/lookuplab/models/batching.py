"""Many requests through a limited memory: batches of similar length, halved when they do not fit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from lookuplab.errors import UserError

T = TypeVar("T")
Done = TypeVar("Done")


@dataclass
class BatchSize:
    """How much goes through the model together: at most ``rows``, and fewer if they are long.

    ``tokens`` bounds rows times the longest of them, padding included; None is without bound. A single row always goes.
    ``rows`` shrinks for good when the memory was not enough.
    """

    rows: int
    tokens: int | None = None


def in_batches(items: Sequence[T], length: Callable[[T], int], run: Callable[[Sequence[T]], Done], size: BatchSize,
               what: str, each: int = 1) -> Iterator[Done]:
    """Yield ``run(batch)`` for consecutive batches of ``items``, which come with falling ``length`` in tokens.

    An item takes ``each`` rows. Out of memory: the batch is halved and tried again; UserError when a single item does
    not fit. The caller sorts the items: with a fixed order and whole batches as results, a run that was interrupted
    goes on with the same batches.
    """
    at = 0
    while at < len(items):
        rows = size.rows if size.tokens is None else min(size.rows, size.tokens // max(1, length(items[at])))
        fit = max(1, rows // each)
        batch = items[at : at + fit]
        done = None
        try:
            done = run(batch)
        except (RuntimeError, MemoryError) as error:
            if not (isinstance(error, MemoryError) or should_reduce_batch_size(error)):
                raise
            if len(batch) == 1:
                raise UserError(f"{what}: not enough memory for a single prompt; use shorter prompts, fewer new "
                                "tokens or beams, a smaller dtype or a larger device") from error
        if done is None:  # outside of the except block, so that the failed batch's tensors are free
            clear_device_cache(garbage_collection=True)
            size.rows = max(1, len(batch) * each // 2)
            continue
        at += len(batch)
        yield done
