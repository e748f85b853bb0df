"""Selects the paper's printed numbers that are shown next to those of a user's model. The paper's
models answered the authors' tasks, which are not public; the user's model answers the kit's tasks.
Every notebook that shows both says so.
"""

from collections.abc import Mapping

from pandas import DataFrame

from lookuplab.results.paper import values


def paper_rows(ours: DataFrame, roles: Mapping[str, str]) -> DataFrame:
    """Return the percentages of valid calls that the paper's Table 1 prints for the paper's models
    in ``roles``. ``roles`` maps a model of ours to the paper's model that it stands for.

    Return an empty frame if every model in ``ours`` has a role: the figure then shows each of the
    paper's values as a diamond at the model that has the role, so no separate rows are needed.
    """
    rows = values("cloudapibench", "table1_base_models").query("metric == 'valid_percent'")
    has_role = ours.model[ours.metric == "valid_percent"].isin([*roles]).all()
    return rows[rows.model.isin([] if has_role else roles.values())]
