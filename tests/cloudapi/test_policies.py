"""Tests policies (Sections 3 and 4). For each task, a policy takes the answer without documents or
an answer with a document; the precision says how often this is the right document. There are so few
tasks that the expected numbers can be computed by hand.
"""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from doors import refused

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import (
    POLICIES,
    class_rows,
    expected,
    outcome,
    policy_rows,
    sampled_hits,
    triggered,
)
from lookuplab.scoring.rates import paired_difference, rate
from lookuplab_notebooks.cloudapibench.passes_compared import (
    added_tokens,
    between_models,
    has_confidence,
    spent,
)
from lookuplab_notebooks.cloudapibench.precision import (
    break_even_rows,
    perplexity_rows,
    precision_rows,
)
from lookuplab_notebooks.cloudapibench.triggers import (
    calibration_rows,
    folds,
    held_out_rows,
    lowest,
    risk_rows,
    share_rows,
    threshold_rows,
)

COUNTS, GRID = np.array([200, 150, 20, 30, 2, 1]), np.linspace(0, 1, 101).round(2)
SURE = np.array([0.95, 0.9, 0.6, 0.4, 0.3, 0.1])
# Two tasks per class, each with a different API. Comments call the six tasks t0 to t5. The columns
# minimum, mean and last differ, so that a test fails if the code reads the wrong column.
TABLE = pd.DataFrame(
    {
        "model": "toy",
        "id": [*"abcdef"],
        "cluster": [*"abcdef"],
        "frequency": np.repeat(["high", "medium", "low"], 2),
        "minimum": SURE,
        "mean": 1 - SURE,
        "product": SURE,
        "last": 0.5,
        "exists_anywhere": SURE != 0.9,
        "prompt_dropped": 0,
    }
)
# Three tasks are valid without documents, five with a hit, none with a miss.
FIRST, HIT, MISS = (
    TABLE.assign(valid=least < SURE, prompt_tokens=tokens)
    for least, tokens in ((0.5, 10), (0.2, 40), (1, 30))
)
RETRIEVED = np.array([True, True, False, True, True, False])
PASSES = Passes(1, FIRST, HIT, MISS, RETRIEVED)


def many(times):
    """Return passes with ``times`` copies of each task in PASSES. Each copy has its own API."""
    frames = (pd.concat([one] * times, ignore_index=True) for one in (FIRST, HIT, MISS))
    return Passes(1, *(one.assign(cluster=one.index) for one in frames), None)


def values(rows):
    """Return {(condition, metric): value} of rows. The values are compared approximately."""
    found = {(row["condition"], row["metric"]): pytest.approx(row["value"]) for row in rows}
    assert len(found) == len(rows), "two numbers under one name"
    return found


def test_a_policy_retrieves_where_the_paper_says():
    found = ["".join(map(str, triggered(FIRST, policy).astype(int))) for policy in POLICIES]
    assert found == ["000000", "111111", "010000", "001111", "011111"]


@pytest.mark.parametrize(
    ("policy", "threshold", "precision", "message"),
    [
        ("dag_confidence", 1.5, 50, r"threshold 1\.5"),
        ("dag_confidence", [], 50, "no threshold"),
        ("dag_confidense", 0.8, 50, "policy is 'dag_confidense'; it must be dag_confidence, "),
        ("dag_plus_plus", 0.8, 50, "no log-probabilities"),
        ("dag", 0.8, math.nan, "from 0 to 100"),
    ],
)
def test_a_bad_policy_threshold_or_precision_is_one_clear_line(
    policy, threshold, precision, message
):
    silent = FIRST.assign(minimum=math.nan)
    assert has_confidence(FIRST) and not has_confidence(silent)
    with refused(message):
        outcome(PASSES, triggered(silent, policy, threshold), precision)


def drawn(sizes, percent):
    """Return a frame of tasks. Class i has ``sizes[i]`` tasks, of which ``percent`` are drawn as
    hits. The columns are ``frequency`` (the class) and ``hit`` (whether the task is drawn).
    """
    frequency = np.repeat(range(len(sizes)), sizes)
    tasks = pd.DataFrame({"id": range(len(frequency)), "frequency": frequency})
    return tasks.assign(hit=sampled_hits(tasks, percent))


@pytest.mark.parametrize(
    ("percent", "sizes", "hits"),
    [
        (50, [205, 150, 267, 5], [103, 75, 134, 3]),
        (29, [50], [15]),  # in floating point, 29 / 100 x 50 is below 14.5
        (14.5, [100], [15]),
    ],
)
def test_each_class_has_exactly_its_share_of_hits_and_halves_go_up(percent, sizes, hits):
    assert drawn(sizes, percent).groupby("frequency").hit.sum().tolist() == hits


def test_hits_nest_as_the_precision_grows_and_depend_on_task_and_seed_alone():
    sets = [drawn([20, 31], percent) for percent in range(0, 101, 5)]
    assert all((few.hit <= more.hit).all() for few, more in itertools.pairwise(sets))
    half = sets[10]
    assert (sampled_hits(half[::-1], 50)[::-1] == half.hit).all()
    assert (sampled_hits(half, 50, seed=1) != half.hit).any()


