"""Small models that lie beside the tests, and little repositories with real Jedi."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "models")]

import pytest
from repositories import BASE, CONTAINER, SHAPES
from tiny_architectures import save

from lookuplab.toolgen.functions import Repository, extract
from lookuplab.toolgen.jedi_tool import JediTool


@pytest.fixture(scope="session")
def bases(tmp_path_factory):
    """A folder with a tiny model of each architecture, to be fine-tuned."""
    folder = tmp_path_factory.mktemp("bases")
    for architecture in ("gpt2", "t5", "llama"):
        save(folder / architecture, architecture, context=256)
    return folder


@pytest.fixture(scope="session")
def tool():
    with JediTool(2) as tool:
        yield tool


@pytest.fixture(scope="session")
def functions(tmp_path_factory):
    """register_updates and label of one repository, area of another."""
    one, other = (tmp_path_factory.mktemp(name) for name in ("one", "other"))
    (one / "base.py").write_text(BASE)
    (one / "container.py").write_text(CONTAINER)
    (other / "shapes.py").write_text(SHAPES)
    return [
        function
        for root in (one, other)
        for function in extract(Repository(root.name, root)).functions
    ]
