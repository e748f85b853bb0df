"""The completion store: exact keys, several writers, clear errors, nothing lost."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from toy_model import ToyModel, many_prompts

from lookuplab.errors import UserError
from lookuplab.models import store as store_module
from lookuplab.models.complete import complete
from lookuplab.models.store import Asked, CompletionStore, Key, Question
from lookuplab.models.types import Completion, Decoding, Prompt

IDENTITY = {"name": "hub/model", "revision": "main", "adapter": "none", "dtype": "float32"}
QUESTION = Question(Prompt("a", "x = ", "be brief"))
ANSWER = Completion("a", 0, "1é\n", ("1", "é\n"), (7, 8), (-0.1, float("-inf")), "stop", 3, 2)


def key(identity=IDENTITY, decoding=Decoding(), question=QUESTION):
    return Asked(identity, decoding).key(question)


def test_a_stored_answer_comes_back_equal_from_a_reopened_file(tmp_path):
    asked = Asked(IDENTITY, Decoding())
    with CompletionStore(tmp_path / "a b" / "store.sqlite") as store:
        store.put(asked, [(QUESTION, ANSWER)])
    with CompletionStore(tmp_path / "a b" / "store.sqlite") as store:
        assert store.get(asked, [QUESTION]) == {asked.key(QUESTION): ANSWER}


def test_a_margin_is_stored_and_an_answer_from_before_margins_has_none():
    asked = Asked(IDENTITY, Decoding())
    with CompletionStore(":memory:") as store:
        store.put(asked, [(QUESTION, replace(ANSWER, token_logprobs=(-0.1, -0.2), margin=0.25))])
        assert store.get(asked, [QUESTION])[asked.key(QUESTION)].margin == 0.25
        store.db.execute("UPDATE completions SET json = json_remove(json, '$.margin')")
        assert store.get(asked, [QUESTION])[asked.key(QUESTION)].margin is None


@pytest.mark.parametrize("field", IDENTITY)
def test_the_key_changes_with_every_part_of_the_model_identity(field):
    assert key() != key(identity={**IDENTITY, field: "other"})


@pytest.mark.parametrize("change", [
    {"max_new_tokens": 8}, {"temperature": 0.5}, {"top_p": 0.9}, {"seed": 1}, {"stop": ("\n",)},
    {"stop_rule": "first_call"}, {"truncation": "left"},
    {"choices_below": 0.5}, {"beams": 2}], ids=lambda change: next(iter(change)))
def test_the_key_changes_with_every_decoding_parameter(change):
    assert key() != key(decoding=replace(Decoding(), **change))


def test_the_key_changes_with_prompt_system_sample_kind_and_decoding_version(monkeypatch):
    others = [key(question=Question(Prompt("a", "x  = ", "be brief"))), key(question=Question(Prompt("a", "x = "))),
              key(question=Question(QUESTION.prompt, 1)), key(decoding=None),
              key(question=Question(QUESTION.prompt, continuation="1"))]
    monkeypatch.setattr(store_module, "DECODING_VERSION", store_module.DECODING_VERSION + 1)
    others.append(key())
    monkeypatch.undo()
    assert len({key(), *others}) == len(others) + 1


def test_the_number_of_samples_is_not_in_the_key_because_the_sample_index_is():
    assert key(decoding=Decoding(n=1)) == key(decoding=Decoding(n=20))


def test_the_prompt_id_is_in_the_key_only_where_sampling_depends_on_it():
    renamed = Question(replace(QUESTION.prompt, id="b"))
    assert key() == key(question=renamed)
    assert key(decoding=Decoding(temperature=0.2)) != key(decoding=Decoding(temperature=0.2), question=renamed)


def test_a_key_does_not_depend_on_the_order_of_the_identity():
    assert key() == key(identity=dict(reversed(IDENTITY.items())))


def test_more_prompts_than_one_select_takes_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "CHUNK", 7)
    asked = Asked(IDENTITY, Decoding())
    questions = [Question(prompt, sample) for prompt in many_prompts(50) for sample in (0, 1)]
    with CompletionStore(tmp_path / "s.sqlite") as store:
        store.put(asked, [(question, ANSWER) for question in questions[::2]])
        assert set(store.get(asked, questions)) == {asked.key(question) for question in questions[::2]}


def test_keys_of_stores_that_exist_stay_as_they_were():
    """Written down before choices existed: prompts without them and scored continuations keep their keys."""
    assert key() == Key("db02737ed5d6851242880153b20ca7d8", "7e8eba087f3686d821d0972e83738c9e", 0)
    sampled = Decoding(temperature=0.5, n=3, stop=("a",))
    assert key(decoding=sampled, question=Question(QUESTION.prompt, 2)) == Key(
        "961dc9570e32457d44ba2dbdc4f381b2", "c725e74e7ae44692a5708afc11720b66", 2)
    assert key(decoding=None, question=Question(QUESTION.prompt, continuation="1")) == Key(
        "410b3c1f2b8c33c0fffe157379eb04fb", "e0c4faeee3412421316ca5f08fb22c77", 0)


def test_the_key_changes_with_the_choices_and_not_with_their_order():
    def chosen(*names):
        return key(question=Question(replace(QUESTION.prompt, choices=names)))

    assert len({key(), chosen("a"), chosen("b"), chosen("a", "b")}) == 4
    assert chosen("b", "a", "b") == chosen("a", "b") and chosen() == key()


def test_the_first_stored_answer_stays(tmp_path):
    asked = Asked(IDENTITY, Decoding())
    with CompletionStore(tmp_path / "s.sqlite") as store:
        store.put(asked, [(QUESTION, ANSWER)])
        store.put(asked, [(QUESTION, replace(ANSWER, text="2"))])
        assert store.get(asked, [QUESTION])[asked.key(QUESTION)].text == ANSWER.text


def test_export_and_stats_tell_everything_in_readable_form(tmp_path):
    asked = Asked(IDENTITY, Decoding(stop=("\n",)))
    with CompletionStore(tmp_path / "s.sqlite") as store:
        store.put(asked, [(QUESTION, ANSWER)])
        assert store.export(tmp_path / "out.jsonl") == 1 == len(store)
        assert [row["answers"] for row in store.stats()] == [1]
    line = json.loads((tmp_path / "out.jsonl").read_text())
    assert (line["settings"]["model"], line["settings"]["decoding"]["stop"]) == (IDENTITY, ["\n"])
    assert (line["prompt"]["text"], line["prompt"]["system"], line["answer"]["text"]) == ("x = ", "be brief", "1é\n")


def test_five_kills_in_the_middle_change_nothing_and_repeat_at_most_one_batch_each(tmp_path):
    store, log = tmp_path / "killed.sqlite", tmp_path / "log"
    prompts, decoding = many_prompts(60), Decoding(n=2)
    log.touch()

    def generated():
        return log.read_text().split()

    command = [sys.executable, str(Path(__file__).with_name("toy_model.py")), str(store), str(log), "60"]
    for kill in range(5):
        before = len(generated())
        child = subprocess.Popen(command)
        while len(generated()) < before + 6 + kill:  # in the middle of a batch, and not always at the same place
            assert child.poll() is None, "the child ended before it could be killed"
        child.kill()
        child.wait()
        repeated = len(generated()) - len(set(generated()))
        assert repeated <= 4 * kill, f"after {kill + 1} kills {repeated} answers had been generated twice"
    finished = complete(ToyModel(log=log), prompts, decoding, store=store, progress=False)
    assert 0 < finished.generated < 120
    assert len(generated()) - len(set(generated())) <= 4 * 5
    assert finished == complete(ToyModel(), prompts, decoding, store=False, progress=False)


def test_two_processes_write_the_same_new_file_at_the_same_time(tmp_path):
    script = str(Path(__file__).with_name("toy_model.py"))
    children = [subprocess.Popen([sys.executable, script, str(tmp_path / "s.sqlite"), str(tmp_path / f"log{number}"),
                                  str(count)]) for number, count in enumerate((20, 30, 30))]
    assert [child.wait(timeout=60) for child in children] == [0, 0, 0]
    with CompletionStore(tmp_path / "s.sqlite") as store:
        assert len(store) == 60


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be read as one\n" * 100)
    with pytest.raises(UserError, match="no SQLite database"):
        CompletionStore(path)
    assert path.read_text().startswith("not a database")


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
    before = path.read_bytes()
    with pytest.raises(UserError, match="another program"):
        CompletionStore(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(tmp_path):
    with CompletionStore(tmp_path / "s.sqlite") as store:
        store.db.execute(f"PRAGMA user_version = {store_module.SCHEMA_VERSION + 1}")
    with pytest.raises(UserError, match="newer lookuplab"):
        CompletionStore(tmp_path / "s.sqlite")


def test_a_full_disk_is_one_clear_line_and_loses_nothing_stored(tmp_path):
    asked = Asked(IDENTITY, Decoding())
    with CompletionStore(tmp_path / "s.sqlite") as store:
        store.put(asked, [(QUESTION, ANSWER)])
        pages = store.db.execute("PRAGMA page_count").fetchone()[0]
        store.db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite then fails as it does on a full disk
        with pytest.raises(UserError, match="disk is full") as raised:
            store.put(asked, [(Question(Prompt(str(n), "y" * 5000 + str(n))), ANSWER) for n in range(20)])
        assert "\n" not in str(raised.value)
        store.db.execute(f"PRAGMA max_page_count = {pages + 1000}")
        assert len(store) == 1, "the batch that did not fit must be gone as a whole"
        store.put(asked, [(Question(Prompt("b", "z")), ANSWER)])
        assert len(store) == 2


@contextmanager
def as_another_user():
    """Root may write everything, so act as a user who may not."""
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize(("file_mode", "folder_mode", "message"), [
    (0o444, 0o777, "is read-only"), (0o444, 0o555, "read-only|cannot be opened for writing"),
    (None, 0o555, "cannot be opened for writing")])
def test_a_read_only_store_or_folder_is_told_at_opening(file_mode, folder_mode, message):
    with tempfile.TemporaryDirectory() as folder:  # not tmp_path: another user may not enter that
        path = Path(folder) / "s.sqlite"
        if file_mode is not None:
            CompletionStore(path).close()
            path.chmod(file_mode)
        os.chmod(folder, folder_mode)
        with as_another_user(), pytest.raises(UserError, match=message):
            CompletionStore(path)
        os.chmod(folder, 0o700)


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot make its folder"):
        CompletionStore(tmp_path / "file" / "s.sqlite")
