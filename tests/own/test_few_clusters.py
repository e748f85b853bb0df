"""Tests that intervals which a small corpus cannot support are not shown."""

from io import StringIO

import pandas as pd
import pytest

from lookuplab_notebooks.own.few_clusters import honest_rows

# the interval of 5 out of 5 is Clopper and Pearson's
CASES = """\
metric,value,clusters,low,high
succrate_percent,100,5,47.8,100
succrate_percent,0,5,0,52.2
succrate_percent,75,7,,
succrate_relative_change_percent,100,5,,
succrate_percent,75,8,0,99
"""


def test_of_too_few_clusters_only_those_that_agree_have_an_interval():
    for case in pd.read_csv(StringIO(CASES)).to_dict("records"):
        [found] = honest_rows([case | {"ci_low": 1e-281, "ci_high": 99}])
        interval = pytest.approx((case["low"], case["high"]), abs=0.05, nan_ok=True)
        assert (found["ci_low"], found["ci_high"]) == interval
