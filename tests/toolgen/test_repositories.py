"""Tests the cloning of CodeSearchNet's repositories. A small file in CodeSearchNet's format lists
local repositories, which stand in for GitHub's.
"""

from subprocess import check_output

import pandas as pd
from doors import call

from lookuplab.paths import make_folder
from lookuplab.toolgen.functions import locate_all
from lookuplab_notebooks.toolgen.repositories import COLUMNS, main

COMMIT = "git init -q; git add .; git -c user.name=n -c user.email=e commit -q --allow-empty -m m"
HEAD = "git rev-parse HEAD"
CODE = "def add(a, b):\n    'Add two numbers {}.'\n    total = a + b\n    return total\n"


def test_each_repository_of_a_corpus_has_a_licence(tmp_path):
    clones = tmp_path / "clones"
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
        host = (tmp_path / "host").as_uri()
        done = call("test", file, "-o", clones, "--host", host, main=main)
        assert done.exit_code == 0 and "1  no licence file" in done.output, done.output
    head = check_output(HEAD, shell=True, cwd=clones / "o--b", text=True)
    assert head.strip() in rows[1][1]

    # o/c has no licence file, so its folder is hidden
    assert [one.name for one in locate_all([f"{clones}/*"])] == ["o--a", "o--b"]
