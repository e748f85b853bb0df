"""Tests the rows of Tables II and III against values computed by hand. Differences are paired by
function, and intervals are over repositories.
"""

from io import StringIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lookuplab.toolgen.evaluation import corpus_rows
from lookuplab_notebooks.toolgen.section_v import alarm_rows, ending_rows, gain_rows
from lookuplab_notebooks.toolgen.table_rows import repository_rows, similarity_rows
from lookuplab_notebooks.toolgen.tool_calls import equal_calls_rows

WANTED = [
    "    x = a.b\n    return x",
    "    return foo(c)",
    "    self.d = 1",
    "    return foo(c) + 1",
]


# Two functions of the repository r and two of s. They have 4, 1, 0 and 3 dependencies.
FUNCTIONS = pd.read_csv(
    StringIO("""id,cluster,edit_similarity,dependencies,next_identifier,identifier_sequence,prefix
a,r,0.5,4,1,1,1
b,r,1.0,1,0,0,0
c,s,0.0,0,1,0.5,0.5
d,s,0.5,3,,,0
""")
).assign(wanted=WANTED)


def frame(predicted, covered, passed, identifiers):
    return FUNCTIONS.assign(
        identifiers=identifiers,
        errors=[1, 0, None, 2],  # None: a syntax error
        empty=[text == "    pass" for text in predicted],
        predicted=predicted,
        exact_match=False,
        covered=covered,
        passed=pd.Series(passed, dtype=object),
        failures=["" if one else "E0602" for one in passed],
        lost=["crash" if one is None else "" for one in passed],
        reference_passed=None,
    )


@pytest.fixture(scope="module")
def frames():
    predicted = ["    return x", WANTED[1], "    pass", "    return foo(c)"]
    base = frame(predicted, [1, 0, 0, 1], [True, False, False, None], [4, 5, 1, 2])
    tool = frame(WANTED, [3, 1, 0, 2], [True, True, True, False], [4, 6, 3, 2])
    return {("m", "base"): base, ("m", "toolgen"): tool}


def numbers(rows, condition="base", fields=("value", "n")):
    """Return {metric: tuple of the row's ``fields``} of one condition."""
    found = [row for row in rows if row["condition"] == condition]
    return {row["metric"]: tuple(map(row.get, fields)) for row in found}


def test_repository_metrics_are_pooled_and_per_function_and_leave_out_what_has_no_value(frames):
    found = numbers(repository_rows(frames))
    assert found["depcov_percent"] == (25, 8)  # 2 of 8 dependencies are covered
    each = 100 * (1 / 4 + 0 + 1 / 3) / 3
    assert found["depcov_per_function_percent"] == (pytest.approx(each), 3)
    assert found["succrate_percent"] == (pytest.approx(100 / 3), 3)
    assert found["next_identifier_percent"][1] == 3
    names = "failed_E0602", "crashed", "pylint_lost", "jedi_lost", "without_dependency"
    assert [found[f"{name}_functions"][0] for name in names] == [3, 0, 1, 0, 1]
    # now no analyser has answered any question
    lost = frames["m", "base"].assign(passed=None, dependencies=None, covered=None)
    found = numbers(repository_rows({("m", "base"): lost}))
    assert found["prefix_percent"][0] == 37.5
    assert not {"succrate_percent", "depcov_percent", "reference_failed_functions"} & found.keys()


def test_a_body_that_fails_only_as_its_original_does_or_by_a_member_that_exists_is_a_false_alarm(
    frames, tmp_path
):
    (members := tmp_path / "members.json").write_text('{"exist": [["r/a.py", "no shape"]]}')
    shape, late, wrong = (["E1101", 7, words] for words in ("no shape", "no late", "no wrong"))
    judged = frames["m", "base"].assign(
        id=["r/a.py:f#1", "r/b.py:f#1", "r/a.py:g#9", "r/a.py:h#20"],
        passed=[False, False, False, True],
        messages=[[shape], [shape], [late, wrong], []],
        reference_messages=[[], [], [["E1101", 3, "no late"]], []],
    )
    (one,) = alarm_rows({"m": judged}, members)
    # three functions failed, and all errors of the first are false alarms
    assert (one["value"], one["n"]) == (pytest.approx(100 / 3), 3)
    judged["messages"] = [[shape], [shape], [late], []]
    assert alarm_rows({"m": judged}, members)[0]["value"] == pytest.approx(200 / 3)
    assert alarm_rows({"m": judged})[0]["value"] == pytest.approx(100 / 3)
    assert alarm_rows({"m": judged[3:]}) == []


