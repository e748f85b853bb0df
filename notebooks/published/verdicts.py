"""Reads the committed verdicts on published answers to DS-1000, judges the answers again, and makes
the rows of the artifacts.

``data/published/ds1000/verdicts.csv.gz`` has a row for each model and problem: labels of the
problem; ``passed`` (1, 0, or empty if the answer cannot be judged); the ``cause`` of a failure; and
``repaired``. For ``passed``, the code is cut out of the answer in the authors' way, which may lose
fenced or unindented code. ``repaired`` is the verdict if such code is kept.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.benchmark import judged, written
from lookuplab.results.paper import attach
from lookuplab.run import downloads
from lookuplab.scoring.rates import Rows, bare_row, mcnemar, rate, row
from lookuplab.stackoverflow import scores
from lookuplab.stackoverflow.asking import Ds1000Bench
from lookuplab.stackoverflow.ds1000 import (
    LIBRARIES,
    PERTURBATIONS,
    TEST_FUNCTIONS,
    Problem,
    load_problems,
    program,
)
from lookuplab.stackoverflow.grader import Grader, environment
from lookuplab_notebooks.stackoverflow.near_misses import tree_of

GROUP = "ds1000-answers"
FILE = paths.DATA / "published" / "ds1000" / "verdicts.csv.gz"
LABELS = ["id", "library", "library_id", "perturbation", "origin"]
CAUSES = ("does not compile", "exception", "wrong value", "text check", "stopped")
_WAYS = ("official", "repaired")  # ways to cut the code out of an answer


def committed(models: Sequence[str] = ()) -> pd.DataFrame:
    """Return the committed verdicts on the answers of these models, by default of all models. The
    columns are ``model``, LABELS, ``passed`` and ``repaired`` (True, False or None) and ``cause``.
    """
    frame = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    words = {"1": True, "0": False, "": None}
    for way in ("passed", "repaired"):
        frame[way] = [words[text] for text in frame[way]]
    return frame[frame.model.isin(models)] if models else frame


def judge(models: Sequence[str] = ()) -> pd.DataFrame:
    """Judge the answers again and return the verdicts in the form of ``committed``. Problems,
    answers and grader are downloaded if they are missing.

    Raises UserError if a download is needed and there is no network.
    """
    problems = load_problems(downloads.get(downloads.find("ds1000")))
    downloads.get(downloads.find("ds1000-grader"))
    grader = Grader(environment("ds1000-grader"))
    frames = []
    for source in downloads.members(GROUP):
        name = source.name.removeprefix(f"{GROUP}-")
        if not models or name in models:
            answers = [record for _, record in paths.json_lines(downloads.get(source))]
            frames.append(verdicts_on(problems, answers, grader).assign(model=name))
    return pd.concat(frames, ignore_index=True)[["model", *LABELS, "passed", "cause", "repaired"]]


def verdicts_on(
    problems: Sequence[Problem], answers: Sequence[dict[str, Any]], grader: Grader
) -> pd.DataFrame:
    """Judge answers in the format of DS-1000's authors, with an id and ``code``. Return a row for
    each, with the columns LABELS, ``passed``, ``cause`` and ``repaired``.
    """
    tasks = {problem.id: problem for problem in problems}
    ids = [str(one["id"] if "id" in one else one["metadata"]["problem_id"]) for one in answers]
    texts = [code if isinstance(code := one["code"], str) else code[0] for one in answers]
    pairs = [(tasks[id], written(id, text)) for id, text in zip(ids, texts, strict=True)]
    official, repaired = (
        judged(Ds1000Bench(problems, grader, variant=way, indent=way == "repaired"), pairs)
        for way in _WAYS
    )
    asked = [task for task, _ in pairs]
    return pd.DataFrame([vars(task) for task in asked], columns=LABELS).assign(
        passed=official.passed,
        cause=causes(asked, official, grader),
        repaired=repaired.passed,
    )


def causes(tasks: Sequence[Problem], frame: pd.DataFrame, grader: Grader) -> list[str]:
    """Return why each answer in a frame of ``judged`` failed: one of CAUSES, and for an exception
    also its type (``exception KeyError``). The cause is "" if the answer passed.

    The cause is "text check" if the answer's values are right, but the problem also tests the text
    of the code. Two causes mean that there is no verdict. The cause is "no reference" if the
    problem's own reference fails. The cause is "one process" if the answer passes only when it runs
    in the same process as its test.
    """
    found = []
    for task, passed, code, error in zip(
        tasks, frame.passed, frame.solution, frame.error, strict=True
    ):
        kind = error.partition(":")[0]
        if passed is None:
            found.append("no reference" if "reference" in error else "one process")
        elif passed:
            found.append("")
        elif tree_of(task, code) is None:
            found.append("does not compile")
        elif not kind.isidentifier():  # not an exception
            found.append("stopped")
        elif kind != "AssertionError":
            found.append(f"exception {kind}")
        else:
            found.append("wrong value")
    asked = [
        at
        for at, cause in enumerate(found)
        if cause == "wrong value" and f"{TEST_FUNCTIONS[1]}(" in tasks[at].context
    ]
    alone = [program(tasks[at], frame.solution[at], TEST_FUNCTIONS[:1]) for at in asked]
    for at, outcome in zip(asked, grader.outcomes(alone), strict=True):
        found[at] = "text check" if outcome.passed else found[at]
    return found


def tables(frame: pd.DataFrame, way: str = "passed") -> dict[tuple[str, str], pd.DataFrame]:
    """Return {(model, ""): table of ``scores.solved``} for the verdicts in column ``way``, which is
    ``passed`` or ``repaired``.
    """
    texts = dict.fromkeys(("prompt", "reference", "context"), "")
    return {
        (model, ""): scores.solved(
            [Problem(**texts, **labels) for labels in part[LABELS].to_dict("records")],
            part.assign(passed=part[way]),
            [1],
        )
        for model, part in frame.groupby("model", sort=False)
    }


def library_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return four kinds of rows for each model: pass@1 by library and overall, with the printed
    number; the change of pass@1 from the verdicts in the column ``passed`` to those in the column
    ``repaired``; the number of problems by which our counts differ from the printed ones; and the
    causes of failures.
    """
    own = tables(frame)
    rows = scores.rows(own, parts=[*LIBRARIES, "all"])
    repaired = tables(frame, "repaired")
    for (model, _), before in own.items():
        rows += _repair_rows(model, before, repaired[model, ""])
    table = _attached(rows, "ds1000")
    return pd.concat([table, pd.DataFrame(_printed_rows(frame, table) + _failure_rows(frame))])


