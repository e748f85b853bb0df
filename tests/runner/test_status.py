"""`lookuplab status`: what is stored, how each artifact stands, what the missing ones would cost."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lookuplab.models.complete import complete
from lookuplab.models.store import CompletionStore
from lookuplab.models.store_log import USER
from lookuplab.models.store_report import reading
from lookuplab.runner import notebooks, sources

sys.path.append(str(Path(__file__).parents[1] / "models"))
from toy_model import ToyModel, many_prompts  # noqa: E402  beside the tests of that room

PARAMETERS = 'profile = "mini"  # which world\ntasks = 3  # how many\n'
SAVES = """\
import pandas as pd
from lookuplab.artifact import Artifact
row = dict(model="m", condition="all", metric="count", value=tasks)
Artifact.begin("demo", "counts", profile).save(pd.DataFrame([row]), data=["data/tasks.txt"])"""
ASKS = 'profile = "mini"  # which world\nmodel = "mini-toy"  # who is asked\n'


@pytest.fixture
def committed(kit, monkeypatch):
    """A notebook that ran once, with all that it read under version control."""
    monkeypatch.setenv("LOOKUPLAB_STORE", str(kit.root / "runs/completions.sqlite"))
    (kit.root / "data").mkdir()
    (kit.root / "data/tasks.txt").write_text("1")
    kit.notebook("counts", SAVES, parameters=PARAMETERS)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c"]):
        subprocess.run(["git", "-C", str(kit.root), *command], check=True)
    return kit


def artifact_line(kit, name="demo/counts", *arguments) -> str:
    code, said = kit.call("status", *arguments)
    assert code == 0, said
    return next(" ".join(line.split()) for line in said.splitlines() if line.startswith(name))


def test_an_artifact_is_missing_then_present_then_out_of_date_by_what_changed(committed):
    assert artifact_line(committed) == "demo/counts missing"
    assert committed.call("run", "counts")[0] == 0
    assert artifact_line(committed) == "demo/counts present"
    (committed.root / "data/tasks.txt").write_text("2")
    assert artifact_line(committed) == "demo/counts out of date data"
    (committed.root / "data/tasks.txt").write_text("1")
    committed.notebook("counts", SAVES, parameters=PARAMETERS.replace("3", "4"))
    assert artifact_line(committed, "demo/counts", "counts") == (
        "demo/counts out of date parameters: tasks; notebook: counts.ipynb")
    assert artifact_line(committed, "demo/counts", "--profile", "smoke") == "demo/counts missing"


def test_other_packages_and_an_unknown_commit_are_told(committed):
    assert committed.call("run", "counts")[0] == 0
    file = committed.root / "figures/mini/demo/counts.json"
    record = json.loads(file.read_text())
    record["packages"]["numpy"], record["git"]["commit"] = "0.1", "0" * 40
    file.write_text(json.dumps(record))
    assert artifact_line(committed, "demo/counts", "counts") == (
        "demo/counts out of date packages: numpy (then 0.1); code: this checkout does not know the commit 000000000000")


def test_a_change_in_the_library_counts_where_the_notebook_imports_it(kit):
    path = kit.notebook("counts", "%matplotlib inline\nfrom lookuplab.scoring.pass_at_k import passes")
    found = {file.relative_to(sources.PACKAGE).as_posix() for file in sources.modules(notebooks.read(path))}
    assert {"scoring/pass_at_k.py", "scoring/rates.py", "scoring/__init__.py"} <= found, "through others, too"
    assert not any(name.startswith(("cloudapi/", "models/")) for name in found)


def test_the_cost_is_what_was_asked_and_is_not_stored_at_the_speed_measured(kit, monkeypatch):
    store, model = kit.root / "runs/completions.sqlite", ToyModel(seconds=0.1)
    monkeypatch.setenv("LOOKUPLAB_STORE", str(store))
    kit.notebook("asks", 'from lookuplab.artifact import Artifact\nArtifact.begin("demo", "asks", profile)',
                 parameters=ASKS)
    assert "cost unknown" in kit.call("status", "asks")[1]
    monkeypatch.setenv(USER, "mini/demo/asks")
    complete(model, many_prompts(40), store=store, progress=False)
    assert "generates nothing: all 40 answers are stored" in kit.call("status", "asks")[1]
    with CompletionStore(store) as opened:
        opened.db.execute("DELETE FROM completions WHERE prompt IN (SELECT prompt FROM completions LIMIT 30)")
    with reading(store) as report:
        [pending] = report.pending("mini/demo/asks")
        [held] = report.held()
    assert (pending.model, pending.asked, pending.missing) == ("toy", 40, 30)
    assert pending.seconds == pytest.approx(30 * 0.9 / 40, rel=0.5), "nine waits of 0.1 s for 40 answers"
    assert (held.model, held.answers, held.prompts) == ("toy", 10, 10) and 0 <= time.time() - held.newest < 60
    assert "generates 30 answers: 30 of toy (about 1 s)" in kit.call("status", "asks")[1]


def test_where_there_is_no_store_none_is_made(kit, monkeypatch):
    monkeypatch.setenv("LOOKUPLAB_STORE", str(kit.root / "runs/completions.sqlite"))
    kit.notebook("counts", "1")
    code, said = kit.call("status")
    assert code == 0 and "0 answers to 0 prompts (nothing on disk yet)" in said
    assert not (kit.root / "runs").exists()


def test_neither_torch_nor_pandas_is_waited_for():
    script = ("import sys\nfrom lookuplab.cli import cli\ncli(['status'], standalone_mode=False)\n"
              "print([name for name in ('torch', 'pandas', 'numpy', 'nbformat') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_folder_in_place_of_the_store_is_one_line(committed, monkeypatch):
    monkeypatch.setenv("LOOKUPLAB_STORE", str(committed.root))
    for command in (["status"], ["store", "prune", "--older", "1"]):
        code, said = committed.call(*command)
        assert code == 2 and said.startswith(f"error: LOOKUPLAB_STORE names the folder {committed.root}; name a file")
