"""Judgements as text for a terminal of 80 to 120 columns, grouped by artifact."""

import itertools
import math
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

from lookuplab.claims.judging import FAILS, HOLDS, UNDECIDED, Comparison, Judgement

_MARGIN = " " * 13  # as wide as the longest verdict and two blanks


def text(judgements: list[Judgement], details: bool = False, width: int | None = None) -> str:
    """Every claim with its verdict, the numbers that decide it and the paper's; ``details``: every comparison.

    ``width`` in columns; by default the terminal's, within 80 to 120.
    """
    width = width or min(max(shutil.get_terminal_size((100, 24)).columns, 80), 120)
    parts = []
    for artifact, group in itertools.groupby(judgements, key=lambda judgement: judgement.claim.artifact):
        group = list(group)
        parts.append("\n".join([*_heading(artifact, group, width), *itertools.chain.from_iterable(
            _claim(judgement, details, width) for judgement in group)]))
    return "\n\n".join([*parts, f"{len(judgements)} claims: {count(judgements)}"])


def count(judgements: Iterable[Judgement]) -> str:
    """``3 hold, 1 fail, 2 not decided``"""
    found = Counter(judgement.verdict for judgement in judgements)
    return f"{found[HOLDS]} hold, {found[FAILS]} fail, {found[UNDECIDED]} not decided"


def _heading(artifact: str, group: list[Judgement], width: int) -> Iterator[str]:
    yield f"{artifact}: {count(group)}"
    yield "-" * width
    for note in dict.fromkeys(judgement.note for judgement in group if judgement.note):
        yield from textwrap.wrap(note, width, break_long_words=False, break_on_hyphens=False)


def _claim(judgement: Judgement, details: bool, width: int) -> Iterator[str]:
    claim = judgement.claim
    yield from _wrapped(f"{claim.id} ({claim.place})", width, first=f"{judgement.verdict.upper():<{len(_MARGIN)}}")
    yield from _wrapped(claim.statement, width)
    if judgement.comparisons and not details:
        yield from _wrapped(f"ours: {_ours(judgement)}", width)
    yield from _wrapped(f"paper: {reported(judgement.reported)}", width)
    if details:
        yield from _wrapped(f"metric {claim.test['metric']}, models: {claim.models}. {claim.why}", width)
        for comparison in judgement.comparisons:
            yield from _wrapped(f"- {_one(comparison)}: {comparison.verdict}", width, hanging="  ")


def _wrapped(words: str, width: int, first: str = _MARGIN, hanging: str = "") -> list[str]:
    return textwrap.wrap(words, width, initial_indent=first, subsequent_indent=_MARGIN + hanging,
                         break_long_words=False, break_on_hyphens=False)


def _ours(judgement: Judgement) -> str:
    """The first comparison with the claim's own verdict, and how many others share it."""
    same = [comparison for comparison in judgement.comparisons if comparison.verdict == judgement.verdict]
    shown = _one(same[0] if same else judgement.comparisons[0])
    number = len(judgement.comparisons)
    return shown if number == 1 else f"{shown}; {judgement.verdict} in {len(same)} of {number} comparisons"


def _one(c: Comparison) -> str:
    """``mini-small high - low > 55: 86.31 [78.66, 92.88], n 205+267``"""
    interval = "" if c.low == c.high or math.isnan(c.low) else f" [{number(c.low)}, {number(c.high)}]"
    size = f", n {c.n}" if c.n else ""
    theirs = "" if math.isnan(c.paper_value) else f", paper {number(c.paper_value)}"
    return f"{c.model} {c.quantity}: {number(c.value)}{interval}{size}{theirs}".strip()


def number(value: float) -> str:
    """Two decimals, none for whole numbers."""
    return "not measured" if math.isnan(value) else f"{value:.2f}".removesuffix(".00")


def reported(comparisons: tuple[Comparison, ...]) -> str:
    """The paper's own numbers for the same comparisons, smallest to largest, and whether they bear the claim out."""
    if not comparisons:
        return "no printed numbers"
    found = [comparison.value for comparison in comparisons]
    spread = number(min(found)) if min(found) == max(found) else f"{number(min(found))} to {number(max(found))}"
    against = sum(comparison.verdict != HOLDS for comparison in comparisons)
    return f"{spread} in {len(found)} comparison{'s'[:len(found) > 1]}" + (
        f", {against} of them against the claim" if against else "")
