"""Curves over a quantity that was varied, and what a model's probabilities say."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from lookuplab import plots
from lookuplab.scoring.calibration import reliability_rows

NAN = float("nan")
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
RELIABLE = pd.DataFrame(reliability_rows("m", [False, True, True, True], [0.1, 0.3, 0.8, 1.0], list("abcd"), bins=2))


def png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def curves(frame=CURVE, **options):
    return plots.curves(frame, "valid_percent", "precision", **options)


def named(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize(
    "draw",
    [
        curves,
        lambda: plots.reliability_diagram(RELIABLE),
        lambda: plots.token_strip(["get", "_object"], [0.9, 0.2]),
    ],
    ids=["curves", "reliability", "tokens"],
)
def test_a_figure_is_the_same_each_time_and_closed(draw):
    before = plt.get_fignums()
    assert png(draw()) == png(draw())
    assert plt.get_fignums() == before, "an open figure would be shown twice in a notebook"


def test_a_curve_runs_over_the_numbers_in_its_conditions():
    line = curves(classes=["high"]).axes[0].lines[0]
    assert line.get_xdata().tolist() == [0, 50, 100] and list(line.get_ydata()) == [40, 65, 90]


def test_the_base_is_a_level_in_the_colour_of_its_class():
    [level] = [line for line in curves().axes[0].lines if list(line.get_ydata()) == [84, 84]]
    assert to_hex(level.get_color()) == plots.COLOURS["high"] and level.get_linestyle() == "--"


def test_the_papers_points_stand_where_it_reports_them():
    marked = [line for line in curves().axes[0].lines if line.get_marker() == "D"]
    known = [(x, y) for line in marked for x, y in zip(*line.get_data(), strict=True) if not np.isnan(y)]
    assert known == [(50, 67.32)]


def test_the_band_is_the_interval():
    [corners] = [path.vertices for path in curves(classes=["low"]).axes[0].collections[0].get_paths()]
    assert {tuple(corner) for corner in corners} == {(0, 15), (0, 25), (100, 75), (100, 85)}


def test_the_legend_names_what_is_drawn_once():
    figure = curves(classes=["low", "high"], points="sampled_valid_percent", marks={"chosen": 80, "best": (70, 80)})
    assert named(figure) == ["low", "high", "base", "sampled", "chosen", "best", "paper"]
    assert named(curves(CURVE[CURVE.condition.str.endswith("low")])) == ["low"]


def test_sampled_points_have_no_line():
    dots = [line for line in curves(points="sampled_valid_percent").axes[0].lines if line.get_marker() == "."]
    assert [list(line.get_ydata()) for line in dots] == [[66], []]
    assert {line.get_linestyle() for line in dots} == {"None"}


def test_each_model_has_its_panel_on_the_same_axes():
    figure = curves(pd.concat([CURVE, CURVE.assign(model="n", value=CURVE.value / 2)]))
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes] == ["m", "n"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_models_can_be_the_lines_of_one_panel():
    figure = curves(pd.concat([CURVE, CURVE.assign(model="n")]), lines="model", classes=["high"])
    assert len(figure.axes) == 1 and named(figure)[:2] == ["m", "n"]


def test_two_values_for_one_point_are_refused():
    with pytest.raises(ValueError, match="choose classes"):
        curves(lines="model")


def test_a_quantity_that_was_not_varied_is_refused():
    with pytest.raises(ValueError, match="threshold_1/all"):
        plots.curves(CURVE, "valid_percent", "threshold")


def test_too_many_panels_are_refused():
    with pytest.raises(ValueError, match="1 to 6 panels, not 7"):
        curves(pd.concat([CURVE.assign(model=str(number)) for number in range(7)]))


def test_reliability_is_share_over_mean_confidence():
    axes, strip = plots.reliability_diagram(RELIABLE).axes
    [line] = [line for line in axes.lines if line.get_marker() == "o"]
    assert line.get_xdata().tolist() == pytest.approx([0.2, 0.9]) and line.get_ydata().tolist() == [50, 100]
    assert strip.lines[0].get_ydata().tolist() == [2, 2]


def test_the_diagonal_is_calibrated():
    axes = plots.reliability_diagram(RELIABLE).axes[0]
    assert any(line.get_xydata().tolist() == [[0, 0], [1, 100]] for line in axes.lines)


def minimum_box(figure):
    [box] = [patch for patch in figure.axes[0].patches if not patch.get_fill()]
    return box.get_x()


def test_the_least_likely_token_of_the_name_is_framed():
    # Figure 8: the name is restart, _, partition; the bracket after it does not count
    figure = plots.token_strip(["restart", "_", "partition", "("], [0.41, 0.83, 0.21, 0.1], name=[1, 1, 1, 0])
    boxes = [patch for patch in figure.axes[0].patches if patch.get_fill()]
    assert len(boxes) == 4 and minimum_box(figure) == boxes[2].get_x()


def test_blanks_and_line_ends_of_tokens_are_seen():
    figure = plots.token_strip([" a", "\n\t"], [0.5, 1.0])
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "\u2423a" in texts and "\\n\\t" in texts


def test_a_long_invocation_takes_several_rows():
    boxes = plots.token_strip(["token"] * 40, [0.5] * 40).axes[0].patches
    assert len({box.get_y() for box in boxes}) > 2
    assert max(box.get_x() + box.get_width() for box in boxes) <= plots.token_strip(["a"], [1]).axes[0].get_xlim()[1]


def test_tokens_without_probability_are_refused():
    with pytest.raises(ValueError, match="2 tokens, 1 probabilities"):
        plots.token_strip(["a", "b"], [0.5])
