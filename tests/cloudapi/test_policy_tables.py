"""What policies miss, cost and change, on four tasks that can be followed by hand."""

import numpy as np
import pandas as pd

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import Way, compared_rows, policy_rows
from lookuplab.cloudapi.policy_tables import (
    as_printed,
    cost_rows,
    missed_rows,
    real_retrieval_rows,
    side_by_side,
)
from lookuplab.cloudapi.validity import INCORRECT_EXISTING, INVALID_USAGE, NONEXISTENT, VALID


def frame(categories, prompt_tokens, new_tokens):
    return pd.DataFrame({
        "model": "toy", "task": ["a", "b", "c", "d"], "api": ["A", "B", "C", "D"],
        "frequency": ["high", "high", "low", "low"], "category": categories,
        "valid": [category == VALID for category in categories],
        "prompt_tokens": prompt_tokens, "new_tokens": new_tokens,
    })


# a is right and stays right only with a hit; b and c are rescued by a hit; d never
PASSES = Passes(1, frame([VALID, INCORRECT_EXISTING, NONEXISTENT, INVALID_USAGE], 10, [1, 2, 3, 4]),
                frame([VALID, VALID, VALID, NONEXISTENT], 20, 2), frame([NONEXISTENT] * 4, 40, 4),
                retrieved=np.array([True, False, True, False]))
NEVER, ALWAYS = np.zeros(4, dtype=bool), np.ones(4, dtype=bool)
LOOKUP = np.array([False, False, True, False])  # only c names nothing that exists


def found(rows):
    numbers = {(number["condition"], number["metric"]): number["value"] for number in rows}
    assert len(numbers) == len(rows), "two numbers under one name"
    return numbers


def test_an_index_lookup_misses_calls_of_apis_that_exist():
    numbers = found(missed_rows(PASSES.first, "lookup", LOOKUP))
    assert numbers["lookup/high", "caught_percent"] == 0 and numbers["lookup/low", "caught_percent"] == 50
    assert numbers["lookup/all", f"missed_{INCORRECT_EXISTING}_percent"] == 50
    assert numbers["lookup/all", f"missed_{INVALID_USAGE}_percent"] == 50
    assert numbers["lookup/all", f"missed_{NONEXISTENT}_percent"] == 0


def test_where_everything_is_caught_nothing_is_missed():
    metrics = {metric for _, metric in found(missed_rows(PASSES.first, "dag", ALWAYS))}
    assert metrics == {"caught_percent"}


def test_a_class_without_invalid_calls_has_no_share_of_them():
    right = frame([VALID, VALID, VALID, NONEXISTENT], 1, 1)
    assert {condition for condition, _ in found(missed_rows(right, "base", NEVER))} == {"base/low", "base/all"}


def test_real_retrieval_takes_the_hit_where_bm25_found_it():
    numbers = found(real_retrieval_rows(PASSES, "dag", ALWAYS))
    assert numbers["dag_bm25/all", "valid_percent"] == 50  # a and c
    assert numbers["dag_bm25/all", "precision_percent"] == 50


def test_the_precision_of_real_retrieval_counts_only_what_was_retrieved_for():
    numbers = found(real_retrieval_rows(PASSES, "lookup", LOOKUP))
    assert numbers["lookup_bm25/low", "precision_percent"] == 100
    assert ("lookup_bm25/high", "precision_percent") not in numbers


def test_a_policy_costs_the_first_pass_always_and_the_second_where_it_retrieves():
    base, lookup = found(cost_rows(PASSES, "base", NEVER)), found(cost_rows(PASSES, "lookup", LOOKUP))
    assert base["base/all", "prompt_tokens"] == 10 and base["base/all", "model_calls"] == 1
    assert lookup["lookup/all", "prompt_tokens"] == 10 + 30 / 4  # half a hit and half a miss, for one task of four
    assert lookup["lookup/all", "new_tokens"] == 2.5 + 3 / 4
    assert lookup["lookup/all", "tokens"] == 17.5 + 3.25 and lookup["lookup/all", "model_calls"] == 1.25


def test_the_table_is_printed_as_in_the_paper():
    rows = policy_rows(PASSES, "base", NEVER) + policy_rows(PASSES, "dag", ALWAYS)
    printed = as_printed(pd.DataFrame(rows))
    assert list(printed.loc[("toy", "base")]) == ["0.0", "", "0.0", "50.0", "", "0.0", "25.0"]
    dag = ["100.0", "", "100.0", "50.0 (+0.0)", "", "25.0 (+25.0)", "37.5 (+12.5)"]
    assert list(printed.loc[("toy", "dag")]) == dag


def test_numbers_that_the_paper_does_not_print_are_left_out():
    rows = pd.DataFrame(policy_rows(PASSES, "base", NEVER)).assign(paper_value=float("nan"))
    assert as_printed(rows, "paper_value").empty


def test_numbers_stand_side_by_side_in_their_order_and_counts_without_an_interval():
    ways = {"base": Way(PASSES, NEVER), "dag": Way(PASSES, ALWAYS)}
    wide = side_by_side(compared_rows(ways, [("dag", "base")], precision=100),
                        ["p", "gained_tasks", "valid_change_points"])
    assert list(wide.index) == [("toy", f"dag/{name} - base/{name}") for name in ("high", "low", "all")]
    assert list(wide.columns) == ["p", "gained_tasks", "valid_change_points"]
    assert list(wide.loc[("toy", "dag/all - base/all")])[:2] == ["0.5", "2"]
    assert wide.iloc[-1, -1].startswith("50.0 [") and wide.iloc[-1, -1].endswith("n=4")


def test_no_rows_stand_side_by_side_as_nothing():
    assert side_by_side([]).empty
