"""The recipes make the committed data, tasks and models. Most modules are programs, which are run
like ``python -m recipes.mini.problems``.

Scoring never needs a recipe. Recipes import ``lookuplab``. In ``lookuplab``, only the command
``lookuplab data frequencies`` imports a recipe.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from lookuplab.paths import write_lines


def tables(name: str) -> Any:
    """Return the content of a YAML file in this folder: the words, numbers or settings of a recipe.
    ``name`` is a path such as ``mini/finetuning.yaml``.
    """
    return yaml.safe_load((Path(__file__).parent / name).read_text("utf-8"))


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Write rows as JSON Lines. The file is compressed if its name ends in .gz or .xz. The same
    rows give the same bytes.
    """
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))
