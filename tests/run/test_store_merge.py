"""Tests that several stores become one: equal answers are merged, and different answers are
refused.
"""

from pathlib import Path

import pytest

from lookuplab import paths
from lookuplab.models.store import CompletionStore
from lookuplab.stackoverflow.grader import VerdictStore

PASSED = {"outcome": "passed"}
ANSWER = {
    "id": "p",
    "sample": 0,
    "text": "ab",
    "tokens": ["ab"],
    "token_ids": [7],
    "token_logprobs": [-0.5],
    "finish_reason": "eos",
    "prompt_tokens": 1,
    "prompt_dropped": 0,
    "margin": 0.4,
    "record": None,
    "model": "m",
}


@pytest.fixture
def stores(kit):
    """Return a kit with two functions: ``write`` writes answers to stores in the folders ``a``,
    ``b`` and so on, and ``read`` returns the answers of a store.
    """

    def write(**folders):
        for name, answers in folders.items():
            with CompletionStore(kit.root / name / "completions.sqlite") as store:
                store.add(answers)

    def read(place):
        with CompletionStore(place) as store:
            return store.get(store.present())

    kit.write, kit.read = write, read
    kit.merge = f"store merge '{kit.root / 'a'}' '{kit.root / 'b' / 'completions.sqlite'}'"
    kit.into = kit.root / "all"  # a folder, although it does not exist yet
    return kit


def test_stores_become_one_with_all_that_lies_beside_them_and_a_repeated_merge_adds_nothing(stores):
    other = ANSWER | {"token_logprobs": [-0.5000001]}  # the same answer in another batch
    stores.write(a={"x": ANSWER}, b={"x": other, "y": ANSWER})
    (stores.root / "b" / "verdicts.sqlite.journals").mkdir()  # as left by machines that share files
    with VerdictStore(stores.root / "b" / "verdicts.sqlite") as verdicts:
        verdicts.add({"v": PASSED})
    said = stores.said(f"{stores.merge} -o '{stores.into}'")
    assert "completions: 2 added" in said and "verdicts: 1 added" in said
    assert stores.read(stores.into / "completions.sqlite") == {"x": ANSWER, "y": ANSWER}
    with VerdictStore(stores.into / "verdicts.sqlite") as verdicts:
        assert verdicts.get(verdicts.present()) == {"v": PASSED}
    assert "completions: 0 added" in stores.said(f"{stores.merge} -o '{stores.into}'")


@pytest.mark.parametrize("into", ["a", "all"])
def test_two_answers_to_one_question_are_one_line_and_no_answer_is_replaced(stores, into):
    other = ANSWER | {"text": "cd", "tokens": ["cd"]}
    stores.write(a={"x": ANSWER}, b={"w": ANSWER, "x": other}, all={})
    place = stores.root / into / "completions.sqlite"
    said = stores.refused(f"{stores.merge} -o '{place}'")
    assert "the stores disagree: completions x in" in said
    assert 'text "ab" -> "cd"' in said
    assert stores.read(place) == {"x": ANSWER}


@pytest.mark.parametrize("place", ["nowhere", "empty"])
def test_what_is_no_store_is_one_line(stores, place):
    stores.write(a={"x": ANSWER}, empty={})
    other = stores.root / place
    said = stores.refused(f"store merge '{stores.root / 'a'}' '{other}'")
    assert "there is no store, or an empty one" in said and not Path(paths.COMPLETIONS).exists()
