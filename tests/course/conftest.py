"""The student bundle is made once, whichever of several test processes comes first."""

import sys
from pathlib import Path

import pytest
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parent))

import lessons


@pytest.fixture(scope="session")
def bundle(shared):
    """The unpacked student bundle."""
    folder = lessons.paths.made(shared / "course")
    with FileLock(folder / "lock"):
        unpacked = folder / "lookuplab-course"
        return unpacked if unpacked.exists() else lessons.bundle(folder)
