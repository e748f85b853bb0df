"""Lessons take half a minute each: every one runs once, whichever of several test processes comes first."""

import json
import os
import sys
from pathlib import Path

import pytest
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parent))

import lessons  # noqa: E402


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder for all test processes, with their common store of completions."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "course"
    folder.mkdir(exist_ok=True)
    os.environ.setdefault("MPLBACKEND", "agg")
    return folder


@pytest.fixture(scope="session")
def released(shared):
    """The folder of the student versions."""
    with FileLock(shared / "released.lock"):
        if not (shared / "release").exists():
            lessons.student_versions(shared)
    return shared / "release" / "course"


@pytest.fixture
def ran(shared, released, monkeypatch):
    """Lesson -> what ``lessons.run`` says of it."""
    monkeypatch.setenv("LOOKUPLAB_STORE", str(shared / "completions.sqlite"))

    def once(lesson: str) -> dict:
        file = shared / f"{lesson}.json"
        with FileLock(file.with_suffix(".lock")):
            if not file.exists():
                file.write_text(json.dumps(lessons.run(lesson, released, shared)))
        return json.loads(file.read_text())

    return once


@pytest.fixture
def graded(shared, released, monkeypatch):
    """A student who solved the first three exercises of the last lesson; graded once."""
    monkeypatch.setenv("LOOKUPLAB_STORE", str(shared / "completions.sqlite"))
    lesson = lessons.LESSONS[-1]
    done = lessons.Graded(shared, lesson, tuple(lessons.exercises(lessons.FOLDER / f"{lesson}.ipynb")[:3]))
    with FileLock(shared / "graded.lock"):
        if not done.notebook.exists():
            done.grade()
    return done
