"""Shows a model's first answers verbatim, so that a reader sees them before any number."""

from pandas import DataFrame

FLOOR = 0.05  # with a smaller share of valid calls, a model is too weak to test a claim on


def first_answers(first: DataFrame) -> str:
    """Return a model's first three answers verbatim, from a frame of ``evaluate``, and a warning if
    it writes too few valid calls to show any effect.
    """
    lines = [f"{first.model.iloc[0]}:", *map(repr, first.completion.head(3))]
    if (share := first.valid.mean()) < FLOOR:
        lines.append(f"at the floor: {share:.1%} valid calls; try gemma-3-270m or a model of yours")
    return "\n  ".join(lines)
