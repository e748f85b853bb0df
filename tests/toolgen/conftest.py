"""Lets the tests of this room import the small models that lie beside them and beside those of the shared room."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "models")]

import pytest  # noqa: E402
from tiny_architectures import save  # noqa: E402


@pytest.fixture(scope="session")
def bases(tmp_path_factory):
    """A folder with a tiny model of each architecture, to be fine-tuned."""
    folder = tmp_path_factory.mktemp("bases")
    for architecture in ("gpt2", "t5", "llama"):
        save(folder / architecture, architecture, context=256)
    return folder
