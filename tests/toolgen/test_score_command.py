"""Tests `lookuplab score toolgen`. It judges each line of a file and prints a table. Its messages
say what is wrong with bad input, and it changes no file of the user.
"""

import json
from unittest.mock import Mock

import pytest

from lookuplab import paths
from lookuplab.toolgen import evaluation
from lookuplab.toolgen.analysers import WorkerLost

SOURCE = '''def helper(x):
    return x


def use(y):
    """Use it."""
    return helper(y)
'''
GOOD = {"id": "a", "repository": "repo", "file": "m.py", "line": 5, "prediction": "    return y"}


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    paths.write_lines(tmp_path / "repo" / "broken.py", ["def f(:"])
    (tmp_path / "repo" / "m.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "repo" / "m.py"


def test_an_answer_silences_no_judge_and_empty_ones_are_counted(score, repository):
    bodies = "    # pylint: skip-file\n    return nothere", "x = y\n    return x", "    pass"
    answers = [GOOD | {"id": n, "prediction": body} for n, body in enumerate(bodies)]
    for variant, passed in ("paper", [False, True, True]), ("package-2024", [False, False, True]):
        result = score("toolgen", answers, "--variant", variant)
        assert [row["passed"] for row in result.rows] == passed
        assert "all empty_percent 33.3 [" in " ".join(result.output.split())
    assert repository.read_text() == SOURCE


BAD = """\
{"id": 1, | line 2: Expecting property name
{"id": 1} | line 2: the field 'line' is missing
+{"id": [1]} | line 2: the field 'id' must be of type int | str
+{"line": "5"} | line 2: the field 'line' must be of type int
+{"line": 0} | line 2: no function starts on line 0
+{"repository": "nowhere"} | line 2: [Errno 2] No such file
+{"file": "../with space.jsonl"} | line 2:
+{"file": "a\\u0000b"} | line 2:
+{"file": "broken.py"} | line 2: the file does not parse
+{"marked_body": 3} | line 2: the field 'marked_body'
+{"prediction": 3} | line 2: the field 'prediction'"""


@pytest.mark.parametrize("bad", BAD.splitlines())
def test_a_bad_line_is_named_and_nothing_is_written(score, tmp_path, bad):
    """Before the bar stands the bad line or, after a "+", the field that makes a good line bad."""
    line, words = bad.split(" | ", 1)
    line = GOOD | json.loads(line[1:]) if line[0] == "+" else line
    result = score("toolgen", [GOOD, line], "-o", "out.jsonl")
    assert result.exit_code == 2
    assert words in result.stderr and result.stderr.count("\n") == 1, result.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_what_the_machine_has_lost_is_said_and_no_success(score, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "messages_of", Mock(side_effect=WorkerLost("crashed")))
    result = score("toolgen", [GOOD], "-o", "out.jsonl")
    assert result.exit_code == 2 and "1 of 1 judgements were lost: run it again" in result.stderr
    assert json.loads((tmp_path / "out.jsonl").read_text())["passed"] is None
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert score("toolgen", [GOOD], "-o", "out.jsonl").exit_code == 0
    assert json.loads((tmp_path / "out.jsonl").read_text())["passed"] is True


@pytest.mark.parametrize(
    ("module", "function", "analyser", "column"),
    [
        ("success", "findings", "pylint", "passed"),
        ("jedi_tool", "own_keys", "Jedi", "dependencies"),
    ],
)
def test_code_that_ends_an_analyser_is_named_and_counted_and_no_verdict(
    score, repository, end_analyser, module, function, analyser, column
):
    end_analyser(evaluation, module, function)
    (repository.parent / "ends.py").write_text(f"ended = 0\n{SOURCE}")
    other = GOOD | {"id": "b", "file": "ends.py", "line": 6}
    for _ in range(2):
        done = score("toolgen", [GOOD, other], "-o", "out.jsonl")
        reason = f"error in {analyser}: crashed 3 times"
        assert done.exit_code == 0 and f"{reason} (ends.py:6" in done.stderr, done.output
        assert f"{analyser.lower()}_lost_functions 1" in " ".join(done.stdout.split())
        rows = map(json.loads, repository.parents[1].joinpath("out.jsonl").open())
        first, last = ((row[column], row["lost"]) for row in rows)
        assert first[0] is not None and not first[1] and last == (None, reason)


def test_originals_that_the_judge_fails_are_counted(score, repository):
    repository.write_text(SOURCE.replace("helper(y)", "nowhere(y)"))
    result = score("toolgen", [GOOD])
    [row] = result.rows
    assert row["passed"] and not row["reference_passed"]
    assert "all reference_failed_functions 1" in " ".join(result.output.split())
