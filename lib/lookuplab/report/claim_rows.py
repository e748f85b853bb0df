"""Judgements as the claims table shows them: one line a claim, its comparisons below."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from lookuplab.claims import FAILS, HOLDS, UNDECIDED, Claim, Comparison, Judgement
from lookuplab.claims.printed import number, reported

SLUGS = {HOLDS: "holds", FAILS: "fails", UNDECIDED: "undecided"}  # verdicts as one word, for addresses and styles
PLURALS = {HOLDS: "hold", FAILS: "fail", UNDECIDED: "not decided"}
MARKS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?"}  # colour alone tells not everyone


@dataclass(frozen=True)
class Line:
    """One comparison in words; ``interval`` and ``n`` are empty where the number is exact or has none."""

    quantity: str
    ours: str
    interval: str
    n: str
    theirs: str
    verdict: str


@dataclass(frozen=True)
class ClaimRow:
    """A claim in one run: the comparison that stands for it, how many share its verdict, and all of them."""

    claim: Claim
    verdict: str
    shown: Line
    share: str
    theirs: str
    lines: tuple[Line, ...]


def claim_row(judgement: Judgement) -> ClaimRow:
    """``shown`` is the first comparison with the claim's own verdict, as in ``lookuplab claims``."""
    lines = tuple(map(_line, judgement.comparisons))
    same = [line for line in lines if line.verdict == judgement.verdict]
    nothing = Line("", "not run" if judgement.note else "", "", "", "", UNDECIDED)
    shown = (same or [*lines, nothing])[0]
    share = f"{judgement.verdict} in {len(same)} of {len(lines)} comparisons" if len(lines) > 1 else ""
    return ClaimRow(judgement.claim, judgement.verdict, shown, share, reported(judgement.reported), lines)


def counted(judgements: Iterable[Judgement]) -> list[tuple[str, int]]:
    """(verdict, how many), in the order holds, fails, not decided; verdicts that do not occur are left out."""
    found = Counter(judgement.verdict for judgement in judgements)
    return [(verdict, found[verdict]) for verdict in SLUGS if found[verdict]]


def _line(one: Comparison) -> Line:
    exact = one.low == one.high or math.isnan(one.low)
    return Line(f"{one.model} {one.quantity}".strip(), number(one.value),
                "" if exact else f"{number(one.low)} to {number(one.high)}", one.n,
                "" if math.isnan(one.paper_value) else number(one.paper_value), one.verdict)
