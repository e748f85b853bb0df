"""The sandbox of this machine; also makes the files that lie beside the tests importable by name."""

import sys
from pathlib import Path

import pytest

from lookuplab.execution.sandbox import NAMES, Sandbox, probe

sys.path.insert(0, str(Path(__file__).parent))

REFUSED = ("is not installed", "not permitted", "ermission denied", "Cannot connect")  # by the machine, not by a fault


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """The first that works. Skips where the machine allows none, fails where one should have worked."""
    reasons = {name: probe(name) for name in NAMES[:-1]}
    for name, reason in reasons.items():
        if not reason:
            return Sandbox(name)
    told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    if all(any(words in reason for words in REFUSED) for reason in reasons.values()):
        pytest.skip(f"this machine allows no sandbox: {told}")
    pytest.fail(f"no sandbox works: {told}")
