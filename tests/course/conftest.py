"""Makes the student bundle once, in the test process that needs it first."""

import lessons
import pytest
from filelock import FileLock


@pytest.fixture(scope="session")
def bundle(shared):
    """Return the folder of the unpacked student bundle."""
    folder = lessons.paths.make_folder(shared / "course")
    with FileLock(folder / "lock"):
        unpacked = folder / "lookuplab-course"
        return unpacked if unpacked.exists() else lessons.bundle(folder)
