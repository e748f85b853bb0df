"""Designs, precisions and numbers of documents as rows, on tasks that can be counted by hand (Section 3.2)."""

import numpy as np
import pandas as pd
import pytest
from reading_model import ReadingModel

from lookuplab.cloudapi.ablations import (
    added_tokens, agreement, ask_designs, ask_numbers, break_even_rows, design_rows,
    length_rows, precision_rows, retrieval_rows, seed_spread,
)
from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec
from lookuplab.errors import UserError

# task: class, valid without documents, with a hit, with a miss
ROWS = [("h1", "high", 1, 1, 0), ("h2", "high", 1, 1, 1), ("h3", "high", 0, 1, 0), ("h4", "high", 1, 1, 0),
        ("l1", "low", 0, 1, 0), ("l2", "low", 0, 0, 0)]
TOKENS = {"first": 10, "hit": 14, "miss": 30}


def frame(valid, dropped=0):
    table = pd.DataFrame(ROWS, columns=["task", "frequency", "first", "hit", "miss"])
    return table.assign(model="m", api=table.task, valid=table[valid].astype(bool), prompt_dropped=dropped,
                        prompt_tokens=TOKENS[valid] - dropped)


def passes(k=1):
    return Passes(k, frame("first"), frame("hit"), frame("miss", dropped=2), np.zeros(len(ROWS), dtype=bool))


def found(rows, metric="valid_percent"):
    return {row["condition"]: row["value"] for row in rows if row["metric"] == metric}


def frames():
    named = {"base": frame("first"), "name": frame("miss"), "full": frame("hit")}
    return {name: table.assign(added_tokens=added_tokens(named["base"], table)) for name, table in named.items()}


def test_added_tokens_count_those_that_did_not_fit():
    assert added_tokens(frame("first"), frame("miss", dropped=5)).tolist() == [20] * 6


def test_designs_are_rated_over_all_tasks_and_by_class():
    valid = found(design_rows(frames()))
    assert valid["base"] == 50 and valid["full/high"] == 100 and valid["name/low"] == 0


def test_designs_are_compared_with_the_base_model_and_with_each_other():
    change = found(design_rows(frames()), "valid_change_points")
    assert change["full/low"] == 50 and change["full - name"] == pytest.approx(100 * 4 / 6)
    assert "base" not in change


def test_a_design_costs_the_tokens_that_it_adds():
    assert found(design_rows(frames()), "average_tokens") == {"base": 0, "name": 20, "full": 4}


def test_lengths_are_binned_with_shares_that_add_up_to_100():
    long = frames()["full"].assign(added_tokens=[0, 0, 0, 0, 3, 70])
    rows = length_rows({"full": long}, lambda count: f"[{count // 64}]")
    assert found(rows, "share_percent") == {"full/[0]": 50, "full/[1]": 50}
    assert found(rows) == {"full/[0]": 100, "full/[1]": 0}


def test_a_class_without_tasks_has_no_bins():
    assert length_rows(frames(), str, "medium") == []


def test_the_expectation_is_a_straight_line_from_miss_to_hit():
    valid = found(precision_rows(passes(), [0, 50, 100]))
    assert [valid[f"precision_{x}/high"] for x in (0, 50, 100)] == [25, 62.5, 100]


def test_the_change_at_a_precision_is_paired_with_the_base_model():
    assert found(precision_rows(passes(), [50]), "valid_change_points")["precision_50/low"] == 25


def test_a_draw_of_all_or_no_hits_is_the_expectation():
    rows = precision_rows(passes(), [0, 100])
    assert found(rows) == found(rows, "sampled_valid_percent")


def test_other_seeds_change_the_draw_and_not_the_expectation():
    exact, drawn = zip(*[(found(rows), found(rows, "sampled_valid_percent"))
                         for rows in (precision_rows(passes(), [50], seed) for seed in range(8))], strict=True)
    assert all(each == exact[0] for each in exact) and any(each != drawn[0] for each in drawn)


