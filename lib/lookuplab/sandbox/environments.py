"""Virtual environments with pinned packages, such as the one that DS-1000's programs need."""

import subprocess
import sys
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.paths import file_hash


def is_made(name: str) -> bool:
    """Return whether the environment ``name`` is installed with the packages of its current list of
    pins.
    """
    mark = paths.DOWNLOADS / name / "venv/installed.txt"
    return mark.is_file() and mark.read_text() == file_hash(paths.DATA / f"{name}.txt")


def make(name: str) -> Path:
    """Create the environment ``name`` and install its pinned packages, unless that is already done.
    Return the path of its Python. Raises UserError if venv or pip fails.
    """
    folder = paths.DOWNLOADS / name / "venv"
    pins = paths.DATA / f"{name}.txt"
    python = folder / "bin/python"
    if not is_made(name):
        try:
            subprocess.run([sys.executable, "-P", "-m", "venv", folder], check=True)
            subprocess.run(
                [python, "-P", "-m", "pip", "install", "--no-input", "-r", pins], check=True
            )
        except subprocess.CalledProcessError as error:
            raise UserError(
                f"{name}: {error}; what was installed is kept: repeat the command to continue"
            ) from None
        (folder / "installed.txt").write_text(file_hash(pins))
    return python
