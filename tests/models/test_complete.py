"""Tests ``complete`` and ``score``: the order of answers, their reuse, the keys of the store, work
that several processes share, and the log of used answers.
"""

import math
import os
from dataclasses import replace

import pytest
from doors import refused
from toy_model import SAMPLED, ToyModel, ask, many_prompts

from lookuplab import paths
from lookuplab.models import Decoding, Prompt, complete, completions, score
from lookuplab.models.record import NEAR_TIE_MARGIN
from lookuplab.models.store import CompletionStore

FOUR = Decoding(n=4, temperature=1.0)


@pytest.fixture
def store(tmp_path):
    with CompletionStore(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.mark.parametrize(("decoding", "different"), [(Decoding(), 1), (SAMPLED, 4)])
def test_equal_texts_share_a_greedy_answer_and_are_sampled_apart(store, decoding, different):
    answers, calls = ask([Prompt("b", "x"), Prompt("a", "x")], decoding, store)
    order = [(prompt, sample) for prompt in "ba" for sample in range(decoding.n)]
    assert [(one.id, one.sample) for one in answers] == order
    assert len({one.text for one in answers}) == len(calls) == different


def test_what_is_all_there_is_read_without_writing(tmp_path):
    file = tmp_path / "s.sqlite"
    first, _ = ask(many_prompts(3), store=file)
    with CompletionStore(file) as opened:
        opened.db.execute("PRAGMA journal_mode = DELETE")
    os.chmod(file, 0o444)
    before = file.read_bytes()
    assert ask(many_prompts(3), store=file) == (first, []) and file.read_bytes() == before


def test_a_prompt_id_that_occurs_twice_is_refused(store):
    with refused("'a' occurs more than once"):
        ask([Prompt("a", "x"), Prompt("a", "y")], store=store)


@pytest.mark.parametrize(
    "options",
    [
        {"n": 2},
        {"max_new_tokens": 0},
        {"top_p": 1.5},
        {"temperature": math.nan},
        {"truncation": "right"},
        {"stop": "ab"},  # each of its letters would end an answer
        {"stop": ("x", "")},
    ],
    ids=str,
)
def test_decoding_out_of_range_cannot_be_made(options):
    with refused(r"out of range|is 'right'; it must be left, None"):
        Decoding(**options)


def test_the_store_is_the_named_file_or_the_one_in_runs_or_none(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "COMPLETIONS", tmp_path / "default.sqlite")
    monkeypatch.delenv("LOOKUPLAB_STORE", raising=False)
    ask(many_prompts(1), store=False)
    assert list(tmp_path.iterdir()) == []
    ask(many_prompts(1))
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "named.sqlite"))
    ask(many_prompts(1))
    assert {file.name for file in tmp_path.iterdir()} == {"default.sqlite", "named.sqlite"}


def test_answers_that_are_empty_or_cut_off_are_counted_once_for_each_model(monkeypatch):
    monkeypatch.setattr(completions, "ENDED", {})
    said = "", "<think>so", "<think>so</think>y", "x"
    texts = [{"text": text, "tokens": ("", text)} for text in said]
    texts[3]["finish_reason"] = "length"
    for _ in range(2):
        ask(many_prompts(1), FOUR, False, chat=True, changes=texts)
    assert completions.unfinished_answers() == ["toy: 2 of 4 answers empty, 1 cut off"]


class Rule:
    name = "first_call"


IDENTITY = {"name": "hub/model", "revision": "main", "adapter": "none", "dtype": "float32"}
PROMPT = Prompt("a", "x = ", "be brief")


def key(identity=IDENTITY, decoding=Decoding(), prompt=PROMPT, sample=0, continuation=""):
    """Return the store's key for an answer of ``complete``. If ``decoding`` is None, return the key
    for an answer of ``score``.
    """
    return next(completions.keys_of(identity, decoding, [(prompt, continuation, sample)]))[0]


def test_the_key_changes_with_everything_that_changes_an_answer(monkeypatch):
    decodings = [None, Decoding(8), Decoding(temperature=0.5), Decoding(top_p=0.9)]
    decodings += [Decoding(seed=1), Decoding(stop=("\n",)), Decoding(stop_rule=Rule)]
    decodings.append(Decoding(truncation="left"))
    prompts = [{"text": "x  = "}, {"system": None}, {"place": "p"}]
    prompts += [{"choices": ("a",)}, {"choices": ("a", "b")}]
    keys = [key(), key(IDENTITY | {"revision": "other"}), key(sample=1)]
    keys.append(key(decoding=None, continuation="1"))
    keys += [key(decoding=decoding) for decoding in decodings]
    keys += [key(prompt=replace(PROMPT, **changes)) for changes in prompts]
    monkeypatch.setattr(completions, "DECODING_VERSION", 99)
    keys.append(key())
    assert len(set(keys)) == len(keys)