def test_the_expectation_is_exact_where_retrieval_changes_nothing():
    assert [expected([1], [1], percent) for percent in range(101)] == [1] * 101


def test_rows_are_by_class_and_a_metrics_end_is_its_unit():
    numbers = {"a_percent": [1, 0, 1, 1], "b_points": [0, -0.5, 1, 1], "tokens": [10, 20, 30, 40]}
    found = class_rows(FIRST[:4], "way", numbers)
    # a class without tasks has no row
    assert [row["condition"] for row in found[::3]] == ["way/high", "way/medium", "way/all"]
    assert [row["value"] for row in found] == [50, -25, 15, 100, 100, 35, 75, 37.5, 25]
    ends = rate([1, 0, 1, 1], range(4)), paired_difference([0] * 4, numbers["b_points"])
    assert [row["ci_high"] for row in found[6:8]] == [end.percent().high for end in ends]


def test_tasks_without_a_value_do_not_count():
    found = class_rows(FIRST, ["a", "b"], {"x_percent": [[1, 0], *[[math.nan, 0]] * 5]})
    assert [row["condition"] for row in found] == ["a/high", "b/high", "a/all", "b/all"]
    assert {row["n"] for row in found} == {1}


def test_the_expectation_is_a_straight_line_from_miss_to_hit():
    rows = values(policy_rows(PASSES, "dag", triggered(FIRST, "dag_plus_plus"), 50))
    assert [rows[f"dag/{name}", "valid_percent"] for name in ("high", "low")] == [75, 25]
    assert rows["dag/high", "triggered_percent"] == 50
    rows = values(precision_rows(PASSES, [0, 50, 100]))
    assert [rows[f"precision_{x}/high", "valid_percent"] for x in (0, 50, 100)] == [0, 50, 100]
    assert rows["precision_100/all", "sampled_valid_percent"] == 500 / 6
    assert rows["precision_50/low", "valid_change_points"] == 25
    assert rows["precision_100/all - precision_0/all", "valid_change_points"] == 500 / 6


def test_break_even_is_where_the_line_meets_the_base_model_and_never_missing():
    found = break_even_rows(PASSES)
    assert [one["value"] for one in found] == pytest.approx([100, 50, 0, 60])
    assert found[-1]["ci_low"] < 60 < found[-1]["ci_high"]
    # Three tasks are valid without documents, two with a hit, and none with a miss. Validity rises
    # to two tasks at a precision of 100%, so it would rise to three at 150%.
    weak = HIT.assign(valid=[True, False, True, False, False, False])
    assert break_even_rows(Passes(1, FIRST, weak, MISS, None))[-1]["value"] == pytest.approx(150)
    falling = [one["value"] for one in break_even_rows(Passes(1, FIRST, MISS, HIT, None))]
    assert falling == [300, 300, -100, 300], "in the low class hits are as good as nothing"


def test_perplexity_is_over_tokens_and_its_mixture_is_exact():
    """There are two names, of 1 and of 3 tokens. The probability of each token is 1/2 without
    documents, 1 with a hit and 1/4 with a miss.
    """

    def scored(chance):
        logprobs = [math.log(chance)], [math.log(chance)] * 3
        return [SimpleNamespace(tokens=one, token_logprobs=one) for one in logprobs]

    ways = {"base": scored(0.5), "hit": scored(1), "miss": scored(0.25)}
    rows = perplexity_rows(FIRST[:2], ways, 75)
    found = values(rows)
    perplexities = [found[f"{name}/high", "perplexity"] for name in (*ways, "dag")]
    assert perplexities == [2, 1, 4, 4**0.25]
    assert found["dag/high", "log_perplexity_change"] == -math.log(2) / 2
    assert {row["n"] for row in rows} == {2}, "names, not tokens"


def test_models_are_compared_task_by_task():
    frames = [FIRST, HIT.assign(model="big")]
    ways = [{"dag": HIT.valid}, {"dag": FIRST.valid}]
    rows = between_models(frames) + between_models(frames, "worse_points", ways)
    assert {row["model"] for row in rows} == {"big - toy"}
    found = values(rows)
    assert found["all", "valid_change_points"] == 100 * 2 / 6
    assert found["dag/all", "worse_points"] == -100 * 2 / 6


def test_tokens_are_those_of_the_first_pass_and_where_it_retrieves_of_the_second():
    some = np.array([True, False] * 3)
    assert spent(PASSES, some, "prompt_tokens", 50).tolist() == [10 + 35, 10] * 3
    assert spent(PASSES, some, "prompt_tokens", RETRIEVED)[:3].tolist() == [10 + 40, 10, 10 + 30]
    assert set(added_tokens(FIRST, HIT.assign(prompt_dropped=2))) == {32}


# Confidence, as a measure and as a trigger


