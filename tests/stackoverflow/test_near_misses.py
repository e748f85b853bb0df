"""Tests how well readers and rules agree on which answers of real models are near misses."""

import pandas as pd
import pytest

from lookuplab_notebooks.published import near_agreement as agreement


def test_the_chosen_rule_calls_the_papers_printed_example_near():
    frame = agreement.labelled()
    rows = pd.DataFrame(agreement.agreement_rows(frame[frame.half == "develop"]))
    best = agreement.chosen(rows, frame.attrs["rules"])
    assert best in frame.attrs["candidates"] and "today" not in frame.attrs["candidates"]


KAPPAS = {"readers": 0.7, "a/develop": 0.9, "b/develop": 0.5, "c/develop": 0.5}
KAPPAS |= {"b/held-out": 0.2, "c/held-out": 0.95}
TABLE = pd.DataFrame(KAPPAS.items(), columns=["condition", "value"]).assign(metric="kappa")


def test_the_instrument_is_worth_the_weaker_of_readers_and_rule():
    weaker = agreement.weaker_link(TABLE, "c")
    assert (weaker["condition"], weaker["value"]) == ("instrument", 0.7)
    assert agreement.weaker_link(TABLE, "b")["value"] == 0.2


def test_kappa_and_weighted_share_are_those_computed_by_hand():
    """The first reader calls two of four answers near, and the second reader calls one of these two
    near. They agree on 3/4 of the answers; by chance, they would agree on half.
    """
    first, second = pd.Series([1, 1, 0, 0], dtype=bool), pd.Series([1, 0, 0, 0], dtype=bool)
    found = agreement.kappa(first, second, pd.Series(range(4)))
    assert found.value == pytest.approx((0.75 - 0.5) / (1 - 0.5)) and found.n == 4
    frame = pd.DataFrame({"model": "m", "library": ["a", "a", "b", "b"], "problem_id": range(4)})
    frame = frame.assign(population=[30, 30, 10, 10], cluster=range(4))
    assert agreement.share(first, frame).value == pytest.approx(30 / 40)
    assert agreement.part(first, second, frame.cluster).value == 0.5


def test_only_a_rule_that_calls_the_example_near_can_be_chosen():
    assert agreement.chosen(TABLE, ["b", "c"]) == "b"
