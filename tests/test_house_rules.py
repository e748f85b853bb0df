"""What keeps the code readable, held by a program: short files, short functions, no place of one machine."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = sorted((ROOT / "lib").rglob("*.py"))
WRITTEN = [*LIBRARY, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "notebooks").rglob("*.ipynb")),
           *sorted((ROOT / "data").rglob("*.md")), ROOT / "README.md", ROOT / "Makefile", ROOT / "pyproject.toml"]
each = pytest.mark.parametrize("file", LIBRARY, ids=lambda file: file.relative_to(ROOT / "lib").as_posix())


@each
def test_a_file_has_at_most_300_lines(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 300


@each
def test_a_function_has_at_most_40_lines(file):
    functions = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                 if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [node.name for node in functions if node.end_lineno - node.lineno >= 40] == []


def test_no_file_names_a_place_of_one_machine():
    place = re.compile(r"(?<![\w.~])/(?:home|Users|root|mnt|work)/\w")
    assert [str(file) for file in WRITTEN if place.search(file.read_text(encoding="utf-8"))] == []
