"""``lookuplab claims`` as a user calls it."""

import csv
import io
import json

import pytest
from click.testing import CliRunner

from lookuplab.claims import load
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
    assert "HOLDS        capi-622-tasks (Section 2.2)" in result.output
    assert "FAILS        capi-class-sizes" in result.output
    assert "NOT DECIDED  capi-two-providers" in result.output and "NOT DECIDED  capi-size-helps" in result.output
    number = sum(claim.paper == "cloudapibench" for claim in load())
    assert result.output.endswith(f"{number} claims: 1 hold, 1 fail, {number - 2} not decided\n")


def test_only_the_verdict_and_artifact_asked_for_are_shown(figures):
    def shown(*arguments):
        return [one["id"] for one in json.loads(run("--json", "--figures", figures, *arguments).output)]

    assert shown("--verdict", "holds") == ["capi-622-tasks"]
    assert shown("--verdict", "holds", "--verdict", "fails") == ["capi-622-tasks", "capi-class-sizes"]
    assert shown("--artifact", "fig2_fig10_composition", "--verdict", "undecided") == ["capi-two-providers"]


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
    assert "0 claims" in run("stackoverflow", "--figures", figures).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nopaper"], "error: no paper 'nopaper'; known: cloudapibench"),
        (["--profile", "nope"], "error: no profile 'nope'"),
        (["--figures", "nowhere"], "error: no folder nowhere/mini"),
        (["--artifact", "table9"], "error: no claim about table9; known: fig1_perplexity"),
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
