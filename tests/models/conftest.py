"""Provides the tests in this folder with tiny checkpoints."""

import functools

import pytest
from tiny_architectures import save


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Return a function that maps an architecture to the folder of its tiny checkpoint. Each
    checkpoint is written once.
    """
    return functools.cache(lambda name: str(save(tmp_path_factory.mktemp(name), name)))
