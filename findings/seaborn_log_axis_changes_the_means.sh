#!/usr/bin/env bash
# seaborn 0.13.2: on a logarithmic axis, a bar or a line shows the geometric mean instead of the mean, so the better model can look worse.
#
# Expected: the scale of an axis changes where a number is drawn, not the number. The estimator of a bar plot is "mean" by default.
# Seen: if the axis is logarithmic when barplot, pointplot or lineplot draws, seaborn takes the logarithms of the values first and their mean after that.
# The mean of 1 and 100 is drawn at 10, not at 50.5. If `ax.set_yscale("log")` comes after the plot, the mean is 50.5. With a 0 among the values, the bar
# is at 0. There is no warning. Asked about upstream in issue 3661, which is open.
# Why it matters: losses, perplexities, costs and times are plotted on logarithmic axes. Here, the mean of "small" is twice that of "large" on a linear
# axis, and less than half of it on a logarithmic one. A figure and the table beside it disagree, depending on the order of two lines of code.
# What to do: compute the means before the plot, or change the scale after it.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet seaborn==0.13.2 matplotlib==3.11.2 pandas==3.1.1 2>/dev/null
MPLBACKEND=agg "$place/venv/bin/python" - <<'PY'
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

warnings.simplefilter("error", UserWarning)
warnings.simplefilter("error", RuntimeWarning)


def heights(plot, scale_is_set, costs):
    """Return the two heights that `plot` draws if the logarithmic scale is set "never", "before" or "after"."""
    answers = pd.DataFrame({"model": ["small", "small", "large", "large"], "cost": costs})
    figure, axes = plt.subplots()
    if scale_is_set == "before":
        axes.set_yscale("log")
    plot(answers, x="model", y="cost", errorbar=None, ax=axes)
    if scale_is_set == "after":
        axes.set_yscale("log")
    drawn = [bar.get_y() + bar.get_height() for bar in axes.patches] or axes.lines[0].get_ydata()
    plt.close(figure)
    return [round(float(height), 1) for height in drawn]


print("seaborn", sns.__version__)
means, geometric_means = [50.5, 25.0], [10.0, 24.5]
for plot in (sns.barplot, sns.pointplot, sns.lineplot):
    for scale_is_set, expected in {"never": means, "before": geometric_means, "after": means}.items():
        drawn = heights(plot, scale_is_set, [1, 100, 20, 30])
        print(f"{plot.__name__}, logarithmic scale set {scale_is_set}: small {drawn[0]}, large {drawn[1]}")
        assert drawn == expected, "the behaviour changed"
drawn = heights(sns.barplot, "before", [0, 100, 20, 30])
print(f"barplot of 0 and 100, logarithmic scale set before: {drawn[0]}")
assert drawn == [0.0, 24.5], "the behaviour changed"
PY