def _attached(rows: Rows, artifact: str) -> pd.DataFrame:
    """Return rows of ``scores.rows`` with the printed numbers. The conditions begin with "/",
    because the only way of asking has the name "". This slash is removed.
    """
    named = pd.DataFrame(rows).assign(condition=lambda table: table.condition.str.lstrip("/"))
    return attach(named, paper="published", artifact=artifact)


def _repair_rows(model: str, before: pd.DataFrame, after: pd.DataFrame) -> Rows:
    """Return the change from ``passed`` to ``repaired``, paired by problem, with McNemar's counts
    and p value.
    """
    both = {(model, "official"): before, (model, "repaired"): after}
    rows = [one for one in scores.rows(both, [_WAYS]) if " - " in one["condition"]]
    shared = before.index.intersection(after.index)
    lost, won, p = mcnemar(before.passed[shared] > 0, after.passed[shared] > 0)
    condition = "repaired/all - official/all"
    for metric, value in {"won_problems": won, "lost_problems": lost, "mcnemar_p": p}.items():
        rows.append(bare_row(model, condition, metric, value, len(shared)))
    return rows


def _printed_rows(frame: pd.DataFrame, table: pd.DataFrame) -> Rows:
    """Return rows that compare our counts with each printed number: the four numbers of
    ``scores.compared_with_printed``.
    """
    rows = []
    for one in table[table.paper_value.notna()].itertuples():
        part = frame[frame.model == one.model]
        part = part if one.condition == "all" else part[part.library == one.condition]
        counts = scores.compared_with_printed(part.passed, one.paper_value)
        rows += [
            bare_row(one.model, one.condition, f"{name}_problems", count, len(part))
            for name, count in counts.items()
        ]
    return rows


def _failure_rows(frame: pd.DataFrame) -> Rows:
    """Return the causes of each model's failures in percent, with clustered intervals, and the
    number of answers for each type of exception.
    """
    rows = []
    for model, part in frame[frame.passed.eq(False)].groupby("model", sort=False):
        clusters = part.library + " " + part.origin
        kinds = part.cause.str.partition("exception ")
        for cause in CAUSES:
            share = rate(part.cause.str.startswith(cause), clusters).percent()
            metric = "compile_error" if "compile" in cause else cause.replace(" ", "_")
            rows.append(row(model, "failures", f"{metric}_percent", share))
        for kind, count in kinds[2][kinds[1] != ""].value_counts().items():
            rows.append(bare_row(model, f"exception/{kind}", "answers", count, len(part)))
    return rows


def perturbation_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows for each model and kind of perturbation: pass@1; how far it is below the pass@1
    of the original problems (paired, clustered); how many problems are solved only before or only
    after the perturbation; and the p value of McNemar's test on these two numbers. The p values of
    all models and kinds are corrected together, by Holm's method.
    """
    own = tables(frame)
    rows = scores.rows(own, parts=[*PERTURBATIONS, "all"])
    tests = []
    for (model, _), table in own.items():
        origins = table[table.perturbation == PERTURBATIONS[0]].set_index(["library", "library_id"])
        both = table.join(origins.passed.rename("before"), on=["library", "origin"], how="inner")
        for kind in PERTURBATIONS[1:]:
            part = both[both.perturbation == kind]
            lost, won, p = mcnemar(part.before > 0, part.passed > 0)
            tests.append((model, kind, len(part), {"lost_problems": lost, "won_problems": won}, p))
    ascending = pd.Series([p for *_, p in tests]).sort_values()
    holm = (ascending * np.arange(len(tests), 0, -1)).cummax().clip(upper=1)
    for at, (model, kind, n, counts, _) in enumerate(tests):
        for metric, value in (counts | {"holm_p": holm[at]}).items():
            rows.append(bare_row(model, kind, metric, value, n))
    return _attached(rows, "perturbations")