def test_success_at_equal_length_leaves_out_pairs_that_differ_by_more_than_a_fifth(frames):
    """Only a and b are similar in length: 1 of 2 passes in the base, and 2 of 2 with the tool. Of
    the functions of any length, 1 of 3 passes in the base (d has no verdict), and 3 of 4 with the
    tool.
    """
    found = numbers(repository_rows(frames), "toolgen - base")
    assert found["succrate_matched_change_points"] == (50, 2)
    assert found["succrate_length_points"] == (pytest.approx(100 * (3 / 4 - 1 / 3) - 50), 2)
    frames = {key: frame.assign(identifiers=0) for key, frame in frames.items()}
    assert "succrate_length_points" not in numbers(repository_rows(frames), "toolgen - base")


def test_errors_are_counted_by_identifiers_where_no_syntax_error_hides_them(frames):
    found = numbers(repository_rows(frames))
    assert found["errors_per_100_identifiers"] == (pytest.approx(100 * 3 / 11), 11)
    # a and d use a dependency, but d has no verdict, so only a counts
    assert found["succrate_using_percent"] == (100, 1)
    assert found["degenerate_percent"] == (25, 4)


def test_changes_are_paired_relative_to_the_base_in_points_and_by_mcnemar(frames):
    rows = repository_rows(frames)
    relative = numbers(rows, "toolgen")["depcov_relative_change_percent"]
    assert relative[0] == pytest.approx(200)  # from 2 of 8 to 6 of 8
    changes = numbers(rows, "toolgen - base", ("value", "n", "ci_low", "ci_high"))
    # an interval over only two repositories is the widest possible one
    assert changes["depcov_change_points"] == (50, 8, -100, 100)
    assert changes["succrate_change_points"][1] == 3
    # only three functions have both verdicts
    expected = {"gained_functions": (2, 3), "lost_functions": (0, 3), "p": (0.5, 3)}
    assert {name: changes[f"succrate_{name}"][:2] for name in expected} == expected


def test_similarity_is_of_the_corpus_and_counts_the_tokens_of_each_model(frames):
    fields = "value", "ci_low", "ci_high", "n"
    rows = similarity_rows(frames)
    found, tool = (numbers(rows, condition, fields) for condition in ("base", "toolgen"))
    names = [f"bleu4{part}" for part in ("_precision", "_brevity_penalty", "_length_ratio", "")]
    # Of the predicted words, 6 of 7 are right; of the predicted pairs of words, 3 of 3. BLEU adds 1
    # to each of these counts. The predictions have 7 words, the references 14.
    precise = (7 / 8) ** 0.25
    brief = np.exp(1 - 14 / 7)
    expected = [precise, brief, 0.5, precise * brief]
    assert [found[name][0] for name in names] == pytest.approx(expected)
    assert tool["bleu4"][0] == tool["codebleu_syntax"][0] == 1
    assert found["editsim_percent"][0] == 50
    assert numbers(similarity_rows(frames, {"m": list}))["bleu4"][0] != found["bleu4"][0]
    scored = numbers(corpus_rows(frames["m", "base"]), "all", fields)
    # `lookuplab score` shows the same values of these metrics
    assert all(scored[name] == found[name] for name in ("bleu4", "codebleu"))


def triples(rows):
    return [(row["condition"], row["value"], row["n"]) for row in rows]


def test_doubt_is_compared_at_the_mark_s_number_of_calls_between_two_thresholds():
    columns = ["calls", "passed", "covered", "dependencies", "cluster"]
    mark = pd.DataFrame([(0, 1, 1, 2, "a"), (1, 1, 0, 0, "b")], columns=columns)
    never = mark.assign(calls=0, passed=[0, 1], covered=0)
    often = mark.assign(calls=1)
    rows = equal_calls_rows("m", {"gate_0": mark, "gate_1": never}, [often, never])
    # The mark makes half as many calls as ``often``, so doubt's values are the mean of ``often``
    # and ``never``. Success is 1 with the mark and 3/4 with doubt; coverage is 1/2 and 1/4.
    assert triples(rows) == [("gate_0 - doubt", 25, 2)] * 2


def test_answers_without_an_end_break_and_coverage_gains_more_than_success(frames):
    ends = {id: SimpleNamespace(finish_reason="length" if id == "a" else "eos") for id in "abcd"}
    broken = frames["m", "toolgen"].assign(failures=["E0001", "", "E0001 E0602", "E1101"])
    made = {("m", "toolgen"): SimpleNamespace(completions=ends)}
    rows = ending_rows(frames | {("m", "toolgen"): broken}, made, {"m": "T5", "other": "GPT"})
    # coverage rises from 2 of 8 to 6 of 8 dependencies, success from 1 of 3 to 3 of 4 functions
    rows += gain_rows(frames, {"m": "T5", "other": "GPT"})
    assert triples(rows) == [
        ("T5", 25, 4),
        ("T5/unfinished", 100, 1),
        ("T5/finished", pytest.approx(100 / 3), 3),
        ("T5", pytest.approx(200 - 125), 4),
    ]
