"""A model's work spread over the processes of one launch: each generates its share, the store brings them together.

``accelerate launch -m lookuplab run NOTEBOOK`` starts the same notebook in every process. A prompt's share depends on
its text alone, so that processes which look up at different times agree; what the others generate is waited for. All
processes are of one machine, whose store they share.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from lookuplab.errors import UserError

SHARE = "LOOKUPLAB_SHARE"  # "1/4": the second of four processes; set by the runner, from what the launcher says
POLL_SECONDS = 0.5
PATIENCE_SECONDS = 3600.0  # without one answer of the others; a launcher ends all where one fails
Key = TypeVar("Key")


def share() -> tuple[int, int]:
    """(number of this process from 0, of how many). Raises UserError for a malformed LOOKUPLAB_SHARE."""
    text = os.environ.get(SHARE, "0/1")
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and int(number) < int(count)):
        raise UserError(f"{SHARE} is {text!r}; it must be like 0/2: the first of two processes")
    return int(number), int(count)


def is_mine(prompt_hash: str) -> bool:
    """Whether this process generates the answers to a prompt with that hash (of the store)."""
    number, count = share()
    return int(prompt_hash, 16) % count == number


def arriving(wanted: Collection[Key], look_up: Callable[[Collection[Key]], Collection[Key]]) -> Iterator[int]:
    """How many of ``wanted`` came since the last time, until ``look_up`` has found all. Raises UserError if none come.
    """
    left, since = set(wanted), time.monotonic()
    while left:
        if came := left & set(look_up(left)):
            left -= came
            since = time.monotonic()
            yield len(came)
        elif time.monotonic() - since > PATIENCE_SECONDS:
            raise UserError(f"{len(left)} answers of the other processes did not come for an hour; run again: what was "
                            "generated is kept")
        else:
            time.sleep(POLL_SECONDS)
