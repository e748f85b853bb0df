"""Tests that imports go only down: through the layers of the library, and through the modules that
notebooks share. Recipes import the library, and the library imports recipes in one place only.
"""

import ast
import json
import re
import subprocess

import pytest

from lookuplab.paths import NOTEBOOKS, ROOT

PACKAGE = ROOT / "lib" / "lookuplab"
# Packages in one layer do not import each other.
PICTURE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("lib/lookuplab/\n")[2]
FLOORS = re.findall(r"^  (\w[\w ]*): ", PICTURE.partition("\n\n")[0], re.MULTILINE)
FLOORS = [*reversed(FLOORS), "__main__"]
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names.split()}
FILES = sorted(PACKAGE.rglob("*.py"))


# Notebooks, and the modules that they share: lookuplab_notebooks.<folder>.<file>
SHARED = sorted(NOTEBOOKS.rglob("[!.]*.py"))
CELLS = sorted(NOTEBOOKS.glob("*/[!.]*.ipynb"))
# these folders may import modules of the papers' notebooks
ABOVE = "choices course documented mini own published repositories seeds".split()


def code(file):
    """Return the Python code of a module, or of all cells of a notebook."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    return text


def imported(file):
    """Yield the dotted names of all imports, including those inside functions."""
    for node in ast.walk(ast.parse(code(file))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; name the package"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_go_down():
    """Imports inside functions count, too. The names in the layers are exactly the files and
    folders of the library.
    """
    found = {one.stem for one in PACKAGE.iterdir()} - {"__init__", "__pycache__"}
    assert found == FLOOR.keys()
    for file in FILES:
        own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imported(file):
            if name.startswith("lookuplab.") and (other := name.split(".")[1]) != own:
                assert own == "__init__" or FLOOR[other] < FLOOR[own], f"{file} imports {other}"


def test_the_library_imports_recipes_only_where_a_user_counts_apis():
    found = {file for file in FILES for name in imported(file) if name.startswith("recipes")}
    assert found == {PACKAGE / "run" / "commands" / "data.py"}


@pytest.mark.parametrize("file", [*SHARED, *CELLS], ids=lambda file: "/".join(file.parts[-2:]))
def test_notebooks_import_their_package_by_name_and_papers_neither_another_paper_nor_a_recipe(file):
    flat = {each.stem for each in SHARED}
    own = file.parent.name
    for name in imported(file):
        top, folder, *_ = [*name.split("."), ""]
        assert top not in flat, f"write lookuplab_notebooks.{own}.{top}"
        if top == "lookuplab_notebooks" and (NOTEBOOKS / folder).is_dir() and folder != own:
            assert own in ABOVE and folder not in ABOVE, f"{own} imports {name}"
        if top == "recipes":
            assert own in ABOVE, f"{own} imports {name}"
    assert "sys.path" not in code(file)


COMMAND = "from lookuplab.run.cli import cli; cli(['{}'], standalone_mode=False)"
KERNEL = (
    r"torch$|transformers$|scipy$|statsmodels$|papermill$|IPython$|nbformat$|jsonschema$|seaborn$"
)
FINISHED = rf"{KERNEL}|matplotlib$|sklearn$|jedi$|rfc3987_syntax$"
# Each list is for one process. An item is (code, pattern of the modules that the code must not
# import).
LIGHT = {
    "modules": [
        ("import lookuplab.results.artifact", r"lookuplab\.models\.(?!names$)|torch$|seaborn$"),
        # intervals and pictures need neither scipy.stats nor statsmodels
        ("import lookuplab.scoring.calibration", r"scipy\.stats|statsmodels"),
        ("import lookuplab.results.plots", r"scipy\.(stats|cluster)|statsmodels|ipywidgets"),
        # scoring a model needs no recipe
        ("import lookuplab.cloudapi.bench", r"recipes|lookuplab\.cloudapi\.dag"),
    ],
    # planning a run on the mini models needs no library that only a kernel uses
    "models": [
        (f"from lookuplab.models import load; load('mini-{name}')", KERNEL)
        for name in ("large", "gpt-base", "t5-base", "llama-base")
    ],
    "help": [
        (
            COMMAND.format("--help"),
            rf"{KERNEL}|pandas$|numpy$|matplotlib$|yaml$|sqlite3$"
            r"|lookuplab\.run\.(notebooks|commands\.)",
        )
    ],
    # pages about finished runs need none of the libraries whose imports take two seconds
    "pages": [(COMMAND.format(name), FINISHED) for name in ("claims", "results")],
}
LOADED = """
import re, sys
for code, heavy in eval(sys.argv[1]):
    exec(code, {})
    print("loaded", code, [name for name in sys.modules if re.match(heavy, name)])
"""


@pytest.mark.parametrize("steps", LIGHT.values(), ids=LIGHT)
def test_what_makes_no_run_waits_for_no_library_that_runs_need(run_python, steps):
    """This holds for modules, models, the help, and pages about finished runs (LIGHT)."""
    lines = run_python(LOADED, steps).splitlines()
    told = [line for line in lines if line.startswith("loaded")]
    assert told == [f"loaded {code} []" for code, _ in steps]


def test_no_file_names_a_place_of_one_machine():
    place = re.compile(r"(?<![\w.~])/(?:home|Users|root|mnt|work)/\w")
    tracked = subprocess.check_output(["git", "-C", str(ROOT), "ls-files"], text=True).splitlines()
    ends = (".py", ".ipynb", ".md", ".toml", ".yaml", "Makefile")
    files = [ROOT / name for name in tracked if name.endswith(ends)]
    texts = {file: file.read_text(encoding="utf-8") for file in files if file.is_file()}
    assert [file for file, text in texts.items() if place.search(text)] == []
