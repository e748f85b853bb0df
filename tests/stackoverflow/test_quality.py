"""Measures of rankers as rows, on a ranker whose order is given."""

import numpy as np
import pytest

from lookuplab.retrieval.rankers import Ranker
from lookuplab.stackoverflow.corpus import Query
from lookuplab.stackoverflow.quality import MEASURES, difference_rows, measured, quality_rows

QUERIES = [Query("0", "first", ("a",)), Query("1", "second", ("a",)), Query("2", "third", ("a", "b"))]


class Given(Ranker):
    """Ranks "a" at the place that the query names."""

    def __init__(self, late: int):
        self.ids, self.late = ["a", "b", "c", "d", "e"], late

    def scores_of(self, queries):
        places = [["first", "second", "third"].index(query) + self.late for query in queries]
        return np.array([[-place, -0.5, -1.5, -2.5, -3.5] for place in places])


def test_each_ranker_has_the_mean_of_each_measure_with_its_interval():
    rows = quality_rows(measured({"good": Given(0), "bad": Given(1)}, QUERIES), "tiny")
    rows = rows.set_index(["condition", "metric"])
    # "a" stands at 1, 2, 3 for the good ranker; "b", relevant to the third query too, stands before it
    assert rows.loc[("good", "mrr_at_20"), "value"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert rows.loc[("good", "success_at_1"), "value"] == pytest.approx(2 / 3)
    assert rows.loc[("bad", "recall_at_3"), "value"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert len(rows) == 2 * len(MEASURES) and (rows.n == 3).all() and (rows.model == "tiny").all()
    assert (rows.ci_low <= rows.value).all() and (rows.value <= rows.ci_high).all()


def test_differences_are_taken_query_by_query():
    values = measured({"good": Given(0), "bad": Given(1)}, QUERIES)
    rows = difference_rows(values, "tiny", "good", ["bad"]).set_index("metric")
    assert rows.loc["mrr_at_20_difference", "value"] == pytest.approx((1 / 2 + 1 / 6 + 0) / 3)
    assert set(rows.condition) == {"good/bad"}
    assert (difference_rows(values, "tiny", "good", ["good"]).value == 0).all()
