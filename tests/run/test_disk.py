"""Downloads need room on the disk, and models that a command fetched can be deleted after it."""

import shutil
from types import SimpleNamespace

import pytest

from lookuplab import paths
from lookuplab.run import downloads


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub's cache, laid out as the client's own; a model is put there by ``arrives``."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def arrives(name: str, commit: str, weights: str) -> None:
        folder = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        for file in (folder / "blobs" / weights, folder / "refs" / "main"):
            paths.made(file.parent)
            file.write_text(commit)
        link = paths.made(folder / "snapshots" / commit) / "model.safetensors"
        link.symlink_to(folder / "blobs" / weights)

    return arrives


def test_a_model_is_deleted_after_its_last_notebook_unless_it_was_here(kit, hub, monkeypatch):
    hub("x/old", "1" * 40, "a")
    hub("x/new", "2" * 40, "b")  # another revision than the one that is asked for
    wanted = "3" * 40
    kit.notebook("one", parameters=f'profile = "mini"\nmodels = ["x/old", "x/new@{wanted}"]\n')
    kit.notebook("two", parameters=f'profile = "mini"\nmodels = ["x/new@{wanted}"]\n')
    old, other, new = (
        downloads.Source(name, "model", name, "", "", revision=commit)
        for name, commit in (("x/old", "main"), ("x/new", "2" * 40), ("x/new", wanted))
    )
    there = []

    def runs(jobs, _parallel, _cluster, succeeded):
        hub("x/new", wanted, "c")
        for done in jobs:
            succeeded(done)
            there.append(downloads.is_fetched(new))
        return [None] * len(jobs)

    monkeypatch.setattr("lookuplab.run.commands.run.run_jobs", runs)
    monkeypatch.setattr("lookuplab.run.commands.run.check", print)
    kit.said("reproduce demo --delete-models")
    assert there == [True, False]
    assert downloads.is_fetched(old) and downloads.is_fetched(other)


def test_a_run_is_refused_where_the_disk_is_too_small(kit, hub, monkeypatch):
    toml = 'kind = "model"\naddress = "x/y"\nlicence = "any"\npurpose = "any"\n'
    sources = paths.made(kit.root / "data") / "sources.toml"
    sources.write_text(f'[y]\n{toml}facts = {{parameters = 1_000_000_000, dtype = "bfloat16"}}\n')
    kit.notebook("one", parameters='profile = "mini"\nmodels = ["x/y"]\n')
    for free, code in ((3e9, 0), (1.9e9, 2)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        said = kit.said("run one --dry-run", code)
        assert f"2.0 GB to download, {free / 1e9} GB free in " in said
        assert ("problem: 2.0 GB" in said) == bool(code)
    refusal = kit.said("reproduce demo", 2)
    assert refusal.splitlines()[-1].startswith("error: 2.0 GB to download, 1.9 GB free in ")
    hub("x/y", "1" * 40, "a")
    assert "to download" not in kit.said("run one --dry-run")
