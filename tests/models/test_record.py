"""Tests the record. It keeps answers exactly, and equal answers give equal bytes. An answer is
found only by its own key. Answers that differ from the record's are reported.
"""

import numpy as np
import pandas as pd
import pytest
from doors import refused
from toy_model import Kept, ask, many_prompts

from lookuplab import paths
from lookuplab.models import record, store
from lookuplab.models.store import CompletionStore
from recipes.mini.record import write_file, write_manifest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of an empty record, and let stores be created in a new folder."""
    monkeypatch.setattr(paths, "MINI", tmp_path / "mini")
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "runs" / "completions.sqlite"))
    return tmp_path / "mini" / "record"


# numbers that float32 represents exactly
SINGLE, SMALL = float(np.float32(-0.1)), float(np.float32(-1e-8))
ANSWER = {
    "id": "task é",
    "sample": 1,
    "text": "né(\n",
    "tokens": ["n", "é(", "", "\n"],
    "token_ids": [70_000, 2, 0, 3],
    "token_logprobs": [-0.25, -0.0, SINGLE, SMALL],
    "finish_reason": "eos",
    "prompt_tokens": 7,
    "prompt_dropped": 0,
    "margin": None,
    "record": [{"step": 0, "offered": ["a", "b"], "x": 0.1}],
    "model": "mini",
}


def answer(**changes):
    return ANSWER | changes


ANSWERS = {
    "a/1/0": answer(),
    "a/2/0": answer(record=None, margin=float(np.float32(0.3)), id="other"),
    "b/1/0": answer(model="a model", text="", tokens=[], token_ids=[], token_logprobs=[]),
}


def test_what_the_record_gives_is_exactly_what_was_stored(folder):
    write_file("completions", ANSWERS, folder / "completions.parquet")
    asked = [*ANSWERS, "absent"]
    assert record.rows("completions", asked) == ANSWERS
    assert record.rows("completions", reversed(asked)) == ANSWERS
    judgements = {"success é.py:1 0a": [["E0602", 3, "ü"]], "dependencies x 0b": ["f", "f().x"]}
    write_file("judgements", judgements, folder / "judgements.parquet")
    assert record.rows("judgements", judgements) == judgements


def test_the_same_answers_give_the_same_bytes_in_whatever_order_they_come(folder):
    one, other = folder / "completions.parquet", folder / "other.parquet"
    write_file("completions", ANSWERS, one)
    write_file("completions", dict(reversed(ANSWERS.items())), other)
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    "changed", [{"token_logprobs": [-0.1] * 4}, {"token_logprobs": None}, {"text": "other"}]
)
def test_an_answer_that_would_not_come_back_exactly_is_refused(folder, changed):
    with refused("fit into the record"):
        write_file("completions", {"a/1/0": answer(**changed)}, folder / "c.parquet")


@pytest.mark.parametrize("changed", ["judgements.parquet", "SHA256SUMS"])
def test_a_flipped_bit_in_the_record_or_its_manifest_is_one_line_that_names_the_file(
    folder, changed
):
    for name in "judgements", "marks":
        write_file(name, {"success f 1": ["a name"]}, folder / f"{name}.parquet")
    write_manifest()
    file = folder / changed
    data = file.read_bytes()
    place = data.index(b"a name" if changed != "SHA256SUMS" else b"judgements")
    file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with refused(r"judgements.parquet is damaged .*git checkout"):
        record.rows("judgements", ["success f 1"])
    assert record.rows("marks", ["success f 1"]), "the other files are read"


def test_a_store_takes_from_the_record_what_fits_and_makes_the_rest(folder, monkeypatch):
    def made(count=3, **options):
        # float32 represents these log-probabilities exactly, like those of a model in float32
        exact = [{"token_logprobs": (-0.5, SINGLE)}]
        return ask(many_prompts(count), changes=exact, **options)

    first, _ = made()
    with CompletionStore() as full:
        write_file("completions", full.get(full.present()), folder / "completions.parquet")
        full.forget(full.get(full.present()))
    paths.completions_file().unlink()
    assert made() == (first, [])
    assert not paths.completions_file().exists(), "nothing was copied, nothing written"
    assert made(4)[1] == [("task/3", 0)]
    assert len(made(store=False)[1]) == 3, "a store in memory is for making everything anew"
    monkeypatch.setenv(record.RECORD_VARIABLE, "off")
    assert len(made()[1]) == 3


def test_under_another_python_the_record_is_found_and_what_is_made_there_stays_apart(
    folder, tmp_path, monkeypatch
):
    write_file("judgements", {"success f 1": []}, folder / "judgements.parquet")
    monkeypatch.setattr(store, "PYTHON", "2.7")
    ending = store.key_suffix()
    assert ending.startswith("@3.")
    with Kept(tmp_path / "kept.sqlite") as kept:
        found, made = (f"success f {number}{ending}" for number in "12")
        assert kept.lookup([found]) == ({found: []}, [])
        kept.add({made: ["made here"]})
        monkeypatch.setattr(store, "PYTHON", ending[1:])
        assert store.key_suffix() == "" and kept.lookup(["success f 2"]) == ({}, ["success f 2"])
        write_file("judgements", kept.get(kept.present()), folder / "other.parquet")
    assert pd.read_parquet(folder / "other.parquet").empty


def test_a_sample_has_its_share_of_each_kind_and_at_least_five_and_depends_on_the_seed(folder):
    keys = {f"success f:{at} {version}": [] for at in range(1000) for version in range(4)}
    keys |= {f"dependencies f:{at} 0": [] for at in range(70)} | {"rare f 0": []}
    write_file("judgements", keys, folder / "judgements.parquet")
    one, other = (record.draw_sample("judgements", record.Audit(0.02, seed)) for seed in "12")
    counts = pd.Series(one).value_counts().to_dict()
    assert counts == {"success": 80, "dependencies": 5, "rare": 1}
    functions = {key.rpartition(" ")[0] for key, kind in one.items() if kind == "success"}
    assert len(functions) == 20, "what was said of a function is made again together"
    assert one.keys() != other.keys()


def test_last_digits_are_equal_near_ties_explained_and_all_else_is_a_difference():
    old = answer(margin=0.5)
    other = answer(margin=0.5, text="m")
    digits = answer(margin=0.5 + 5e-5, token_logprobs=[-0.25 + 5e-5, -0.0, SINGLE, SMALL])
    moved = answer(margin=0.5, token_logprobs=[-0.25, -0.0, SINGLE - 2e-4, 0.0])
    pairs = (old, digits), (old, moved), (old, other), (answer(margin=5e-5), other)
    found = [record.differences("completions", *pair) for pair in pairs]
    assert [(len(said), near) for said, near in found] == [(0, 0), (1, 0), (1, 0), (2, 1)]
    assert record.differences("verdicts", [1], [2]) == (["[1] -> [2]"], False)
    errors = [{"error": f"0.94339622641509{end} /tmp123_ab{end}/f"} for end in ("41", "44")]
    # the last digit depends on the processor, and the temporary file's name differs in every run
    assert record.differences("verdicts", *errors) == ([], False)
