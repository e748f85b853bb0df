"""``lookuplab claims`` as a user calls it."""

import csv
import io
import json

import pytest
from click.testing import CliRunner

from lookuplab.cli import cli

TASKS = {"all": 622, "high": 205, "medium": 150, "low": 200, "aws/high": 1}


@pytest.fixture
def figures(tmp_path):
    """A run with one artifact: the right number of tasks, a wrong number of low ones, most providers missing."""
    folder = tmp_path / "mini" / "cloudapibench"
    folder.mkdir(parents=True)
    lines = ["paper,artifact,model,condition,metric,value,ci_low,ci_high,n,paper_value"]
    lines += [f"cloudapibench,fig2_fig10_composition,,{name},tasks,{count},,,{count}," for name, count in TASKS.items()]
    (folder / "fig2_fig10_composition.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["claims", *map(str, arguments)])


def test_verdicts_are_printed_and_a_failing_claim_is_no_error(figures):
    result = run("cloudapibench", "--figures", figures)
    assert result.exit_code == 0
    verdicts = {
        line.split()[0]: line.split("  ")[-1].strip() for line in result.output.splitlines() if line.startswith("capi-")
    }
    assert verdicts["capi-622-tasks"] == "HOLDS"
    assert verdicts["capi-class-sizes"] == "FAILS"
    assert verdicts["capi-two-providers"] == verdicts["capi-size-helps"] == "NOT DECIDED"
    assert "12 claims: 1 hold, 1 fail, 10 not decided" in result.output


def test_json_has_an_object_per_claim(figures):
    objects = {one["id"]: one for one in json.loads(run("--json", "--figures", figures).output)}
    assert objects["capi-class-sizes"]["verdict"] == "fails"
    assert [c["verdict"] for c in objects["capi-class-sizes"]["comparisons"]] == ["holds", "holds", "fails"]
    assert (
        objects["capi-frequency-trend"]["comparisons"] == [] and len(objects["capi-frequency-trend"]["reported"]) == 24
    )


def test_csv_has_a_row_per_comparison(figures):
    rows = list(csv.DictReader(io.StringIO(run("--csv", "--figures", figures).output)))
    assert [row["value"] for row in rows if row["id"] == "capi-class-sizes"] == ["205.0", "150.0", "200.0"]


def test_a_paper_without_claims_yet_prints_none(figures):
    assert "0 claims" in run("toolgen", "--figures", figures).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nopaper"], "error: no paper 'nopaper'; known: cloudapibench"),
        (["--profile", "nope"], "error: no profile 'nope'"),
        (["--figures", "nowhere"], "error: no folder nowhere/mini"),
        (["--claims", "nothing.yaml"], "error: cannot read nothing.yaml"),
    ],
)
def test_bad_input_exits_with_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2 and message in result.output


def test_an_artifact_that_is_no_table_exits_with_2(figures):
    (figures / "mini" / "cloudapibench" / "table1_base_models.csv").write_text("model,value\nm,1\n")
    result = run("--figures", figures)
    assert result.exit_code == 2 and "table1_base_models.csv" in result.output
