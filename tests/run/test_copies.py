"""Tests that a copy of a notebook never writes where the original writes, wherever the copy is."""

import sys

import pytest

from lookuplab import paths
from lookuplab.results.artifact import Artifact
from lookuplab.run.notebooks import all_notebooks, find, load_profile, plan, with_copies


def saves(name):
    return f"artifact = Artifact('demo', '{name}', profile)"


def places(path):
    """Return where the kit's command writes a notebook's artifact and its executed copy."""
    job = plan(find(str(path)), load_profile("mini"))
    return job.place, job.output


def test_no_two_notebooks_of_the_kit_share_an_artifact():
    assert [notebook.id for notebook in with_copies() if notebook.is_copy] == []


# the artifact may have the notebook's name or another one
@pytest.mark.parametrize("artifact", ["counts", "other"])
@pytest.mark.parametrize("copied", ["demo/counts-Copy1", "demo/a_long_out", "else/counts"])
def test_a_copy_has_a_place_of_its_own_and_is_no_notebook_of_the_kit(kit, artifact, copied):
    original = kit.notebook("counts", saves(artifact))
    copy = (
        paths.make_folder((paths.NOTEBOOKS / copied).parent) / f"{copied.partition('/')[2]}.ipynb"
    )
    copy.write_bytes(original.read_bytes())
    assert not {*places(original)} & {*places(copy)}
    assert places(copy)[0].is_relative_to(paths.RUNS / "copies" / copy.stem)
    assert places(original)[0] == paths.FIGURES / "mini" / "demo"
    assert [notebook.path for notebook in all_notebooks()] == [original]
    assert f"{copied} is a copy" in kit.refused(f"draw {copied}")


@pytest.mark.parametrize("cell", [saves("counts"), "1"])
def test_a_copy_outside_the_kit_has_a_place_of_its_own(kit, tmp_path, cell):
    original = kit.notebook("counts", cell)
    copy = paths.make_folder(tmp_path / "demo") / "counts.ipynb"
    copy.write_bytes(original.read_bytes())
    assert not {*places(original)} & {*places(copy)}


@pytest.mark.parametrize(("name", "folder"), [("counts", "figures"), ("out", "copies/out")])
def test_in_jupyter_a_copy_has_a_place_of_its_own(kit, tmp_path, monkeypatch, name, folder):
    monkeypatch.delenv("LOOKUPLAB_FIGURES", raising=False)
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", None)  # as in a kernel
    original = kit.notebook("counts", saves("counts"))
    (tmp_path / "out.ipynb").write_bytes(original.read_bytes())
    session = {"counts": original, "out": tmp_path / "out.ipynb"}[name]
    monkeypatch.setenv("JPY_SESSION_NAME", str(session))
    assert Artifact("demo", "counts").place == paths.RUNS / folder / "mini" / "demo" / "counts"
    assert Artifact("demo", "new").place.parents[2] == paths.RUNS / "figures"
