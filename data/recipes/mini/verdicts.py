"""Judges models whose weights are not committed, for several recipes: a model answers tasks under
several conditions, and the verdicts are written as tables.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from lookuplab import paths
from lookuplab.benchmark import evaluate
from lookuplab.cloudapi.bench import CloudApiBench
from lookuplab.cloudapi.dag import oracle
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.models import load


def answered(
    model: str | Path, tasks: list[ApiTask], designs: tuple[str, ...], longest: int
) -> pd.DataFrame:
    """Let a model answer the tasks without documentation and with the right document in each of the
    ``designs``, in at most ``longest`` tokens. Return one row per task, with its ``id`` and with a
    column ``base`` and a column for each design, in which 1 is a valid call and 0 an invalid one.
    """
    loaded = load(str(model))
    right = oracle(tasks)
    bare = CloudApiBench(tasks, max_new_tokens=longest)
    ways = {design: replace(bare, documents=right, design=design) for design in designs}
    table = pd.DataFrame({"id": [task.id for task in tasks]})
    for name, bench in {"base": bare, **ways}.items():
        table[name] = evaluate(loaded, bench, store=False).valid.astype(int)
    return table


def write_rows(rows: pd.DataFrame, file: Path, float_format: str | None = None) -> None:
    """Write rows to a compressed CSV file. The same rows give the same bytes."""
    same_bytes: Any = {"method": "gzip", "mtime": 0, "compresslevel": 9}
    rows.to_csv(
        file,
        index=False,
        lineterminator="\n",
        float_format=float_format,
        compression=same_bytes,
    )


def write_tables(rows: pd.DataFrame, trained: pd.DataFrame, file: Path) -> None:
    """Write a table about trained models to ``file``, and the rows of verdicts to rows.csv.gz in
    the same folder. The same tables give the same bytes.
    """
    paths.make_folder(file.parent)
    trained.to_csv(file, index=False, lineterminator="\n")
    write_rows(rows, file.with_name("rows.csv.gz"))
