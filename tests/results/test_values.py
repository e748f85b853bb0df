"""Tests that the papers' numbers are consistent: every rate is a whole number of tasks, and every
table agrees with the others.
"""

import pandas as pd
import pytest
from doors import refused

from lookuplab import paths
from lookuplab.results import paper

FILES = sorted(file.relative_to(paths.PAPER) for file in paths.PAPER.glob("*/*.csv"))
TABLES = {str(file)[:-4]: paper.values(file.parent.name, file.stem) for file in FILES}
CAPI = pd.concat(table for name, table in TABLES.items() if name.startswith("cloudapibench"))
RATES = CAPI[CAPI.metric.str.endswith("_percent") & CAPI.n.notna()]
RATES = RATES.assign(tasks=(RATES.value / 100 * RATES.n).round())


@pytest.mark.parametrize("file", FILES, ids=str)
def test_files_keep_the_schema(file):
    table = pd.read_csv(paths.PAPER / file)
    assert list(table.columns) == paper.REPORTED_COLUMNS
    assert set(table.paper) == {file.parent.name} and set(table.artifact) == {file.stem}
    assert table.value.notna().all()
    assert not table.duplicated(["model", "condition", "metric"]).any()
    sections = r"Section (\d(\.\d)?|[IV]+(-[A-C])?)|Abstract|Appendix [AB]\.\d|results/\S+\.txt"
    assert table.place.str.fullmatch(rf"Table (\d|I+)|Figure \d+|{sections}").all()


def test_every_rate_is_a_whole_number_of_tasks():
    assert ((RATES.tasks / RATES.n * 100 - RATES.value).abs() < 0.0051).all()


@pytest.mark.parametrize("artifact", ["table2_index_lookup", "table3_dag_plus_plus"])
def test_classes_add_up_in_tasks_and_changes_are_from_the_base_model(artifact):
    here = RATES[RATES.artifact == artifact]
    total = here.condition.str.endswith("/all")
    way = here.condition.str.partition("/")[0]
    tasks = here.groupby(["model", way, "metric", total]).tasks.sum().unstack()
    assert (tasks[True] == tasks[False]).all()
    known = here[here.metric == "valid_percent"].set_index(["model", "condition"]).value
    changes = CAPI[(CAPI.artifact == artifact) & (CAPI.metric == "valid_change_points")]
    for row in changes.itertuples():
        base = known[row.model, f"base/{row.condition.partition('/')[2]}"]
        assert known[row.model, row.condition] - base == pytest.approx(row.value, abs=0.0151)


def test_a_number_stands_beside_ours_or_the_readme_says_why_it_does_not():
    readme = (paths.PAPER / "README.md").read_text("utf-8")
    keys = ["condition", "metric"]
    for name, table in CAPI.groupby("artifact"):
        made = paths.FIGURES / "mini" / "cloudapibench" / f"{name}.csv"
        ours = pd.read_csv(made).set_index(keys).index if made.exists() else []
        for condition, metric in table.set_index(keys).index:
            told = any(f"| `{name}` | {which} |" in readme for which in ("all", f"`{condition}`"))
            assert told or (condition, metric) in ours, f"{name}: {condition}, {metric}"


def test_toolgen_changes_are_relative_to_the_baseline():
    table = TABLES["toolgen/table2_package_scoring"]
    table = table[table.metric != "gain_difference_points"]
    table = table.assign(metric=table.metric.str.removesuffix("_percent"))
    known = table.set_index(["model", "condition", "metric"]).value
    changes = known[known.index.get_level_values("metric").str.endswith("_relative_change")]
    assert len(changes) == len(table) / 3
    for (model, _, metric), value in changes.items():
        name = metric.removesuffix("_relative_change")
        base, ours = known[model, "base", name], known[model, "toolgen", name]
        assert 100 * (ours - base) / base == pytest.approx(value, abs=0.0501)


@pytest.mark.parametrize(
    "content", ["title: x", "references:", "references: [{title: x}]", "references: [x]", "[]"]
)
def test_a_citation_file_that_names_no_papers_is_one_line(content, tmp_path, monkeypatch):
    (tmp_path / "CITATION.cff").write_text(content)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    with refused("CITATION.cff needs references with abbreviation and title"):
        paper.titles()
