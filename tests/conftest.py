"""What tests of several rooms share."""

import multiprocessing.forkserver
import os

import pytest

from lookuplab import runner


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder for all test processes."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def warm_forks():
    """Notebooks are forked from one process that has done the slow imports, as in a run of several."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    multiprocessing.forkserver.set_forkserver_preload(runner.IMPORTS)
    multiprocessing.forkserver.ensure_running()
