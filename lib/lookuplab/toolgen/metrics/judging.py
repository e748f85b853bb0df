"""Generated functions judged, each in its repository: by several workers, and never twice.

A worker has one Jedi and one pylint process. Workers take files from the two ends of a sorted list, so that what a
process has read serves the next file, too.
"""

import os
import queue
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from lookuplab.cluster import Cluster, check_seen, kept
from lookuplab.errors import UserError
from lookuplab.toolgen.metrics import identifiers, similarity
from lookuplab.toolgen.metrics.dependencies import KINDS, Dependency, DependencyTool, covered
from lookuplab.toolgen.metrics.insertion import Inserted, Place, function_of, insert
from lookuplab.toolgen.metrics.judgement_store import JudgementStore, key, repository_digest
from lookuplab.toolgen.metrics.success import Message, SuccessTool, Verdict, imports_begin, verdict
from lookuplab.toolgen.metrics.worker import WorkerLost

Store = JudgementStore | str | os.PathLike | bool | None


@dataclass(frozen=True)
class Task:
    """A generated function and the place that it is for; ``text`` is the file's, ``root`` the repository's folder."""

    id: str | int
    root: Path
    file: str
    text: str
    place: Place
    prediction: str


@dataclass(frozen=True)
class Judged:
    """``predicted`` and ``wanted`` are the texts that similarity is of; ``body`` is the predicted body.

    ``dependencies`` is None where Jedi raised an error, or gave no answer.
    """

    task: Task
    predicted: str
    wanted: str
    body: str
    dependencies: list[Dependency] | None
    verdict: Verdict


@dataclass(frozen=True)
class _Question:
    """What pylint and Jedi are to say about a task, by the keys of their answers; ``missing`` are not known yet."""

    task: Task
    inserted: Inserted
    success: str
    dependencies: str
    missing: frozenset[str] = frozenset()


def judge(tasks: Sequence[Task], variant: str = "paper", store: Store = None, workers: int | None = None,
          progress: bool = True, cluster: Cluster | None = None, strict: bool = False) -> list[Judged]:
    """All judgements in the order of ``tasks``; one that was lost to a time-out or a crash says so.

    ``strict``: raise UserError instead, as a busy machine must not change a number.

    ``store`` as in ``models.complete``: None is the one beside the completion store, False none. ``workers``: pairs of
    Jedi and pylint processes, by default one for each CPU; or those of ``cluster``. A kill loses at most one function a
    worker.
    """
    similarity.check_variant(variant)
    if isinstance(store, JudgementStore):
        return _judge(tasks, variant, store, workers, progress, cluster, strict)
    with JudgementStore(":memory:" if store is False else None if store is True else store) as opened:
        return _judge(tasks, variant, opened, workers, progress, cluster, strict)


def _judge(tasks: Sequence[Task], variant: str, store: JudgementStore, workers: int | None, progress: bool,
           cluster: Cluster | None, strict: bool) -> list[Judged]:
    digests = {root: repository_digest(root) for root in {task.root for task in tasks}}
    questions = [_question(task, digests[task.root]) for task in tasks]
    known = store.get(key for each in questions for key in (each.success, each.dependencies))
    lost: dict[str, str] = {}
    waiting, asked = [], set(known)
    for each in questions:
        if missing := frozenset((each.success, each.dependencies)) - asked:
            waiting.append(replace(each, missing=missing))
            asked |= missing  # a reference's dependencies are asked once, however many predictions it has
    waiting.sort(key=lambda each: (str(each.task.root), each.task.file, each.task.place.line))
    with tqdm(total=len(waiting), desc="judging", unit=" functions", disable=not progress, delay=1) as bar:
        for answers, reasons in _answers(waiting, workers or os.cpu_count() or 1, cluster):
            for one, answer in answers.items():
                store.put(one, answer)
            known |= answers
            lost |= reasons
            bar.update()
    if strict and lost:
        first = next(each.task.id for each in questions if {each.success, each.dependencies} & set(lost))
        reasons = ", ".join(sorted(set(lost.values())))
        raise UserError(f"{len(lost)} questions to pylint or Jedi were lost ({reasons}), first for {first}; the others "
                        "are kept: run it again, with less other work on this machine")
    return [_judged(each, known, lost, variant) for each in questions]


def _question(task: Task, repository: str) -> _Question:
    inserted = insert(task.text, task.place, task.prediction)
    path = (task.root / task.file).resolve()
    where = {"file": path.relative_to(imports_begin(path)).as_posix(), "line": task.place.line}
    success = key("success", repository, text=inserted.text, end_line=inserted.end_line, **where)
    return _Question(task, inserted, success, key("dependencies", repository, text=task.text, **where))


