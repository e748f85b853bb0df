"""The repositories of CodeSearchNet, on a file of its form and local repositories."""

from subprocess import check_output

import pandas as pd
from click.testing import CliRunner
from repositories import COLUMNS, main

COMMIT = "git init -q; git -c user.name=n -c user.email=e commit -q --allow-empty -m m"
HEAD = "git rev-parse HEAD"


def test_a_split_s_repositories_are_cloned_once_at_the_commits_of_the_data_set(tmp_path):
    origin, clones, file = (tmp_path / name for name in ("host/o/a", "clones", "data.parquet"))
    origin.mkdir(parents=True)
    commit = check_output(f"{COMMIT}; {HEAD}", shell=True, cwd=origin)
    check_output(COMMIT, shell=True, cwd=origin)
    url = f"/blob/{commit.decode().strip()}/f.py"
    rows = [("o/a", url, "test"), ("o/gone", url, "test"), ("o/b", url, "train")]
    pd.DataFrame(rows, columns=COLUMNS).to_parquet(file)
    words = "test", file, "-o", clones, "--host", origin.parents[1].as_uri()
    for _ in range(2):
        done = CliRunner().invoke(main, [*map(str, words)])
        assert done.exit_code == 0 and "not cloned:" in done.output, done.output
    assert not (clones / "o--b").exists()
    assert check_output(HEAD, shell=True, cwd=clones / "o--a") == commit
