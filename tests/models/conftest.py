"""Lets the tests in this folder import the small models and servers that lie beside them."""

import functools

import pytest
from tiny_architectures import save


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Architecture -> the folder of its tiny checkpoint, written once."""
    return functools.cache(lambda name: str(save(tmp_path_factory.mktemp(name), name)))
