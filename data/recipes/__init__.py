"""Recipes of the committed data, tasks and models: each module is a recipe, run like ``python -m
recipes.mini.problems``.

No score needs a recipe. Recipes import ``lookuplab``, never the other way round.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from lookuplab.paths import write_lines


def tables(name: str) -> Any:
    """Return the content of a YAML file in this folder: words, numbers and settings of a recipe."""
    return yaml.safe_load((Path(__file__).parent / name).read_text("utf-8"))


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Write JSON Lines, compressed if the name ends in .gz or .xz. The same rows give the same
    bytes.
    """
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))
