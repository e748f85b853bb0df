"""Which failed answers of real models the readers label: the draw of
data/published/near_misses/DESIGN.md.
"""

from collections.abc import Iterable

import pandas as pd

from lookuplab.models.store import hashed
from lookuplab.stackoverflow.ds1000 import Problem

PRINTED = "383"  # the paper prints an answer to it, which the readers are shown
OF_EACH_MODEL = {"Pandas": 8, "Numpy": 5, "Scipy": 4, "Sklearn": 3, "Pytorch": 2, "Tensorflow": 2}
DEVELOP = 72  # answers at least


def drawn(problems: Iterable[Problem], failed: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """The answers to label, with model, problem_id, library, cluster, population (answers in the
    stratum) and half (develop or held-out), by model and problem.

    failed: (model, problem's id) of every judged answer that failed.
    """
    by_id = {problem.id: problem for problem in problems}
    rows = [
        {"model": model, "problem_id": int(id), "library": by_id[id].library}
        | {"cluster": by_id[id].cluster, "order": hashed(f"near miss {model} {id}")}
        for model, id in failed
        if by_id[id].library in OF_EACH_MODEL and id != PRINTED
    ]
    frame = pd.DataFrame(rows).sort_values("order")
    strata = frame.groupby(["model", "library"])
    frame["population"] = strata.problem_id.transform("size")
    frame = frame[strata.cumcount() < frame.library.map(OF_EACH_MODEL)]
    sizes = frame.cluster.value_counts()
    sizes = sizes[sorted(sizes.index, key=lambda name: hashed(f"near miss half {name}"))]
    before = sizes.cumsum() - sizes
    develop = frame.cluster.isin(sizes.index[before < DEVELOP])
    frame["half"] = develop.map({True: "develop", False: "held-out"})
    return frame.drop(columns="order").sort_values(["model", "problem_id"], ignore_index=True)
