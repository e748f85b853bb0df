"""Lessons take half a minute each: every one runs once, whichever of several test processes comes
first.
"""

import json
import sys
from pathlib import Path

import pytest
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parent))

import lessons


@pytest.fixture(scope="session")
def course(shared):
    """A folder for the bundle, the lessons that ran and their store of completions."""
    (shared / "course").mkdir(exist_ok=True)
    return shared / "course"


@pytest.fixture(scope="session")
def bundle(course):
    """The unpacked student bundle, with what an install adds to it."""
    with FileLock(course / "bundle.lock"):
        unpacked = course / "lookuplab-course"
        if not unpacked.exists():
            lessons.bundle(course)
            if (lessons.paths.DATA / "downloads").exists():
                (unpacked / "data" / "downloads").symlink_to(lessons.paths.DATA / "downloads")
    return unpacked


@pytest.fixture(scope="session")
def released(bundle):
    """The folder of the student versions."""
    return bundle / "notebooks" / "course"


@pytest.fixture
def fates(course, released, monkeypatch):
    """(lesson, case) -> {exercise: what became of it}."""
    monkeypatch.setenv("LOOKUPLAB_STORE", str(course / "completions.sqlite"))

    def once(lesson: str, case: str) -> set[str]:
        file = course / f"{lesson}.json"
        with FileLock(file.with_suffix(".lock")):
            if not file.exists():
                file.write_text(json.dumps(lessons.run(lesson, released, course)))
        return {fate for _, which, fate in json.loads(file.read_text()) if which == case}

    return once
