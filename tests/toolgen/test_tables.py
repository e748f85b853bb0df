"""Rows of Tables II and III: hand-computed values, paired differences, intervals over repositories."""

import numpy as np
import pandas as pd
import pytest

from lookuplab.errors import UserError
from lookuplab.scoring.rates import rate
from lookuplab.toolgen.dependencies import KINDS
from lookuplab.toolgen.tables import repository_rows, similarity_rows

WANTED = [
    "    x = a.b\n    return x",
    "    return foo(c)",
    "    self.d = 1",
    "    return foo(c) + 1",
]


def frame(predicted, covered, passed) -> pd.DataFrame:
    """Four functions of two repositories; they want 4, 1, 0 and 3 methods."""
    zeros = {f"{field}_{kind}": 0 for kind in KINDS for field in ("covered", "dependencies")}
    wanted = [4, 1, 0, 3]
    return pd.DataFrame(
        {
            "id": list("abcd"),
            "repository": ["r", "r", "s", "s"],
            "predicted": predicted,
            "wanted": WANTED,
            "exact_match": [
                found == wanted for found, wanted in zip(predicted, WANTED, strict=True)
            ],
            "edit_similarity": [0.5, 1.0, 0.0, 0.5],
            "dependencies": wanted,
            "covered": covered,
            "passed": passed,
            "failures": ["" if one else "E0602" for one in passed],
            "lost": ["crash" if one is None else "" for one in passed],
            "next_identifier": [1, 0, 1, np.nan],
            "identifier_sequence": [1, 0, 0.5, np.nan],
            "prefix": [1, 0, 0.5, 0],
            **zeros,
            "dependencies_method": wanted,
            "covered_method": covered,
        }
    )


@pytest.fixture(scope="module")
def frames():
    base = frame(
        ["    return x", WANTED[1], "    pass", "    return foo(c)"],
        [1, 0, 0, 1],
        [True, False, False, None],
    )
    tool = frame(WANTED, [3, 1, 0, 2], [True, True, True, False])
    return {("m", "base"): base, ("m", "toolgen"): tool}


def numbers(rows) -> dict:
    return {(row["condition"], row["metric"]): row for row in rows}


def test_repository_metrics_are_pooled_and_per_function_and_leave_out_what_has_no_value(frames):
    found = numbers(repository_rows(frames))
    pooled, each = found["base", "depcov_percent"], found["base", "depcov_per_function_percent"]
    assert (pooled["value"], pooled["n"]) == (25, 8)  # 2 of 8
    assert (each["value"], each["n"]) == (pytest.approx(100 * (1 / 4 + 0 + 1 / 3) / 3), 3)
    assert (found["base", "succrate_percent"]["value"], found["base", "succrate_percent"]["n"]) == (
        pytest.approx(100 / 3),
        3,
    )
    assert (
        found["base", "depcov_method_percent"]["value"] == 25
        and ("base", "depcov_class_percent") not in found
    )
    assert found["base", "next_identifier_percent"]["n"] == 3
    counts = [
        found["base", f"{name}_functions"]["value"]
        for name in ("failed_E0602", "lost", "without_dependency")
    ]
    assert counts == [3, 1, 1]


def test_intervals_are_those_of_rates_clustered_by_repository(frames):
    found, tool = numbers(repository_rows(frames)), frames["m", "toolgen"]
    expected = rate(tool.passed.astype(bool), tool.repository).percent()
    row = found["toolgen", "succrate_percent"]
    assert (row["value"], row["ci_low"], row["ci_high"]) == (
        expected.value,
        expected.low,
        expected.high,
    )
    agree = rate([True] * 4, tool.repository).percent()  # Wilson's for two trials
    row = numbers(similarity_rows(frames))["toolgen", "exact_match_percent"]
    assert (row["value"], row["ci_low"], row["ci_high"]) == (
        100,
        pytest.approx(agree.low),
        100,
    ) and agree.low < 35


def test_a_change_is_paired_relative_to_the_base_and_in_points(frames):
    found = numbers(repository_rows(frames))
    assert found["toolgen", "depcov_relative_change_percent"]["value"] == pytest.approx(
        200
    )  # from 2 of 8 to 6
    row = found["toolgen - base", "depcov_change_points"]
    assert (row["value"], row["n"]) == (50, 4)
    # repository r: from 1 to 4 of 5; s: from 1 to 2 of 3
    assert (row["ci_low"], row["ci_high"]) == (pytest.approx(100 / 3), pytest.approx(60))


def test_success_is_compared_by_mcnemar_on_the_functions_with_both_verdicts(frames):
    found = numbers(repository_rows(frames))
    counts = [
        found["toolgen - base", f"succrate_{name}"]
        for name in ("gained_functions", "lost_functions", "p")
    ]
    assert [row["value"] for row in counts] == [2, 0, 0.5] and {row["n"] for row in counts} == {3}


def test_similarity_is_of_the_corpus_and_counts_the_tokens_of_each_model(frames):
    found, letters = (numbers(similarity_rows(frames, tokens)) for tokens in (None, {"m": list}))
    # 6 of 7 words and 3 of 3 pairs agree, with one added to each; 7 words stand against 14
    assert found["base", "bleu4"]["value"] == pytest.approx((7 / 8) ** 0.25 * np.exp(1 - 14 / 7))
    assert found["toolgen", "bleu4"]["value"] == found["toolgen", "codebleu_syntax"]["value"] == 1
    assert found["base", "editsim_percent"]["value"] == 50
    assert found["base", "bleu4"]["value"] != letters["base", "bleu4"]["value"]


def test_two_conditions_over_different_functions_are_a_user_error(frames):
    with pytest.raises(UserError, match="not over the same functions"):
        repository_rows({**frames, ("m", "toolgen"): frames["m", "toolgen"].iloc[::-1]})
