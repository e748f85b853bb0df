"""pyproject.toml says what is needed, constraints.txt which version; environment.yml and the Makefile use the two."""

import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LINES = re.findall(r"^[^#\n].*", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())


PINNED = {canonicalize_name(line.partition("==")[0]) for line in LINES}


def test_every_line_of_the_constraints_pins_one_version():
    assert "torch==2.13.0" in LINES, "without a build"
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line) for line in LINES)
    assert len(PINNED) == len(LINES), "a package is pinned twice"


def test_every_declared_dependency_is_pinned_and_only_there():
    extras = PROJECT["optional-dependencies"]
    for text in sum(extras.values(), PROJECT["dependencies"]):
        requirement = Requirement(text)
        assert not requirement.specifier, f"{text}: versions belong to constraints.txt"
        assert canonicalize_name(requirement.name) in PINNED | {"lookuplab"}, (
            f"{text} is not pinned"
        )


def test_every_dependency_of_a_pinned_package_is_pinned():
    """Of what is installed for this machine: a package's markers decide what it needs here."""
    for name in PINNED:
        for text in importlib.metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                # torch pins its own
                is_pinned = re.match(r"nvidia-|cuda-|triton|setuptools", requirement.name)
                is_pinned = is_pinned or canonicalize_name(requirement.name) in PINNED
                assert is_pinned, f"{name} needs {text}"


def test_conda_takes_the_same_python_and_the_same_constraints():
    pip = next(item["pip"] for item in CONDA["dependencies"] if isinstance(item, dict))
    assert pip == ["-c constraints.txt", "torch==2.13.0", "-e ."]
    assert "python=3.11" in CONDA["dependencies"] and PROJECT["requires-python"] == "==3.11.*"


def test_the_makefile_installs_torch_first_and_then_the_kit_under_the_same_constraints():
    plan = subprocess.run(
        ["make", "-n", "-B", "test"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    torch, kit, tests = (plan.index(text) for text in ("torch==2.13.0", "-e .\n", "-e '.[test]'"))
    assert torch < kit < tests
    assert plan.count("-c constraints.txt") == 3


def test_a_missing_python_3_11_is_one_clear_line(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "data/python-sources.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    done = subprocess.run(
        ["make", "reproduce", "PYTHON=no-such-python"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "3.11" in done.stderr and "make PYTHON=" in done.stderr
    assert not (tmp_path / ".venv").exists()
