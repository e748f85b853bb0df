"""Arrows go one way: mini -> paper rooms -> shared rooms -> errors and paths; the command line sits on top."""

import ast
import importlib.metadata
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "lib" / "lookuplab"

GROUND = {"errors", "paths", "atomic"}
PAPER_ROOMS = {"cloudapi", "stackoverflow", "toolgen"}
TOP = {"cli", "__main__", "commands", "runner", "verify", "data_sources", "claims", "report"}

FILES = sorted(PACKAGE.rglob("*.py"))


def rank(room: str) -> int:
    """Every other module of the package is a shared room."""
    return 0 if room in GROUND else 2 if room in PAPER_ROOMS else 3 if room == "mini" else 4 if room in TOP else 1


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(file: Path) -> Iterator[str]:
    """Dotted names of all imports, also those inside functions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; name the room"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms_imported(file: Path) -> set[str]:
    names = {name.split(".")[1] for name in imported(file) if name.startswith("lookuplab.")}
    return {name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_room_imports_one_above_it_and_paper_rooms_not_each_other(file):
    own = room_of(file)
    for other in rooms_imported(file) - {own}:
        assert rank(other) <= rank(own), f"{own} must not import {other}, which stands above it"
        assert not (own in PAPER_ROOMS and other in PAPER_ROOMS), f"one paper room imports another: {own}, {other}"


def test_every_third_party_import_is_a_declared_dependency():
    """Azure's packages share one import name and are reached by discovery; the rest is matched by distribution."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {canonicalize_name(name) for names in lists for name in names if "[" not in name}
    owners = importlib.metadata.packages_distributions()
    known = {*sys.stdlib_module_names, "lookuplab", "azure"}
    for file in FILES:
        for name in {name.split(".")[0] for name in imported(file)} - known:
            found = {canonicalize_name(owner) for owner in owners.get(name, [name])}
            assert found & declared, f"{file.relative_to(ROOT)} imports {name}, which pyproject.toml does not name"


def test_help_waits_for_no_heavy_library():
    """`lookuplab --help` imports every command for its short help; none of them may bring these along."""
    heavy = ["torch", "transformers", "pandas", "numpy", "statsmodels", "papermill", "nbformat", "matplotlib"]
    script = ("import sys\nfrom lookuplab.cli import cli\ncli(['--help'], standalone_mode=False)\n"
              f"print([name for name in {heavy} if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
