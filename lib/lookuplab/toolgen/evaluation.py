"""Held-out functions and what became of them: which ones are generated, and one row for each that was.

Generated functions are judged, each in its repository, by several workers and never twice. A worker has one Jedi and one
pylint process. Workers take questions from the two ends of a sorted list, so that what a process has read serves the
next question, too.
"""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pandas as pd
from tqdm import tqdm

from lookuplab.cluster import Cluster, check_seen, kept
from lookuplab.errors import UserError
from lookuplab.models.load import load_tokenizer
from lookuplab.toolgen.analysers import (
    JudgementStore,
    WorkerLost,
    key,
    repository_digest,
    within_imports,
)
from lookuplab.toolgen.dependencies import KINDS, DependencyTool, covered
from lookuplab.toolgen.functions import Filters, Function, Repository, extract
from lookuplab.toolgen.insertion import function_of, insert, locate, read_source
from lookuplab.toolgen.similarity import edit_similarity, identifier_metrics, normalized
from lookuplab.toolgen.success import SuccessTool, verdict

LEAST = 5  # functions of each repository: fewer say nothing about it


def test_functions(
    repositories: Sequence[Repository],
    filters: Filters = Filters(),
    limit: int | None = None,
    seed: int = 0,
    count_tokens: Callable[[str], int] | None = None,
) -> list[Function]:
    """The usable functions of held-out repositories, in the order of repositories, files and lines.

    ``limit`` and ``seed`` as in ``sample``, ``count_tokens`` as in ``functions.extract``.
    """
    seen: set[tuple[str, str]] = set()
    found = {
        place.name: extract(place, filters, seen, count_tokens).functions for place in repositories
    }
    return sample(found, limit, seed)


test_functions.__test__ = False  # for pytest, which collects by name


