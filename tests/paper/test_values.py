"""The papers' numbers against themselves: every rate is a whole number of tasks, every table agrees with the others."""

import re

import pandas as pd
import pytest

from lookuplab import paper, paths
from lookuplab.cloudapi.augmentation import DESIGNS
from lookuplab.errors import UserError

SIZES = {"high": 205, "medium": 150, "low": 267}
FILES = sorted(file.relative_to(paths.PAPER) for file in paths.PAPER.glob("*/*.csv"))
CAPI = "cloudapibench"


def counts(artifact: str, metric: str = "valid_percent") -> pd.DataFrame:
    """Rows of one metric with ``tasks``, the whole number that its percent stands for."""
    table = paper.values(CAPI, artifact).query("metric == @metric").copy()
    table["tasks"] = (table.value / 100 * table.n).round()
    return table


@pytest.mark.parametrize("file", FILES, ids=str)
def test_files_keep_the_schema(file):
    table = pd.read_csv(paths.PAPER / file)
    assert list(table.columns) == paper.COLUMNS
    assert set(table.paper) == {file.parent.name} and set(table.artifact) == {file.stem}
    assert (
        table.value.notna().all() and not table.duplicated(["model", "condition", "metric"]).any()
    )
    places = (
        r"(Table (\d|I+)|Figure \d+|Section (\d(\.\d)?|[IV]+(-[A-C])?)|Abstract|Appendix [AB]\.\d)"
    )
    assert all(re.fullmatch(places, place) for place in table.place)


@pytest.mark.parametrize(
    "artifact", sorted(file.stem for file in FILES if file.parent.name == CAPI)
)
@pytest.mark.parametrize("metric", ["valid_percent", "triggered_percent", "invalid_percent"])
def test_every_rate_is_a_whole_number_of_tasks(artifact, metric):
    table = counts(artifact, metric)
    assert ((table.tasks / table.n * 100 - table.value).abs() < 0.0051).all()


def test_class_sizes_follow_the_condition():
    for artifact in ["table1_base_models", "table2_index_lookup", "table3_dag_plus_plus"]:
        table = counts(artifact)
        assert (table.n == table.condition.str.split("/").str[-1].map(SIZES | {"all": 622})).all()


def test_table_3_average_is_the_mean_over_tasks():
    table = counts("table3_dag_plus_plus")
    table[["method", "class"]] = table.condition.str.split("/", expand=True).to_numpy()
    wide = table.pivot(index=["model", "method"], columns="class", values=["tasks", "value"])
    average = wide["tasks"][["high", "medium", "low"]].sum(axis=1) / 622 * 100
    assert len(average) == 15 and ((average - wide["value"]["all"]).abs() < 0.0051).all()


@pytest.mark.parametrize(
    ("artifact", "metric"),
    [("table2_index_lookup", "valid_percent"), ("table3_dag_plus_plus", "triggered_percent")],
)
def test_derived_classes_and_averages_add_up_in_tasks(artifact, metric):
    table = counts(artifact, metric)
    table[["method", "class"]] = table.condition.str.split("/", expand=True).to_numpy()
    wide = table.pivot(index=["model", "method"], columns="class", values="tasks")
    assert len(wide) >= 3 and (wide[["high", "medium", "low"]].sum(axis=1) == wide["all"]).all()


@pytest.mark.parametrize("prefix", ["base/", "threshold_0.00/"])
def test_base_rows_of_the_ablations_equal_table_1(prefix):
    table = paper.values(CAPI).query("model == 'StarCoder2-3B' and metric == 'valid_percent'")
    base = table[table.condition.str.startswith(prefix)]
    assert len(base) >= 4
    for row in base.itertuples():
        expected = paper.value(
            CAPI, "table1_base_models", row.model, row.condition.removeprefix(prefix), row.metric
        )
        assert row.value == expected, row


def test_full_precision_is_the_oracle_of_figure_6():
    model, metric = "StarCoder2-3B", "valid_percent"
    figure6 = paper.value(
        CAPI, "fig6_augmentation_designs", model, "description_specification", metric
    )
    for condition in ["precision_100/all", "oracle/all"]:
        assert paper.value(CAPI, "fig7a_retriever_precision", model, condition, metric) == figure6


def test_designs_have_the_names_that_the_kit_gives_them():
    conditions = set(paper.values(CAPI, "fig6_augmentation_designs").condition)
    assert {name for name in conditions if not name.startswith("base")} == set(DESIGNS)


@pytest.mark.parametrize(
    ("artifact", "number"), [("table2_index_lookup", 8), ("table3_dag_plus_plus", 40)]
)
def test_changes_are_from_the_base_model(artifact, number):
    table = paper.values(CAPI, artifact).set_index(["model", "condition", "metric"]).value
    changes = table.xs("valid_change_points", level="metric")
    assert len(changes) == number
    for (model, condition), change in changes.items():
        base = table[model, "base/" + condition.split("/")[1], "valid_percent"]
        assert change == pytest.approx(table[model, condition, "valid_percent"] - base, abs=0.0151)


def test_base_rows_of_table_3_equal_table_1():
    table = paper.values(CAPI, "table3_dag_plus_plus").query("metric == 'valid_percent'")
    base = table[table.condition.str.startswith("base/")]
    assert base.model.nunique() == 5
    for row in base.itertuples():
        assert row.value == paper.value(
            CAPI,
            "table1_base_models",
            row.model,
            row.condition.removeprefix("base/"),
            "valid_percent",
        )


