"""Kernels that start with their imports done: all are forked from one process that has imported what most notebooks do.

A kernel by itself takes some eight seconds of a processor to import torch and transformers. What it is given, runs and
writes is the same either way.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lookuplab.runner import sources
from lookuplab.runner.plan import Job

_SERVER = Path(__file__).with_name("fork_server.py")
_DEVICES = ("nvidia[0-9]*", "kfd", "dxg")  # of GPUs under /dev: what CUDA and ROCm have begun does not survive a fork
KERNEL = "python3"


def gains(job: Job) -> bool:
    """Whether the notebook imports what is slow to import, and is not one whose time and memory are measured."""
    return job.notebook.order != "alone" and "torch" in sources.imported(job.notebook)


@contextmanager
def prefork(environment: Mapping[str, str]) -> Iterator[Path | None]:
    """A folder for JUPYTER_PATH whose kernel ``python3`` is forked; None where that cannot be: not Linux, or a GPU.

    ``environment`` is what all its kernels have in common, threads above all: they are counted at the first import.
    The process and its kernels end with the context, and with this process however it ends.
    """
    if sys.platform != "linux" or any(next(Path("/dev").glob(name), None) for name in _DEVICES):
        yield None
        return
    import socket

    with tempfile.TemporaryDirectory(prefix="lookuplab-") as folder:
        address = f"{folder}/server"
        with socket.socket(socket.AF_UNIX) as listener:
            try:
                listener.bind(address)
            except OSError:  # a temporary folder whose name is too long for a socket
                yield None
                return
            listener.listen(128)
            server = subprocess.Popen(
                [sys.executable, str(_SERVER), "serve", str(listener.fileno())], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(environment), start_new_session=True,
                pass_fds=[listener.fileno()])
        _write_specification(Path(folder) / "kernels" / KERNEL, address)
        try:
            yield Path(folder)
        finally:
            server.stdin.close()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:  # it is importing still, and has no kernels
                server.kill()
                server.wait()


def _write_specification(folder: Path, address: str) -> None:
    from ipykernel.kernelspec import get_kernel_dict

    command = [sys.executable, "-I", "-S", str(_SERVER), "kernel", address, "-f", "{connection_file}"]
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(get_kernel_dict() | {"argv": command}), encoding="utf-8")
