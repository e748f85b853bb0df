"""The paper's own models beside a user's model, in picture and sentence. The paper's models
answered the authors' tasks, which are not public; the user's model answers the kit's. This is said
wherever both are shown.
"""

from collections.abc import Mapping, Sequence

from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from pandas import DataFrame

from lookuplab.results.paper import values
from lookuplab.results.plots import PAPER_STYLE

MINI_TASKS = "data/mini/"


def paper_rows(ours: DataFrame, roles: Mapping[str, str]) -> DataFrame:
    """Return the valid calls of the models in ``roles``, as the paper's Table 1 prints them.

    There are no rows if each model in ``ours`` has a role: its own diamond is then enough.
    """
    rows = values("cloudapibench", "table1_base_models").query("metric == 'valid_percent'")
    has_role = ours.model[ours.metric == "valid_percent"].isin([*roles]).all()
    return rows[rows.model.isin([] if has_role else roles.values())]


def add_diamonds(figure: Figure, rows: DataFrame, order: Sequence[str]) -> Figure:
    """Draw ``grouped_bars`` with a small diamond for each of the paper's models at each bar of its
    class. ``order`` is that of the bars.
    """
    if rows.empty:
        return figure
    [axes] = figure.axes
    look = PAPER_STYLE | {"markersize": 3.5, "markeredgecolor": "#9a9a9a"}
    bars = [drawn for drawn in axes.containers if isinstance(drawn, BarContainer)]
    for kind, drawn in zip(order, bars, strict=True):
        theirs = rows.value[rows.condition == kind]
        for bar in drawn:
            axes.plot([bar.get_x() + bar.get_width() / 2] * len(theirs), theirs, **look, zorder=5)
    axes.plot([], [], **look, label=f"the paper's {rows.model.nunique()} models, on other tasks")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    return figure


def which_tasks(ours: DataFrame, roles: Mapping[str, str], tasks_file: str) -> str:
    """Return a remark such as `` (622 tasks of the kit, not the authors')``, with a warning if
    there are few tasks. It is "" for the mini tasks, and if ``roles`` has no model of the paper.
    """
    if not roles or MINI_TASKS in tasks_file:
        return ""
    answered = ours[(ours.metric == "valid_percent") & (ours.condition == "all")]
    n = answered.n.max()
    few = ": too few to judge a model" if n < 100 else ""
    return f" ({n:.0f} tasks of the kit, not the authors'{few})"


def paper_ranges(rows: DataFrame) -> str:
    """Return the lowest and highest number of the paper's models in each class, as a sentence."""
    if rows.empty:
        return ""
    ranges = rows.groupby("condition").value.agg(["min", "max"])
    told = ", ".join(
        f"{low:.1f} to {high:.1f}%" for low, high in ranges.loc[["high", "medium", "low"]].values
    )
    return (
        f" The paper's {rows.model.nunique()} models, on the authors' tasks, which are not "
        f"public: {told}."
    )
