"""Tests `lookuplab score ds1000`. It gives each answer a verdict and prints a table. Its messages
say what is wrong with bad input.
"""

import json
import sys

import pytest
import written_problems as written

CONTEXT_OF_A_FUNCTION = written.CONTEXT.replace("int(result == ans)", "int(result() == 1)")
GOOD = {"problem_id": 1, "solution": written.REFERENCE}


@pytest.fixture
def graded(score, written_file):
    """Return a function that runs `lookuplab score ds1000`."""
    given = "--problems", written_file(), "--environment", sys.executable, "--workers", 1
    return lambda lines, *options: score("ds1000", lines, *given, *options)


def test_verdicts_go_to_the_output_file_and_the_table_to_stdout(graded, tmp_path):
    output = tmp_path / "out.jsonl"
    lines = [
        {"problem_id": 2, "solution": "result = 0"},
        GOOD,
        "",
        GOOD | {"solution": "```python\nresult = 1\n```"},
        {"problem_id": "2", "solution": "for n in [1]: pass\n" + written.REFERENCE},
        GOOD,
    ]
    result = graded(lines, "-o", output)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    found = [[*row.values()][:3] for row in rows]
    right = [1, 0, True], [1, 2, True]
    assert found == [[2, 0, False], right[0], [1, 1, False], ["2", 1, False], right[1]]
    assert list(rows[0]) == ["problem_id", "sample", "passed", "error", "cluster"]
    assert rows[1]["error"] == "" and rows[0]["error"].startswith("AssertionError")
    said = " ".join(result.stdout.split())
    assert "problems/all pass_at_1_percent 33.3 [" in said  # the mean of 2/3 and 0
    assert "all passed_percent 40.0 [" in said  # 2 of 5
    assert "samples of a task: 2 to 3" in result.stderr
    assert "sandbox: " in result.stdout


def test_the_authors_files_are_read_as_they_are(graded):
    about = written.record(1)["metadata"]
    lines = [
        {"id": 7, "code": written.REFERENCE, "metadata": about, "code_context": ""},
        {"id": 1, "code": ["```python\n" + written.REFERENCE + "```", "result = 0"]},
    ]
    result = graded(lines)
    judged = [(row["problem_id"], row["passed"]) for row in result.rows]
    assert judged == [(1, True)] * 2, result.output
    assert "further texts of lists, left out: 1" in result.stderr
    for line, missing in (({"code": "x"}, "problem_id"), ({"id": 1}, "solution")):
        result = graded([GOOD, line])
        assert f"line 2: the field '{missing}' is missing" in result.stderr, result.output


def test_answers_that_are_not_judged_are_counted_with_the_reason_and_in_no_rate(
    graded, written_file
):
    broken = written.record(2, reference="result = 0")
    one = CONTEXT_OF_A_FUNCTION, "result = lambda: 1"
    written_file(written.record(), broken, written.record(3, *one, origin=3))
    result = graded([GOOD, GOOD | {"problem_id": 2}, {"problem_id": 3, "solution": one[1]}])
    assert [row["passed"] for row in result.rows] == [True, None, None], result.output
    assert "not judged: 2 of 3 answers; problems and reasons (" in result.stderr
    assert "2: not judged: the reference fails here, too: AssertionError:" in result.stderr
    assert "3: not judged: the reference fails here, too: not judged: passes only" in result.stderr


def test_if_nothing_can_be_judged_a_line_says_so(graded, written_file):
    written_file(written.record(2, reference="result = 0"))
    said = graded([GOOD | {"problem_id": 2}]).stderr
    assert "nothing could be judged, so there is no rate" in said and "Empty" not in said


def test_the_repaired_variant_indents_and_unfences_and_stdout_gets_verdicts(graded):
    loose = {"problem_id": 3, "solution": "```\nreturn max(numbers) - min(numbers)\n```"}
    for variant, passed in (("official", False), ("repaired", True)):
        result = graded([loose], "--variant", variant)
        assert [row["passed"] for row in result.rows] == [passed], result.output
        assert "pass_at_1" in result.stderr


def test_no_input_is_replaced_by_the_output(graded, written_file, tmp_path):
    problems = written_file()
    before = problems.read_bytes()
    link = tmp_path / "link.jsonl"
    link.symlink_to(problems)
    for output in (problems, link, tmp_path / "with space.jsonl"):
        result = graded([GOOD], "-o", output)
        assert result.exit_code == 2 and "name another output" in result.stderr, result.output
    assert problems.read_bytes() == before
    assert json.loads((tmp_path / "with space.jsonl").read_text()) == GOOD
