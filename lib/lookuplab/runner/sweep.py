"""A grid of parameters over one notebook, and its numbers in one table."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from lookuplab import paths
from lookuplab.runner.notebooks import Notebook
from lookuplab.runner.plan import Job, plan, sweep_values
from lookuplab.runner.profiles import Profile


def plan_sweep(notebook: Notebook, profile: Profile, pairs: Sequence[tuple[str, str]]) -> tuple[Path, list[Job]]:
    """One checked job a case, each with a folder of its own below the sweep's.

    The folder's name is a hash of profile and grid: the same sweep comes to lie in the same place.
    """
    grid = json.dumps([profile.name, list(pairs)])
    name = hashlib.sha256(grid.encode()).hexdigest()[:8]
    folder = paths.RUNS / "sweeps" / notebook.paper / notebook.name / name
    jobs = []
    for number, case in enumerate(sweep_values(pairs)):
        place = folder / f"{number:03d}"
        jobs.append(plan(notebook, profile, case, output=place / f"{notebook.name}.ipynb", figures=place / "figures"))
    return folder, jobs


def collect(folder: Path, jobs: Sequence[Job], swept: Sequence[str]) -> Path | None:
    """Write ``sweep.csv``: the swept parameters, then the columns of the artifacts' CSVs. None where there are none."""
    import pandas as pd

    frames = []
    for job in jobs:
        for file in sorted(job.figures.rglob("*.csv")):
            frame = pd.read_csv(file, dtype=str, keep_default_na=False)
            for position, name in enumerate(swept):
                frame.insert(position, f"parameter_{name}", str(job.values[name]))
            frames.append(frame)
    if not frames:
        return None
    table = folder / "sweep.csv"
    pd.concat(frames, ignore_index=True).to_csv(table, index=False, lineterminator="\n")
    return table
