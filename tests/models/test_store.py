"""Tests stores of answers: processes that write at the same time or are killed, damaged files and
answers, error messages, export and import. No answer is ever overwritten.
"""

import math
import os
import sqlite3
import time
from contextlib import closing
from itertools import zip_longest

import pyarrow.dataset  # noqa: F401 - a store needs it, and processes that begin here then have it
import pytest
from doors import refused
from toy_model import SAMPLED, Kept, ToyModel, ask, begun, many_prompts

from lookuplab.errors import UserError
from lookuplab.models import complete
from lookuplab.models.store import SCHEMA, AnswerStore, CompletionStore


@pytest.fixture(params=["on a disk", "where machines share files"])
def place(request, tmp_path):
    """Return a folder for the store ``s.sqlite``. The folder is empty, as on a local disk, or
    already has journals, as on a file system without locks. A store with journals keeps using them.
    """
    if request.param != "on a disk":
        (tmp_path / "s.sqlite.journals").mkdir()
    return tmp_path


# On a shared file system, a process that is killed leaves its journal behind.
@pytest.mark.parametrize("place", ["where machines share files"], indirect=True)
def test_three_kills_in_the_middle_change_nothing_and_repeat_at_most_one_batch_each(place):
    store, log = place / "s.sqlite", place / "log"
    log.touch()
    for kill in range(3):
        before = len(log.read_text().split())
        child = begun(ask, many_prompts(60), SAMPLED, store, log=log, seconds=0.02)
        # kill the process in the middle of a batch, each time after a different answer
        while len(log.read_text().split()) < before + 6 + kill:
            assert child.is_alive()  # it must not end before it is killed
            time.sleep(0.005)
        child.kill()
        child.join()
    finished, _ = ask(many_prompts(60), SAMPLED, store, log=log)
    made = log.read_text().split()
    assert len(made) - len(set(made)) <= 4 * 3
    assert finished == ask(many_prompts(60), SAMPLED, False)[0]


@pytest.mark.parametrize("place", ["on a disk"], indirect=True)
def test_three_processes_write_the_same_new_file_at_the_same_time(place):
    file, log = place / "s.sqlite", place / "log"
    prompts = map(many_prompts, (20, 30, 30))
    children = [begun(ask, some, SAMPLED, file, log=log, seconds=0.02) for some in prompts]
    for child in children:
        child.join(300)
    assert [child.exitcode for child in children] == [0, 0, 0]
    with CompletionStore(file) as store:
        assert len(store.get(store.present())) == 60


def test_launched_processes_share_tasks_and_each_does_what_nobody_keeps(tmp_path, monkeypatch):
    tasks = {(f"{n} a", f"{n} b"): n for n in range(40)}
    made = {"0/2": [], "1/2": []}

    def work(share):
        monkeypatch.setenv("LOOKUPLAB_SHARE", share)
        for task in store.pending_tasks(tasks):
            made[share].append(task)
            store.add({f"{task} {part}": 1 for part in ("a" if task == 7 else "ab")})
            yield

    with Kept(tmp_path / "kept.sqlite") as store:
        assert [*store.pending_tasks(tasks)] == [*range(40)], "a single process has all, in order"
        assert len([*zip_longest(*map(work, made))]) == 21
    assert sorted(made["0/2"] + made["1/2"]) == sorted([*range(40), 7])


FAULTS = {
    "are not finite numbers": [
        {"token_logprobs": (-0.5, math.nan)},
        {"token_logprobs": (-math.inf, -0.5)},
        {"token_logprobs": (-0.5, "-0.5")},
        {"margin": math.nan},
        {"token_logprobs": (True, -0.5)},
    ],
    "not whole numbers": [
        {"token_ids": ("1", "2")},
        {"token_ids": (math.nan, 2)},
        {"prompt_tokens": math.nan},
        {"prompt_dropped": -1},
    ],
    "1 log-probabilities of 2 tokens": [{"token_logprobs": (-0.5,)}],
    "above 0": [{"token_logprobs": (-0.5, 0.01)}],
    "tokens do not spell its text": [{"text": "other"}, {"token_ids": (1,)}],
    "unknown finish_reason": [{"finish_reason": ""}],
}


@pytest.mark.parametrize(
    ("message", "change"), [(name, one) for name, changes in FAULTS.items() for one in changes]
)
def test_what_is_no_answer_never_enters_the_store_and_costs_no_other_of_its_batch(
    tmp_path, message, change
):
    file = tmp_path / "s.sqlite"
    with refused(f"model toy, prompt 'task/0': .*{message}"):
        ask(many_prompts(1), SAMPLED, file, changes=({}, change))
    with CompletionStore(file) as store:
        assert [one["sample"] for one in store.get(store.present()).values()] == [0]
    assert ask(many_prompts(1), SAMPLED, file)[1] == [("task/0", 1)]


