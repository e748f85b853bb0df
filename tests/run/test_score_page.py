"""Tests that the examples on the page about scoring answers print what the page shows."""

import re
import shlex
import sys

import pytest

from lookuplab import paths

PAGE = (paths.ROOT / "docs" / "score.md").read_text(encoding="utf-8")
# the fixture ``score`` writes such a file
GIVEN = "calls.jsonl", "answers.jsonl", "functions.jsonl"
PARTS = re.split(r"^## .*$", PAGE, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("part", PARTS, ids=["cloudapi", "ds1000", "toolgen"])
def test_the_examples_print_what_the_page_shows(part, score, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    for file in (text for kind, text in blocks if kind == "python"):
        paths.write_text(tmp_path / "shop" / "prices.py", file)
    lines, command, shown = (
        next(text for kind, text in blocks if kind == wanted) for wanted in ("json", "sh", "text")
    )
    assert lines.count("\n") == 3
    _, _, what, *words = shlex.split(command)
    own = {".venv/bin/python": sys.executable}
    options = [own.get(word, word) for word in words if word not in GIVEN]
    result = score(what, lines.splitlines(), *options)
    printed = [*map(str.split, result.output.splitlines())]
    assert all(line.split() in printed for line in shown.splitlines()), result.output
