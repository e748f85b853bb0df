"""The site of the committed figures, built once for all tests and all of their processes."""

import os
import sys
from pathlib import Path

import pytest
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parent))

from lookuplab import report  # noqa: E402


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Path:
    """A folder that all processes of this test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def run() -> report.LastRun:
    return report.last_run("mini")


@pytest.fixture(scope="session")
def site(shared, run) -> Path:
    folder = shared / "the report" / "mini"  # a name with a space, as a user's folder may have
    with FileLock(shared / "report.lock"):
        if not folder.exists():
            built = report.build([run], folder)
            (shared / "warnings.txt").write_text("\n".join(built.warnings), encoding="utf-8")
    return folder
