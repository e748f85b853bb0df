"""What a small corpus of your own does not tell is not shown."""

import math

import pytest

from lookuplab_notebooks.own.few_clusters import honest_rows


@pytest.mark.parametrize(
    ("metric", "value", "clusters", "interval"),
    [
        ("succrate_percent", 100, 5, (47.8, 100)),  # Clopper and Pearson's for 5 of 5
        ("succrate_percent", 0, 5, (0, 52.2)),
        ("succrate_percent", 75, 7, (math.nan, math.nan)),
        ("succrate_relative_change_percent", 100, 5, (math.nan, math.nan)),
        ("succrate_percent", 75, 8, (0, 99)),
    ],
)
def test_of_too_few_clusters_only_those_that_agree_have_an_interval(
    metric, value, clusters, interval
):
    one = {"metric": metric, "value": value, "ci_low": 1e-281, "ci_high": 99, "clusters": clusters}
    [found] = honest_rows([one])
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(interval, abs=0.05, nan_ok=True)
