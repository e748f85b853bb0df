"""Lets the tests of this room import the small models that lie beside them and beside those of the shared room."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "models")]
