"""From verdicts to the rows of a table: pass@k, the average pass rate, and what a perturbation costs.

Rows are dictionaries of the tidy schema: model, condition, metric, value, ci_low, ci_high, n. Intervals are clustered
by origin problem: a problem and its perturbations fail together.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lookuplab.scoring.pass_at_k import pass_at_k, passes
from lookuplab.scoring.rates import Rate, averages, rate
from lookuplab.scoring.rows import row
from lookuplab.stackoverflow.ds1000 import LIBRARIES, PERTURBATIONS, Problem
from lookuplab.stackoverflow.grader import Verdict


def by_problem(verdicts: Iterable[Verdict]) -> dict[str, list[bool]]:
    """Problem id -> whether each of its samples passed."""
    found = defaultdict(list)
    for verdict in verdicts:
        found[verdict.problem_id].append(verdict.passed)
    return dict(found)


def average_pass_rate(passed: Mapping[str, Sequence[bool]], clusters: Mapping[str, str]) -> Rate:
    """DS-1000's own measure (the paper's Section 4.2): the share of samples that pass; ``n`` counts samples.

    It is pass@1 where every problem has equally many samples.
    """
    return rate([one for values in passed.values() for one in values],
                [clusters[problem] for problem, values in passed.items() for _ in values])


def rows(problems: Sequence[Problem], verdicts: Iterable[Verdict], ks: Sequence[int] = (1,), model: str = "",
         prefix: str = "") -> list[dict]:
    """pass@k and the average pass rate in percent: over all problems, by library and by perturbation.

    The condition is "all", a library's or a perturbation's name, after ``prefix``. Raises UserError for a k above the
    number of some problem's samples.
    """
    passed, found = by_problem(verdicts), []
    known = {problem.id: problem for problem in problems if problem.id in passed}
    clusters = {one: problem.cluster for one, problem in known.items()}
    groups = {"all": list(known)} | {name: [one for one, problem in known.items()
                                            if name in (problem.library, problem.perturbation)]
                                     for name in (*LIBRARIES, *PERTURBATIONS)}
    for name, ids in groups.items():
        group = {one: passed[one] for one in ids}
        rates = {f"pass_at_{k}_percent": passes(group, clusters, k) for k in ks} if group else {}
        rates |= {"average_pass_rate_percent": average_pass_rate(group, clusters)} if group else {}
        found += [row(model, prefix + name, metric, number.percent()) for metric, number in rates.items()]
    return found


def drops(problems: Sequence[Problem], verdicts: Iterable[Verdict], k: int = 1, model: str = "", prefix: str = ""
          ) -> list[dict]:
    """What each kind of perturbation costs (the paper's Figure 5): percentage points of pass@k below the origins.

    Each perturbed problem is compared with the problem that it was made from; those whose origin has no verdict are
    left away. A value above 0 is a loss.
    """
    passed, found = by_problem(verdicts), []
    known = [problem for problem in problems if problem.id in passed]
    origins = {(problem.library, problem.library_id): problem.id for problem in known
               if problem.perturbation == PERTURBATIONS[0]}

    def value(one: str) -> float:
        return pass_at_k(len(passed[one]), sum(passed[one]), k)

    for name in PERTURBATIONS[1:]:
        pairs = [(origins[place], problem) for problem in known
                 if problem.perturbation == name and (place := (problem.library, problem.origin)) in origins]
        if pairs:
            lost = np.array([[100 * (value(origin) - value(problem.id))] for origin, problem in pairs])
            number = averages(lost, [problem.cluster for _, problem in pairs])[0]
            found.append(row(model, prefix + name, f"pass_at_{k}_drop_points", number))
    return found
