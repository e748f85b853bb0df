"""`lookuplab score ds1000`: answers in, verdicts and a table out, one clear line for bad input."""

import json
import sys

import pytest
import written_problems as written
from click.testing import CliRunner

from lookuplab import paths
from lookuplab.cli import cli

GOOD = {"problem_id": 1, "solution": written.REFERENCE}


@pytest.fixture
def score(problems_file, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "store" / "completions.sqlite"))
    problems = problems_file()

    def run(lines, *options, environment=sys.executable):
        answers = tmp_path / "with space.jsonl"
        answers.write_text(
            "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        )
        given = ["--environment", str(environment), "--workers", "1"]
        command = ["score", "ds1000", "--problems", str(problems), str(answers), *given, *options]
        return CliRunner().invoke(cli, command)

    return run


def test_verdicts_go_to_the_output_file_and_the_table_to_stdout(score, tmp_path):
    output = tmp_path / "out.jsonl"
    lines = [
        {"problem_id": 2, "solution": "result = 0"},
        GOOD,
        "",
        GOOD | {"solution": "```python\nresult = 1\n```"},
        {"problem_id": "2", "solution": "for n in [1]: pass\n" + written.REFERENCE},
        GOOD,
    ]
    result = score([*lines, GOOD | {"problem_id": 3}], "-o", str(output), "--leave-out", "3")
    assert result.exit_code == 0 and "left out by name: 3" in result.stdout, result.output
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [tuple(row.values())[:3] for row in rows] == [
        ("2", 0, False),
        (1, 0, True),
        (1, 1, False),
        ("2", 1, False),
        (1, 2, True),
    ]
    assert list(rows[0]) == ["problem_id", "sample", "passed", "error"]
    assert rows[1]["error"] == "" and rows[0]["error"].startswith("AssertionError")
    total = result.stdout.splitlines()[2].split()  # mean of 2/3 and 0; 2 of 5
    assert total[:3] == ["total", "2", "33.3%"] and total[6:8] == ["5", "40.0%"]
    assert "sandbox: " in result.stdout and (tmp_path / "store" / "verdicts.sqlite").is_file()


def test_the_repaired_variant_indents_and_unfences_and_stdout_gets_verdicts(score):
    loose = {"problem_id": 3, "solution": "```\nreturn max(numbers) - min(numbers)\n```"}
    for variant, passed in (("official", False), ("repaired", True)):
        result = score([loose], "--variant", variant)
        assert json.loads(result.stdout)["passed"] is passed and "pass@1" in result.stderr, (
            result.output
        )


def test_a_bad_line_is_named_and_nothing_is_written(score, tmp_path):
    result = score([GOOD, GOOD | {"problem_id": 999}], "-o", str(tmp_path / "out.jsonl"))
    assert result.exit_code == 2 and "line 2: unknown problem '999'; " in result.stderr
    assert result.stderr.count("\n") == 1 and not (tmp_path / "out.jsonl").exists()


def test_no_answers_and_an_environment_that_is_not_there_are_user_errors(
    score, tmp_path, monkeypatch
):
    assert "holds no line" in score([]).stderr
    monkeypatch.setattr(paths, "DOWNLOADS", tmp_path)
    result = score([GOOD], environment="ds1000-grader")
    assert result.exit_code == 2 and "run `lookuplab data get ds1000-grader`" in result.stderr, (
        result.output
    )
    assert "no grader environment 'elsewhere'" in score([GOOD], environment="elsewhere").stderr
    assert "--leave-out 7: no problem of" in score([GOOD], "--leave-out", "7").stderr
