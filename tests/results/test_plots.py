"""Tests the positions in each kind of figure. Other tests compare the committed pictures, which
proves widths, markers and colours, and that equal rows give equal pictures.
"""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb

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
    """Return the points (x, y) of the paper's values, which are white with a border."""
    dots = [each for each in axes.collections if isinstance(each, PathCollection)]
    white = [each for each in dots if (each.get_facecolor() == 1).all()]
    return sorted(tuple(point) for each in white for point in each.get_offsets().tolist())


def segments(axes):
    """Return the intervals as [[x, low], [x, high]]."""
    drawn = [each for each in axes.collections if isinstance(each, LineCollection)]
    return sorted(segment.tolist() for each in drawn for segment in each.get_segments())


def test_bars_are_the_values_with_their_intervals_and_the_papers_marks():
    figure = plots.grouped_bars(RATES, "valid_percent", order=["low", "high"])
    (axes,) = figure.axes
    bars = sorted((bar.get_x(), bar.get_height()) for bar in axes.patches)
    assert [height for _, height in bars] == [5, 60, 14, 80]
    ends = [[y for _, y in segment] for segment in segments(axes)]
    # each interval is drawn twice: a dark line on a white one
    assert ends == [[2, 9], [2, 9], [50, 72], [50, 72], [8, 20], [8, 20], [75, 84], [75, 84]]
    assert [y for _, y in diamonds(axes)] == [11.61, 84.39]
    [legend] = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["low frequency, n = 205", "high frequency", "95% interval", "paper"]


def test_a_curve_of_few_points_has_an_interval_at_each_beside_those_of_other_lines():
    before = plt.get_fignums()
    (axes,) = plots.curves(CURVE, "valid_percent", "precision").axes
    assert plt.get_fignums() == before, "an open figure would be shown twice in a notebook"
    high = axes.lines[0].get_xydata()
    assert high[:, 1].tolist() == [40, 65, 90]
    # the two curves are 1.5% of the axis apart
    assert high[:, 0] == pytest.approx([-0.75, 49.25, 99.25])
    assert segments(axes)[0] == [[-0.75, 35], [-0.75, 45]]
    assert segments(axes)[1] == [[0.75, 15], [0.75, 25]]
    # the paper's value of "base" is at the end of its line
    assert [y for _, y in diamonds(axes)] == [67.32, 84]


def test_a_curve_of_many_points_has_a_band():
    rows = pd.DataFrame({"condition": [f"share_{share}/all" for share in range(10)]})
    rows = rows.assign(model="m", metric="valid_percent", value=50.0, ci_low=40.0, ci_high=60.0)
    (axes,) = plots.curves(rows, "valid_percent", "share").axes
    [band] = axes.patches
    corners = band.get_path().vertices
    assert {tuple(corner) for corner in corners} >= {(0, 40), (0, 60), (9, 40), (9, 60)}
    assert axes.lines[0].get_xydata().tolist() == [[share, 50] for share in range(10)]


def test_every_colour_stands_out_from_white():
    """WCAG 2.2 requires a contrast of at least 3 for everything that is needed to understand a
    picture.
    """
    for colour in (*plots.COLOURS.values(), *plots.OTHERS, plots.GREY):
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in to_rgb(colour)
        ]
        luminance = float(np.dot(linear, [0.2126, 0.7152, 0.0722]))
        assert 1.05 / (luminance + 0.05) >= 3, colour


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
