"""Computes the numbers of Table 1 and Figure 6 for models that were trained again with other seeds:
the rows of the notebook seeds (data/seeds/DESIGN.md).

A model called ``mini-small seed 1`` is one training. ``lookuplab.results.claims`` judges each claim
about Table 1 and Figure 6 for each training.
"""

from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.cloudapi.policies import UNDIVIDED, Rows, by_class, class_rows
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.scoring.rates import bare_row, of_change, over_seeds, row

DESIGNS = ("specification", "description_specification")


def trainings(file: Path | str, tasks: Mapping[str, ApiTask]) -> dict[str, list[pd.DataFrame]]:
    """Return {size: frames}, one frame for each seed, with the verdicts in
    ``data/seeds/rows.csv.gz``. A frame has one row per task, and the columns ``id``, ``model``
    (``mini-small seed 1``), ``frequency`` and ``cluster``. Each condition has a further column,
    which is 1 for a valid call, otherwise 0.
    """
    table = pd.read_csv(paths.located(file))
    table["frequency"] = [tasks[id].frequency for id in table.id]
    table["cluster"] = [tasks[id].target for id in table.id]
    table["model"] = "mini-" + table["size"] + " seed " + table.seed.astype(str)
    return {
        size: [frame.reset_index(drop=True) for _, frame in part.groupby("seed", sort=False)]
        for size, part in table.groupby("size", sort=False)
    }


def rate_rows(found: Mapping[str, list[pd.DataFrame]]) -> Rows:
    """Return rows about the answers without documentation, for each frequency class and "all".

    - ``valid_percent`` of each training, as in Table 1.
    - ``valid_change_points`` between two trainings of different sizes, paired by task. The column
      ``model`` names both, such as ``mini-medium seed 1 - mini-small seed 0``.
    - ``valid_change_points`` between two sizes: the difference of the means over seeds, with an
      interval over tasks and seeds. The ``model`` is ``mini``, and the condition names both sizes,
      such as ``medium/all - small/all``.
    - ``valid_sd_points``: for each size, the standard deviation between its trainings.
    """
    every = [frame for frames in found.values() for frame in frames]
    rows = [
        line for frame in every for line in class_rows(frame, "", {"valid_percent": frame.base})
    ]
    for small, large in combinations(found, 2):
        for old, new in product(found[small], found[large]):
            both = new.assign(model=f"{new.model[0]} - {old.model[0]}")
            rows += class_rows(both, "", {"valid_change_points": new.base - old.base})
    for label, mask in by_class(every[0]).items():
        valid = {
            size: np.column_stack([frame.base[mask] for frame in frames])
            for size, frames in found.items()
        }
        clusters = every[0].cluster[mask]
        for small, large in combinations(found, 2):
            step = over_seeds(valid[large], clusters, of_change, minus=valid[small])
            name = f"{large}/{label} - {small}/{label}"
            rows.append(row("mini", name, "valid_change_points", step.percent()))
        rows += spread(valid, label, "valid_sd_points")
    return rows


def gain_rows(found: Mapping[str, list[pd.DataFrame]]) -> Rows:
    """Return the rows of Figure 6 for each training, over all tasks (condition ``<design>``) and by
    class (``<design>/<class>``): ``valid_percent`` of ``base`` and of each design, and
    ``valid_change_points`` from ``base`` to each design. Over all tasks, there is also the change
    from the shorter design to the longer one. ``gain_sd_points`` is, for each size, the standard
    deviation of a design's gain between the trainings of this size.
    """
    rows: Rows = []
    for frame in (frame for frames in found.values() for frame in frames):
        classes = by_class(frame)
        classes[""] = classes.pop("all")
        rows += class_rows(frame, "base", {"valid_percent": frame.base}, classes)
        for shown in DESIGNS:
            change = frame[shown] - frame.base
            numbers = {"valid_percent": frame[shown], "valid_change_points": change}
            rows += class_rows(frame, shown, numbers, classes)
        shorter, longer = DESIGNS
        added = {"valid_change_points": frame[longer] - frame[shorter]}
        rows += class_rows(frame, f"{longer} - {shorter}", added, UNDIVIDED)
    for shown in DESIGNS:
        gains = {
            size: np.column_stack([frame[shown] - frame.base for frame in frames])
            for size, frames in found.items()
        }
        rows += spread(gains, shown, "gain_sd_points")
    return rows


def spread(values: Mapping[str, np.ndarray], condition: str, metric: str) -> Rows:
    """Return the standard deviation of the seeds' means in points, for each size with several
    seeds. ``values`` has an array (tasks, seeds) for each size; ``n`` is the number of seeds.
    """
    means = {f"mini-{size}": 100 * each.mean(axis=0) for size, each in values.items()}
    return [
        bare_row(model, condition, metric, each.std(ddof=1), len(each))
        for model, each in means.items()
        if len(each) > 1
    ]
