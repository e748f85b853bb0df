"""Draws the failed answers of real models that the readers label
(data/published/near_misses/DESIGN.md). To draw again, from the authors' answers and the verdicts of
``lookuplab score ds1000`` (``verdicts-MODEL.jsonl``):

    python -m lookuplab_notebooks.published.near_draw PROBLEMS VERDICTS_FOLDER OUTPUT
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from lookuplab.models.store import hashed
from lookuplab.stackoverflow.ds1000 import Problem, load_problems

MODELS = (
    "codex002",
    "gpt-3.5-turbo-0613",
    "gpt-3.5-turbo-0125",
    "gpt-4-0613",
    "gpt-4-turbo-2024-04-09",
    "gpt-4o-2024-08-06",
)
PRINTED = "383"  # the problem whose answer the paper prints; readers are shown it as an example
OF_EACH_MODEL = {"Pandas": 8, "Numpy": 5, "Scipy": 4, "Sklearn": 3, "Pytorch": 2, "Tensorflow": 2}
DEVELOP = 72  # least number of answers in the develop half


def drawn(problems: Iterable[Problem], failed: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Return the answers to label, with model, problem_id, library, cluster, population (answers in
    the stratum) and half (develop or held-out), by model and problem.

    failed: (model, problem's id) of every judged answer that failed.
    """
    by_id = {problem.id: problem for problem in problems}
    rows = [
        {"model": model, "problem_id": int(id), "library": by_id[id].library}
        | {"cluster": by_id[id].cluster, "order": hashed(f"near miss {model} {id}")}
        for model, id in failed
        if by_id[id].library in OF_EACH_MODEL and id != PRINTED
    ]
    frame = pd.DataFrame(rows).sort_values("order")
    strata = frame.groupby(["model", "library"])
    frame["population"] = strata.problem_id.transform("size")
    frame = frame[strata.cumcount() < frame.library.map(OF_EACH_MODEL)]
    sizes = frame.cluster.value_counts()
    sizes = sizes[sorted(sizes.index, key=lambda name: hashed(f"near miss half {name}"))]
    before = sizes.cumsum() - sizes
    develop = frame.cluster.isin(sizes.index[before < DEVELOP])
    frame["half"] = develop.map({True: "develop", False: "held-out"})
    return frame.drop(columns="order").sort_values(["model", "problem_id"], ignore_index=True)


def published_answers(folder: Path, model: str) -> dict[str, str]:
    """Return {problem's id: a model's answer}, from a file of DS-1000's authors."""
    texts = {}
    for line in (folder / f"{model}-answers.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        code = record["code"]
        texts[str(record["metadata"]["problem_id"])] = code[0] if isinstance(code, list) else code
    return texts


def verdicts(folder: Path, model: str) -> list[tuple[str, bool | None, str]]:
    """Return (problem's id, whether the answer passed or None, error) of a model's answers."""
    lines = (folder / f"verdicts-{model}.jsonl").read_text("utf-8").splitlines()
    each = map(json.loads, lines)
    return [(str(one["problem_id"]), one["passed"], one["error"]) for one in each]


if __name__ == "__main__":
    problems, folder, output = sys.argv[1:]
    failed = [
        (model, id)
        for model in MODELS
        for id, passed, _ in verdicts(Path(folder), model)
        if passed is False
    ]
    drawn(load_problems(problems), failed).to_csv(output, index=False, lineterminator="\n")
