"""Provides the kind of sandbox that this machine allows."""

import sys

import pytest

from lookuplab.sandbox.server import ForkServer, Limits, why_no_namespaces


@pytest.fixture(scope="session")
def sandbox():
    """Return the kind of sandbox. Skip the test if the machine forbids sandboxes, and fail if a
    sandbox should work here but does not.
    """
    if reason := why_no_namespaces():
        if "not permitted" in reason or "ermission denied" in reason:
            pytest.skip(reason)
        pytest.fail(reason)
    return "namespaces"


@pytest.fixture(scope="module")
def server(sandbox):
    with ForkServer(sandbox, sys.executable, Limits(seconds=20, cpu_seconds=20)) as running:
        yield running
