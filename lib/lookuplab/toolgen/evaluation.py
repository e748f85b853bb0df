"""Held-out functions: which ones are generated, and how each generated one is judged, one row per
function.

Generated functions are judged in their repositories, by several workers and never twice.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.execution.spread import Workers
from lookuplab.models.loading import load_tokenizer
from lookuplab.models.store import hashed
from lookuplab.toolgen.analysers import (
    JudgementStore,
    WorkerLost,
    answered,
    key,
    repository_digest,
    within_imports,
)
from lookuplab.toolgen.dependencies import covered, dependencies_of, package_coverage
from lookuplab.toolgen.functions import (
    Filters,
    Function,
    Repository,
    extract,
    locate_all,
    without_comments,
)
from lookuplab.toolgen.insertion import (
    Inserted,
    Place,
    function_of,
    insert,
    locate,
    read_source,
)
from lookuplab.toolgen.marking import marked
from lookuplab.toolgen.rules import PAPER_RULES, Rules
from lookuplab.toolgen.similarity import (
    blanked,
    edit_similarity,
    identifier_metrics,
    package_text,
)
from lookuplab.toolgen.success import BEYOND, VERSION, messages_of, verdict

LEAST = 5  # functions of each repository, at least: fewer say nothing about it


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


def listed_functions(
    file: Path | str, filters: Filters = Filters(), limit: int | None = None
) -> list[Function]:
    """The functions of the pinned sources whose ids are listed in ``file``, one per line, in its
    order.

    Of these, the first ``limit``, minus those that the filters leave out. Raises UserError for a
    line that is no id, a repository or a file that is not there, and if no function is left.
    """
    lines = paths.located(file).read_text(encoding="utf-8").splitlines()
    ids = [line for line in lines if line][:limit]
    files = defaultdict(set)
    for id in ids:
        name, _, path = id.partition(":")[0].partition("/")
        if not path.endswith(".py"):
            raise UserError(
                f"{file}: {id!r} is not a function's id, such as click/core.py:invoke#75"
            )
        files[name].add(path)
    found = {}
    for place in locate_all(files):
        there = [place.root / path for path in sorted(files[place.name])]
        if missing := [str(one) for one in there if not one.is_file()]:
            raise UserError(f"{file} names functions of files that do not exist: {missing[0]}")
        found |= {one.id: one for one in extract(place, filters, files=there).functions}
    if not found.keys() & ids:
        raise UserError(f"{file}: none of its {len(ids)} ids is a usable function of its file")
    return [found[id] for id in ids if id in found]


def sample(
    found: Mapping[str, Sequence[Function]], limit: int | None = None, seed: int = 0
) -> list[Function]:
    """``limit`` of the functions in ``found``, which maps repository names to functions; None takes
    all.

    They are spread over the repositories in proportion to their numbers of functions, but with at
    least LEAST of each (all, if it has fewer). Within a repository a seeded hash of the ids
    decides, so a larger limit only adds functions. Raises UserError if no function is left.
    """
    if not any(found.values()) or (limit is not None and limit < 1):
        raise UserError(
            f"no usable function with a docstring in {', '.join(found) or 'no repository'} (limit: {limit}); give "
            "other repositories or wider limits"
        )

    least = min(LEAST, limit // len(found)) if limit else 0
    turns = []  # (share of its repository up to this function, name, id), the smallest first
    for name, functions in found.items():
        ids = sorted((one.id for one in functions), key=lambda id: hashed(f"{seed}/{id}"))
        for rank, id in enumerate(ids, 1):
            turns.append((rank / len(ids) if rank > least else 0, name, id))
    chosen = {id for _, _, id in sorted(turns)[:limit]}
    return [one for functions in found.values() for one in functions if one.id in chosen]


def most_tokens(models: Sequence[str]) -> Callable[[str], int]:
    """A function that counts a text's tokens: the most over these local models, named as for
    ``models.load``.

    The test functions are then short enough for each of them. A function's code has no marks, so
    the mark in a vocabulary changes no number.
    """
    tokenizers = [load_tokenizer(name) for name in models]
    return lambda text: max(
        len(each(text, add_special_tokens=False)["input_ids"]) for each in tokenizers
    )


@dataclass(frozen=True)
class Task:
    """A generated function and the place that it is for: the `def` on ``line`` of ``file``, below
    ``root``.

    ``prediction`` is the whole function or its body, without marks; ``marked`` is the reference's
    body with the marks of the replication package, from which its dependency coverage is computed.
    """

    id: str | int
    root: Path
    file: str
    line: int
    prediction: str
    marked: str = ""

    def inserted(self) -> tuple[str, Place, Inserted]:
        """The file's text, the function's place in it, and the file with the prediction. Raises
        UserError.
        """
        text = read_source(self.root / self.file)
        place = locate(text, self.line)
        return text, place, insert(text, place, self.prediction)


def judged_all(
    functions: Sequence[Function],
    predictions: Mapping[Hashable, Mapping[str, str]],
    rules: Rules = PAPER_RULES,
    workers: int | None = None,
) -> dict[Hashable, pd.DataFrame]:
    """The rows of ``judge``, in the functions' order, for several models at once.

    What the analysers read for one model also serves the others. ``predictions``: name -> {id:
    prediction}; if the names are (model, condition), the result is the input of ``tables``. Raises
    UserError if an analyser gave no answer.
    """
    if not functions:
        raise UserError("there is no function to judge: check the parameters that choose functions")
    records = marked(functions, rules, workers) if rules.whole_functions else []
    marks = {one["id"]: one["marked_body"] for one in records}
    tasks = [
        Task(one.id, one.root, one.file, one.line, texts[one.id], marks.get(one.id, ""))
        for texts in predictions.values()
        for one in functions
    ]
    found = judge(tasks, rules, workers, strict=True)
    found["repository"] = [one.repository for one in functions] * len(predictions)
    starts = range(0, len(found), len(functions))
    parts = [found[at:][: len(functions)].reset_index(drop=True) for at in starts]
    return dict(zip(predictions, parts, strict=True))


def judge(
    tasks: Sequence[Task],
    rules: Rules = PAPER_RULES,
    workers: int | None = None,
    store: Path | str | None = None,
    cluster: Workers | None = None,
    strict: bool = False,
) -> pd.DataFrame:
    """One row for each task, in their order.

    Columns: ``id``, ``repository`` (its folder); ``predicted`` and ``wanted``, the texts that are
    compared: the bodies, or with PACKAGE_RULES those of ``similarity.package_text`` (both
    include the signature);
    ``exact_match`` up to white space; ``edit_similarity`` and those of
    ``similarity.identifier_metrics``, 0 to 1 or None; ``dependencies`` and ``covered``, counts (the
    package's from ``Task.marked``); ``passed``, ``messages`` (pylint's, see ``success``) and
    ``failures``, the ids of these messages joined by blanks; ``lost``, why pylint gave no answer
    (``passed`` is None then).

    ``store`` is a file, ":memory:", or None for the one beside the completion store; ``workers``,
    ``cluster`` and
    ``strict`` are those of ``analysers.answered``.
    """
    digests = {root: repository_digest(root) for root in {task.root for task in tasks}}
    cases, questions = [], {}
    for task in tasks:
        digest, (text, place, new) = digests[task.root], task.inserted()
        at = f"{within_imports(task.root / task.file)}:{task.line}"
        uses = key("dependencies", at, digest, text=text)
        success = key("success", at, digest, text=new.text, end_line=new.end_line, check=VERSION)
        # a reference's dependencies are found once, whatever was predicted
        if not rules.whole_functions:
            questions[uses] = task.root, task.file, "dependencies", text, place
        lines = new.line, new.end_line + BEYOND
        questions[success] = task.root, task.file, "success", new.text, lines, digest
        cases.append((task, place, new, uses, success))
    known, lost = answered(JudgementStore(store), questions, _ask, strict, workers, cluster)
    rows = []
    for task, place, new, uses, success in cases:
        whole, body = function_of(place, task.prediction)
        if rules.whole_functions:
            read = whole.startswith(place.header)  # from a model that writes a body
            predicted = package_text(place, body, read) if read else blanked(whole)
            wanted = package_text(place, without_comments(place.body), read)
            marks = package_text(place, task.marked, read)
            counts = package_coverage(marks, place.signature, predicted)
        else:
            predicted, wanted = body, place.body
            counts = {"dependencies": None, "covered": None}
            if (found := known.get(uses)) is not None:
                counts = {"dependencies": len(found), "covered": covered(found, body)}
        similarity, messages = edit_similarity(predicted, wanted), known.get(success)
        against = verdict(messages or (), new, rules)
        row = {
            "id": task.id,
            "repository": str(task.root),
            "predicted": predicted,
            "wanted": wanted,
            "exact_match": similarity == 100,
            "edit_similarity": round(similarity / 100, rules.digits),
            **counts,
            "passed": None if messages is None else not against,
            "lost": lost.get(success, ""),
            "messages": against,
            "failures": " ".join(dict.fromkeys(name for name, *_ in against)),
        }
        rows.append(row | identifier_metrics(body, place.body))
    return pd.DataFrame(rows)


def _ask(root: Path, file: str, kind: str, *question: object) -> tuple[object, str]:
    """(Answer, ""), or (None, why it was lost)."""
    try:
        ask = dependencies_of if kind == "dependencies" else messages_of
        return ask(root, file, *question), ""
    except WorkerLost as lost:
        return None, str(lost)
