"""When to stop writing: rules and stop strings that read along while a row is decoded."""

from collections.abc import Callable
from typing import Protocol

from lookuplab.errors import UserError
from lookuplab.models.first_call import FirstCall
from lookuplab.models.types import Decoding


class Rule(Protocol):
    """Reads a completion piece by piece; ``feed`` returns True once nothing that follows can matter."""

    def feed(self, chunk: str) -> bool: ...


class StopString:
    """True once one of the strings has been written, also when it spans several pieces."""

    def __init__(self, strings: tuple[str, ...]) -> None:
        self._strings = strings
        self._overlap = max(map(len, strings)) - 1
        self._tail = ""

    def feed(self, chunk: str) -> bool:
        text = self._tail + chunk
        self._tail = text[max(0, len(text) - self._overlap) :]
        return any(string in text for string in self._strings)


# first_call: for a prompt that ends in "client."; ends with the first call or as soon as there can be none.
STOP_RULES: dict[str, Callable[[], Rule]] = {"first_call": FirstCall}


def stopping(decoding: Decoding) -> list[Rule]:
    """Fresh rules for one row. UserError for a rule that does not exist or an empty stop string."""
    rules: list[Rule] = []
    if decoding.stop_rule is not None:
        if decoding.stop_rule not in STOP_RULES:
            raise UserError(f"no stop rule is named {decoding.stop_rule!r}; there are: {', '.join(sorted(STOP_RULES))}")
        rules.append(STOP_RULES[decoding.stop_rule]())
    if decoding.stop:
        if "" in decoding.stop:
            raise UserError("an empty stop string would end every completion at once; leave it out")
        rules.append(StopString(decoding.stop))
    return rules
