"""Stores: several writers, kills, clear errors, export and import, nothing written over."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

import pytest
from toy_model import SAMPLED, Kept, ToyModel, ask, many_prompts

from lookuplab.errors import UserError
from lookuplab.models import complete
from lookuplab.models.store import SCHEMA, CompletionStore

TOY = str(Path(__file__).with_name("toy_model.py"))


def test_three_kills_in_the_middle_change_nothing_and_repeat_at_most_one_batch_each(tmp_path):
    store, log = tmp_path / "killed.sqlite", tmp_path / "log"
    log.touch()
    for kill in range(3):
        before = len(log.read_text().split())
        child = subprocess.Popen([sys.executable, TOY, store, log, "60"])
        # in the middle of a batch, and not always at the same place
        while len(log.read_text().split()) < before + 6 + kill:
            assert child.poll() is None  # it has not ended before it could be killed
            time.sleep(0.005)
        child.kill()
        child.wait()
    finished, _ = ask(many_prompts(60), SAMPLED, store, log=log)
    made = log.read_text().split()
    assert len(made) - len(set(made)) <= 4 * 3
    assert finished == ask(many_prompts(60), SAMPLED, False)[0]


def test_three_processes_write_the_same_new_file_at_the_same_time(tmp_path):
    file, log = tmp_path / "s.sqlite", tmp_path / "log"
    commands = [[sys.executable, TOY, file, log, count] for count in ("20", "30", "30")]
    children = [*map(subprocess.Popen, commands)]
    assert [child.wait(timeout=300) for child in children] == [0, 0, 0]
    with CompletionStore(file) as store:
        assert len(store.everything()) == 60


def test_launched_processes_share_tasks_and_each_does_what_nobody_keeps(tmp_path, monkeypatch):
    tasks = {(f"{n} a", f"{n} b"): n for n in range(40)}
    made = {"0/2": [], "1/2": []}

    def work(share):
        monkeypatch.setenv("LOOKUPLAB_SHARE", share)
        for task in store.unmade(tasks):
            made[share].append(task)
            store.add({f"{task} {part}": 1 for part in ("a" if task == 7 else "ab")})
            yield

    with Kept(tmp_path / "kept.sqlite") as store:
        assert [*store.unmade(tasks)] == [*range(40)], "a process alone has all, in their order"
        assert len([*zip_longest(*map(work, made))]) == 21
    assert sorted(made["0/2"] + made["1/2"]) == sorted([*range(40), 7])


def test_what_is_no_store_is_refused_and_left_alone(tmp_path):
    text, other, newer = (tmp_path / name for name in ("text", "other.sqlite", "newer.sqlite"))
    text.write_text("not a database, but long enough to be read as one\n" * 100)
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    with CompletionStore(newer) as store:
        store.db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    for path, message in (
        (text, "not a database"),
        (other, "no store of completions"),
        (newer, "another version of lookuplab"),
    ):
        before = path.read_bytes()
        with pytest.raises(UserError, match=message):
            CompletionStore(path)
        assert path.read_bytes() == before


def test_a_full_disk_is_one_clear_line_and_loses_nothing_stored(tmp_path):
    batch = {str(number): "y" * 5000 for number in range(20)}
    with Kept(tmp_path / "s.sqlite") as store:
        store.add({"a": "b"})
        pages = store.db.execute("PRAGMA page_count").fetchone()[0]
        # SQLite then fails as it does on a full disk
        store.db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(UserError, match="disk is full"):
            store.add(batch)
        assert [*store.everything()] == ["a"], "the batch that did not fit must be gone as a whole"


def test_a_read_only_store_is_told_before_anything_is_generated(tmp_path):
    model = ToyModel()
    with CompletionStore(tmp_path / "s.sqlite") as store:
        store.db.execute("PRAGMA query_only = 1")
        with pytest.raises(UserError, match="readonly"):
            complete(model, many_prompts(2), store=store)
    assert model.calls == []
