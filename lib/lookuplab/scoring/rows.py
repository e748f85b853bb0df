"""Numbers as rows of the tidy schema that every artifact has: ``model, condition, metric, value, ci_low, ci_high, n``."""

from lookuplab.scoring.rates import Rate


def row(model: str, condition: str, metric: str, number: Rate) -> dict:
    """One number with its interval."""
    return {"model": model, "condition": condition, "metric": metric, "value": number.value,
            "ci_low": number.low, "ci_high": number.high, "n": number.n}


def bare_row(model: str, condition: str, metric: str, value: float, n: int) -> dict:
    """A number without an interval (a count, a p value, a threshold)."""
    return row(model, condition, metric, Rate(float(value), float("nan"), float("nan"), n))
