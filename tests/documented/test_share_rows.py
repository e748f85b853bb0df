"""Tests which seeds are counted, and the smallest share of documented texts at which a
specification is worth its tokens.
"""

import pandas as pd
import pytest

from lookuplab_notebooks.documented.share_rows import answers, worth_from


@pytest.mark.parametrize(
    ("lows", "said"),
    [
        ([1, -1, 1], "if at least 1 had it"),  # not worth it at 1/16
        ([-1, 1, 1], "if at least 1/16 had it"),
        ([1, 1, -1], "for no share"),
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
