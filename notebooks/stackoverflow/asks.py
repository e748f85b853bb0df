"""What these notebooks ask a model, for the estimate of ``--dry-run`` (``lookuplab.run.estimate``),
and random snippets, the control in which nothing is looked up.

Nothing is ranked: random snippets stand for those that will be found, and no problem is left out
because its reference fails here.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lookuplab.stackoverflow import corpus, ds1000
from lookuplab.stackoverflow.asking import (
    DS1000_DECODING,
    SPARE,
    TRIMS,
    Ds1000Bench,
    Matches,
    without_answers,
)
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import Problem


def at_random(snippets: Sequence[Snippet], problems: Sequence[Problem], k: int) -> Matches:
    """``k`` snippets for each problem, drawn by a generator seeded with its id: the control in
    which nothing is looked up.
    """
    ordered = sorted(snippets, key=lambda snippet: snippet.id)
    size = min(k + SPARE, len(ordered))
    drawn = {problem.id: random.Random(problem.id).sample(ordered, size) for problem in problems}
    return without_answers(drawn, problems, k)


def asks(notebook: str, values: Mapping[str, Any]) -> Iterator[tuple[Ds1000Bench, None]]:
    """Each pass of a notebook with these parameters: the benchmark as it is put to the model."""
    problems = ds1000.select(values["problems_file"], values["limit"])
    decoding = replace(
        DS1000_DECODING, n=values["samples"], max_new_tokens=values["max_new_tokens"]
    )
    snippets = corpus.load_snippets(values["corpus"])
    alone = Ds1000Bench(
        problems, decoding=decoding, budget=values.get("budget") or max(values["budgets"])
    )

    def shown(examples: int, ranker: int = 0) -> Ds1000Bench:
        # other rankers find other snippets
        found = at_random(snippets, problems, (ranker + 1) * examples)
        matches = {id: every[ranker * examples :] for id, every in found.items()}
        return replace(alone, matches=matches, examples=examples)

    if notebook == "fig3_pass_at_k":
        numbers = values["examples"]
        benches = [shown(count) for count in numbers]
        benches += [shown(max(numbers), arm) for arm, _ in enumerate(values["arms"], 1)]
    elif notebook == "fig4_perturbation_robustness":
        benches = [alone, shown(values["examples"]), shown(values["examples"], 1)]
    elif notebook == "token_budget":
        whole = shown(values["examples"])
        benches = [replace(whole, budget=budget) for budget in values["budgets"]]
        benches += [replace(whole, trim=trim, shortened=True) for trim in TRIMS]
    else:
        benches = [alone]
    for bench in benches:
        yield bench, None
