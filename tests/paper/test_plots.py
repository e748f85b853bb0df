"""Figures show the numbers they are given, the same each time."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from lookuplab import plots

NAN = float("nan")
ROWS = pd.DataFrame(
    [
        ("mini-small", "high", 60.0, 50.0, 72.0, 84.39),
        ("mini-small", "low", 5.0, 2.0, 9.0, 11.61),
        ("mini-large", "high", 80.0, 75.0, 84.0, NAN),
        ("mini-large", "low", 14.0, 8.0, 20.0, NAN),
    ],
    columns=["model", "condition", "value", "ci_low", "ci_high", "paper_value"],
).assign(metric="valid_percent")
SHARES = pd.DataFrame(
    [("m", "a", 25.0, 10.0), ("m", "b", 75.0, 90.0), ("n", "a", 40.0, NAN), ("n", "b", 60.0, NAN)],
    columns=["model", "metric", "value", "paper_value"],
)
TASKS = pd.DataFrame([("aws/low", 3), ("azure/low", 2), ("aws/high", 1)], columns=["condition", "value"]).assign(
    metric="tasks"
)


def png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def draw(name):
    return {
        "bars": lambda: plots.grouped_bars(ROWS, "valid_percent"),
        "shares": lambda: plots.stacked_shares(SHARES, {"a": "first", "b": "second"}),
        "line": lambda: plots.line_with_band(ROWS, "valid_percent", ["high", "low"], log=True),
        "composition": lambda: plots.composition_bars(TASKS),
        "words": lambda: plots.word_cloud({"s3": 3, "ec2": 2, "blob": 1}),
    }[name]()


@pytest.mark.parametrize("name", ["bars", "shares", "line", "composition", "words"])
def test_a_figure_is_the_same_each_time_and_closed(name):
    before = plt.get_fignums()
    first, second = draw(name), draw(name)
    assert png(first) == png(second)
    assert plt.get_fignums() == before, "an open figure would be shown twice in a notebook"


def test_bars_are_the_values_in_the_order_asked_for():
    axes = plots.grouped_bars(ROWS, "valid_percent", order=["low", "high"]).axes[0]
    assert [bar.get_height() for group in axes.containers if hasattr(group, "patches") for bar in group.patches] == [
        5,
        14,
        60,
        80,
    ]


def test_whiskers_are_the_interval():
    axes = plots.grouped_bars(ROWS, "valid_percent", order=["high"]).axes[0]
    [segments] = [collection.get_segments() for collection in axes.collections]
    assert [segment[:, 1].tolist() for segment in segments] == [[50, 72], [75, 84]]


def test_the_papers_value_is_marked_where_it_is_known():
    axes = plots.grouped_bars(ROWS, "valid_percent", order=["high"]).axes[0]
    [marked] = [line.get_ydata() for line in axes.lines if line.get_marker() == "D"]
    assert np.asarray(marked, dtype=float) == pytest.approx([84.39, NAN], nan_ok=True)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["high", "paper"]


def test_a_number_without_interval_has_no_whisker():
    axes = plots.grouped_bars(ROWS.assign(ci_low=NAN, ci_high=NAN), "valid_percent", order=["high"]).axes[0]
    [segments] = [collection.get_segments() for collection in axes.collections]
    assert [np.ptp(segment[:, 1]) for segment in segments] == [0, 0]


def test_shares_add_up_and_the_paper_has_its_own_row():
    axes = plots.stacked_shares(SHARES, {"a": "first", "b": "second"}).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["m", "paper", "n"]
    first, second = ([bar.get_width() for bar in group.patches] for group in axes.containers)
    assert first == [25, 10, 40] and second == [75, 90, 60]


def test_a_line_can_run_over_numbers():
    axes = plots.line_with_band(ROWS, "valid_percent", {"low": 0.2, "high": 0.9}).axes[0]
    assert axes.lines[0].get_xdata().tolist() == [0.2, 0.9] and axes.lines[0].get_ydata().tolist() == [5, 60]


def test_composition_counts_a_missing_cell_as_none():
    axes = plots.composition_bars(TASKS, classes=["low", "high"]).axes[0]
    assert [[bar.get_height() for bar in group.patches] for group in axes.containers] == [[3, 1], [2, 0]]


def test_a_word_cloud_depends_on_the_counts_not_their_order():
    counts = {"s3": 3, "ec2": 2, "blob": 1}
    assert png(plots.word_cloud(counts)) == png(plots.word_cloud(dict(reversed(counts.items()))))


def test_colours_are_fixed_for_classes_and_sizes():
    found = plots.colours(["low", "mini-large", "my-model", "another"])
    assert found["low"] == plots.COLOURS["low"] and found["mini-large"] == plots.SIZE_COLOURS["large"]
    assert len(set(found.values())) == 4
