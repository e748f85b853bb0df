"""This process as one of several that ``accelerate launch`` (or torchrun) started with the same command.

Each runs the same notebook, and the models' work is shared by the store (``models.share``). The first process writes
where a single one would; the others write beside the runs.
"""

import os
from dataclasses import replace

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.share import SHARE
from lookuplab.runner.plan import Job

# What a launcher says to its processes. A notebook's kernel must not see it: what trains there would wait for others.
_LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE",
              "MASTER_ADDR", "MASTER_PORT")


def place() -> tuple[int, int]:
    """(number of this process from 0, of how many). Raises UserError where they are on several machines."""
    rank, count = (int(os.environ.get(name, default)) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1")))
    if int(os.environ.get("LOCAL_WORLD_SIZE", count)) != count:
        raise UserError("the processes of one launch share a completion store, so they must run on one machine; "
                        "for several, give notebooks to a cluster (--scheduler)")
    return rank, count


def alone(command: str) -> None:
    """Raise UserError where this is one of several processes, which would overwrite each other's files."""
    if place()[1] > 1:
        raise UserError(f"`lookuplab {command}` cannot be launched in several processes; `lookuplab run` can")


def placed(job: Job) -> Job:
    """The job of this process: of all but the first, with places of its own."""
    rank, count = place()
    if rank == 0:
        return job
    folder = paths.RUNS / "processes" / str(rank)
    return replace(job, output=folder / job.notebook.paper / job.output.name, figures=folder / "figures")


def kernel_environment() -> dict[str, str]:
    """``os.environ`` for a notebook: with this process's share of the prompts, and of the GPUs."""
    rank, count = place()
    if count == 1:
        return dict(os.environ)
    environment = {name: value for name, value in os.environ.items()
                   if name not in _LAUNCHERS and not name.startswith(("TORCHELASTIC_", "ACCELERATE_"))}
    devices = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    mine = ",".join(devices[rank::count]) or str(rank)
    return {**environment, SHARE: f"{rank}/{count}", "CUDA_VISIBLE_DEVICES": mine}
