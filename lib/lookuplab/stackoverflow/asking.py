"""A model asked with retrieved examples, and the examples themselves taken for answers (paper, Sections 3 and 4).

Each prompt has its problem's id whatever stands before the problem, so that sample i with two examples is drawn with
the seed of sample i without any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lookuplab.errors import UserError
from lookuplab.models.complete import Store, complete
from lookuplab.models.types import Completion, Decoding, Prompt
from lookuplab.retrieval.rankers import Ranker
from lookuplab.scoring.pass_at_k import pass_at_k
from lookuplab.scoring.paired import paired_difference
from lookuplab.scoring.rates import average, rate
from lookuplab.scoring.rows import row
from lookuplab.stackoverflow import prompts
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import STOP, Problem, indented, solution_of
from lookuplab.stackoverflow.grader import Answer, Verdict
from lookuplab.stackoverflow.passing import by_problem
from lookuplab.stackoverflow.prompts import Trimmed

DECODING = Decoding(max_new_tokens=prompts.MAX_NEW_TOKENS, temperature=0.2, top_p=0.95, n=5, stop=STOP)  # Section 4.3


@dataclass(frozen=True)
class Asked:
    """Answers by problem and sample, and what they were asked with and said word for word."""

    answers: list[Answer]
    prompts: dict[str, Trimmed]
    completions: list[Completion]


def question_of(problem: Problem) -> str:
    """The problem's question in words, without the frame of DS-1000's completion prompts: what is looked up."""
    text = problem.prompt.removeprefix("Problem:\n")
    return text.partition("\nA:\n" if "\nA:\n" in text else "<code>")[0].strip()


def look_up(ranker: Ranker, snippets: Sequence[Snippet], problems: Sequence[Problem], k: int
            ) -> dict[str, tuple[Snippet, ...]]:
    """Problem id -> the ``k`` snippets that rank best for its question, best first."""
    known = {snippet.id: snippet for snippet in snippets}
    ranked = ranker.rank({problem.id: question_of(problem) for problem in problems}, k)
    return {problem: tuple(known[one] for one in ids) for problem, ids in ranked.items()}


def ask(model, problems: Sequence[Problem], found: Mapping[str, Sequence[Snippet]], examples: int, budget: int,
        decoding: Decoding = DECODING, order: str = "reverse", trim: str = "description-first",
        variant: str = "official", store: Store = None, progress: bool = True) -> Asked:
    """Ask for every problem with its first ``examples`` of ``found``, within ``budget`` tokens of the model's own.

    ``order`` and ``trim`` as in ``prompts.prompt``; ``variant`` as in ``ds1000.solution_of``. Raises UserError for a
    problem that does not fit and whatever the model complains about.
    """
    made = {}
    for problem in problems:
        shown = found[problem.id][:examples] if examples else ()
        try:
            made[problem.id] = prompts.prompt(problem.prompt, shown, budget, decoding.max_new_tokens, model.tokenizer,
                                              order, trim, decoding.seed)
        except UserError as error:
            raise UserError(f"problem {problem.id}: {error}") from error
    completions = complete(model, [Prompt(one, trimmed.text) for one, trimmed in made.items()], decoding, store, progress)
    known = {problem.id: problem for problem in problems}
    answers = [Answer(one.id, one.sample, indented(known[one.id], solution_of(one.text, variant))) for one in completions]
    return Asked(answers, made, completions)


def snippets_as_answers(found: Mapping[str, Sequence[Snippet]], problems: Sequence[Problem]) -> list[Answer]:
    """Retrieval alone (Section 4.4): each snippet's code is an answer; its sample is its rank, from 0."""
    return [Answer(problem.id, rank, indented(problem, snippet.code))
            for problem in problems for rank, snippet in enumerate(found[problem.id])]


def first_passes(verdicts: Sequence[Verdict], k: int) -> dict[str, bool]:
    """Problem id -> whether one of its first ``k`` samples passed: ranks are no random samples, so not pass@k."""
    passed: dict[str, bool] = {}
    for one in verdicts:
        passed[one.problem_id] = passed.get(one.problem_id, False) or (one.passed and one.sample < k)
    return passed


def gain_rows(problems: Sequence[Problem], before: Sequence[Verdict], after: Sequence[Verdict], ks: Sequence[int],
              model: str, condition: str) -> list[dict]:
    """What examples add, in percentage points of pass@k on the same problems, with a bootstrap paired by problem and
    clustered by origin; rows of the tidy schema, metric ``pass_at_<k>_gain_points``."""
    first, second = by_problem(before), by_problem(after)
    ids = [problem.id for problem in problems if problem.id in first and problem.id in second]
    clusters = [problem.cluster for problem in problems if problem.id in first and problem.id in second]
    rows = []
    for k in ks:
        one, two = (np.array([100 * pass_at_k(len(side[name]), sum(side[name]), k) for name in ids])
                    for side in (first, second))
        rows.append(row(model, condition, f"pass_at_{k}_gain_points", paired_difference(one, two, clusters)))
    return rows


def trim_rows(problems: Sequence[Problem], asked: Asked, model: str, condition: str) -> list[dict]:
    """How often and how much the budget cut: for description, code and question the share of prompts that lost some of
    it, in percent, and the tokens that they lost on average; ``prompt_tokens`` is the mean length."""
    made = [asked.prompts[problem.id] for problem in problems]
    clusters = [problem.cluster for problem in problems]
    numbers = {"prompt_tokens": average([one.tokens for one in made], clusters)}
    for part in ("description", "code", "question"):
        lost = [sum(cut.removed for cut in one.trims if cut.part == part) for one in made]
        numbers[f"{part}_cut_percent"] = rate([count > 0 for count in lost], clusters).percent()
        numbers[f"{part}_cut_tokens"] = average(lost, clusters)
    return [row(model, condition, metric, number) for metric, number in numbers.items()]
