"""Tests the names that pictures accept. ``tests/test_committed_figures.py`` draws bars, dots,
curves and bands again and compares them with the committed pictures.
"""

from io import StringIO

import pandas as pd
import pytest
from doors import refused
from matplotlib import pyplot as plt

from lookuplab.results import plots

CURVE = """condition,value,paper_value,metric
base/high,84,,valid_percent
precision_100/high,90,,valid_percent
precision_0/high,40,,valid_percent
precision_50/high,65,67.32,valid_percent
precision_0/low,20,,valid_percent
precision_100/low,80,,valid_percent
dag_confidence/high,1,,valid_percent
"""
CURVE = pd.read_csv(StringIO(CURVE)).assign(model="m", ci_low=0, ci_high=100)


def test_a_figure_is_made_by_pyplot_or_a_notebook_would_not_show_it_and_closed_or_it_would_twice():
    # only pyplot gives a number to a figure
    assert plots.curves(CURVE, "valid_percent", "precision").number
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("draw", "options", "message"),
    [
        (plots.grouped_bars, {"metric": "valid"}, "metric is 'valid'; it must be valid_percent"),
        (plots.curves, {"x": "recall"}, "x is 'recall'; it must be .*precision"),
        (plots.dots_with_intervals, {"policies": ["bsae"]}, "'bsae'; it must be base, dag_conf"),
        (plots.dots_with_intervals, {"frame": CURVE[:0]}, "no row to draw"),
    ],
)
def test_a_name_that_no_row_has_is_refused_with_the_names_that_there_are(draw, options, message):
    with refused(message):
        draw(**{"frame": CURVE, "metric": "valid_percent"} | options)
