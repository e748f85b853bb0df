"""Tests that the paper's values are put next to ours."""

import pandas as pd
import pytest

from lookuplab.results import paper

ROLES = {"mini-small": "StarCoder2-3B", "mini-large": "StarCoder2-15B"}
NONE = float("nan")


def frame(row):
    artifact, model, *others = row.split(", ")
    values = ["cloudapibench", artifact, model or NONE, *others]
    return pd.DataFrame([values], columns=["paper", "artifact", "model", "condition", "metric"])


@pytest.mark.parametrize(
    ("row", "printed"),
    [
        ("table1_base_models, mini-small, low, valid_percent", 11.61),
        ("fig2_fig10_composition, , all, tasks", 622),
        ("table1_base_models, mini-small, low, valid_closed_percent", NONE),
        ("fig1_perplexity, mini-large, low, perplexity", NONE),  # the paper has only a picture
    ],
)
def test_what_the_paper_prints_of_a_model_s_role_stands_beside_ours_and_nothing_else(row, printed):
    ours = frame(row).assign(value=3.0).set_index(pd.Index([7]))
    found = paper.attach(ours, ROLES)
    assert found.paper_value.tolist() == pytest.approx([printed], nan_ok=True)
    assert found.index.tolist() == [7] and found.value.tolist() == [3.0]
