"""Tests what a run's last lines show."""

import subprocess

import pandas as pd
import pytest

from lookuplab import paths
from lookuplab.results import artifact
from lookuplab.run.commands import run


@pytest.fixture
def place(tmp_path):
    rows = [
        ("p", "a", f"model{at}", "all", metric, 50, 40, 60, 10, 5, None)
        for at in range(14)
        for metric in ("valid_percent", *(f"other_{number}_percent" for number in range(9)))
        if at != 1 or metric == "other_0_percent"
    ]
    table = pd.DataFrame(rows, columns=[*artifact.ARTIFACT_COLUMNS])
    (file := tmp_path / "a.csv").write_text(artifact.to_csv(table))
    return file


def test_a_table_of_many_lines_and_metrics_fits_one_screen_and_says_what_is_left_out(place):
    table, rest = artifact.screen_lines(place)
    lines = table.split("\n")
    assert len(lines) == 1 + artifact.MOST_ROWS and len(lines[0]) <= artifact.WIDTH
    assert lines[0].split()[:4] == ["model", "condition", "valid_percent", "other_0_percent"]
    assert lines[1].split()[:2] == ["model0", "all"]
    assert rest.startswith("... 2 more lines and ") and rest.endswith(f"more metrics: {place}")


def test_a_run_that_replaced_committed_files_says_how_to_undo_that_from_any_folder(kit, commit):
    file = kit.root / "figures/mini/demo/all counts.json"
    paths.write_text(file, "1")
    commit(kit.root, "figures")
    assert run.undo_hint([file.with_suffix("")]) == ""
    file.write_text("2")
    said = run.undo_hint([file.with_suffix("")])
    assert said.count("\n") == 0
    subprocess.run(said.partition("to undo: ")[2], shell=True, check=True, cwd="/")
    assert file.read_text() == "1"
