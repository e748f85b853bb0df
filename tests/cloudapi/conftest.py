"""Lets the tests of this room import the small models and servers that lie beside them."""

import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_package import FILES


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """The folder of the small package, written once."""
    folder = tmp_path_factory.mktemp("sources") / "shop"
    for name, text in FILES.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text))
    return folder
