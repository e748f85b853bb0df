"""Implements ``lookuplab score``, which judges completions that were generated elsewhere.

The steps are the same for every benchmark: lines are read, ``lookuplab.benchmark`` judges the
completions in the lines, the judgements are written, and a table summarises them. Each benchmark
has a command, which defines how a line becomes a task and a completion, and what the table shows.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lookuplab.errors import UserError, check_choice
from lookuplab.models.store import logprobs_fault
from lookuplab.paths import json_lines, write_lines
from lookuplab.run.cli import Group, claim_file, command, keep_inputs
from lookuplab.run.cluster import connect
from lookuplab.stackoverflow import grader
from lookuplab.stackoverflow.ds1000 import PERTURBATIONS, Problem, load_problems
from lookuplab.toolgen.rules import rules_of
from lookuplab.work import check_memory, processors, say

if TYPE_CHECKING:
    import pandas as pd

    from lookuplab.benchmark import Benchmark
    from lookuplab.models import Completion

# matches the beginning of a chat model's answer that repeats the prompt's `client.`
WRAPPED = re.compile(r"\s*(```|~~~|(\w+ *= *)?client\.)")

Line = dict[str, Any]
Read = Callable[[Line], "tuple[Any, Completion]"]


class Benchmarks(Group):
    """The group of the commands of `lookuplab score`, one for each benchmark. The command for a
    user's own benchmark is the name of the benchmark's class, ``module:Class``.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if ":" not in cmd_name:
            check_choice("BENCHMARK", cmd_name, [*self.list_commands(ctx), "module:Class"])
            return super().get_command(ctx, cmd_name)

        def own(file: Path, *, output: Path | None = None) -> None:
            """Score completions of your own benchmark (docs/fourth_paper.md).

            Each line has the fields id (of a task) and completion. Several lines with the same id
            are samples for one task, in order. For each line, the command writes id, cluster,
            sample and the columns that `judge` returns.

            Args:
                output: Write the judgements to this file instead of stdout.
            """
            from lookuplab.benchmark import load_benchmark, rate_rows

            benchmark = load_benchmark(cmd_name)
            read = task_reader(benchmark, "id", "completion")
            records, frame = judge_file(benchmark, file, output, read, ["completion"])
            rows = rate_rows(frame, benchmark.measures, benchmark.by)
            given = ["model", "id", "completion", "finish_reason"]
            write("id", records, frame.drop(columns=given), output, rows)

        return command(cmd_name)(own)


@click.group(cls=Benchmarks)
def score() -> None:
    """Judge completions that were generated elsewhere.

    FILE has one JSON object per line; "-" reads standard input. Judgements are written in the same
    form. A table with intervals is printed (to stderr if the judgements go to stdout). To use your
    own benchmark, give the name of its class, module:Class, in place of the command.

    \b
    Examples:
      lookuplab score cloudapi completions.jsonl -o judged.jsonl
      lookuplab score toolgen functions.jsonl -o judged.jsonl
      lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl
      lookuplab score mypackage.bench:MyBenchmark completions.jsonl
      lookuplab compare judged.jsonl judged-of-another-model.jsonl
    """


