"""How the committed data, tasks and models were made: each module is a recipe, run by ``python -m
recipes.mini.problems``.

No score needs it; it imports ``lookuplab``, never the other way round.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from lookuplab.paths import write_lines


def tables(name: str) -> Any:
    """Return what a YAML file of this folder says: words, numbers and settings that a
    recipe uses.
    """
    return yaml.safe_load((Path(__file__).parent / name).read_text("utf-8"))


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Write JSON Lines, compressed as the path ends; the same rows give the same bytes."""
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))
