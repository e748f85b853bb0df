"""How often a model must have seen an API: the logistic curve, its crossings and intervals."""

import numpy as np
import pandas
import pytest
from scipy.special import expit
from training_count import training_count_rows

COUNTS = np.repeat([0, 3, 9, 30, 99, 300, 600], 200)
APIS = np.arange(len(COUNTS)) // 2


def rows(**curves):
    """(condition, metric) -> row, for chances of a valid call by log(1 + count)."""
    random, log_count = np.random.default_rng(1), np.log1p(COUNTS)
    valid = {
        name: random.random(len(log_count)) < expit(intercept + slope * log_count)
        for name, (intercept, slope) in curves.items()
    }
    frame = pandas.DataFrame({"model": "m", "cluster": APIS})
    return {
        (row["condition"], row["metric"]): row for row in training_count_rows(frame, COUNTS, valid)
    }


def test_crossings_of_known_curves_lie_in_their_intervals():
    found = rows(alone=(-4, 1.2), documented=(-0.5, 0.4))
    truth = {
        ("alone", "half_at"): np.expm1(4 / 1.2),
        ("documented", "half_at"): np.expm1(0.5 / 0.4),
        ("documented - alone", "meet_at"): np.expm1(3.5 / 0.8),
        ("count_30/alone", "valid_percent"): 100 * expit(1.2 * np.log(31) - 4),
    }
    for key, value in truth.items():
        row = found[key]
        assert row["ci_low"] < value < row["ci_high"] and row["clusters"] == len(set(APIS))
        assert row["ci_high"] - row["ci_low"] < 1.2 * value


@pytest.mark.parametrize(
    ("alone", "documented", "ends"),
    [((-1, -1), (50, 0), [600, 0, 600]), ((50, 0), (-50, 0), [0, 600, 0])],
)
def test_a_curve_that_never_crosses_is_cut_at_the_ends_of_the_range(alone, documented, ends):
    found = rows(alone=alone, documented=documented).items()
    assert [row["value"] for (_, metric), row in found if metric[-3:] == "_at"] == ends
