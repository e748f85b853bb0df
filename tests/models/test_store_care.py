"""Export, import and prune: the selection and no more, nothing written over, whole after a kill."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from click.testing import CliRunner
from toy_model import ToyModel, many_prompts

from lookuplab.cli import cli
from lookuplab.errors import UserError
from lookuplab.models import store as store_module
from lookuplab.models import store_care
from lookuplab.models.answer_store import AnswerStore
from lookuplab.models.complete import complete
from lookuplab.models.store_care import Merged, Selection
from lookuplab.models.store_log import OWN, USER
from lookuplab.models.types import Prompt


class Kept(AnswerStore):
    name = "judgements"


def named(name):
    model = ToyModel(identity={"name": name, "revision": "1", "dtype": "float32"})
    model.name = name
    return model


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Two models' answers to prompts 0 to 3, asked by a notebook under two profiles: 0 and 1, and 1 to 3."""
    file = tmp_path / "runs" / "completions.sqlite"
    for model in ("small", "large"):
        for user, chosen in (("mini/demo/counts", slice(0, 2)), (f"paper/demo/counts{OWN}", slice(1, 4))):
            monkeypatch.setenv(USER, user)
            complete(named(model), many_prompts(4)[chosen], store=file, progress=False)
    monkeypatch.delenv(USER)
    monkeypatch.setenv("LOOKUPLAB_STORE", str(file))
    return file


def texts(file) -> list[str]:
    """model: prompt, of every answer."""
    with closing(sqlite3.connect(file)) as db:
        rows = db.execute("SELECT json_extract(s.json, '$.model.name') || ': ' || json_extract(p.json, '$.text') "
                          "FROM completions c JOIN settings s ON s.id = c.settings JOIN prompts p ON p.id = c.prompt")
        return sorted(text.strip() for text, in rows)


