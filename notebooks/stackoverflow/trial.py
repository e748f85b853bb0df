"""Runs models on the same problems in several ways, for the notebooks of this folder."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from lookuplab.benchmark import evaluate
from lookuplab.errors import UserError
from lookuplab.models import Decoding, load
from lookuplab.models.names import mini_models
from lookuplab.stackoverflow.asking import DS1000_DECODING, Ds1000Bench, Matches, object_of
from lookuplab.stackoverflow.ds1000 import Problem
from lookuplab.stackoverflow.grader import (
    Grader,
    environment,
    failing_references,
    lines_by_error,
    problem_ids,
)


def gradable(
    problems: Sequence[Problem],
    models: Sequence[str] = (),
    python: str = "",
    sandbox: str = "",
    leave_out: str = "",
) -> tuple[list[Problem], Grader]:
    """Return the problems whose reference passes here, and their grader. Print which problems are
    left out, and why.

    ``models`` are the models that will answer. On a machine without namespaces, mini models'
    programs run unprotected, and other models' programs run only if ``sandbox`` is "none". For
    ``python`` see ``environment``, for ``sandbox`` see ``sandbox.server.choose_sandbox``.
    ``leave_out`` names further problems to leave out, as in ``problem_ids``. Raises UserError if no
    problem is left.
    """
    by_name = problem_ids(problems, leave_out)
    grader = Grader(environment(python), sandbox, own=set(models) <= set(mini_models()))
    tried = [problem for problem in problems if problem.id not in by_name]
    failing = failing_references(tried, grader)
    lines = [f"the reference fails here: {line}" for line in lines_by_error(failing.items())]
    if by_name:
        lines.append(f"by name: {', '.join(sorted(by_name))}")
    for line in lines:
        print(f"left out, {line}", file=sys.stderr)
    left = [problem for problem in tried if problem.id not in failing]
    if not left:
        raise UserError(f"no problem is left: {'; '.join(lines)}")
    return left, grader


def hits(matches: Matches, problems: Sequence[Problem], k: int) -> dict[str, str]:
    """Return {problem id: "hit", "miss" or ""}: "hit" if one of the problem's first ``k`` snippets
    is about the problem's object, "miss" if none is, and "" for a problem without an object.
    """
    found = {}
    for problem in problems:
        objects = map(object_of, matches[problem.id][:k])
        found[problem.id] = problem.object and ("hit" if problem.object in objects else "miss")
    return found


@dataclass
class Trial:
    """The judged completions of models that answered the same problems in several ways: the data
    behind the figures.

    ``frames`` maps (model, way) to the frame of ``evaluate``. ``identities`` maps the name of a
    model to its ``identity`` (what changes its answers), in the order in which the models ran.
    """

    grader: Grader
    decoding: Decoding
    frames: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict)
    identities: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return list(self.identities)

    @property
    def ks(self) -> list[int]:
        """Return the values of k for which pass@k is computed: one sample, and all samples."""
        return sorted({1, self.decoding.n})

    @property
    def account(self) -> dict[str, object]:
        """Return the arguments of ``Artifact.save`` that describe the completions."""
        return {
            "models": self.identities.values(),
            "seeds": {"samples": self.decoding.seed},
            "parameters": {"grader": self.grader.conditions},
        }


def evaluate_ways(
    models: Sequence[str],
    problems: Sequence[Problem],
    matches: Matches,
    ways: Mapping[str, Mapping[str, Any]],
    samples: int,
    max_new_tokens: int,
    grader: Grader,
) -> Trial:
    """Run each model in each way, test the solutions, and return the Trial. Print how many answers
    could not be judged.

    ``ways`` maps the name of a way to the fields of ``Ds1000Bench`` that it sets, such as
    ``examples``, ``budget`` or other ``matches``.
    """
    trial = Trial(grader, replace(DS1000_DECODING, n=samples, max_new_tokens=max_new_tokens))
    bench = Ds1000Bench(problems, grader, trial.decoding, matches)
    for name in models:  # one after the other, because large models do not fit into memory together
        model = load(name)
        trial.identities[model.name] = model.identity
        for way, changes in ways.items():
            frame = evaluate(model, replace(bench, **changes), way)
            if lost := frame.passed.isna().sum():
                print(f"{model.name}, {way}: {lost} of {len(frame)} answers are not judged")
            trial.frames[model.name, way] = frame
    return trial