@pytest.mark.parametrize("answer", [{"x": [math.nan]}, -math.inf, {"x": {1, 2}}, b"x"])
def test_what_json_cannot_hold_never_enters_a_store_and_costs_no_other_of_its_batch(answer):
    with AnswerStore(False) as store:
        with refused(r"answers bad: .* cannot be stored"):
            store.add({"good": 1, "bad": answer})
        assert store.get(store.present()) == {"good": 1}


def test_a_given_text_may_be_a_special_token_that_spells_nothing():
    scored = {"text": "<mark>", "tokens": [""], "token_ids": [7], "token_logprobs": [-0.5]}
    scored |= {"margin": None, "finish_reason": "scored", "model": "m", "id": "p"}
    assert not CompletionStore(False).fault(scored)
    assert CompletionStore(False).fault(scored | {"finish_reason": "eos"})


def test_what_an_earlier_version_kept_though_it_is_no_answer_is_asked_again(
    tmp_path, capsys, monkeypatch
):
    file = tmp_path / "s.sqlite"
    with monkeypatch.context() as earlier:
        earlier.setattr(CompletionStore, "fault", lambda *_: "")
        ask(many_prompts(1), store=file, changes=({"finish_reason": ""},))
    found, calls = ask(many_prompts(2), store=file)
    assert found == ask(many_prompts(2), store=False)[0] and len(calls) == 2
    assert "1 of 1 rows are damaged" in capsys.readouterr().err
    assert ask(many_prompts(2), store=file) == (found, [])


class Down(ToyModel):
    """A model that fails after its first batch, as if its server had died."""

    def generate(self, requests, decoding):
        yield next(super().generate(requests, decoding))
        raise UserError("refused")


def test_answers_count_as_made_when_they_are_and_not_when_they_are_asked_for(place, monkeypatch):
    monkeypatch.setenv("LOOKUPLAB_LOGS", str(place))
    with refused("refused"):
        complete(Down(), many_prompts(9), store=place / "s.sqlite")
    ask(many_prompts(9), store=place / "s.sqlite")
    assert (place / "uses").read_text().splitlines() == [
        "completions 0 0 4",
        "completions 0 4 0",
        "completions 0 0 4",
        "completions 0 0 1",
    ]


def test_what_is_no_store_is_refused_and_left_alone(tmp_path):
    text, other, newer = (tmp_path / name for name in ("text", "other.sqlite", "newer.sqlite"))
    text.write_text("not a database, but long enough to be read as one\n" * 100)
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    with CompletionStore(newer) as store:
        store.add({})
        store.db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    for path, message in (
        (text, "not a database"),
        (other, "not a store of completions"),
        (newer, "another version of lookuplab"),
    ):
        before = path.read_bytes()
        with refused(message):
            CompletionStore(path).get(["a"])
        assert path.read_bytes() == before


def test_a_read_only_store_is_told_before_anything_is_generated(tmp_path):
    model = ToyModel()
    with CompletionStore(tmp_path / "s.sqlite") as store:
        store.db.execute("PRAGMA query_only = 1")
        with refused("readonly"):
            complete(model, many_prompts(2), store=store)
    assert model.calls == []


def test_a_store_in_a_read_only_folder_is_read_and_nothing_is_written_beside_it(
    tmp_path, monkeypatch
):
    with Kept(tmp_path / "s.sqlite") as store:
        store.add({"a": "b"})
    # root could write in a folder in spite of its mode
    monkeypatch.setattr(os, "access", lambda place, _: place != tmp_path)
    with Kept(tmp_path / "s.sqlite") as store:
        assert store.lookup(["a", "c"]) == ({"a": "b"}, ["c"])
        assert [*tmp_path.iterdir()] == [tmp_path / "s.sqlite"]


def test_a_full_disk_is_one_clear_line_and_loses_nothing_stored(tmp_path):
    batch = {str(number): "y" * 5000 for number in range(20)}
    with Kept(tmp_path / "s.sqlite") as store:
        store.add({"a": "b"})
        pages = store.db.execute("PRAGMA page_count").fetchone()[0]
        # with this limit, SQLite fails as it does on a full disk
        store.db.execute(f"PRAGMA max_page_count = {pages}")
        with refused("disk is full"):
            store.add(batch)
        assert [*store.get(store.present())] == ["a"], (
            "the batch that did not fit must be gone as a whole"
        )