def sample(
    found: Mapping[str, Sequence[Function]], limit: int | None = None, seed: int = 0
) -> list[Function]:
    """``limit`` of the functions that were ``found``, by the repositories' names; None takes all.

    They are spread over the repositories in proportion to their functions, but at least LEAST of each (all where it has
    fewer); within a repository by a seeded hash of the ids, so that a larger limit only adds functions. Raises
    UserError where no function is left.
    """
    if not any(found.values()) or limit is not None and limit < 1:
        raise UserError(
            f"no usable function with a docstring in {', '.join(found) or 'no repository'} (limit: {limit}); give "
            "others, or wider limits"
        )
    least = min(LEAST, limit // len(found)) if limit else 0
    turns = []  # (share of its repository with this function, name, id): the smallest come first
    for name, functions in found.items():
        ids = [one.id for one in functions]
        ids.sort(key=lambda id: hashlib.sha256(f"{seed}/{id}".encode()).digest())
        for rank, id in enumerate(ids, 1):
            turns.append((rank / len(ids) if rank > least else 0, name, id))
    chosen = {id for _, _, id in sorted(turns)[:limit]}
    return [one for functions in found.values() for one in functions if one.id in chosen]


def most_tokens(models: Sequence[str]) -> Callable[[str], int]:
    """How many tokens a text has at most, over the vocabularies of these local models, named as for ``models.load``.

    The test functions are then short enough for each of them. A function's code has no marks, so of models that differ
    behind their last hyphen only (``gpt-base``, ``gpt-toolgen``) one counts.
    """
    names = {name.rpartition("-")[0]: name for name in models}.values()
    tokenizers = [load_tokenizer(name) for name in names]
    return lambda text: max(
        len(each(text, add_special_tokens=False)["input_ids"]) for each in tokenizers
    )


@dataclass(frozen=True)
class Task:
    """A generated function and the place that it is for: the `def` on ``line`` of ``file``, below ``root``.

    ``prediction`` is the whole function or its body, without marks.
    """

    id: str | int
    root: Path
    file: str
    line: int
    prediction: str


def judged_all(
    functions: Sequence[Function],
    predictions: Mapping[Hashable, Mapping[str, str]],
    variant: str = "paper",
    workers: int | None = None,
    store: Path | str | None = None,
) -> dict[Hashable, pd.DataFrame]:
    """The rows of ``judge``, in the functions' order, for several models at once: what the analysers read for one
    serves the others.

    ``predictions``: name -> {id: prediction}; with (model, condition) for names, the result is what ``tables`` takes.
    Raises UserError where an analyser gave no answer: a busy machine must not change a number.
    """
    tasks = [
        Task(one.id, one.root, one.file, one.line, texts[one.id])
        for texts in predictions.values()
        for one in functions
    ]
    found, size = judge(tasks, variant, workers, store, strict=True), len(functions)
    repositories = [one.repository for one in functions]
    return {
        name: found[at * size :][:size].reset_index(drop=True).assign(repository=repositories)
        for at, name in enumerate(predictions)
    }


def judge(
    tasks: Sequence[Task],
    variant: str = "paper",
    workers: int | None = None,
    store: Path | str | None = None,
    cluster: Cluster | None = None,
    strict: bool = False,
) -> pd.DataFrame:
    """One row for each task, in their order.

    Columns: ``id``, ``repository`` (its folder); ``predicted`` and ``wanted``, the texts that similarity is of: the
    bodies, or with ``variant="package"`` the whole functions, so that signature and docstring stand in both;
    ``exact_match`` up to white space; ``edit_similarity`` and those of ``similarity.identifier_metrics``, 0 to 1 or
    None; ``dependencies`` and ``covered``, counts, and the same a kind (``covered_method``); ``passed``, ``messages``
    (pylint's, see ``success``) and ``failures``, the ids of these messages joined by blanks; ``lost``, why pylint gave
    no answer (``passed`` is None then).

    ``store`` is a file, ":memory:", or None for the one beside the completion store. ``workers``: pairs of Jedi and
    pylint processes, by default one for each CPU; or those of ``cluster``. A kill loses at most one answer a worker.
    ``strict``: raise UserError for a lost answer.
    """
    digests = {root: repository_digest(root) for root in {task.root for task in tasks}}
    cases, questions = [], {}
    for task in tasks:
        where, digest = (task.root, task.file), digests[task.root]
        text = read_source(task.root / task.file)
        place = locate(text, task.line)
        new = insert(text, place, task.prediction)
        at = {"file": within_imports(task.root / task.file), "line": task.line}
        wanted = key("dependencies", digest, text=text, **at)
        success = key("success", digest, text=new.text, end_line=new.end_line, **at)
        # a reference's dependencies are asked once, whatever was predicted
        questions[wanted] = DependencyTool, *where, text, place
        questions[success] = SuccessTool, *where, new.text, (new.line, new.end_line)
        cases.append((task, place, new, wanted, success))
    with JudgementStore(store) as answers:
        known, lost = _answered(questions, answers, workers or os.cpu_count(), cluster)
    if strict and lost:
        raise UserError(
            f"{len(lost)} questions to pylint or Jedi were lost ({', '.join(sorted(set(lost.values())))}); the others "
            "are kept: run it again, with less other work on this machine"
        )
    rows = []
    for task, place, new, wanted, success in cases:
        _, body = function_of(place, task.prediction)
        texts = [body, place.body]
        if variant == "package":
            texts = ["\n".join(filter(None, (place.header, text))) for text in texts]
        dependencies, messages = known.get(wanted), known.get(success)
        against = verdict(messages or (), new, variant)
        row = {
            "id": task.id,
            "repository": str(task.root),
            "predicted": texts[0],
            "wanted": texts[1],
            "exact_match": normalized(texts[0]) == normalized(texts[1]),
            "edit_similarity": round(edit_similarity(*texts) / 100, 6),
            "dependencies": None,
            "covered": None,
            "passed": None if messages is None else not against,
            "lost": lost.get(success, ""),
            "messages": against,
            "failures": " ".join(dict.fromkeys(name for name, *_ in against)),
        }
        flags = covered(dependencies or (), body)
        if dependencies is not None:
            row |= {"dependencies": len(flags), "covered": sum(flags)}
        for kind in KINDS:
            own = [
                flag
                for flag, (_, one) in zip(flags, dependencies or (), strict=True)
                if one == kind
            ]
            row |= {f"dependencies_{kind}": len(own), f"covered_{kind}": sum(own)}
        rows.append(row | identifier_metrics(body, place.body))
    return pd.DataFrame(rows)


def _answered(
    questions: Mapping[str, tuple], store: JudgementStore, workers: int, cluster: Cluster | None
) -> tuple[dict, dict]:
    """The answers by their keys, from the store or asked for now and stored; and why some were lost."""
    known, lost, lock = store.get(questions), {}, Lock()
    left = [(name, question) for name, question in questions.items() if name not in known]
    left = deque(sorted(left, key=lambda item: [str(part) for part in item[1][1:3]]))
    bar = tqdm(total=len(left), desc="judging", unit=" questions", delay=1)

    def keep(name: str, answer: object, reason: str) -> None:
        with lock:
            if reason:
                lost[name] = reason
            else:
                store.put(name, answer)
                known[name] = answer
            bar.update()

    def work(take: Callable[[], tuple]) -> None:
        with DependencyTool() as jedi, SuccessTool() as pylint:
            while True:
                try:
                    name, question = take()
                except IndexError:  # nothing is left
                    return
                keep(name, *_ask(question, {DependencyTool: jedi, SuccessTool: pylint}.get))

    if cluster is not None:
        for number, found in cluster.map(_ask, [question for _, question in left]):
            keep(left[number][0], *found)
        return known, lost
    with bar, ThreadPoolExecutor(workers) as threads:
        try:  # by repository and file, from both ends
            list(threads.map(work, ([left.popleft, left.pop] * workers)[:workers]))
        finally:
            left.clear()  # after an error or an interrupt the workers end with the question that they are at
    return known, lost


def _ask(question: tuple, tool: Callable = kept) -> tuple[object, str]:
    """(answer, ""), or (None, why it was lost). On a worker of a cluster by the processes that it keeps."""
    kind, root, *rest = question
    check_seen(root)
    reason = ""
    for _ in range(2):  # what was lost is asked once more
        try:
            return tool(kind).judge(root, *rest), ""
        except WorkerLost as loss:
            reason = str(loss)
    return None, reason
