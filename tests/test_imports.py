"""Arrows go one way: recipes -> paper packages -> shared packages -> errors and paths; the commands are on top."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "lib" / "lookuplab"
PAPER_PACKAGES = {"cloudapi", "stackoverflow", "toolgen"}
TOP = (
    "audit claims cli commands data_sources execute notebooks report runner verify __main__".split()
)
RANKS = {"errors": 0, "paths": 0} | dict.fromkeys(PAPER_PACKAGES, 2) | dict.fromkeys(TOP, 4)
FILES = sorted(PACKAGE.rglob("*.py"))
RECIPES = sorted((ROOT / "data" / "recipes").rglob("*.py"))


def imported(file: Path) -> Iterator[str]:
    """Dotted names of all imports, also those inside functions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; name the package"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_package_imports_one_above_it_and_paper_packages_not_each_other():
    """Every module of the package that has no rank is shared."""
    for file in FILES:
        own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for other in {
            name.split(".")[1] for name in imported(file) if name.startswith("lookuplab.")
        } - {own}:
            assert RANKS.get(other, 1) <= RANKS.get(own, 1), f"{file}: {other} is above {own}"
            assert not {own, other} <= PAPER_PACKAGES, f"{file}: one paper package imports another"


def test_the_library_imports_recipes_only_where_a_user_counts_apis():
    """And importing what scores a model brings none of them along."""
    found = {file for file in FILES for name in imported(file) if name.startswith("recipes")}
    assert found == {PACKAGE / "commands" / "data.py"}
    script = (
        "import sys, lookuplab.cloudapi.dag\n"
        "assert not [name for name in sys.modules if name.startswith('recipes')]"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_third_party_import_is_a_declared_dependency():
    """Azure's packages share one import name; the rest is matched by distribution."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {canonicalize_name(name) for names in lists for name in names if "[" not in name}
    owners = importlib.metadata.packages_distributions()
    known = {*sys.stdlib_module_names, "lookuplab", "recipes", "azure"}
    for file in FILES + RECIPES:
        for name in {name.split(".")[0] for name in imported(file)} - known:
            found = {canonicalize_name(owner) for owner in owners.get(name, [name])}
            assert found & declared, f"{file} imports {name}, which pyproject.toml does not name"


def test_help_waits_for_no_heavy_library():
    """`lookuplab --help` imports every command for its short help; none may bring these along."""
    heavy = (
        "torch transformers pandas numpy statsmodels papermill IPython nbformat matplotlib".split()
    )
    script = (
        "import sys\nfrom lookuplab.cli import cli\ncli(['--help'], standalone_mode=False)\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_file_names_a_place_of_one_machine():
    place = re.compile(r"(?<![\w.~])/(?:home|Users|root|mnt|work)/\w")
    tracked = subprocess.check_output(["git", "-C", str(ROOT), "ls-files"], text=True).splitlines()
    ends = (".py", ".ipynb", ".md", ".toml", ".yaml", "Makefile")
    files = [ROOT / name for name in tracked if name.endswith(ends)]
    texts = {file: file.read_text(encoding="utf-8") for file in files if file.is_file()}
    assert [file for file, text in texts.items() if place.search(text)] == []
