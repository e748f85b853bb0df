"""Example code compared with the paper's five augmentation designs: the rows of
fig6_example_design.
"""

from collections.abc import Mapping

import numpy as np
from pandas import DataFrame

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import Rows, by_class, class_rows, outcome

RIVALS = ("specification", "description_specification")


def design_rows(frames: Mapping[str, DataFrame], classes: Mapping[str, np.ndarray]) -> Rows:
    """Return ``valid_percent`` of each design and, for *example - specification* and *example -
    description_specification*, the paired ``valid_change_points``, in each of the classes.

    frames: design -> frame of ``evaluate``, over the same tasks; example and RIVALS among them.
    classes: label -> (tasks,) mask; the label "" is for all tasks.
    """
    valid = {name: frame.valid.astype(float) for name, frame in frames.items()}
    rows = []
    for name, frame in frames.items():
        rows += class_rows(frame, name, {"valid_percent": valid[name]}, classes)
    for rival in RIVALS:
        change = {"valid_change_points": valid["example"] - valid[rival]}
        rows += class_rows(frames[rival], f"example - {rival}", change, classes)
    return rows


def example_classes(base: DataFrame, documented: np.ndarray) -> dict[str, np.ndarray]:
    """Return {label: mask} of the frequency classes, of the tasks whose API has a *documented*
    example, of those with a *made* one, and of all ("").
    """
    classes = by_class(base)
    return {"": classes.pop("all"), **classes, "documented": documented, "made": ~documented}


def dag_rows(found: Mapping[str, Passes], precision: float) -> Rows:
    """Return rows of DAG with each of two designs, ``dag_<design>/<class>``: valid calls at one
    precision of the retriever and their change from the base model, both as expectations; and the
    paired ``valid_change_points`` from the first design to the second.
    """
    rows = []
    (first, *_) = [p.first for p in found.values()]
    valid = {f"dag_{design}": outcome(p, True, precision) for design, p in found.items()}
    for name, expected in valid.items():
        change = expected - first.valid.to_numpy(dtype=float)
        numbers = {"valid_percent": expected, "valid_change_points": change}
        rows += class_rows(first, name, numbers)
    old, new = valid
    change = {"valid_change_points": valid[new] - valid[old]}
    return rows + class_rows(first, f"{new} - {old}", change)
