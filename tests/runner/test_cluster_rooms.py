"""Marking, linting and grading on the workers of a real cluster write the same files as without one."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lookuplab import paths
from lookuplab.cli import cli

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "stackoverflow")]
pytest.importorskip("distributed")
import written_problems as written  # noqa: E402  beside the tests of that room
from running_cluster import RunningCluster  # noqa: E402  beside this file

SOURCE = '''def helper(x):
    return x


def use(y):
    """Use it on what is given."""
    z = helper(y)
    return z
'''


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with RunningCluster(tmp_path_factory.mktemp("cluster"), paths.ROOT) as found:
        yield found


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Runs a command with a store of its own, and returns what it wrote."""
    for number in range(2):
        (tmp_path / "repo").mkdir(exist_ok=True)
        source = SOURCE.replace("use", f"use{number}").replace("given", f"given {number}")  # equal ones are left out
        (tmp_path / "repo" / f"m{number}.py").write_text(source)
    monkeypatch.chdir(tmp_path)

    def run(name: str, *arguments: str) -> bytes:
        monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / name / "completions.sqlite"))
        result = CliRunner().invoke(cli, [*arguments, "-o", f"{name}.jsonl"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return (tmp_path / f"{name}.jsonl").read_bytes()

    return run


def written_lines(records: list[dict], file: Path) -> str:
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(file)


def test_marking(call, running):
    mark = "data", "mark", "repo"
    here = call("here", *mark, "--jobs", "1")
    assert len(here.splitlines()) == 2
    assert call("there", *mark, "--scheduler", running.address) == here


def test_linting(call, running, tmp_path):
    predictions = ["    return helper(y)", "    return nothere(y)"]
    score = "score", "toolgen", written_lines(
        [{"id": at, "repository": "repo", "file": "m0.py", "line": 5, "prediction": text}
         for at, text in enumerate(predictions)], tmp_path / "functions.jsonl")
    here = call("here", *score)
    assert [json.loads(line)["passed"] for line in here.splitlines()] == [True, False]
    assert call("there", *score, "--scheduler", running.address) == here


def test_grading(call, running, tmp_path):
    problems = written_lines([written.record(), written.record(2)], tmp_path / "problems.jsonl")
    answers = written_lines([{"problem_id": number, "solution": text} for number in (1, 2)
                             for text in (written.REFERENCE, "result = 0")], tmp_path / "answers.jsonl")
    score = "score", "ds1000", "--problems", problems, "--environment", sys.executable, "--sandbox", "none", answers
    here = call("here", *score)
    assert [json.loads(line)["passed"] for line in here.splitlines()] == [True, False, True, False]
    assert call("there", *score, "--scheduler", running.address) == here