def test_derived_average_of_table_1_agrees_with_the_printed_ones():
    assert (
        paper.value(CAPI, "table1_base_models", "StarCoder2-3B", "all", "valid_percent") == 41.80
    )  # Table 2, Figure 6


def test_table_4_valid_is_the_low_column_of_table_1():
    for row in (
        paper.values(CAPI, "table4_failure_modes").query("metric == 'valid_percent'").itertuples()
    ):
        assert row.value == paper.value(
            CAPI, "table1_base_models", row.model, "low", "valid_percent"
        )


def test_table_4_is_complete_and_in_shares_of_the_invalid():
    wide = paper.values(CAPI, "table4_failure_modes").pivot(
        index="model", columns="metric", values=["value", "n"]
    )
    shares = ["incorrect_existing_percent", "invalid_usage_percent", "nonexistent_percent"]
    assert (
        (wide["value"][["valid_percent", "invalid_percent"]].sum(axis=1) - 100).abs() < 0.0101
    ).all()
    assert ((wide["value"][shares].sum(axis=1) - 100).abs() < 0.0151).all()
    tasks = wide["value"][shares] / 100 * wide["n"][shares]
    assert ((tasks - tasks.round()).abs() < 0.01).all(axis=None)
    assert tasks.loc["GPT-4o"].round().tolist() == [22, 55, 87]


def test_table_2_and_figures_share_their_numbers():
    for condition in ["high", "low", "all"]:
        table2 = paper.value(
            CAPI, "table2_index_lookup", "StarCoder2-3B", f"dag/{condition}", "valid_percent"
        )
        assert (
            paper.value(
                CAPI,
                "fig7a_retriever_precision",
                "StarCoder2-3B",
                f"precision_50/{condition}",
                "valid_percent",
            )
            == table2
        )
        assert (
            paper.value(
                CAPI,
                "fig7b_number_of_retrievals",
                "StarCoder2-3B",
                f"retrievals_1/{condition}",
                "valid_percent",
            )
            == table2
        )
    assert (
        paper.value(CAPI, "fig6_augmentation_designs", "StarCoder2-3B", "base", "valid_percent")
        == 41.80
    )


def test_confidence_of_figure_8_is_the_smallest_probability():
    table = paper.values(CAPI, "fig8_confidence_example")
    assert (
        table[table.metric == "probability"].value.min()
        == 0.21
        == table[table.metric == "api_invocation_confidence"].value.item()
    )


def test_numbers_in_the_running_text_equal_the_tables():
    stated = paper.values(CAPI, "stated_values").query("model != ''")
    table3 = (
        paper.values(CAPI, "table3_dag_plus_plus").set_index(["model", "condition", "metric"]).value
    )
    checked = [
        row for row in stated.itertuples() if (row.model, row.condition, row.metric) in table3.index
    ]
    assert len(checked) == 6
    for row in checked:
        assert row.value == table3[row.model, row.condition, row.metric], row


@pytest.mark.parametrize("artifact", ["table2_similarity", "table3_repository_metrics"])
def test_toolgen_changes_are_relative_to_the_baseline(artifact):
    table = paper.values("toolgen", artifact)
    value = {
        (row.model, row.condition, row.metric.removesuffix("_percent")): row.value
        for row in table.itertuples()
    }
    changes = [key for key in value if key[2].endswith("_relative_change")]
    assert len(changes) == len(table) / 3
    for model, condition, metric in changes:
        name = metric.removesuffix("_relative_change")
        base, ours = value[model, "base", name], value[model, "toolgen", name]
        assert 100 * (ours - base) / base == pytest.approx(
            value[model, condition, metric], abs=0.0501
        )


def test_toolgen_ranges_of_the_abstract_are_those_of_table_3():
    table = paper.values("toolgen", "table3_repository_metrics")
    for metric, smallest, largest in [("depcov", 15.2, 45.8), ("succrate", 10.9, 42.2)]:
        changes = table[table.metric == f"{metric}_relative_change_percent"].value
        assert (changes.min(), changes.max()) == (smallest, largest)
        for name, expected in [("smallest", smallest), ("largest", largest)]:
            assert (
                paper.value(
                    "toolgen",
                    "stated_values",
                    "",
                    f"toolgen/{name}",
                    f"{metric}_relative_change_percent",
                )
                == expected
            )


def test_retrieval_alone_solves_two_and_three_of_the_845_problems():
    for condition, solved in [("top_1", 2), ("top_2", 3)]:
        printed = paper.value(
            "stackoverflow", "retrieval_only", "ensemble", condition, "pass_percent"
        )
        assert printed in (int(solved / 845 * 1e4) / 100, round(solved / 845 * 100, 2))


def test_a_missing_value_names_the_nearest():
    with pytest.raises(UserError, match=r"GPT-40.*did you mean \[GPT-4o \| low \| valid_percent\]"):
        paper.value(CAPI, "table1_base_models", "GPT-40", "low", "valid_percent")


def test_a_missing_artifact_or_paper_is_named():
    with pytest.raises(UserError, match="did you mean .table1_base_models"):
        paper.values(CAPI, "table1_base")
    with pytest.raises(UserError, match="did you mean .cloudapibench"):
        paper.values("cloud")
