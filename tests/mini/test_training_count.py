"""Tests the logistic curves of validity over how often a model has seen an API, and where these
curves cross 50% or each other.
"""

import numpy as np
import pandas
import pytest

from lookuplab_notebooks.mini.training_count import SHOWN_COUNTS, half, meeting, training_count_rows


def test_crossings_of_known_curves():
    alone = (-4, 1.2)
    documented = (-0.5, 0.4)
    flat = (1, 0)
    falling = (-1, -1)
    found = list(map(half, (alone, documented, flat, falling)))
    assert found == [4 / 1.2, 0.5 / 0.4, -np.inf, np.inf]
    # in the three pairs, the second curve is better up to some count, always, and never
    pairs = (alone, documented), (falling, flat), (flat, documented)
    assert [meeting(*pair) for pair in pairs] == [3.5 / 0.8, np.inf, -np.inf]


@pytest.mark.parametrize(("valid", "ends"), [(False, [600, 0, 600]), (True, [0, 600, 0])])
def test_a_curve_that_never_crosses_is_cut_at_the_ends_of_the_range(valid, ends):
    frame = pandas.DataFrame({"model": "m", "cluster": np.arange(8) // 2})
    both = {"alone": np.full(8, valid), "documented": np.full(8, not valid)}
    found = training_count_rows(frame, SHOWN_COUNTS, both)
    assert [row["value"] for row in found if row["metric"][-3:] == "_at"] == ends
