"""The benchmark's comments, kept out of the training corpus."""

import re
from collections import defaultdict
from collections.abc import Iterable

_WORD = re.compile(r"[a-z0-9]+")
_OPENING = 3  # words by which a possible occurrence is found


class Reserved:
    """Says whether a text holds the wording of any benchmark comment, whatever its case and punctuation."""

    def __init__(self, comments: Iterable[str]):
        self._by_opening: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
        for comment in comments:
            words = tuple(_WORD.findall(comment.lower()))
            self._by_opening[words[:_OPENING]].add(words)

    def found_in(self, text: str) -> bool:
        """True where the words of a reserved comment stand in a row in ``text``."""
        words = tuple(_WORD.findall(text.lower()))
        for start in range(len(words) - _OPENING + 1):
            for comment in self._by_opening.get(words[start : start + _OPENING], ()):
                if words[start : start + len(comment)] == comment:
                    return True
        return False