def _answers(waiting: Sequence[_Question], workers: int, cluster: Cluster | None):
    """(answers, losses with their reason) of one task after the other, as they come."""
    if cluster is not None:
        yield from (found for _, found in cluster.map(_ask_there, waiting))
        return
    left, done = deque(waiting), queue.Queue()
    threads = [threading.Thread(target=_work, args=(left, number % 2 == 1, done), daemon=True)
               for number in range(min(workers, len(waiting)))]
    for thread in threads:
        thread.start()
    try:
        for _ in waiting:
            found = done.get()
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        left.clear()  # after an error or an interrupt the workers end with the function that they are at


def _work(left: deque, backwards: bool, done: queue.Queue) -> None:
    """One worker: ask for one task after the other, from one end of the list."""
    try:
        with DependencyTool() as jedi, SuccessTool() as pylint:
            while left:
                try:
                    each = left.pop() if backwards else left.popleft()
                except IndexError:  # another worker took the last one
                    return
                done.put(_ask(each, jedi, pylint))
    except BaseException as error:  # to be raised where the results are waited for
        done.put(error)


def _ask_there(each: _Question) -> tuple[dict, dict]:
    """One task on a worker of a cluster, which keeps its Jedi and pylint processes for the next."""
    check_seen(each.task.root)
    return _ask(each, kept(DependencyTool), kept(SuccessTool))


def _ask(each: _Question, jedi: DependencyTool, pylint: SuccessTool) -> tuple[dict, dict]:
    task, lines = each.task, (each.inserted.line, each.inserted.end_line)

    def dependencies() -> list | None:
        found = jedi.trace(task.root, task.text, task.file, task.place)
        return found and [[one.key, one.kind] for one in found]

    def messages() -> list:
        found = pylint.messages(task.root, task.file, each.inserted.text, lines)
        return [[one.id, one.line, one.text] for one in found]

    answers, lost = {}, {}
    for name, question in ((each.dependencies, dependencies), (each.success, messages)):
        for _ in range(2 if name in each.missing else 0):  # what was lost is asked once more
            try:
                answers[name] = question()
                break
            except WorkerLost as loss:
                lost[name] = loss.reason
    return answers, {name: reason for name, reason in lost.items() if name not in answers}


def _judged(each: _Question, known: dict, lost: dict[str, str], variant: str) -> Judged:
    place = each.task.place
    _, body = function_of(place, each.task.prediction)
    predicted, wanted = (similarity.scored_text(place.signature, place.docstring, text, variant)
                         for text in (body, place.body))
    found = known.get(each.dependencies)
    said = known.get(each.success)
    return Judged(
        each.task, predicted, wanted, body, None if found is None else [Dependency(*one) for one in found],
        Verdict(None, lost=lost[each.success]) if said is None
        else verdict([Message(*one) for one in said], each.inserted, variant))


def row(found: Judged) -> dict:
    """One judgement as plain values: shares 0 to 1, None where there is no value.

    ``dependencies`` and ``covered`` count; ``passed`` is None where pylint gave no answer and ``lost`` says why.
    """
    flags = None if found.dependencies is None else covered(found.dependencies, found.body)
    texts = found.body, found.task.place.body
    return {
        "id": found.task.id,
        "exact_match": similarity.exact_match(found.predicted, found.wanted),
        "edit_similarity": round(similarity.edit_similarity(found.predicted, found.wanted) / 100, 6),
        "dependencies": None if flags is None else len(flags),
        "covered": None if flags is None else sum(flags),
        "passed": found.verdict.passed,
        "lost": found.verdict.lost,
        "messages": [[message.id, message.line, message.text] for message in found.verdict.messages],
        "next_identifier": identifiers.next_match(*texts),
        "identifier_sequence": identifiers.sequence_match(*texts),
        "prefix": identifiers.prefix_match(*texts),
    }


def kind_counts(found: Judged) -> dict[str, int]:
    """``dependencies_<kind>`` and ``covered_<kind>`` for each of KINDS; zeros where Jedi gave no answer."""
    known = found.dependencies or []
    flags = covered(known, found.body)
    counts = {}
    for kind in KINDS:
        of_kind = [flag for one, flag in zip(known, flags, strict=True) if one.kind == kind]
        counts |= {f"dependencies_{kind}": len(of_kind), f"covered_{kind}": sum(of_kind)}
    return counts
