"""Figures show the numbers that they are given, the same each time."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from lookuplab import plots
from lookuplab.scoring.calibration import reliability_rows

NAN = float("nan")
COLUMNS = ["model", "condition", "value", "ci_low", "ci_high", "paper_value"]
RATES = pd.DataFrame(
    [
        ("mini-small", "high", 60.0, 50.0, 72.0, 84.39),
        ("mini-small", "low", 5.0, 2.0, 9.0, 11.61),
        ("mini-large", "high", 80.0, 75.0, 84.0, NAN),
        ("mini-large", "low", 14.0, 8.0, 20.0, NAN),
    ],
    columns=COLUMNS,
).assign(metric="valid_percent")
CURVE = pd.DataFrame(
    [
        ("m", "base/high", "valid_percent", 84.0, NAN),
        ("m", "precision_100/high", "valid_percent", 90.0, NAN),
        ("m", "precision_0/high", "valid_percent", 40.0, NAN),
        ("m", "precision_50/high", "valid_percent", 65.0, 67.32),
        ("m", "precision_0/low", "valid_percent", 20.0, NAN),
        ("m", "precision_100/low", "valid_percent", 80.0, NAN),
        ("m", "precision_50/high", "sampled_valid_percent", 66.0, NAN),
        ("m", "dag_confidence/high", "valid_percent", 1.0, NAN),
    ],
    columns=["model", "condition", "metric", "value", "paper_value"],
)
CURVE = CURVE.assign(ci_low=CURVE.value - 5, ci_high=CURVE.value + 5)
POLICIES = pd.DataFrame(
    [
        ("m", "base/high", 84.0, 80.0, 88.0, 84.39, "valid_percent"),
        ("m", "base/low", 12.0, 8.0, 16.0, NAN, "valid_percent"),
        ("m", "dag/high", 67.0, 60.0, 74.0, NAN, "valid_percent"),
        ("m", "dag/low", 46.0, 40.0, 52.0, NAN, "valid_percent"),
        ("m", "base/high", 30.0, NAN, NAN, NAN, "tokens"),
        ("m", "dag/high", 120.0, NAN, NAN, NAN, "tokens"),
    ],
    columns=[*COLUMNS, "metric"],
)
DESIGNS = pd.DataFrame(
    [
        ("base/[0, 0]", "share_percent", 100.0),
        ("base/[0, 0]", "valid_percent", 12.0),
        ("name_only/[16, 31]", "share_percent", 75.0),
        ("name_only/[16, 31]", "valid_percent", 40.0),
        ("name_only/[8, 15]", "share_percent", 25.0),
        ("name_only/[8, 15]", "valid_percent", 60.0),
    ],
    columns=["condition", "metric", "value"],
)
RELIABLE = pd.DataFrame(
    reliability_rows("m", [False, True, True, True], [0.1, 0.3, 0.8, 1.0], list("abcd"), bins=2)
)


def curves(frame=CURVE, **options):
    return plots.curves(frame, "valid_percent", "precision", **options)


def dots(frame=POLICIES, **options):
    return plots.dots_with_intervals(frame, "valid_percent", **options)


def named(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def written(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.grouped_bars(RATES, "valid_percent"),
        curves,
        dots,
        lambda: plots.length_map(DESIGNS),
        lambda: plots.reliability(RELIABLE),
    ],
)
def test_a_figure_is_the_same_each_time_and_closed(draw):
    before = plt.get_fignums()
    assert png(draw()) == png(draw())
    assert plt.get_fignums() == before, "an open figure would be shown twice in a notebook"


def test_bars_are_the_values_with_their_intervals_and_the_papers_marks():
    figure = plots.grouped_bars(RATES, "valid_percent", order=["low", "high"])
    (axes,) = figure.axes
    assert [bar.get_height() for bar in axes.patches] == [5, 14, 60, 80]
    segments = [
        segment[:, 1].tolist() for lines in axes.collections for segment in lines.get_segments()
    ]
    assert segments == [[2, 9], [8, 20], [50, 72], [75, 84]]
    marked = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert marked == [11.61, 84.39]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["low", "high", "paper"]


def test_counts_are_written_on_their_bars():
    tasks = pd.DataFrame(
        {"class": ["low", "low"], "provider": ["aws", "azure"], "value": [3, 2], "metric": "tasks"}
    )
    figure = plots.grouped_bars(
        tasks, "tasks", groups="class", bars="provider", counts=True, top=None
    )
    assert written(figure) == ["3", "2"]


def test_colours_are_fixed_for_classes_and_sizes():
    found = plots.colours(["low", "mini-large", "my-model", "another"])
    assert (
        found["low"] == plots.COLOURS["low"] and found["mini-large"] == plots.SIZE_COLOURS["large"]
    )
    assert len(set(found.values())) == 4


def test_a_curve_runs_over_the_numbers_in_its_conditions_with_its_band():
    (axes,) = curves(classes=["high"]).axes
    assert axes.lines[0].get_xdata().tolist() == [0, 50, 100] and list(
        axes.lines[0].get_ydata()
    ) == [40, 65, 90]
    (band,) = curves(classes=["low"]).axes[0].collections[0].get_paths()
    assert {tuple(corner) for corner in band.vertices} == {(0, 15), (0, 25), (100, 75), (100, 85)}


def test_the_base_is_a_level_in_the_colour_of_its_class():
    [level] = [line for line in curves().axes[0].lines if list(line.get_ydata()) == [84, 84]]
    assert to_hex(level.get_color()) == plots.COLOURS["high"] and level.get_linestyle() == "--"


def test_the_papers_points_stand_where_it_reports_them():
    marked = [line for line in curves().axes[0].lines if line.get_marker() == "D"]
    known = [
        (x, y) for line in marked for x, y in zip(*line.get_data(), strict=True) if not np.isnan(y)
    ]
    assert known == [(50, 67.32)]


def test_the_legend_names_what_is_drawn_once():
    figure = curves(
        classes=["low", "high"],
        points="sampled_valid_percent",
        marks={"chosen": 80, "best": (70, 80)},
    )
    assert named(figure) == ["low", "high", "base", "sampled", "chosen", "best", "paper"]
    assert named(curves(CURVE[CURVE.condition.str.endswith("low")])) == ["low"]


def test_models_are_panels_on_the_same_axes_or_lines_of_one():
    both = pd.concat([CURVE, CURVE.assign(model="n", value=CURVE.value / 2)])
    panels = curves(both).axes
    assert [axes.get_title(loc="left") for axes in panels] == ["m", "n"]
    assert panels[0].get_ylim() == panels[1].get_ylim()
    one = curves(both, lines="model", panels=None, classes=["high"])
    assert len(one.axes) == 1 and named(one)[:2] == ["m", "n"]


def test_policies_stand_from_top_to_bottom_with_a_dot_per_class():
    figure = dots(policies={"dag": "DAG", "base": "no lookup"}, classes=["low", "high"])
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "DAG",
        "no lookup",
    ] and axes.yaxis_inverted()
    low, high = axes.containers
    assert low.lines[0].get_xdata().tolist() == [46, 12] and high.lines[0].get_xdata().tolist() == [
        67,
        84,
    ]
    assert [segment[:, 0].tolist() for segment in high.lines[2][0].get_segments()] == [
        [60, 74],
        [80, 88],
    ]
    assert named(figure) == ["low", "high", "paper"]


def test_a_policy_without_the_class_has_no_dot():
    (low,) = dots(POLICIES.drop(index=3), classes=["low"]).axes[0].containers
    assert low.lines[0].get_xdata().tolist() == pytest.approx([12, NAN], nan_ok=True)


def test_lengths_are_coloured_by_rate_and_labelled_with_their_share():
    figure = plots.length_map(DESIGNS, designs=["name_only", "base"])
    (mesh,) = figure.axes[0].collections
    expected = [[40, NAN], [60, NAN], [NAN, 12]]  # long texts above
    assert np.ma.filled(mesh.get_array(), NAN).ravel() == pytest.approx(
        np.ravel(expected), nan_ok=True
    )
    assert [text for text in written(figure) if text] == [
        "40%\nof 75%",
        "60%\nof 25%",
        "12%\nof 100%",
    ]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (0, "[0, 0]"),
        (1, "[1, 1]"),
        (3, "[2, 3]"),
        (16, "[16, 31]"),
        (2047, "[1024, 2047]"),
        (99_999, "[1024, 2047]"),
    ],
)
def test_token_bins_double_up_to_the_longest(tokens, expected):
    assert plots.token_bin(tokens) == expected


def test_reliability_is_the_share_of_right_answers_over_the_mean_confidence():
    lines = [line.get_xydata() for line in plots.reliability(RELIABLE).axes[0].lines]
    assert lines[0].ravel().tolist() == pytest.approx([0.2, 50, 0.9, 100])
    assert lines[-1].tolist() == [[0, 0], [1, 100]]
