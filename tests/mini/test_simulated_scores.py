"""Intervals of scores, on samples of six repositories as uneven as those of Tables II and III."""

import numpy as np
from simulated_scores import score_rows


def test_scores_and_rare_outcomes_need_different_intervals():
    generator, sizes = np.random.default_rng(1), np.array([119, 62, 41, 37, 36, 5])
    found = score_rows(generator, "", sizes, 400, [0.1])
    held, width = ({row["condition"][:-18]: row["value"] for row in found[at::2]} for at in (0, 1))
    assert held.pop("2% gained as if a score") < 80
    # if 95% were held, 400 samples would have a standard error of 1.1 points
    assert min(held.values()) > 92
    assert width["change of BLEU-4 as if a share"] > 3 * width["change of BLEU-4"]