def judge_file(
    benchmark: "Benchmark[Any]",
    file: Path,
    output: Path | None,
    read: Read,
    fields: Sequence[str],
    samples: bool = True,
) -> "tuple[list[Line], pd.DataFrame]":
    """Read the lines of ``file`` and judge their completions. Return the objects on the lines, and
    a frame with the judgements (``benchmark.judged``), in which the column ``model`` is empty.

    ``read`` turns a line into a task and a completion. ``fields`` are the possible names of the
    field with the completion. A completion that is null counts as empty. If ``samples`` is False,
    lines that repeat an id are left out. Print how many completions are null, how many lines are
    left out, and how many tasks have no line. If tasks differ in their number of samples, also
    print the smallest and the largest number. Raises UserError, with file and line number, for an
    invalid line.
    """
    from lookuplab.benchmark import judged

    claim_file(output)
    records = []
    pairs = []
    nulls = []
    times: Counter[str] = Counter()
    for number, record in json_lines(file):
        given = [name for name in fields if name in record]
        if given and all(record[name] is None for name in given):
            nulls.append(number)
            record[given[0]] = ""
        try:
            check_logprobs(record)
            task, completion = read(record)
        except UserError as error:
            raise UserError(f"{file}, line {number}: {error}") from None
        times[str(task.id)] += 1
        if samples or times[str(task.id)] == 1:
            records.append(record)
            pairs.append((task, completion))
    if not records:
        raise UserError(f"{file} has no lines to score")
    if repeated := times.total() - len(records):
        say(f"lines that repeat an id, left out: {repeated}")
    if nulls:
        which = f"{len(nulls)} (the first is line {nulls[0]})"
        say(f"lines whose completion is null, judged as empty: {which}")
    if missing := len(benchmark.tasks) - len(times) if benchmark.tasks else 0:
        say(f"tasks that are not scored: {missing} of {len(benchmark.tasks)}")
    if samples and len(numbers := {*times.values()}) > 1:
        say(f"samples of a task: {min(numbers)} to {max(numbers)}")
    return records, judged(benchmark, pairs).assign(model="")


def check_logprobs(record: Line) -> None:
    """Raise UserError if a line has invalid log-probabilities (``models.store.logprobs_fault``)."""
    for name in ("token_logprobs", "logprobs"):
        given = record.get(name)
        if given is not None and (fault := logprobs_fault(given, record.get("tokens"))):
            raise UserError(f"the field {name!r}: {fault}")


def check_fields(record: Line, **types: Any) -> None:
    """Raise UserError if a field is missing, has another type than ``types`` says, or is an empty
    list.
    """
    for name, type_ in types.items():
        value = record.get(name)
        if not isinstance(value, type_) or value == []:
            type_name = type_.__name__ if isinstance(type_, type) else type_
            must = f"must be of type {type_name}" if name in record else "is missing"
            raise UserError(f"the field {name!r} {must}")


def task_reader(benchmark: "Benchmark[Any]", id_field: str, text_field: str) -> Read:
    """Return a function that turns a line into a task and a completion. The field ``id_field`` of a
    line has the task's id, and ``text_field`` the completion's text. Several lines for one task are
    numbered as its samples.
    """
    from lookuplab.benchmark import written

    tasks = {str(task.id): task for task in benchmark.tasks}
    samples = Counter[str]()

    def read(record: Line) -> "tuple[Any, Completion]":
        check_fields(record, **{id_field: int | str, text_field: str})
        id = str(record[id_field])
        if id not in tasks:
            raise UserError(f"unknown {id_field} {id!r}; the benchmark has {len(tasks)} others")
        samples[id] += 1
        return tasks[id], written(id, record[text_field], samples[id] - 1)

    return read


def write(
    id_field: str,
    records: Sequence[Line],
    columns: "pd.DataFrame",
    output: Path | None,
    rows: Sequence[Line],
    *notes: str,
) -> None:
    """Write a line with the id and the judgement (``columns``) of each of the ``records`` to
    ``output`` or, if ``output`` is None, to stdout. Then print a table of ``rows`` (made by
    ``scoring.rates.row``), with the notes below it. Without rows, print that nothing was judged.
    """
    import pandas as pd

    from lookuplab.results.artifact import NUMBERS, readable

    check_memory()
    values = columns.astype(object).where(columns.notna(), None)
    values.insert(0, id_field, [record[id_field] for record in records])
    lines = map(json.dumps, values.to_dict("records"))
    if output:
        write_lines(output, lines)
    else:
        click.echo("\n".join(lines))
    numbers = pd.DataFrame(rows, columns=["condition", "metric", *NUMBERS])
    table = numbers[["condition", "metric"]].assign(number=readable(numbers))
    shown = table.to_string(index=False) if rows else "nothing could be judged, so there is no rate"
    click.echo("\n".join([shown, *notes]), err=output is None)


