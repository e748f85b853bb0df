"""A server of this machine."""

import sys

import pytest

from lookuplab.sandbox.server import ForkServer, Limits, refusal


@pytest.fixture(scope="session")
def sandbox():
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
