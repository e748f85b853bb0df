"""Evaluates models on held-out functions. This module chooses the functions that models generate,
and returns one row of judgements for each generated function.

A generated function is judged inside its repository. Several workers share the judging. Results are
stored, so no function is judged twice.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pylint.lint import discover_package_path

from lookuplab.benchmark import Asked, Benchmark, judged, written
from lookuplab.errors import UserError
from lookuplab.models import Completion, Prompt, load
from lookuplab.models.local import LocalModel
from lookuplab.paths import hashed
from lookuplab.scoring.rates import (
    Array,
    Rate,
    Rows,
    averages,
    bare_row,
    jackknife,
    of_share,
    rate,
    row,
)
from lookuplab.toolgen.analysers import (
    JudgementStore,
    WorkerLost,
    answer_all,
    ask_worker,
    joined_reasons,
    judgement_key,
    repository_digest,
    within_imports,
)
from lookuplab.toolgen.functions import (
    Filters,
    Function,
    extract,
    without_comments,
)
from lookuplab.toolgen.generation import FUNCTION_DECODING, Generations, ToolModel
from lookuplab.toolgen.jedi_tool import own_keys
from lookuplab.toolgen.marking import marked_records
from lookuplab.toolgen.rules import PAPER_RULES, ModelKind, Rules, prompt_text
from lookuplab.toolgen.similarity import (
    COLUMNS,
    blank_strings,
    bleu,
    bleu_counts,
    code_bleu,
    code_bleu_counts,
    count_covered,
    expressions,
    identifiers,
    package_2023_coverage,
    package_2023_text,
    package_coverage,
    package_text,
    similarities,
)
from lookuplab.toolgen.source import (
    Inserted,
    Location,
    insert,
    is_empty,
    location_of,
    read_source,
    reindent,
)
from lookuplab.toolgen.success import (
    CHECK_VERSION,
    CHECKS,
    CRASHES,
    Message,
    findings,
)
from lookuplab.work import Workers

# a sample has at least this many functions per repository; with fewer, it would say nothing about
# the repository
LEAST_FUNCTIONS = 5
# By the rules of the packages, pylint's messages on the next lines after a function also count
# against the function: the next BEYOND lines in package-2024, only the next line in package-2023.
BEYOND = 2
# increase it whenever ``similarity.expressions`` would find other uses in the same text
USES_VERSION = 3


def held_out_functions(
    repositories: Sequence[Path],
    filters: Filters = Filters(),
    limit: int | None = None,
    seed: int = 0,
    count_tokens: Callable[[str], int] | None = None,
) -> list[Function]:
    """Return the usable functions of held-out repositories, ordered by repository, file and line.

    ``limit`` and ``seed`` have the same meaning as in ``sample``, ``count_tokens`` as in
    ``functions.extract``.
    """
    seen: set[tuple[str, str]] = set()
    left_out = Counter[str]()
    functions = {}
    for repository in repositories:
        found = extract(repository, filters, seen, count_tokens)
        functions[repository.name] = found.functions
        left_out += found.left_out
    return sample(functions, limit, seed, left_out)


def sample(
    by_repository: Mapping[str, Sequence[Function]],
    limit: int | None = None,
    seed: int = 0,
    left_out: Counter[str] | None = None,
) -> list[Function]:
    """Return a sample of ``limit`` functions, or all functions if ``limit`` is None.
    ``by_repository`` is {repository's name: functions}.

    Each repository contributes in proportion to its number of functions, but at least
    LEAST_FUNCTIONS (or all of its functions, if it has fewer). A ``limit`` that is too small for
    this minimum is divided evenly. Within a repository, a seeded hash of the functions' ids decides
    which are chosen. Once each repository has its minimum, a larger limit therefore only adds
    functions. Raises UserError if no function is left; the message says how many functions were
    ``left_out`` for each reason.
    """
    if not any(by_repository.values()) or (limit is not None and limit < 1):
        names = ", ".join(by_repository) or "no repository"
        reasons = [f"{n} {reason}" for reason, n in (left_out or Counter[str]()).most_common()]
        raise UserError(
            f"no usable function with a docstring in {names} (limit: {limit}); "
            f"left out: {', '.join(reasons) or 'none'}; give other repositories, a "
            "sub-folder of a repository that has too many files, or a larger max_model_tokens if "
            "functions have too many model tokens"
        )

    least = min(LEAST_FUNCTIONS, limit // len(by_repository)) if limit else 0
    # For each function: (rank of the function in its repository, divided by the number of the
    # repository's functions; repository's name; function's id). The smallest are chosen. The first
    # ``least`` functions of a repository have 0 in place of the quotient.
    ranked = []
    for name, functions in by_repository.items():
        ids = sorted((function.id for function in functions), key=lambda id: hashed(f"{seed}/{id}"))
        for rank, id in enumerate(ids, 1):
            ranked.append((rank / len(ids) if rank > least else 0, name, id))
    chosen = {id for _, _, id in sorted(ranked)[:limit]}
    return [
        function
        for functions in by_repository.values()
        for function in functions
        if function.id in chosen
    ]


def token_counter(tokenizer: str) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text with the tokenizer of one model.
    ``tokenizer`` is a model's name as in ``models.load``.

    The same tokenizer decides for all models which functions are short enough. A function's code
    contains no marks, so it does not matter whether the vocabulary has a mark.
    """
    spelled: Any = load(tokenizer).tokenizer
    return lambda text: len(spelled(text, add_special_tokens=False)["input_ids"])


@dataclass(frozen=True)
class LocatedFunction:
    """A function of which only the location is known: the `def` is on ``line`` of ``file``, a path
    relative to ``root``. ``marked`` is the function's body with the marks of a replication package;
    the package's dependency coverage is computed from these marks. ``indent`` is always empty, so
    that ``with_prediction`` adds no indentation: under a package's rules, a prediction must already
    be indented as in the file.
    """

    id: str | int
    root: Path
    file: str
    line: int
    marked: str = ""
    indent: str = field(default="", init=False)

    @property
    def repository(self) -> str:
        return str(self.root)


# the original function of a repository, in whose place a generated function is put
Original = Function | LocatedFunction


def with_prediction(
    original: Original, prediction: str, rules: Rules = PAPER_RULES
) -> tuple[str, Location, Inserted]:
    """Return the text of the original's file, the original's location in this text, and the file
    with the prediction in place of the original. ``prediction`` is a whole function or a body,
    without marks. Raises UserError if the file does not parse or has no `def` on the original's
    line.
    """
    text = read_source(original.root / original.file)
    location = location_of(text, original.line)
    # The models of the replication packages write code as if the `def` were at the left margin.
    # Under a package's rules, ``original.indent`` is therefore added to every line.
    shift = original.indent if rules.is_package else None
    return text, location, insert(text, location, prediction, shift)


@dataclass
class ToolGen(Benchmark[Original]):
    """The benchmark: models generate functions of repositories from docstrings and signatures.

    A model that uses the tool is a ``generation.ToolModel``, which has its own ``prompts``. For any
    other model, the prompts depend on the model's ``kind``. ``store`` is where judgements are
    stored: a file, ":memory:", or None for a file in the folder of the completion store.
    ``workers``, ``strict`` and ``machines`` are the arguments ``workers``, ``strict`` and
    ``cluster`` of ``analysers.answer_all``. ``references`` says whether pylint judges the original
    functions, too.
    """

    tasks: Sequence[Original]
    rules: Rules = PAPER_RULES
    workers: int | None = None
    store: Path | str | None = None
    machines: Workers | None = None
    strict: bool = True
    references: bool = False
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    kind: ModelKind = "decoder"
    decoding = FUNCTION_DECODING
    measures = ("passed", "empty", *COLUMNS)

    def for_model(self, model: Any) -> Self:
        if isinstance(model, ToolModel):
            return replace(self, prompts={prompt.id: prompt for prompt in model.prompts()})
        if isinstance(model, LocalModel):
            return replace(self, kind="decoder" if model.causal else "encoder-decoder")
        return self

    def prompt(self, task: Original) -> Prompt:
        id = str(task.id)
        return self.prompts.get(id) or Prompt(id, prompt_text(task, self.kind, self.rules))

    def cluster(self, task: Original) -> str:
        return task.repository

    def judge(self, task: Original, completion: Completion) -> dict[str, Any]:
        """Return the row that ``judge_all`` gives for one generated function."""
        return self.judge_all([(task, completion)])[0]

    def judge_all(self, pairs: Sequence[tuple[Original, Completion]]) -> list[dict[str, Any]]:
        """Return one row for each generated function, with these columns:

        - ``predicted`` and ``wanted``: the text of the generated function, and the text of the
          original with which it is compared. By the paper's rules, the texts are the bodies. By the
          rules of a replication package, they also have the signature (``similarity.package_text``
          and ``package_2023_text``).
        - ``identifiers``: the number of identifiers in the generated body.
        - ``empty``: whether the generated body does nothing (``source.is_empty``).
        - ``errors``: the number of undefined variables and missing members in the generated
          function. It is None if pylint gave no answer, crashed, or found a syntax error, which
          hides the other errors.
        - ``dependencies`` and ``covered``: the number of dependencies of the original, and how many
          of them the generated function also uses. Jedi finds the dependencies. By the rules of a
          replication package, they are found from the original's ``<COMP>`` marks instead.
        - ``passed``: whether no message of pylint counts against the generated function.
        - ``messages``: the messages that count against it (``relevant_messages``).
          ``failures``: the ids of these messages, joined by blanks.
        - ``reference_messages``: the messages that count against the original.
          ``reference_passed``: whether there are none. Both are None if the original was not
          checked.
        - ``lost``: why pylint or Jedi gave no answer, or "". If it is not "", ``passed`` or
          ``dependencies`` is None.
        - the columns ``similarity.COLUMNS``.
        """
        digest_of = cache(repository_digest)
        marks = self._marks(pairs)
        cases = []
        questions: dict[str, tuple[Any, ...]] = {}
        for task, completion in pairs:
            text, location, new = with_prediction(task, completion.text, self.rules)
            reference = Inserted(text, location.line, location.end_line, "", "")
            digest = digest_of(task.root)
            at = f"{within_imports(task.root / task.file)}:{task.line}"
            # This key does not contain the prediction, so Jedi finds the dependencies of an
            # original only once for all predictions.
            uses = judgement_key("dependencies", at, digest, text=text, uses=USES_VERSION)
            if not self.rules.is_package:
                questions[uses] = task.root, task.file, dependencies_of, text, location
            version: int | str = CHECK_VERSION
            if source_roots(task.root, task.file):
                version = f"{version} with source roots"
            if every := self.rules.every_error:
                version = f"{version}, every error"
            checks = []
            for one in (new, reference) if self.references else (new,):
                key = judgement_key(
                    "success", at, digest, text=one.text, end_line=one.end_line, check=version
                )
                lines = one.line, one.end_line + BEYOND
                questions[key] = task.root, task.file, messages_of, one.text, lines, digest, every
                checks.append((key, one))
            cases.append((task, location, uses, checks))
        store = JudgementStore(self.store)
        answers, lost = answer_all(store, questions, _ask, self.strict, self.workers, self.machines)
        rows = []
        for task, location, uses, checks in cases:
            check, new = checks[0]
            columns = self._text_columns(location, new, answers.get(uses), marks.get(task.id, ""))
            verdicts = [
                None
                if answers.get(key) is None
                else relevant_messages(answers[key], one, self.rules)
                for key, one in checks
            ]
            messages, of_original = (*verdicts, None)[:2]
            columns |= {
                "passed": None if messages is None else not messages,
                "lost": joined_reasons(lost[one] for one in {check, uses} & lost.keys()),
                "messages": messages or [],
                "failures": " ".join(dict.fromkeys(name for name, *_ in messages or ())),
                "errors": None if messages is None else _error_count(messages),
                "reference_messages": of_original,
                "reference_passed": None if of_original is None else not of_original,
            }
            rows.append(columns)
        return rows

    def _marks(self, pairs: Sequence[tuple[Original, Completion]]) -> dict[str | int, str]:
        """Return {task's id: the original's body with ``<COMP>`` marks}, or {} if the rules need no
        marks.
        """
        if not self.rules.is_package:
            return {}
        tasks = {task.id: task for task, _ in pairs}.values()
        functions = [task for task in tasks if isinstance(task, Function)]
        records = marked_records(functions, self.rules, self.workers)
        given = {task.id: task.marked for task in tasks if isinstance(task, LocatedFunction)}
        return given | {record["id"]: record["marked_body"] for record in records}

    def _text_columns(
        self, location: Location, new: Inserted, uses: list[str] | None, marks: str
    ) -> dict[str, Any]:
        """Return the columns of ``judge_all`` that need no pylint: texts, similarity and coverage.
        ``uses`` are the dependencies that Jedi found in the original, or None; ``marks`` is the
        original's marked body, or "".
        """
        whole = new.whole
        body = new.body
        text = body
        original = location.body
        counts: dict[str, int | None] = {"dependencies": None, "covered": None}
        # if the model writes only a body, the header is always the file's own
        has_header = whole.startswith(location.header)
        if self.rules.is_package_2023:
            text = package_2023_text(location, body) if has_header else whole.strip()
            marks = reindent(marks or without_comments(location.body), location.body_indent)
            original = package_2023_text(location, marks)
            marks = f"{without_comments(location.signature)}\n{marks}"
            counts |= package_2023_coverage(marks, location.signature, text)
        elif self.rules.is_package:
            text = package_text(location, body, True) if has_header else blank_strings(whole)
            original = package_text(location, without_comments(location.body), has_header)
            marks = package_text(location, marks, has_header)
            counts |= package_coverage(marks, location.signature, text)
        elif uses is not None:
            counts = {"dependencies": len(uses), "covered": count_covered(uses, body)}
        columns = similarities(body, location.body, text, original, self.rules)
        texts = {"predicted": text, "wanted": original, "empty": is_empty(body)}
        return {**texts, **columns, **counts, "identifiers": len(identifiers(body))}


def judged_all(
    functions: Sequence[Function],
    predictions: Mapping[Any, Mapping[str, str] | Generations],
    rules: Rules = PAPER_RULES,
    workers: int | None = None,
    references: bool = False,
) -> dict[Hashable, pd.DataFrame]:
    """Return {name: a frame of ``benchmark.judged``} for the predictions of several models. The
    rows of each frame are in the order of ``functions``.

    Judging all models together is faster, because the analysers read each file only once.
    ``predictions`` is {name: predictions of one model}. The predictions of a model are {function's
    id: prediction}, or the result of ``generation.generate``. Only such a result lets `lookuplab
    view` also show the tokens and the names that the tool offered. If the names are pairs (model,
    condition), notebooks/toolgen/table_rows.py can compute the rows of the paper's tables. Raises
    UserError if an analyser gives no answer to a question because of a fault of the machine.
    """
    if not functions:
        raise UserError("no functions are selected: check the parameters that select functions")
    bench = ToolGen(functions, rules, workers, references=references)
    pairs = []
    asked = []
    for key, predicted in predictions.items():
        model, condition = key if isinstance(key, tuple) else ("", key)
        suited = bench
        answers: Mapping[str, Completion] = {}
        if isinstance(predicted, Generations):
            model, suited = model or predicted.model.name, bench.for_model(predicted.model)
            answers, predicted = predicted.completions, predicted.predictions
        for function in functions:
            id = function.id
            pairs.append((function, answers.get(id) or written(id, predicted[id])))
            asked.append(Asked(model, str(condition), suited.prompt(function).text))
    frame = judged(bench, pairs, asked)
    starts = range(0, len(frame), len(functions))
    parts = [frame[at:][: len(functions)].reset_index(drop=True) for at in starts]
    return dict(zip(predictions, parts, strict=True))


def corpus_rows(frame: pd.DataFrame, rules: Rules = PAPER_RULES) -> Rows:
    """Return rows (``scoring.rates.row``) with the scores of a judged frame that are not means over
    functions.

    These scores are the dependency coverage of all functions together, BLEU-4 of blank-separated
    words, and CodeBLEU. If the originals were judged, a further row has the success rate on the
    functions whose original passes. The last rows are those of ``failure_rows``.
    """

    def score(of: Callable[[Array], Array], counts: list[list[Any]]) -> Rate:
        # The jackknife gives each function a weight. The score is computed from the sums of the
        # weighted counts.
        sums = partial(np.tensordot, b=np.array(counts), axes=1)
        return jackknife(lambda weights: of(sums(weights)), frame.cluster, of_share)[0]

    texts = [*zip(frame.predicted, frame.wanted, strict=True)]
    uses = np.nan_to_num(frame[["covered", "dependencies"]].to_numpy(float))
    [coverage] = averages(uses[:, :1], frame.cluster, uses[:, 1:], of_share)
    found = {
        "depcov_percent": coverage.percent(),
        "bleu4": score(bleu, [bleu_counts(one.split(), other.split()) for one, other in texts]),
        "codebleu": score(code_bleu, [code_bleu_counts(*pair, rules) for pair in texts]),
    }
    fair = frame[frame.reference_passed.eq(True) & frame.passed.notna()]
    if len(fair):
        passed = rate(fair.passed.astype(float), fair.cluster)
        found["passed_where_reference_passes_percent"] = passed.percent()
    rows = [row("", "all", name, one) for name, one in found.items() if not np.isnan(one.value)]
    return rows + failure_rows("", "all", frame)


def failure_rows(model: str, condition: str, frame: pd.DataFrame) -> Rows:
    """Return rows that count the functions of a judged frame to which one of these applies:

    - ``failed_<message id>_functions``: a message with this id counts against the function
    - ``crashed_functions``: pylint itself had an error, which counts as a failure
    - ``pylint_lost_functions``: pylint gave no answer
    - ``jedi_lost_functions``: Jedi gave no answer, so the dependencies are unknown
    - ``without_dependency_functions``: the original has no dependency
    - ``reference_failed_functions``: pylint objects to the original (only if originals were judged)
    """
    flags = {f"failed_{name}": frame.failures.str.contains(name) for name in sorted(CHECKS)} | {
        "crashed": frame.failures.str.contains("|".join(CRASHES)),
        "pylint_lost": frame.passed.isna(),
        "jedi_lost": frame.dependencies.isna(),
        "without_dependency": frame.dependencies == 0,
    }
    if frame.reference_passed.notna().any():
        flags["reference_failed"] = frame.reference_passed.eq(False)
    return [
        bare_row(model, condition, f"{name}_functions", each.sum(), len(frame))
        for name, each in flags.items()
    ]


def _error_count(messages: Sequence[Message]) -> int | None:
    """Return the number of undefined variables and missing members. Return None if a syntax error
    or a crash of pylint may hide some of them.
    """
    names = Counter(name for name, *_ in messages)
    return None if names["E0001"] or names & Counter(CRASHES) else names["E0602"] + names["E1101"]


def _ask(root: Path, file: str, asked: Callable, *question: Any) -> tuple[object, str]:
    """Return (answer, ""), or (None, reason) if there is no answer."""
    try:
        return asked(root, file, *question), ""
    except WorkerLost as lost:
        return None, str(lost)


def dependencies_of(root: Path, file: str, text: str, location: Location) -> list[str]:
    """Return the dependencies of the function at ``location`` in ``text``, the content of ``file``
    below ``root``. They are keys such as ``foo().a``. A key that the body uses several times is in
    the list once.

    Raises WorkerLost if Jedi takes too long, crashes or raises an exception, and does so again in a
    new process.
    """
    above = location.body_line - 1
    # the first line of the body may follow other code on its line, as in ``def f(): return 1``
    moved = len(f"{text}\n".split("\n")[above]) - len(location.body.partition("\n")[0])
    uses = [
        (use.line + above, use.column + (0 if use.line > 1 else moved), use.text)
        for use in expressions(location.body)
    ]
    return ask_worker(own_keys, root, file, text, uses, range(location.line, location.end_line + 1))


def messages_of(
    root: Path,
    file: str,
    text: str,
    lines: tuple[int, int],
    digest: str = "",
    every: bool = False,
) -> list[Message]:
    """Return pylint's messages about ``text`` as the content of ``file``, a path relative to
    ``root``. No file is written.

    ``lines`` are the first and last line of a function; the bodies of other functions are not
    checked, which is faster. If ``every`` is True, pylint looks for all errors that it knows, as in
    package-2023, and not only for CHECKS. A worker process serves only one file with one ``digest``
    of the repository, so check all texts of one file before those of the next. Raises WorkerLost if
    pylint takes too long or crashes.
    """
    within = f"{root / file} {digest}"
    roots = source_roots(root, file)
    return ask_worker(findings, root, file, roots, text, lines, every, within=within)


def source_roots(root: Path, file: str) -> list[str]:
    """Return the folders in which pylint must be told to search for the modules that ``file``
    imports from its repository. These are the repository's root and its folder ``src``, if they
    exist. The list is empty if pylint already searches one of them, or if the root is a package.

    pylint looks for ``__init__.py`` to find where a package begins, but a namespace package has no
    such file. Without these folders, pylint would not find the modules of a namespace package, and
    a wrong name from such a module would pass.
    """
    found = Path(discover_package_path(str(root / file), []))
    places = [root.resolve(), root.resolve() / "src"]
    if found in places or (root / "__init__.py").exists():
        return []
    return [str(place) for place in places if place.is_dir()]


def relevant_messages(
    messages: Sequence[Message], inserted: Inserted, rules: Rules = PAPER_RULES
) -> list[Message]:
    """Return the messages that count against the inserted function. ``messages`` are pylint's
    messages about the edited file. The function passes if none counts.

    A message counts if it is one of CHECKS and is on a line of the function. By the packages'
    rules, it also counts on the next one or two lines (BEYOND). With the rule ``every_error``, the
    message may be of any kind. A crash of pylint always counts. By the paper's rules, a syntax
    error counts anywhere in the file, because pylint may report it on a line after the function
    (for ``def f(x):`` before blank lines, say). The function must be the cause, because the file
    with the original function can be parsed.
    """
    anywhere = CRASHES if rules.is_package else ("E0001", *CRASHES)
    beyond = (BEYOND - rules.is_package_2023) * rules.is_package
    lines = range(inserted.line, inserted.end_line + 1 + beyond)
    return [
        message
        for message in messages
        if message[0] in anywhere
        or ((message[0] in CHECKS or rules.every_error) and message[1] in lines)
    ]