@score.command()
def cloudapi(file: Path, *, output: Path | None = None, index: Path | None = None) -> None:
    """Score calls of CloudAPIBench.

    The command judges whether a completion is a valid call to the task's API and, if it is not, why
    it fails. Each line has the fields id, candidate, target, provider and client. The field service
    is also needed if several packages have a client class with this name. `candidate` is what the
    model wrote after the prompt's `client.`; nothing is stripped from it. `target` may be a list of
    names; the call must bind to the signature of one of them.

    For each line, the command writes id, valid, valid_closed (stricter for Azure: docs/score.md),
    category, call, name (of the called method), reason, flags, exists_anywhere (whether the name is
    in the index) and cluster (the target, by which intervals are clustered). Below the table, the
    command prints how often each category and flag occurs. The flags are unresolved_splat (only the
    visible arguments were judged, because *x or **x hides others) and unknown_target (no target is
    a method of the client, so no call is valid).

    \b
    Examples:
      lookuplab score cloudapi completions.jsonl -o judged.jsonl
      cat completions.jsonl | lookuplab score cloudapi - > judged.jsonl

    Args:
        output: Write the judgements to this file instead of stdout.
        index: An API index (index.jsonl.xz) to use instead of the committed one, for example the
            index of a package (provider python) from `python -m recipes.cloudapi.packages`.
    """
    from lookuplab.benchmark import rate_rows
    from lookuplab.cloudapi.bench import CloudApiBench
    from lookuplab.cloudapi.specs import INDEX, load_index
    from lookuplab.cloudapi.validity import CallJudgement

    if output:
        keep_inputs(output, [INDEX])
    bench = CloudApiBench([], index=load_index(index or INDEX))
    records, frame = judge_file(
        bench, file, output, lambda record: call_of(record, bench.index), ["candidate"], False
    )
    rows = rate_rows(frame, bench.measures, "provider")
    counts = Counter([*frame.category, *frame["flags"].explode().dropna()])
    notes = [f"{name}: {count}" for name, count in counts.most_common()]
    if wrapped := sum(WRAPPED.match(record["candidate"]) is not None for record in records):
        notes.append(
            f"candidates that begin with a fence or with `client.`, and so are not valid: {wrapped}"
        )
    write("id", records, frame[[*CallJudgement.__annotations__, "cluster"]], output, rows, *notes)


def call_of(record: Line, index: Any) -> "tuple[Any, Completion]":
    """Return the task and the completion that a line describes. Raises UserError for a field that
    is missing or of the wrong type, and for an unknown provider or client.
    """
    from lookuplab.benchmark import written
    from lookuplab.cloudapi.tasks import ApiTask
    from lookuplab.results.provenance import convert

    types = {"candidate": str, "target": str | list, "provider": str, "client": str}
    check_fields(record, id=int | str, service=str | None, **types)
    candidate, target, provider, client = (record[name] for name in types)
    check_choice("provider", provider, index.providers)
    service = record.get("service") or ""
    index.methods(provider, client, service)
    targets = tuple(convert([""], target, "the field 'target'"))
    task = ApiTask(record["id"], "", "", targets, provider, service, client, "", 0, 0, 0)
    return task, written(task.id, candidate)


