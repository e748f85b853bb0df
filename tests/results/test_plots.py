"""What stands where in each kind of figure. Widths, markers and colours, and that equal rows give
equal pictures, are proven on the committed ones.
"""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from lookuplab.errors import UserError
from lookuplab.results import plots

RATES = """model,condition,value,ci_low,ci_high,n,paper_value
mini-small,high,60,50,72,267,84.39
mini-small,low,5,2,9,205,11.61
mini-large,high,80,75,84,40,
mini-large,low,14,8,20,205,
"""
RATES = pd.read_csv(StringIO(RATES)).assign(metric="valid_percent")
CURVE = """condition,value,paper_value,metric
base/high,84,,valid_percent
precision_100/high,90,,valid_percent
precision_0/high,40,,valid_percent
precision_50/high,65,67.32,valid_percent
precision_0/low,20,,valid_percent
precision_100/low,80,,valid_percent
dag_confidence/high,1,,valid_percent
"""
CURVE = pd.read_csv(StringIO(CURVE)).assign(model="m")
CURVE = CURVE.assign(ci_low=CURVE.value - 5, ci_high=CURVE.value + 5)


def diamonds(axes):
    """The paper's points, (x, y)."""
    marked = [line.get_xydata() for line in axes.lines if line.get_marker() == "D"]
    return [tuple(point) for points in marked for point in points if not np.isnan(point).any()]


def test_bars_are_the_values_with_their_intervals_and_the_papers_marks():
    figure = plots.grouped_bars(RATES, "valid_percent", order=["low", "high"])
    (axes,) = figure.axes
    assert [bar.get_height() for bar in axes.patches] == [5, 14, 60, 80]
    segments = [one[:, 1].tolist() for lines in axes.collections for one in lines.get_segments()]
    assert segments == [[2, 9], [8, 20], [50, 72], [75, 84]]
    assert [y for _, y in diamonds(axes)] == [11.61, 84.39]
    [legend] = figure.legends
    texts = [text.get_text() for text in (legend.get_title(), *legend.get_texts())]
    assert texts == [
        "API frequency",
        "low, n = 205",
        "high",
        "95% interval",
        "paper",
    ]


def test_a_curve_runs_over_the_numbers_in_its_conditions_with_its_band():
    before = plt.get_fignums()
    (axes,) = plots.curves(CURVE, "valid_percent", "precision").axes
    assert plt.get_fignums() == before, "an open figure would be shown twice in a notebook"
    assert axes.lines[0].get_xydata().tolist() == [[0, 40], [50, 65], [100, 90]]
    assert diamonds(axes) == [(50, 67.32)]
    (low,) = axes.collections[1].get_paths()
    assert {tuple(corner) for corner in low.vertices} == {(0, 15), (0, 25), (100, 75), (100, 85)}


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
    with pytest.raises(UserError, match=message):
        draw(**{"frame": CURVE, "metric": "valid_percent"} | options)