def test_the_key_does_not_change_with_what_changes_no_answer():
    sampled = Decoding(temperature=0.5)
    renamed = replace(PROMPT, id="b")
    assert key(decoding=sampled) == key(decoding=replace(sampled, n=20)), "the sample index says it"
    assert key() == key(identity=dict(reversed(IDENTITY.items())))
    named = [replace(PROMPT, choices=names) for names in (("a", "b"), ("b", "a", "b"))]
    assert key(prompt=named[0]) == key(prompt=named[1])
    assert key() == key(prompt=renamed), "a greedy answer"
    assert key(decoding=sampled) != key(decoding=sampled, prompt=renamed)


def test_keys_of_stores_that_exist_stay_as_they_were():
    """These keys date from before prompts could have choices. They must stay valid for scored
    continuations and for prompts that have no choices.
    """
    sampled = Decoding(temperature=0.5, n=3, stop=("a",))
    assert [key(), key(decoding=sampled, sample=2), key(decoding=None, continuation="1")] == [
        "db02737ed5d6851242880153b20ca7d8/7e8eba087f3686d821d0972e83738c9e/0",
        "961dc9570e32457d44ba2dbdc4f381b2/c725e74e7ae44692a5708afc11720b66/2",
        "410b3c1f2b8c33c0fffe157379eb04fb/e0c4faeee3412421316ca5f08fb22c77/0",
    ]


def test_used_answers_are_listed_with_near_margins_and_without_versions(monkeypatch, tmp_path):
    monkeypatch.setenv("LOOKUPLAB_LOGS", str(tmp_path))
    margins = NEAR_TIE_MARGIN / 5, NEAR_TIE_MARGIN, None, 0.0
    asked = {"store": False, "changes": [{"margin": margin} for margin in margins]}
    for tool in ("jedi 1", "jedi 2"):
        ask([PROMPT], FOUR, tool=tool, **asked)
    score(ToyModel(), [(PROMPT, "x")], store=False)  # a score is not an answer, so it is not logged
    ask(many_prompts(1), FOUR, **asked)
    rows = [line.split(",") for line in (tmp_path / "answers.csv").read_text().splitlines()]
    assert rows[:4] == rows[4:8] and len(rows) == 12 and rows[8][3] != rows[0][3]
    told = [["toy", "a", str(at), near] for at, near in enumerate(("2e-05", "", "", "0e+00"))]
    assert [[*row[:3], row[-1]] for row in rows[:4]] == told


def test_no_process_of_a_shared_work_waits_and_none_makes_what_another_has_made(
    tmp_path, monkeypatch
):
    file = tmp_path / "shared.sqlite"
    monkeypatch.setenv("LOOKUPLAB_SHARE", "0/3")
    whole, first = ask(many_prompts(60), store=file)
    assert len(first) == 60, "the others never began"
    monkeypatch.setenv("LOOKUPLAB_SHARE", "1/3")
    assert ask(many_prompts(60), store=file) == (whole, [])


class Hung(ToyModel):
    """A model that stops in its third batch until the function ``others`` has returned."""

    def __init__(self, others):
        super().__init__()
        self.others = others

    def generate(self, requests, decoding):
        batches = super().generate(requests, decoding)
        yield next(batches)
        yield next(batches)
        self.others()
        yield from batches


def test_a_hung_process_is_not_waited_for_and_repeats_only_what_was_in_flight(
    tmp_path, monkeypatch
):
    file = tmp_path / "s.sqlite"
    made = []

    def others():
        for share in "1/3", "2/3", "0/3":
            monkeypatch.setenv("LOOKUPLAB_SHARE", share)
            made.extend(ask(many_prompts(120), store=file)[1] if share != "0/3" else ())

    monkeypatch.setenv("LOOKUPLAB_SHARE", "0/3")
    model = Hung(others)
    complete(model, many_prompts(120), store=file)
    assert len(made) == 112 and {*model.calls[:8]}.isdisjoint(made)
    assert len(model.calls) == 12, "the rest of its batch, and no more"
