"""Tables as the paper prints them: values, relative changes, the paper's beside ours, blanks where there is nothing."""

import pandas as pd
import pytest

from lookuplab.toolgen.showing import as_printed, side_by_side

NAN = float("nan")
ROWS = [
    ("m", "base", "depcov_percent", 8.0, 7.0, 9.0, 40, 8.3),
    ("m", "toolgen", "depcov_percent", 12.0, 10.0, 14.0, 40, 12.1),
    ("m", "toolgen", "depcov_relative_change_percent", 50.0, 20.0, 70.0, 10, 45.8),
    ("m", "toolgen - base", "depcov_change_points", 4.0, 1.0, 6.0, 10, NAN),
    ("m", "toolgen - base", "succrate_p", 0.125, NAN, NAN, 10, NAN),
    ("m", "base", "lost_functions", 3.0, NAN, NAN, 10, NAN),
    ("n", "base", "bleu4", 0.25, 0.2, 0.3, 10, NAN),
]


@pytest.fixture
def table():
    return pd.DataFrame(
        ROWS,
        columns=["model", "condition", "metric", "value", "ci_low", "ci_high", "n", "paper_value"],
    )


def test_ours_stand_beside_the_paper_s_with_the_relative_change_in_brackets(table):
    printed = as_printed(table, {"depcov_percent": "coverage"})
    assert list(printed.index) == [("m", "base"), ("m", "toolgen"), ("n", "base")]
    assert list(printed["coverage", "ours"]) == ["8.0", "12.0 (+50.0%)", ""]
    assert list(printed["coverage", "paper"]) == ["8.3", "12.1 (+45.8%)", ""]


def test_numbers_have_interval_and_n_and_counts_stand_alone(table):
    found = side_by_side(table, ["depcov_percent", "lost_functions"])
    assert list(found.loc[("m", "base")]) == ["8.0 [7.0, 9.0] n=40", "3"]
    assert list(found.loc[("m", "toolgen")]) == ["12.0 [10.0, 14.0] n=40", ""] and len(found) == 2
    assert list(side_by_side(table, ["succrate_p"], digits=3).succrate_p) == ["0.125 n=10"]


def test_metrics_that_no_row_has_leave_no_column(table):
    assert list(side_by_side(table, ["bleu4", "depcov_module_percent"])) == ["bleu4"]
    assert side_by_side(table, ["depcov_module_percent"]).empty
