"""The papers' numbers against themselves: every rate is a whole number of tasks, every table agrees
with the others.
"""

import pandas as pd
import pytest

from lookuplab import paths
from lookuplab.results import paper

SIZES = {"high": 205, "medium": 150, "low": 267, "all": 622}
FILES = sorted(file.relative_to(paths.PAPER) for file in paths.PAPER.glob("*/*.csv"))
CAPI, SMALL, VALID = "cloudapibench", "StarCoder2-3B", "valid_percent"
TABLES = {name: paper.values(*name.split("/")) for name in (str(file)[:-4] for file in FILES)}


def capi(artifact: str, metric: str = VALID) -> pd.DataFrame:
    """Rows of one metric with ``method``, ``class`` and ``tasks``, the whole number that its
    percent stands for.
    """
    table = TABLES[f"{CAPI}/{artifact}"]
    table = table[table.metric == metric]
    parts = table.condition.str.rsplit("/", n=1)
    tasks = (table.value / 100 * table.n).round()
    return table.assign(method=parts.str[0], tasks=tasks, **{"class": parts.str[-1]})


@pytest.mark.parametrize("file", FILES, ids=str)
def test_files_keep_the_schema(file):
    table = pd.read_csv(paths.PAPER / file)
    assert list(table.columns) == paper.REPORTED_COLUMNS
    assert set(table.paper) == {file.parent.name} and set(table.artifact) == {file.stem}
    assert table.value.notna().all()
    assert not table.duplicated(["model", "condition", "metric"]).any()
    sections = r"Section (\d(\.\d)?|[IV]+(-[A-C])?)|Abstract|Appendix [AB]\.\d"
    assert table.place.str.fullmatch(rf"Table (\d|I+)|Figure \d+|{sections}").all()


@pytest.mark.parametrize("artifact", [file.stem for file in FILES if file.parent.name == CAPI])
def test_every_rate_is_a_whole_number_of_tasks(artifact):
    for metric in (VALID, "triggered_percent", "invalid_percent"):
        table = capi(artifact, metric)
        assert ((table.tasks / table.n * 100 - table.value).abs() < 0.0051).all()


@pytest.mark.parametrize("artifact", ["table2_index_lookup", "table3_dag_plus_plus"])
def test_classes_add_up_in_tasks_and_changes_are_from_the_base_model(artifact):
    for metric in (VALID, "triggered_percent"):
        wide = capi(artifact, metric).pivot(
            index=["model", "method"], columns="class", values=["tasks", "value"]
        )
        for _, row in wide.iterrows():
            total = row["tasks"][["high", "medium", "low"]].sum()
            assert abs(total / 622 * 100 - row["value"]["all"]) < 0.0051
    known, changes = (
        capi(artifact, metric).set_index(["model", "class", "method"]).value
        for metric in (VALID, "valid_change_points")
    )
    for model, label, method in changes.index:
        change = known[model, label, method] - known[model, label, "base"]
        assert changes[model, label, method] == pytest.approx(change, abs=0.0151)


def test_table_4_is_complete_and_in_shares_of_the_invalid():
    wide = TABLES[f"{CAPI}/table4_failure_modes"].pivot(
        index="model", columns="metric", values=["value", "n"]
    )
    shares = ["incorrect_existing_percent", "invalid_usage_percent", "nonexistent_percent"]
    assert ((wide["value"][[VALID, "invalid_percent"]].sum(axis=1) - 100).abs() < 0.0101).all()
    assert ((wide["value"][shares].sum(axis=1) - 100).abs() < 0.0151).all()
    tasks = wide["value"][shares] / 100 * wide["n"][shares]
    assert ((tasks - tasks.round()).abs() < 0.01).all(axis=None)
    assert tasks.loc["GPT-4o"].round().tolist() == [22, 55, 87]


def test_a_number_stands_beside_ours_or_the_readme_says_why_it_does_not():
    readme, keys = (paths.PAPER / "README.md").read_text("utf-8"), ["condition", "metric"]
    for name in (file.stem for file in FILES if file.parent.name == CAPI):
        made = paths.FIGURES / "mini" / CAPI / f"{name}.csv"
        ours = pd.read_csv(made).set_index(keys).index if made.exists() else []
        for condition, metric in TABLES[f"{CAPI}/{name}"].set_index(keys).index:
            told = any(f"| `{name}` | {which} |" in readme for which in ("all", f"`{condition}`"))
            assert told or (condition, metric) in ours, f"{name}: {condition}, {metric}"


@pytest.mark.parametrize("artifact", ["table2_similarity", "table3_repository_metrics"])
def test_toolgen_changes_are_relative_to_the_baseline(artifact):
    table = TABLES[f"toolgen/{artifact}"]
    table = table.assign(metric=table.metric.str.removesuffix("_percent"))
    known = table.set_index(["model", "condition", "metric"]).value
    changes = [key for key in known.index if key[2].endswith("_relative_change")]
    assert len(changes) == len(table) / 3
    for model, condition, metric in changes:
        name = metric.removesuffix("_relative_change")
        base, ours = known[model, "base", name], known[model, "toolgen", name]
        assert 100 * (ours - base) / base == pytest.approx(
            known[model, condition, metric], abs=0.0501
        )
