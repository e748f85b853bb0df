"""Tests the paper's rankers, and the measures of a ranking. Also tests DS-1000's problems as
queries for the documentation of their functions.
"""

from dataclasses import replace

import numpy as np
import pytest
from doors import refused

from lookuplab.retrieval.rankers import Ranker
from lookuplab.stackoverflow import ranking
from lookuplab.stackoverflow.corpus import CORPUS_FOLDER, Query, Snippet
from lookuplab_notebooks.stackoverflow.documents import questions
from lookuplab_notebooks.stackoverflow.quality import MEASURES, measured, quality_rows

SNIPPETS = [
    Snippet("a", "Sort an array in place.", "np.sort(values)"),
    Snippet("b", "Compute the mean of a column.", "frame['x'].mean()"),
    Snippet("c", "Invert a matrix.", "np.linalg.inv(matrix)"),
]
PLACES = CORPUS_FOLDER / "words", CORPUS_FOLDER / "encoder"


def test_an_ensemble_is_the_weighted_sum_of_its_parts():
    found = ranking.rankers(SNIPPETS, *PLACES, ("code", "description", "ensemble-1.5"))
    code, description, both = (one.scores_of(["mean of a column"]) for one in found.values())
    assert both == pytest.approx(1.5 * code + description, abs=2e-6)


def test_a_snippet_gives_three_lines_to_learn_from():
    lines = ranking.training_lines([Snippet("a", "A mean.", "b.c(d)")])
    assert lines == [["b", "mean", "c", "d"], ["mean", "b", "c", "d"], ["b", "c", "d", "mean"]]


@pytest.mark.parametrize("name", ["bm25", "ensemble-x", "ensemble-0", f"ensemble-{'9' * 400}"])
def test_an_unknown_name_is_refused(name):
    with refused("no ranker"):
        ranking.rankers(SNIPPETS, "", "", [name])


QUERIES = [Query("0", "0", ("a",)), Query("1", "1", ("a",)), Query("2", "2", ("a", "b"))]


class Given(Ranker):
    """A ranker that puts ``late`` + int(query) other documents above "a". For the query "2", for
    example, "a" has the rank ``late`` + 3.
    """

    def __init__(self, late: int):
        self.ids = ["a", "b", "c", "d", "e"]
        self.late = late

    def scores_of(self, queries):
        return np.array([[-int(query) - self.late, -0.5, -1.5, -2.5, -3.5] for query in queries])


def test_each_ranker_has_the_mean_of_each_measure_and_differences_are_taken_query_by_query():
    values = measured({"good": Given(0), "bad": Given(1)}, QUERIES)
    rows = quality_rows(values, "tiny", [("good", "bad")]).set_index(["condition", "metric"])
    # The good ranker puts "a" at ranks 1, 2 and 3 for the three queries. For the third one, "b" is
    # also relevant, at rank 1.
    found = rows.value.to_dict()
    assert found["good", "mrr_at_20"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert found["good", "success_at_1"] == pytest.approx(2 / 3)
    assert found["bad", "recall_at_3"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert found["good - bad", "mrr_at_20_change"] == pytest.approx((1 / 2 + 1 / 6 + 0) / 3)
    assert len(rows) == 3 * len(MEASURES) + 2 and (rows.n == 3).all()


@pytest.mark.parametrize("relevant", ["a", "e"])
def test_a_ranker_that_knows_nothing_is_undecided_and_said(relevant, capsys):
    class Equal(Given):
        def scores_of(self, queries):
            return np.zeros((len(queries), 5))

    asked = [Query(str(at), str(at), (relevant,)) for at in range(3)]
    ways = {"equal": Equal(0), "best": Given(-9)}
    rows = quality_rows(measured(ways, asked), "tiny")
    values = rows.set_index(["condition", "metric"]).value
    assert values["equal", "success_at_3"] == pytest.approx(3 / 5)
    assert values["equal", "undecided"] == 1 and values["best", "undecided"] == 0
    assert "equal: 3 of 3 queries undecided" in (said := capsys.readouterr().out)
    assert "best" not in said


def test_documents_that_are_hidden_from_a_query_are_not_ranked_for_it():
    found = measured({"good": Given(0)}, [QUERIES[0], replace(QUERIES[1], hidden=("b",))])
    assert found.mrr_at_20.tolist() == [1, 1]


def test_a_problems_documents_are_the_snippets_of_its_object(problems):
    about = replace(problems[0], object="x", expressions=("f(1)",))
    codes = {"y#0": "c", "x#1": "c", "x#2": "f( 1)"}
    snippets = [Snippet(id, "d", code) for id, code in codes.items()]
    [asked] = questions([problems[1], about], snippets)
    assert (asked.id, asked.relevant, asked.hidden) == (about.id, ("x#1",), ("x#2",))


def test_a_ranker_that_knows_no_word_is_left_out_and_said(capsys):
    empty = [Snippet(id, "...", "x = 1") for id in "ab"]
    assert [*ranking.rankers(empty, "", "", ["bm25-description", "bm25-code"])] == ["bm25-code"]
    assert "warning: bm25-description is left out: nothing to search" in capsys.readouterr().err
    with refused("bm25-description is left out"):
        ranking.rankers(empty, "", "", ["bm25-description"])
