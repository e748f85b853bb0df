"""A server of this machine; also makes the files that lie beside the tests importable by name."""

import sys
from pathlib import Path

import pytest

from lookuplab.execution.server import ForkServer, Limits, refusal

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def sandbox() -> str:
    """Skips where the machine allows none, fails where it should have worked."""
    if reason := refusal():
        if "not permitted" in reason or "ermission denied" in reason:
            pytest.skip(reason)
        pytest.fail(reason)
    return "namespaces"


@pytest.fixture(scope="module")
def server(sandbox):
    with ForkServer(sandbox, sys.executable, Limits(seconds=20, cpu_seconds=20)) as running:
        yield running
