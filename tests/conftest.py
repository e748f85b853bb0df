"""What tests of several rooms share."""

import pytest

from lookuplab.runner.execute import environment
from lookuplab.runner.prefork import prefork


@pytest.fixture(scope="session")
def kernels():
    """Kernels that start with their imports done, as in a run of several notebooks; None where they cannot."""
    with prefork(environment(2)) as folder:
        yield folder
