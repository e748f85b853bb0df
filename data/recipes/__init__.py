"""How the committed data, tasks and models were made: each module is a recipe, run by ``python -m
recipes.mini.problems``.

No score needs it; it imports ``lookuplab``, never the other way round.
"""

from pathlib import Path
from typing import Any

import yaml


def tables(name: str) -> Any:
    """What a YAML file of this folder says: words, numbers and settings that a recipe uses."""
    return yaml.safe_load((Path(__file__).parent / name).read_text("utf-8"))
