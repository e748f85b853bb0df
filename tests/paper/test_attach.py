"""Putting the paper's value beside ours."""

import pandas as pd
import pytest

from lookuplab import paper
from lookuplab.errors import UserError

KEYS = ["paper", "artifact", "model", "condition", "metric"]
ROLES = {"mini-small": "StarCoder2-3B", "mini-large": "StarCoder2-15B"}


def frame(*rows):
    return pd.DataFrame([("cloudapibench", *row) for row in rows], columns=KEYS)


def test_a_role_finds_the_papers_model():
    ours = frame(
        ("table1_base_models", "mini-small", "low", "valid_percent"),
        ("table1_base_models", "mini-large", "low", "valid_percent"),
    )
    assert paper.attach(ours, ROLES).paper_value.tolist() == [11.61, 24.72]


def test_what_the_paper_does_not_print_stays_empty():
    ours = frame(
        ("table1_base_models", "mini-small", "low", "valid_closed_percent"),
        (
            "table4_failure_modes",
            "mini-small",
            "low",
            "valid_percent",
        ),  # Table 4 has the largest models only
        ("fig1_perplexity", "mini-large", "low", "perplexity"),  # a picture
    )
    assert paper.attach(ours, ROLES).paper_value.isna().all()


def test_rows_without_a_model_are_found():
    ours = frame(("fig2_fig10_composition", "", "all", "tasks")).assign(model=float("nan"))
    assert paper.attach(ours).paper_value.tolist() == [622]


def test_other_columns_and_the_index_are_kept():
    ours = (
        frame(("table1_base_models", "mini-small", "low", "valid_percent"))
        .assign(value=3.0)
        .set_index(pd.Index([7]))
    )
    result = paper.attach(ours, ROLES)
    assert (
        result.index.tolist() == [7]
        and result.value.tolist() == [3.0]
        and "paper_value" not in ours
    )


def test_an_unknown_role_is_an_error():
    with pytest.raises(UserError, match="role of 'mini-small'.*StarCoder2-3B"):
        paper.attach(
            frame(("table1_base_models", "mini-small", "low", "valid_percent")),
            {"mini-small": "StarCoder-3B"},
        )
