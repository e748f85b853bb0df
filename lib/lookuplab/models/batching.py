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
    """How many rows go through the model together; shrinks for good when the memory was not enough."""

    rows: int


def in_batches(items: Sequence[T], run: Callable[[Sequence[T]], Done], size: BatchSize, what: str) -> Iterator[Done]:
    """Yield ``run(batch)`` for consecutive batches of ``items``.

    Out of memory: the batch is halved and tried again; UserError when a single item does not fit. The caller sorts the
    items: with a fixed order and whole batches as results, a run that was interrupted goes on with the same batches.
    """
    at = 0
    while at < len(items):
        batch = items[at : at + size.rows]
        done = None
        try:
            done = run(batch)
        except (RuntimeError, MemoryError) as error:
            if not (isinstance(error, MemoryError) or should_reduce_batch_size(error)):
                raise
            if len(batch) == 1:
                raise UserError(f"{what}: not enough memory for a single prompt; use shorter prompts, fewer new "
                                "tokens, a smaller dtype or a larger device") from error
        if done is None:  # outside of the except block, so that the failed batch's tensors are free
            clear_device_cache(garbage_collection=True)
            size.rows = max(1, len(batch) // 2)
            continue
        at += len(batch)
        yield done