def call(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["store", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def made(*pairs) -> list[str]:
    return sorted(f"{model}: client = make({number})" for model, number in pairs)


@pytest.mark.parametrize(("selection", "expected"), [
    (Selection(), [(model, number) for model in ("small", "large") for number in range(4)]),
    (Selection(models=("small",)), [("small", number) for number in range(4)]),
    (Selection(profile="mini"), [(model, number) for model in ("small", "large") for number in (0, 1)]),
    (Selection(models=("large",), profile="paper", notebook="demo/counts"), [("large", n) for n in (1, 2, 3)]),
    (Selection(notebook="demo/count"), []),
    (Selection(newer=1), [(m, n) for m in ("small", "large") for n in range(4)]),
    (Selection(older=1), []), (Selection(unused=True), []),
], ids=str)
def test_an_export_holds_the_selection_and_works_as_a_store(store, tmp_path, selection, expected):
    assert store_care.export(store, tmp_path / "out.sqlite", selection) == len(expected)
    assert texts(tmp_path / "out.sqlite") == made(*expected)
    asked = [prompt for number, prompt in enumerate(many_prompts(4)) if ("small", number) in expected]
    assert complete(named("small"), asked, store=tmp_path / "out.sqlite", progress=False).generated == 0
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM prompts").fetchone()[0] == len({number for _, number in expected})


def test_an_import_adds_what_is_new_and_writes_over_nothing(store, tmp_path):
    complete(named("small"), [*many_prompts(2), Prompt("b", "new")], store=tmp_path / "other.sqlite", progress=False)
    with closing(sqlite3.connect(tmp_path / "other.sqlite", isolation_level=None)) as db:
        db.execute("UPDATE completions SET json = replace(json, 'eos', 'stop') WHERE prompt = "
                   "(SELECT id FROM prompts WHERE json LIKE '%make(0)%')")
    before = texts(store)
    assert store_care.merge(store, tmp_path / "other.sqlite") == {"completions": Merged(new=1, known=1, conflicts=1)}
    assert texts(store) == sorted([*before, "small: new"])
    assert complete(named("small"), many_prompts(1), store=store, progress=False)[0].finish_reason == "eos"
    assert store_care.merge(store, tmp_path / "other.sqlite")["completions"] == Merged(0, 2, 1)


def test_an_export_of_all_and_its_import_carry_the_stores_beside(store, tmp_path):
    with Kept(store.with_name("judgements.sqlite")) as kept:
        kept.put("a", {"passed": True, "seconds": 1.0})
        kept.put("b", {"passed": True})
    store_care.export(store, tmp_path / "all.sqlite", beside=[Kept])
    store_care.export(store, tmp_path / "some.sqlite", Selection(models=("small",)), [Kept])
    with Kept(tmp_path / "new" / "judgements.sqlite") as kept:
        kept.put("a", {"passed": True, "seconds": 2.0})
        kept.put("b", {"passed": False})
    found = store_care.merge(tmp_path / "new" / "completions.sqlite", tmp_path / "all.sqlite", [Kept])
    assert found == {"completions": Merged(8, 0, 0), "judgements": Merged(0, 1, 1)}
    assert store_care.merge(tmp_path / "x" / "completions.sqlite", tmp_path / "some.sqlite", [Kept]).keys() == {
        "completions"}


def test_pruning_a_model_leaves_the_others_and_says_before_what_it_frees(store):
    before = texts(store)
    assert store_care.prune(store, Selection(models=("small",)), dry_run=True)[0] == 4
    assert texts(store) == before
    assert store_care.prune(store, Selection(models=("small",)))[0] == 4
    assert texts(store) == made(*(("large", number) for number in range(4)))
    with closing(sqlite3.connect(store)) as db:
        counts = [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("settings", "prompts")]
    assert counts == [1, 4]


def test_pruning_what_is_unused_means_other_decoding_versions(store, monkeypatch):
    monkeypatch.setattr(store_module, "DECODING_VERSION", store_module.DECODING_VERSION + 1)
    complete(named("small"), many_prompts(1), store=store, progress=False)
    monkeypatch.setattr(store_care, "DECODING_VERSION", store_module.DECODING_VERSION)
    assert store_care.prune(store, Selection(unused=True))[0] == 8
    assert texts(store) == made(("small", 0))


@pytest.mark.parametrize(("arguments", "words"), [
    (["export", "y", "--model", "x"], "holds nothing of the model 'x'; there are: large"),
    (["export", "runs/completions.sqlite"], "is the store itself"), (["import", "absent"], "there is no file absent"),
    (["import", "text"], "text is no completion store"), (["export", "text/x"], "cannot write text/x"),
], ids=str)
def test_bad_input_is_one_line(store, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("no database, and longer than the hundred bytes of a header" * 3)
    result = CliRunner().invoke(cli, ["store", *arguments])
    assert result.exit_code == 2 and words in result.output and len(result.output.splitlines()) == 1, result.output


def test_a_store_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(UserError, match="there is no completion store at"):
        store_care.prune(tmp_path / "absent.sqlite", Selection(older=1))
    assert not (tmp_path / "absent.sqlite").exists()


BEGINS = """import sys
from pathlib import Path
from lookuplab.models import store_care as c
print("ready", flush=True)
"""


@pytest.mark.parametrize("does", ["c.prune(Path(sys.argv[1]), c.Selection(models=('small',)))",
                                  "c.merge(Path(sys.argv[1]), Path(sys.argv[2]))"], ids=["prune", "import"])
def test_a_kill_at_any_moment_leaves_a_whole_store(tmp_path, does):
    original, other, file = (tmp_path / f"{name}.sqlite" for name in ("original", "other", "used"))
    for model in ("small", "large"):
        complete(named(model), [Prompt(str(n), f"{n} " * 500) for n in range(2000)], store=original, progress=False)
    complete(named("third"), [Prompt(str(n), f"{n} " * 500) for n in range(4000)], store=other, progress=False)
    counts = set()
    for seconds in (0.01, 0.04, 0.1):
        file.write_bytes(original.read_bytes())
        process = subprocess.Popen([sys.executable, "-c", BEGINS + does, str(file), str(other)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with closing(sqlite3.connect(file)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            counts.add(db.execute("SELECT count(*) FROM completions").fetchone()[0])
            assert db.execute("SELECT count(*) FROM completions WHERE settings NOT IN (SELECT id FROM settings) "
                              "OR prompt NOT IN (SELECT id FROM prompts)").fetchone() == (0,)
            assert json.loads(db.execute("SELECT json FROM prompts LIMIT 1").fetchone()[0])["text"]
        for end in ("-wal", "-shm"):
            file.with_name(file.name + end).unlink(missing_ok=True)
    assert counts <= {4000, 2000, 8000}
