"""Putting the paper's value beside ours."""

import pandas as pd
import pytest

from lookuplab import paper
from lookuplab.errors import UserError

KEYS = ["paper", "artifact", "model", "condition", "metric"]
ROLES = {"mini-small": "StarCoder2-3B", "mini-large": "StarCoder2-15B"}
NONE, VALID = float("nan"), "valid_percent"


def frame(*rows):
    return pd.DataFrame([("cloudapibench", *row) for row in rows], columns=KEYS)


@pytest.mark.parametrize(
    ("row", "printed"),
    [
        (("table1_base_models", "mini-small", "low", VALID), 11.61),
        (("table1_base_models", "mini-large", "low", VALID), 24.72),
        (("fig2_fig10_composition", NONE, "all", "tasks"), 622),
        (("table1_base_models", "mini-small", "low", "valid_closed_percent"), NONE),
        (("table4_failure_modes", "mini-small", "low", VALID), NONE),  # the largest models only
        (("fig1_perplexity", "mini-large", "low", "perplexity"), NONE),  # a picture
    ],
)
def test_what_the_paper_prints_of_a_model_s_role_stands_beside_ours_and_nothing_else(row, printed):
    ours = frame(row).assign(value=3.0).set_index(pd.Index([7]))
    found = paper.attach(ours, ROLES)
    assert found.paper_value.tolist() == pytest.approx([printed], nan_ok=True)
    assert found.index.tolist() == [7] and found.value.tolist() == [3.0]


def test_an_unknown_role_is_an_error():
    ours = frame(("table1_base_models", "mini-small", "low", VALID))
    with pytest.raises(UserError, match="role of 'mini-small'.*StarCoder2-3B"):
        paper.attach(ours, {"mini-small": "StarCoder-3B"})
