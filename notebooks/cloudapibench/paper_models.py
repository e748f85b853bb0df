"""Shows the paper's own models next to a user's model. The paper's models answered the authors'
tasks, which are not public, and the user's model answers the kit's tasks. A notebook says so
wherever it shows both.
"""

from collections.abc import Mapping

from pandas import DataFrame

from lookuplab.results.paper import values


def paper_rows(ours: DataFrame, roles: Mapping[str, str]) -> DataFrame:
    """Return the rows of the paper's Table 1 with the valid calls of its own models. ``roles`` maps
    a model of ours to the paper's model in the same role.

    The frame is empty if each model in ``ours`` has a role, because the figure then shows the
    paper's value as a diamond at our model.
    """
    rows = values("cloudapibench", "table1_base_models").query("metric == 'valid_percent'")
    has_role = ours.model[ours.metric == "valid_percent"].isin([*roles]).all()
    return rows[rows.model.isin([] if has_role else roles.values())]