def test_the_expectation_lies_within_the_interval_of_a_draw_of_many_tasks():
    generator = np.random.default_rng(0)
    many = pd.DataFrame({"task": [f"t{i}" for i in range(300)], "frequency": "low", "model": "m"}).assign(
        api=[f"a{i // 2}" for i in range(300)])
    first, hit, miss = (many.assign(valid=generator.random(300) < share) for share in (0.3, 0.8, 0.1))
    table = agreement(pd.DataFrame(precision_rows(Passes(1, first, hit, miss, None), range(0, 101, 10))))
    assert len(table) == 22 and table.inside.all()


def test_an_expectation_outside_of_the_interval_is_said_to_be_outside():
    rows = pd.DataFrame([("m", "c", "valid_percent", 50, 40, 60), ("m", "c", "sampled_valid_percent", 61, 51, 70)],
                        columns=["model", "condition", "metric", "value", "ci_low", "ci_high"])
    assert agreement(rows).inside.tolist() == [False]


def test_draws_spread_around_the_expectation():
    (middle,) = seed_spread(passes(), [50], range(20)).to_dict("records")
    assert middle["lowest"] <= middle["mean"] <= middle["highest"] and middle["lowest"] < middle["highest"]
    assert middle["mean"] == pytest.approx(middle["exact"], abs=5)


def test_break_even_is_where_the_line_meets_the_base_model():
    (row,) = [row for row in break_even_rows(passes()) if row["condition"] == "break_even/high"]
    assert row["value"] == pytest.approx(100 * (75 - 25) / (100 - 25))
    assert row["ci_low"] <= row["value"] <= row["ci_high"]


@pytest.mark.parametrize("hit, miss", [("miss", "hit"), ("miss", "miss")])
def test_without_a_rising_line_that_meets_the_base_model_there_is_no_break_even(hit, miss):
    flat = Passes(1, frame("first"), frame(hit), frame(miss), None)
    assert "break_even/high" not in found(break_even_rows(flat), "precision_percent")


def test_a_number_of_documents_shows_its_mean_and_both_parts():
    valid = found(retrieval_rows({2: passes(2)}, 50))
    assert (valid["retrievals_2/high"], valid["hit_2/high"], valid["miss_2/high"]) == (62.5, 100, 25)


def test_numbers_of_documents_are_compared_with_the_first():
    change = found(retrieval_rows({1: passes(), 3: passes(3)}), "valid_change_points")
    assert change["retrievals_3/low - retrievals_1/low"] == 0 and change["retrievals_3/low"] == 25


def test_tokens_and_lost_beginnings_are_expectations_too():
    rows = retrieval_rows({1: passes()}, 25)
    assert found(rows, "average_tokens") == {"retrievals_1": 0.25 * 4 + 0.75 * 20}
    assert found(rows, "truncated_percent") == {"retrievals_1": 75}


TASK = Task("put#1", "client.", "", ("aws/s3.s3.put_object",), "aws", "s3", "s3", "low", 0, 0, 0)
INDEX = ApiIndex([ApiSpec("aws", "s3", "s3", name, ()) for name in ("put_object", "get_object")])


def test_every_design_is_asked_with_the_right_document():
    asked = ask_designs(ReadingModel({"put#1": "wrong"}), [TASK], ["name", "specification"], store=False, index=INDEX)
    assert [bool(table.valid.iloc[0]) for table in asked.values()] == [False, True, True]
    assert asked["base"].added_tokens.tolist() == [0] and asked["name"].added_tokens.iloc[0] > 0


def test_an_unknown_design_is_refused_before_anything_is_generated():
    model = ReadingModel({"put#1": "wrong"})
    with pytest.raises(UserError, match="unknown augmentation design 'summary'"):
        ask_designs(model, [TASK], ["name", "summary"], store=False, index=INDEX)
    assert not model.asked


def test_no_documents_are_refused_before_anything_is_generated():
    model = ReadingModel({"put#1": "wrong"})
    with pytest.raises(UserError):
        ask_numbers(model, [TASK], [1, 0], store=False, index=INDEX)
    assert not model.asked
