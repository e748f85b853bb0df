"""Says which part of the machine this job may use: processors, memory, graphics cards. All code
that starts threads or processes uses this module, to stay within the limits of a queue or a
container.
"""

import math
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

# environment variable, set by the runner; "1/4" means that this is the second of four processes
SHARE_VARIABLE = "LOOKUPLAB_SHARE"


def share() -> tuple[int, int]:
    """Return this process's number, from 0, and the number of processes that share the work (of one
    launch, or shards): (0, 1) for a single process.
    """
    number, count = os.environ.get(SHARE_VARIABLE, "0/1").split("/")
    return int(number), int(count)


def processors(root: Path = Path("/")) -> int:
    """Return how many processors this job may use. This is the least of three numbers: the
    processors to which the job is bound (``taskset``), the quota of its control groups (``docker
    --cpus 1.5`` counts as 2) and SLURM_CPUS_PER_TASK. ``root`` is another root folder in tests.
    """
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = [here, int(os.environ.get("SLURM_CPUS_PER_TASK", here))]
    for text in _limits("cpu.max", root):
        quota, period = text.split()
        if quota != "max":
            allowed.append(math.ceil(int(quota) / int(period)))
    return max(1, min(allowed))


def memory(root: Path = Path("/")) -> int:
    """Return how many bytes this job may still allocate: the machine's free memory, or less if the
    limit of a control group leaves less.
    """
    import psutil  # slow to import

    left = [psutil.virtual_memory().available]
    limits, used = _limits("memory.max", root), _limits("memory.stat", root)
    for limit, stat in zip(limits, used, strict=False):
        if limit.strip() != "max":
            fields = dict(line.split() for line in stat.splitlines())
            # only anonymous memory counts as used; the kernel releases cached files when needed
            left.append(int(limit) - int(fields["anon"]))
    return int(max(0, min(left)))


def _limits(name: str, root: Path) -> Iterator[str]:
    """Yield the contents of the files called ``name`` (such as "cpu.max") in the control groups
    (version 2) of this process, from its own group up to that of the whole machine.
    """
    with suppress(OSError):
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
        for own in (line.removeprefix("0::/") for line in lines if line.startswith("0::/")):
            top = root / "sys/fs/cgroup"
            for folder in [top / own, *(top / own).parents]:
                if (file := folder / name).is_file():
                    yield file.read_text("utf-8")


def cards() -> list[str]:
    """Return the graphics cards that this job may use: the names in CUDA_VISIBLE_DEVICES or, if it
    is not set, the driver's numbers of all cards. Torch, which is slow to import, is not needed.
    """
    if (stated := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        listed = [card.strip() for card in stated.split(",")]
        # the driver ignores the first invalid number and all numbers after it
        return [*takewhile(lambda card: card not in ("", "-1"), listed)]
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return []
