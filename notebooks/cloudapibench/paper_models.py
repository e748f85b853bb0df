"""The paper's own models beside a user's model. They answered the authors' tasks, which are not
public; the user's model answers the kit's. The notebook says so wherever it shows both.
"""

from collections.abc import Mapping

from pandas import DataFrame

from lookuplab.results.paper import values


def paper_rows(ours: DataFrame, roles: Mapping[str, str]) -> DataFrame:
    """Return the valid calls of the models in ``roles``, as the paper's Table 1 prints them.

    There are no rows if each model in ``ours`` has a role: its own diamond is then enough.
    """
    rows = values("cloudapibench", "table1_base_models").query("metric == 'valid_percent'")
    has_role = ours.model[ours.metric == "valid_percent"].isin([*roles]).all()
    return rows[rows.model.isin([] if has_role else roles.values())]
