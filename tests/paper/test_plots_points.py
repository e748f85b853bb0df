"""Policies as points, and Figure 6's bubbles."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from lookuplab import plots

NAN = float("nan")
POLICIES = pd.DataFrame(
    [
        ("m", "base/high", "valid_percent", 84.0, 80.0, 88.0, 84.39),
        ("m", "base/low", "valid_percent", 12.0, 8.0, 16.0, NAN),
        ("m", "dag/high", "valid_percent", 67.0, 60.0, 74.0, NAN),
        ("m", "dag/low", "valid_percent", 46.0, 40.0, 52.0, NAN),
        ("m", "base/high", "tokens", 30.0, NAN, NAN, NAN),
        ("m", "dag/high", "tokens", 120.0, NAN, NAN, NAN),
    ],
    columns=["model", "condition", "metric", "value", "ci_low", "ci_high", "paper_value"],
)
DESIGNS = pd.DataFrame(
    [
        ("base/[0, 0]", "share_percent", 100.0),
        ("base/[0, 0]", "valid_percent", 12.0),
        ("name_only/[16, 31]", "share_percent", 75.0),
        ("name_only/[16, 31]", "valid_percent", 40.0),
        ("name_only/[8, 15]", "share_percent", 25.0),
        ("name_only/[8, 15]", "valid_percent", 60.0),
        ("name_only/[4, 7]", "share_percent", 0.0),
    ],
    columns=["condition", "metric", "value"],
)


def png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def named(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.dots_with_intervals(POLICIES, "valid_percent"),
        lambda: plots.scatter(POLICIES, "tokens", of="high", log=True),
        lambda: plots.bubbles(DESIGNS),
    ],
    ids=["dots", "scatter", "bubbles"],
)
def test_a_figure_is_the_same_each_time_and_closed(draw):
    before = plt.get_fignums()
    assert png(draw()) == png(draw())
    assert plt.get_fignums() == before, "an open figure would be shown twice in a notebook"


def test_policies_stand_from_top_to_bottom_in_the_order_asked_for():
    axes = plots.dots_with_intervals(POLICIES, "valid_percent", policies={"dag": "DAG", "base": "no lookup"}).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["DAG", "no lookup"]
    assert axes.yaxis_inverted()


def test_each_class_is_a_dot_with_its_interval():
    figure = plots.dots_with_intervals(POLICIES, "valid_percent", classes=["low", "high"])
    low, high = figure.axes[0].containers
    assert low.lines[0].get_xdata().tolist() == [12, 46] and high.lines[0].get_xdata().tolist() == [84, 67]
    assert [segment[:, 0].tolist() for segment in high.lines[2][0].get_segments()] == [[80, 88], [60, 74]]
    assert named(figure) == ["low", "high", "paper"]


def test_a_policy_without_the_class_has_no_dot():
    axes = plots.dots_with_intervals(POLICIES.drop(index=3), "valid_percent", classes=["low"]).axes[0]
    assert axes.containers[0].lines[0].get_xdata().tolist() == pytest.approx([12, NAN], nan_ok=True)


def test_each_model_has_its_panel():
    both = pd.concat([POLICIES, POLICIES.assign(model="n")])
    assert [axes.get_title(loc="left") for axes in plots.dots_with_intervals(both, "valid_percent").axes] == ["m", "n"]


def test_a_policy_is_a_point_at_its_cost_and_validity():
    figure = plots.scatter(POLICIES, "tokens", of="high")
    points = [container.lines[0].get_xydata().tolist() for container in figure.axes[0].containers]
    assert points == [[[30, 84]], [[120, 67]]] and named(figure) == ["base", "dag"]


def test_models_are_told_apart_by_colour_and_policies_by_marker():
    figure = plots.scatter(pd.concat([POLICIES, POLICIES.assign(model="n")]), "tokens", of="high")
    drawn = [container.lines[0] for container in figure.axes[0].containers]
    assert [line.get_color() for line in drawn[:2]] == [drawn[0].get_color()] * 2
    assert drawn[0].get_color() != drawn[2].get_color() and drawn[0].get_marker() == drawn[2].get_marker()
    assert named(figure) == ["m", "n", "base", "dag"]


def test_a_policy_without_cost_is_not_drawn():
    assert len(plots.scatter(POLICIES.drop(index=4), "tokens", of="high").axes[0].containers) == 1


def test_bubbles_are_coloured_by_rate_and_sized_by_share():
    [drawn] = plots.bubbles(DESIGNS).axes[0].collections
    assert drawn.get_offsets().tolist() == [[0, 0], [1, 3], [1, 2]]  # bins from few tokens to many, the empty one too
    assert np.asarray(drawn.get_array()).tolist() == [12, 40, 60]
    assert drawn.get_sizes()[0] / drawn.get_sizes()[2] == pytest.approx(4)
    assert (drawn.norm.vmin, drawn.norm.vmax) == (0, 100)


def test_designs_can_be_chosen_and_named():
    axes = plots.bubbles(DESIGNS, designs={"name_only": "API Name Only"}).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["API\nName\nOnly"]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(0, "[0, 0]"), (1, "[1, 1]"), (3, "[2, 3]"), (16, "[16, 31]"), (31, "[16, 31]"), (2047, "[1024, 2047]"),
     (2048, "[1024, 2047]"), (99_999, "[1024, 2047]")],
)
def test_token_bins_double_up_to_the_cap(tokens, expected):
    assert plots.token_bin(tokens) == expected


def test_fewer_than_no_tokens_are_refused():
    with pytest.raises(ValueError, match="-1 tokens"):
        plots.token_bin(-1)