def test_the_optimum_has_a_range_that_loses_at_most_a_point():
    """At thresholds from 0.41 to 0.60, t3, t4 and t5 are looked up. t2 is not: its confidence of
    0.60 is not below the threshold.
    """
    few, many_rows = (threshold_rows(passes, GRID, 50) for passes in (PASSES, many(500)))
    assert [row["value"] for row in few[:3]] == [0.41, 0.41, 0.6]
    assert few[0]["ci_low"] <= 0.41 <= few[0]["ci_high"]
    # With six tasks, other thresholds may also lose at most a point, so both ends of the range have
    # wide intervals. With 3,000 tasks, these intervals are single points.
    for rows, ends in (few, [(0, 0.41), (0.41, 1)]), (many_rows, [(0.41, 0.41), (0.6, 0.6)]):
        assert [(row["ci_low"], row["ci_high"]) for row in rows[1:3]] == ends
    # The last four numbers are the largest falls in validity, for high, medium, low and all tasks.
    # At threshold 1, everything is looked up, and both high tasks lose half of their validity. The
    # low tasks only gain.
    assert [row["value"] for row in few[3:]] == pytest.approx([50, 25, 0, 25])


def test_calibration_is_reported_by_class_by_aggregate_and_by_number_of_bins():
    few = values(calibration_rows(FIRST, COUNTS))
    value = values(calibration_rows(many(7).first, [*COUNTS] * 7))
    assert [value[name, "auroc"] for name in ("all", "mean", "last")] == [1, 0, 0.5]
    assert value["minimum - mean", "auroc_change_points"] == 1
    assert value["frequency", "auroc"] == 8 / 9, "one pair is in the wrong order"
    apart = np.abs(FIRST.valid - SURE)
    assert value["all", "brier"] == np.mean(apart**2)
    assert few["bins_20", "ece"] == np.mean(apart), "a bin a task"
    assert [few[name, "auroc_rests_on_tasks"] for name in ("medium", "all")] == [1, 3]
    assert ("all", "auroc") not in few, "three answers decide nothing"


def test_the_lowest_share_is_whole_tasks_and_equal_scores_share_what_is_left():
    chances = [[0, 0, 0, 0], [0, 1, 1, 0], [0.5, 1, 1, 0], [1, 1, 1, 1]]
    assert lowest([3, 1, 2, 4], [0, 0.5, 0.625, 1]).T.tolist() == chances
    assert lowest([0, 7, 7, 7], [0.5])[:, 0] == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])


def test_every_order_begins_at_the_base_model_and_ends_at_dag():
    value = values(share_rows(PASSES, COUNTS, [0, 0.5, 1], 50))
    for name in ("confidence", "frequency", "random", "oracle"):
        assert value[f"share_0/{name}", "valid_percent"] == 50
        assert value[f"share_100/{name}", "valid_percent"] == 100 * 2.5 / 6
    # confidence looks up t3, t4 and t5; frequency looks up t2, t4 and t5
    assert value["share_50/confidence", "valid_percent"] == 100 * 4 / 6
    assert value["share_50/frequency", "valid_percent"] == 100 * 3 / 6
    assert value["confidence", "valid_above_random_points"] == 100 * (4 - 2.75) / 6 / 3


def test_folds_keep_apis_whole_share_out_every_class_and_ignore_the_order():
    apis = np.repeat(range(40), 3)
    classes = np.repeat(["high", "low"], [30, 90])
    dealt = folds(apis, classes, 5, 0)
    assert (dealt == np.repeat(dealt[::3], 3)).all()
    assert pd.crosstab(dealt, classes).to_numpy().tolist() == [[3 * 2, 3 * 6]] * 5
    assert (folds(apis[::-1], classes[::-1], 5, 0)[::-1] == dealt).all()
    assert (folds(apis, classes, 5, 1) != dealt).any()


def test_choosing_on_the_tasks_reported_never_looks_worse():
    value = values(held_out_rows(PASSES, GRID, 0.8, 3, 50, 0))
    ways = ("best_in_sample", "held_out")
    best, other = (value[f"{way}/all", "valid_percent"].expected for way in ways)
    optimism = value["best_in_sample/all - held_out/all", "valid_change_points"]
    assert optimism == best - other >= 0
    cut = {condition: at for (condition, metric), at in value.items() if metric == "threshold"}
    assert len(cut) == 2 + 3 and (cut["fixed"], cut["best_in_sample"]) == (0.8, 0.41)


def test_risk_is_the_share_of_wrong_answers_among_the_surest():
    rows = risk_rows(FIRST, COUNTS, [0.5, 2 / 3, 1])
    value = values(rows)
    assert value["coverage_50/confidence", "risk_percent"] == 0
    assert (rows[0]["n"], rows[0]["ci_high"] > 30) == (3, True), "three right are no certainty"
    assert value["coverage_50/frequency", "risk_percent"] == 100 / 3, "t3 is seen more than t2"
    for place in ("coverage_50/random", "coverage_100/ideal", "coverage_100/random"):
        assert value[place, "risk_percent"] == 50
    # the three wrong answers are the least confident, so the risks are 0, 0, 0, 1/4, 2/5 and 3/6
    least = (1 / 4 + 2 / 5 + 3 / 6) / 6
    assert value["confidence", "aurc"] == least < value["frequency", "aurc"].expected
