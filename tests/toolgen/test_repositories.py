"""Tests the repositories of CodeSearchNet with a file in its format and local repositories."""

import json
from subprocess import check_output

import pandas as pd
from click.testing import CliRunner

from lookuplab.paths import make_folder
from lookuplab.run.cli import cli
from lookuplab.toolgen.marking import Marks
from lookuplab_notebooks.toolgen.repositories import COLUMNS, main

COMMIT = "git init -q; git add .; git -c user.name=n -c user.email=e commit -q --allow-empty -m m"
HEAD = "git rev-parse HEAD"
CODE = "def add(a, b):\n    'Add two numbers {}.'\n    total = a + b\n    return total\n"


def run(command, *words):
    done = CliRunner().invoke(command, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.output


def test_each_repository_of_a_corpus_has_a_licence_and_its_marks_are_kept(tmp_path, monkeypatch):
    clones = tmp_path / "clones"
    marked = tmp_path / "m.jsonl"
    rows = []
    for name, file in {"a": "COPYING", "b": "LICENSE.md", "c": "NOTICE"}.items():
        origin = make_folder(tmp_path / "host" / "o" / name)
        (origin / "f.py").write_text(CODE.format(name))
        (origin / file).write_text("")
        commit = check_output(f"{COMMIT}; {HEAD}; {COMMIT}", shell=True, cwd=origin, text=True)
        rows.append((f"o/{name}", f"/blob/{commit.strip()}/f.py", "test"))
    rows.append(("o/gone", rows[0][1], "test"))
    pd.DataFrame(rows, columns=COLUMNS).to_parquet(file := tmp_path / "data.parquet")
    for _ in range(2):
        said = run(main, "test", file, "-o", clones, "--host", (tmp_path / "host").as_uri())
        assert "1  no licence file" in said
    head = check_output(HEAD, shell=True, cwd=clones / "o--b", text=True)
    assert head.strip() in rows[1][1]

    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "completions.sqlite"))
    words = "data", "mark", f"{clones}/*", "-j1", "-o", str(marked)
    run(cli, *words)
    records = [json.loads(line) for line in marked.read_text().splitlines()]
    assert [one["repository"] for one in records] == ["o--a", "o--b"]
    with Marks() as kept:  # a repeated run finds the marks in this store
        assert len(kept.present()) == 2
