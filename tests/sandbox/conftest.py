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
def server(request, sandbox):
    """Yield a server. A module may have its own LIMITS."""
    limits = getattr(request.module, "LIMITS", Limits(seconds=20, cpu_seconds=20))
    with ForkServer(sandbox, sys.executable, limits) as running:
        yield running
