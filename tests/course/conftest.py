"""Lessons take half a minute each: every one runs once, whichever of several test processes comes first."""

import json
import os
import sys
from pathlib import Path

import pytest
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parent))

import lessons


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder for all test processes, with their common store of completions."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "course"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def bundle(shared):
    """The unpacked student bundle, with what an install adds to it."""
    with FileLock(shared / "bundle.lock"):
        unpacked = shared / "lookuplab-course"
        if not unpacked.exists():
            lessons.bundle(shared)
            if (lessons.paths.DATA / "downloads").exists():
                (unpacked / "data" / "downloads").symlink_to(lessons.paths.DATA / "downloads")
    return unpacked


@pytest.fixture(scope="session")
def released(bundle):
    """The folder of the student versions."""
    return bundle / "notebooks" / "course"


@pytest.fixture
def fates(shared, released, warm_forks, monkeypatch):
    """(lesson, case) -> {exercise: what became of it}."""
    monkeypatch.setenv("LOOKUPLAB_STORE", str(shared / "completions.sqlite"))

    def once(lesson: str, case: str) -> set[str]:
        file = shared / f"{lesson}.json"
        with FileLock(file.with_suffix(".lock")):
            if not file.exists():
                file.write_text(json.dumps(lessons.run(lesson, released, shared)))
        return {fate for _, which, fate in json.loads(file.read_text()) if which == case}

    return once
