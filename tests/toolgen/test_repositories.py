"""The repositories of CodeSearchNet, on a file of its form and local repositories."""

import sys
import time
from subprocess import Popen, check_output

import pandas as pd
from click.testing import CliRunner

from lookuplab.paths import made
from lookuplab.run.cli import cli
from lookuplab_notebooks.toolgen.repositories import COLUMNS, main

COMMIT = "git init -q; git add .; git -c user.name=n -c user.email=e commit -q --allow-empty -m m"
HEAD = "git rev-parse HEAD"
CODE = "def add(a, b):\n    'Add two numbers {}.'\n    total = a + b\n    return total\n"


def run(command, *words):
    done = CliRunner().invoke(command, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_killed_corpus_goes_on_and_each_of_its_repositories_has_a_licence(tmp_path, monkeypatch):
    clones = tmp_path / "clones"
    marked = tmp_path / "m.jsonl"
    rows = []
    for name, file in {"a": "COPYING", "b": "LICENSE.md", "c": "NOTICE"}.items():
        origin = made(tmp_path / "host" / "o" / name)
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
    folder = tmp_path / "m.jsonl.shards"
    first = folder / "o--a.jsonl"
    with Popen([sys.executable, "-m", "lookuplab", *words]) as process:
        while not first.exists():
            time.sleep(0.01)
        process.kill()
    assert not (folder / "o--b.jsonl").exists()
    finished = first.stat().st_mtime_ns
    run(cli, *words)
    assert finished == first.stat().st_mtime_ns and len(marked.read_text().splitlines()) == 2
