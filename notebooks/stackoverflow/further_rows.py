"""Adds to ``lookuplab.stackoverflow.scores`` what only one or two notebooks need: the greatest of
several changes (``fig3_pass_at_k``), the number of tokens that are cut to fit the budget
(``token_budget``), and snippets drawn at random.
"""

import random
from collections.abc import Sequence
from typing import Any

import pandas as pd
from scipy.stats import norm

from lookuplab.benchmark import rate_rows
from lookuplab.scoring.rates import Rows
from lookuplab.stackoverflow.asking import SPARE, Matches, without_answers
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import Problem


def greatest(changes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the greatest of several rows of changes, with the condition "maximum", for a claim
    that says "up to".

    The lower end of its interval is the highest of the changes' corrected lower ends. If each
    corrected lower end is below the true change, then the highest of these ends is below the
    greatest true change. The correction is Bonferroni's: it moves each lower end so far away from
    its change that for normally distributed errors, all lower ends are below the true changes with
    a probability of at least 97.5%.
    """
    stretched = norm.isf(0.025 / len(changes)) / norm.isf(0.025)
    ends = [one["value"] - stretched * (one["value"] - one["ci_low"]) for one in changes]
    best = max(changes, key=lambda one: one["value"])
    metric = best["metric"].replace("change", "maximum_change")
    high = max(one["ci_high"] for one in changes)
    names = {"model": "", "condition": "maximum", "metric": metric}
    return best | names | {"ci_low": max(ends), "ci_high": high}


def trim_rows(judged: pd.DataFrame, condition: str) -> Rows:
    """Return how often and how much the token budget cut the prompts of one model. ``judged`` is
    the model's frame of ``evaluate``.

    For each part of the prompt (description, code, question), the rows give the percentage of
    prompts in which the part was cut, and the mean number of tokens cut from it.
    ``prompt_tokens`` is the mean length of the prompts.
    """
    prompts = judged.drop_duplicates("id")
    columns = ["prompt_tokens"]
    for part in ("description", "code", "question"):
        lost = prompts[f"{part}_lost"]
        cut = {f"{part}_cut": lost > 0, f"{part}_cut_tokens": lost}
        prompts = prompts.assign(**cut)
        columns += cut
    return [one | {"condition": condition} for one in rate_rows(prompts, columns)]


def at_random(snippets: Sequence[Snippet], problems: Sequence[Problem], k: int) -> Matches:
    """Return ``k`` snippets for each problem, drawn at random with the problem's id as the seed: a
    control for retrieval.
    """
    ordered = sorted(snippets, key=lambda snippet: snippet.id)
    size = min(k + SPARE, len(ordered))
    drawn = {problem.id: random.Random(problem.id).sample(ordered, size) for problem in problems}
    return without_answers(drawn, problems, k)
