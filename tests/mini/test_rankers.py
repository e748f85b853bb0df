"""The mini rankers as they are shipped: whole, small, and better together than apart."""

import pytest

from lookuplab.mini import rankers
from lookuplab.mini.descriptions import pairs_of, without_queries
from lookuplab.mini.docstrings import Documented
from lookuplab.mini.packages import held_out_example
from lookuplab.stackoverflow import corpus, quality


@pytest.fixture(scope="module")
def values():
    made = rankers.rankers(corpus.load("mini-retrieval"), [*rankers.NAMES[:5], "ensemble-0.4"])
    return quality.measured(made, corpus.queries("mini", "test"))


def test_the_ensemble_is_above_each_of_its_parts_on_held_out_queries(values):
    rows = quality.difference_rows(values, "mini", "ensemble-0.4", ["code", "description"])
    rows = rows.set_index(["condition", "metric"])
    for part in ("code", "description"):
        assert rows.loc[(f"ensemble-0.4/{part}", "mrr_at_20_difference"), "value"] > 0


def test_every_ranker_is_far_above_chance(values):
    assert (values.groupby("ranker").mrr_at_20.mean() > 0.1).all()


def test_the_shipped_models_are_small():
    for folder in (rankers.WORDS, rankers.ENCODER):
        assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < 3e6
        assert (folder / "README.md").is_file()


def test_the_encoder_does_not_learn_from_held_out_objects():
    text = "Sort an array.\n\nThe order is that of the elements.\n"
    held = next(f"numpy.f{n}" for n in range(100) if held_out_example(f"numpy.f{n}"))
    assert pairs_of(Documented((held,), text)) == []
    names = [f"numpy.g{n}" for n in range(30)]
    found = [pairs_of(Documented((name,), text)) for name in names]
    assert [("Sort an array.", "The order is that of the elements.")] in found


def test_no_pair_that_the_encoder_learns_has_the_text_of_a_query():
    asked = corpus.queries("mini", "test")[0].text
    assert without_queries([("Sort.", "Order."), ("Sort.", asked), (asked, "Order.")]) == [("Sort.", "Order.")]
