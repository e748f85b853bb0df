"""Intervals over tasks and seeds, and the share from which a specification is worth its tokens."""

import numpy as np
import pandas as pd
import pytest

from lookuplab.scoring.rates import average, of_number
from lookuplab_notebooks.documented.share_rows import answers, over_seeds, worth_from


def test_seeds_that_agree_leave_the_interval_of_the_tasks():
    values = np.array([0.0, 1, 1, 0, 1])
    apis = np.array([*"aabcd"])
    assert over_seeds(np.column_stack([values, values]), apis, of_number) == average(values, apis)


def test_seeds_that_differ_widen_the_interval_by_their_own_variance():
    # all tasks alike: only the seeds' means vary, 1 and 0; variance 1/2, of their mean 1/4; one
    # degree of freedom, so that t is 12.706
    rate = over_seeds(np.array([[1.0, 0], [1, 0], [1, 0]]), np.arange(3), of_number)
    assert (rate.value, rate.n, rate.clusters) == (0.5, 3, 3)
    assert rate.high - rate.value == pytest.approx(12.706 / 2, rel=1e-4)


@pytest.mark.parametrize(
    ("lows", "said"),
    [
        ([1, -1, 1], "from share 1 on"),  # at every larger share, too
        ([-1, 1, 1], "from share 1/16 on"),
        ([1, 1, -1], "at no share"),
    ],
)
def test_worth_its_tokens_is_from_the_smallest_share_above_which_all_are(lows, said):
    conditions = [f"share_{share}/specification beyond name" for share in (0, 0.0625, 1)]
    rows = {"model": "m", "condition": conditions, "metric": "points_per_100_tokens"}
    assert worth_from(pd.DataFrame(rows | {"ci_low": lows}), "m") == said


def test_a_seed_that_lacks_a_share_is_left_out(tmp_path):
    shown = "base,name,description,specification,description_specification,wrong,copied"
    rows = ["0,0", "1/2,0", "0,1", ","]
    text = "".join(f"small,{row},t,1,1,1,1,1,1,0\n" for row in rows)
    (tmp_path / "rows.csv").write_text(f"size,share,seed,id,{shown}\n{text}")
    frames = answers(tmp_path / "rows.csv")["mini-small"]
    assert [*frames] == ["", "0", "1/2"]
    assert [*frames["0"]["base"]] == ["0"]