@score.command()
def toolgen(
    file: Path,
    *,
    output: Path | None = None,
    variant: Literal["paper", "package-2023", "package-2024"] = "paper",
    scheduler: str | None = None,
) -> None:
    """Score functions in their repositories.

    The metrics are similarity, dependency coverage and success rate. Each line has the fields id,
    repository (a folder), file (relative to the repository), line (of the `def` to replace; the
    existing function is the reference) and prediction (the whole function, or its body).

    If a prediction is not valid code in the original function's place, the function or body is cut
    out of the prediction, which may be fenced, be surrounded by words, or lack the indentation of
    its first line. A whole function is also cut out if imports, helpers or the function's class
    precede it in the prediction. Comments for pylint in a prediction are dropped. No file of a
    repository is changed. The answers of Jedi and pylint are stored in the folder of the completion
    store, so an interrupted run resumes where it stopped.

    With --variant package-2023 or package-2024, the prediction is inserted as it is, and coverage
    also needs the field marked_body: the reference's body as written by
    `lookuplab data mark --variant package`.

    Intervals are clustered by repository. BLEU-4 is computed on whitespace-separated tokens,
    because the model's tokenizer is not known here. The table also counts empty bodies, to which
    pylint never objects, and original functions to which pylint objects.

    \b
    Example:
      lookuplab score toolgen functions.jsonl -o judged.jsonl

    Args:
        output: Write the judgements to this file instead of stdout.
        variant: Compute the metrics as the paper defines them, or as the authors' package does: the
            package of 2023, before arXiv v1, or of 2024, for the journal (docs/toolgen.md).
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    from lookuplab.benchmark import rate_rows
    from lookuplab.toolgen.analysers import blames_machine
    from lookuplab.toolgen.evaluation import ToolGen, corpus_rows
    from lookuplab.toolgen.similarity import COLUMNS

    def read(record: Line) -> "tuple[Any, Completion]":
        function, completion = function_of(record)
        if output:  # the output must not replace this file or another module of its repository
            keep_inputs(output, [function.root / function.file, function.root])
        return function, completion

    rules = rules_of(variant)
    with connect(scheduler, processors()) as cluster:
        bench = ToolGen([], rules, machines=cluster, strict=False, references=True)
        records, frame = judge_file(bench, file, output, read, ["prediction"], False)
    rows = rate_rows(frame, bench.measures) + corpus_rows(frame, rules)
    fields = [
        *COLUMNS,
        "dependencies",
        "covered",
        "passed",
        "reference_passed",
        "lost",
        "messages",
        "cluster",
    ]
    write("id", records, frame[fields], output, rows)
    if lost := sum(map(blames_machine, frame.lost)):
        raise UserError(f"{lost} of {len(frame)} judgements were lost: run it again")


def function_of(record: Line) -> "tuple[Any, Completion]":
    """Return the function that a line names, and the completion in the line. Raises UserError if
    the line is malformed.
    """
    from lookuplab.benchmark import written
    from lookuplab.toolgen.evaluation import LocatedFunction, with_prediction

    check_fields(
        record,
        id=int | str,
        line=int,
        marked_body=str | None,
        repository=str,
        file=str,
        prediction=str,
    )
    try:
        root = Path(record["repository"]).resolve(strict=True)
        file = (root / record["file"]).resolve().relative_to(root).as_posix()
    except (ValueError, OSError) as error:
        raise UserError(str(error)) from None
    marked = record.get("marked_body") or ""
    original = LocatedFunction(record["id"], root, file, record["line"], marked)
    with_prediction(original, record["prediction"])
    return original, written(original.id, record["prediction"])


@score.command()
def ds1000(
    file: Path,
    *,
    problems: str,
    output: Path | None = None,
    environment: str = "ds1000-grader",
    sandbox: Literal["namespaces", "none"] | None = None,
    variant: Literal["official", "repaired"] = "official",
    workers: int | None = None,
    scheduler: str | None = None,
) -> None:
    """Run answers to DS-1000 in a sandbox.

    Each answer is run, and then judged by the test of its problem. The process that runs an answer
    has no access to the test, the expected result or the verdict. There is one exception: the tests
    of Matplotlib's problems look at the answer's figure. They share a process with the answer, so a
    malicious answer could change the verdict.

    Each line has the fields problem_id and solution. Several lines with the same problem_id are
    samples for one problem, in order. The files of DS-1000's authors (data/*-answers.jsonl) can be
    read unchanged. In these files, the solution is in the field code (a text, or a list of which
    only the first text counts), and the id is in the field metadata or id. Code is cut out of an
    answer as the authors do it, unless --variant is repaired.

    An answer is not judged if the reference solution of its problem fails here (for example,
    because the reference needs the network; see docs/score.md), or if the answer passes only when
    it shares a process with its test. Such answers are listed below the table with the reasons, and
    count in no rate. Each reference solution runs once per environment. Verdicts are stored in the
    folder of the completion store, so an interrupted run resumes where it stopped.

    For each answer, in the order of the input, the command writes problem_id, sample, passed (null
    if the answer is not judged), error and cluster (the original problem). The table shows pass@1
    (mean over problems) by library and by kind of perturbation, and how far pass@1 of perturbed
    problems is below pass@1 of their originals. If problems differ in their number of samples, the
    table also shows the percentage of all answers that passed. Intervals are clustered by original
    problem. The notebook published/ds1000 compares our counts on the authors' files with the counts
    that the authors published.

    \b
    Examples:
      lookuplab data get ds1000-grader
      lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl
      lookuplab score ds1000 --problems ds1000.jsonl.gz codex002-answers.jsonl -o verdicts.jsonl

    Args:
        problems: DS-1000 (`lookuplab data get ds1000`), or a file in the same format.
        output: Write the verdicts to this file instead of stdout.
        environment: The Python that runs the tests: an environment made by `lookuplab data get`, or
            the path of a Python.
        sandbox: How programs are isolated; none means no protection. [default: namespaces]
        variant: How code is cut out of an answer: as DS-1000 does it (official), or so that fenced
            and unindented answers are not lost (repaired).
        workers: Number of processes that run answers in parallel. [default: one per CPU]
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    from lookuplab.benchmark import rate_rows
    from lookuplab.stackoverflow.asking import Ds1000Bench

    tasks = load_problems(problems)
    runs = grader.Grader(grader.environment(environment), sandbox or "", workers=workers or 0)
    bench = Ds1000Bench(tasks, runs, variant=variant, indent=variant == "repaired")
    read = task_reader(bench, "problem_id", "solution")
    texts = Counter[str]()

    def answer(record: Line) -> "tuple[Any, Completion]":
        texts["further"] += from_published(record)
        return read(record)

    with connect(scheduler, runs.workers) as runs.cluster:
        records, frame = judge_file(bench, file, output, answer, ["solution", "code"])
    rows = pass_rows(tasks, frame)
    # if all problems have the same number of samples, the mean over answers equals pass@1
    if frame.groupby("id").size().nunique() > 1:
        rows += rate_rows(frame, bench.measures, bench.by)
    notes = [f"sandbox: {runs.sandbox}"]
    if texts["further"]:
        notes.append(f"further texts of lists, left out: {texts['further']}")
    lost = frame[frame.passed.isna()]
    if len(lost):
        notes.append(
            f"not judged: {len(lost)} of {len(frame)} answers; problems and reasons (docs/score.md "
            "says what helps if a reference needs the network):"
        )
        notes += grader.lines_by_error(zip(lost.id, lost.error, strict=True))
    write(
        "problem_id", records, frame[["sample", "passed", "error", "cluster"]], output, rows, *notes
    )


def pass_rows(tasks: Sequence[Problem], frame: "pd.DataFrame") -> list[Line]:
    """Return rows with pass@1 by library and by kind of perturbation. Further rows state how much
    lower pass@1 is for perturbed problems than for their originals (Figure 5 of the StackOverflow
    paper). A problem counts only if all its samples are judged.
    """
    from lookuplab.stackoverflow import scores

    table = scores.solved(tasks, frame, [1])
    parts = [*table.library.unique(), *PERTURBATIONS, "all"]
    return scores.rows({("", "problems"): table}, parts=parts)


def from_published(record: Line) -> int:
    """Add the fields problem_id and solution to a line in the format of DS-1000's authors. If the
    line has a list of texts, use only the first, as the authors' script does. Return how many texts
    are not used.
    """
    about, text = record.get("metadata"), record.get("solution")
    text = record.get("code") if text is None else text
    inner = about.get("problem_id") if isinstance(about, dict) else None
    for id in (record.get("id"), inner, record.get("problem_id")):
        if id is not None:
            record["problem_id"] = id
    [first, *others] = text if isinstance(text, list) and text else [text]
    if first is not None:
        record["solution"] = first
    return len(others)
