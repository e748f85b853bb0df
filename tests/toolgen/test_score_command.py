"""`lookuplab score toolgen`: lines in, judgements and a table out, clear words for bad input, no file changed."""

import json

import pytest
from click.testing import CliRunner

from lookuplab.cli import cli

SOURCE = '''def helper(x):
    return x


def use(y):
    """Use it."""
    return helper(y)
'''
GOOD = {
    "id": "a",
    "repository": "repo",
    "file": "m.py",
    "line": 5,
    "prediction": "    return helper(y)",
}


@pytest.fixture
def score(tmp_path, monkeypatch):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "m.py").write_text(SOURCE)
    (tmp_path / "repo" / "broken.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "completions.sqlite"))

    def run(lines, *options):
        (tmp_path / "in.jsonl").write_text(
            "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        )
        return CliRunner().invoke(cli, ["score", "toolgen", "in.jsonl", *options])

    return run


def test_each_line_is_judged_and_the_table_goes_to_stdout(score, tmp_path):
    wrong = GOOD | {"id": 2, "prediction": "def use(y):\n    return nothere(y)"}
    result = score([GOOD, "", wrong], "-o", "out.jsonl")
    assert result.exit_code == 0, result.output
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert set(first) == {"id", "messages", "lost", "passed", "covered", "dependencies"} | {
        "exact_match", "edit_similarity", "next_identifier", "identifier_sequence", "prefix"
    }  # fmt: skip
    assert (first["id"], first["dependencies"], first["covered"], first["passed"]) == (
        "a",
        1,
        1,
        True,
    )
    assert (second["id"], second["covered"], second["passed"]) == (2, 0, False)
    assert second["messages"][0][0] == "E0602"
    assert "succrate_percent 50.000" in " ".join(result.stdout.split())
    assert (tmp_path / "repo" / "m.py").read_text() == SOURCE


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": 1,', "line 2: not a JSON object"),
        ({"id": 1}, "line 2: KeyError: 'repository'"),
        (GOOD | {"line": "5"}, "line 2: UserError: no function starts on line 5"),
        (GOOD | {"repository": "nowhere"}, "line 2: FileNotFoundError"),
        (GOOD | {"file": "../in.jsonl"}, "line 2: "),
        (GOOD | {"file": "broken.py"}, "line 2: UserError: the file does not parse"),
        (GOOD | {"prediction": 3}, "line 2: "),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(score, tmp_path, line, words):
    result = score([GOOD, line], "-o", "out.jsonl")
    assert result.exit_code == 2
    assert words in result.stderr and result.stderr.count("\n") == 1, result.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_no_lines_are_an_error(score):
    assert "in.jsonl holds no line" in score([], "-o", "out.jsonl").stderr
