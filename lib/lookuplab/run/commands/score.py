"""``lookuplab score``: judge completions that were generated elsewhere."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, Literal

import click

from lookuplab.errors import UserError
from lookuplab.run.commands import Group, command

FUNCTION_FIELDS = """id exact_match edit_similarity dependencies covered passed lost messages next_identifier
identifier_sequence prefix""".split()
FLAGS = {
    "unresolved_splat": "judged on their visible arguments, because *x or **x hides others",
    "unknown_target": "have no target that is a method of their client: never valid",
}


@click.group(cls=Group)
def score() -> None:
    """Judge completions that were generated elsewhere.

    FILE has one JSON object per line; "-" reads standard input. Judgements are written in the same
    form, and a table with intervals is printed (to stderr when the judgements go to stdout).

    \b
    Examples:
      lookuplab score cloudapi completions.jsonl -o judged.jsonl
      lookuplab score toolgen functions.jsonl -o judged.jsonl
      lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl
    """


def read_lines(file: BinaryIO, output: Path | None, read: Callable[[dict], Any]) -> list:
    """What ``read`` makes of the object on each non-blank line. Raises UserError with file and line
    number.
    """
    name, found = getattr(file, "name", "-"), []
    if output and output.resolve() == Path(name).resolve():
        raise UserError(f"{output} is the input; name another output file")
    for number, line in enumerate(file, 1):
        if line.strip():
            try:
                found.append(read(_object(line)))
            except UserError as error:
                raise UserError(f"{name}, line {number}: {error}") from None
    if not found:
        raise UserError(f"{name} holds no line")
    return found


def _object(line: bytes) -> dict:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:  # ValueError: bad JSON and bad UTF-8
        raise UserError(f"not a JSON object: {error}") from None
    if not isinstance(record, dict):
        raise UserError(f"not a JSON object but {type(record).__name__}")
    return record


def check_fields(record: dict, **kinds: Any) -> None:
    """Check that the fields are present and have the right types. Raises UserError."""
    for name, kind in kinds.items():
        value = record.get(name)
        if not isinstance(value, kind) or value == []:
            must = f"must be of type {getattr(kind, '__name__', kind)}" if value else "is missing"
            raise UserError(f"the field {name!r} {must}")


def write(rows: Iterable[dict], output: Path | None, table: Any, *said: str) -> None:
    """Write the judgements to ``output`` or stdout, then print the table and the lines ``said``
    below it.
    """
    import pandas as pd

    from lookuplab.paths import write_lines

    lines = map(json.dumps, rows)
    if output:
        write_lines(output, lines)
    else:
        click.echo("\n".join(lines))
    shown = pd.DataFrame(table).to_string(index=False)
    click.echo("\n".join([shown, *said]), err=output is None)


def cells(name: str, found: Any) -> dict[str, Any]:
    """The table cells for one number: n, rate and interval."""
    interval = f"{found.low:.1%} to {found.high:.1%}"
    return {f"n ({name})": found.n, name: f"{found.value:.1%}", f"95% ({name})": interval}


@command(score)
def cloudapi(file: BinaryIO, *, output: Path | None = None, index: Path | None = None) -> None:
    """Score completions of CloudAPIBench prompts: valid API invocation and failure category.

    Each line has the fields id, candidate, target, provider, client and, where several packages
    share a class name, service. `candidate` is what the model wrote after the prompt's `client.`,
    taken literally: nothing is stripped. `target` may be a list of names; the call must bind to one
    of them.

    For each line, writes id, valid, valid_closed, category, call, name (what is called), reason,
    flags and
    exists_anywhere (the name is in the index). If the input has labels (`valid`, `category`), the
    agreement with them is reported.

    \b
    Examples:
      lookuplab score cloudapi completions.jsonl -o judged.jsonl
      cat completions.jsonl | lookuplab score cloudapi - > judged.jsonl

    Args:
        output: Write the judgements to this file instead of stdout.
        index: A different API index (index.jsonl.xz), built by `python -m recipes.cloudapi.sdks`
            or, for a package (provider python), by `python -m recipes.cloudapi.packages`.
    """
    import pandas as pd

    from lookuplab.cloudapi.specs import INDEX, load_index
    from lookuplab.cloudapi.validity import CATEGORIES
    from lookuplab.scoring.rates import rate

    specs = load_index(index or INDEX)
    judged = read_lines(file, output, lambda record: (record, judge_record(record, specs)))
    frame, table = pd.DataFrame([record | vars(one) for record, one in judged]), []
    for name, group in [*frame.groupby("provider"), ("total", frame)]:
        row = {"": name, **cells("valid", rate(group.valid, group.target.map(str)))}
        row["closed"] = f"{group.valid_closed.mean():.1%}"
        table.append(row | {one: (group.category == one).sum() for one in CATEGORIES[1:]})
    counts = Counter(flag for _, one in judged for flag in one.flags)
    said = [f"{counts[flag]} {meaning}" for flag, meaning in FLAGS.items() if counts[flag]]
    for field in ("valid", "category"):
        labelled = [(record, vars(one)) for record, one in judged if field in record]
        wrong = [str(record["id"]) for record, one in labelled if record[field] != one[field]]
        if labelled:
            agreed = f"{len(labelled) - len(wrong)} of {len(labelled)}"
            names = f"; not for id {', '.join(wrong)}" * bool(wrong)
            said.append(f"agrees with the labels in {field!r}: {agreed}{names}")
    write(({"id": record["id"], **vars(one)} for record, one in judged), output, table, *said)


def judge_record(record: dict, index: Any) -> Any:
    """Judge one line. Raises UserError for a missing or ill-typed field, an unknown provider or
    client.
    """
    from lookuplab.cloudapi.validity import judge

    fields = {"candidate": str, "target": str | list, "provider": str, "client": str}
    check_fields(record, id=int | str, service=str | None, **fields)
    candidate, target, provider, client = (record[name] for name in fields)
    if provider not in index.providers:
        raise UserError(f"unknown provider {provider!r}; known are {', '.join(index.providers)}")
    targets = target if isinstance(target, list) else [target]
    return judge(candidate, targets, index, provider, client, record.get("service"))


@command(score)
def toolgen(
    file: BinaryIO,
    *,
    output: Path | None = None,
    variant: Literal["paper", "package"] = "paper",
    scheduler: str | None = None,
) -> None:
    """Score generated functions in their repositories: similarity, dependency coverage and success
    rate.

    Each line has the fields id, repository (a folder), file (relative to the repository), line (of
    the `def` to replace; the existing function is the reference) and prediction (the whole
    function, or its body). No file of a repository is changed. The answers of Jedi and pylint are
    kept next to the completion store, so an interrupted run resumes where it stopped. With
    --variant package, coverage also needs the field marked_body: the reference's body as written by
    `lookuplab data mark --variant package`.

    Intervals are clustered by repository. BLEU-4 is computed on whitespace-separated tokens, since
    the model's tokenizer is not known here.

    \b
    Example:
      lookuplab score toolgen functions.jsonl -o judged.jsonl

    Args:
        output: Write the judgements to this file instead of stdout.
        variant: Metrics as the paper defines them, or as the authors' package computes them.
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    import pandas as pd

    from lookuplab.benchmark import judged
    from lookuplab.results.artifact import readable
    from lookuplab.run.cluster import joined
    from lookuplab.toolgen import tables
    from lookuplab.toolgen.evaluation import ToolGen
    from lookuplab.toolgen.rules import rules_of

    rules = rules_of(variant)
    pairs = read_lines(file, output, _function)
    with joined(scheduler, os.cpu_count() or 1) as cluster:
        frame = judged(ToolGen([], rules, machines=cluster, strict=False), pairs)
    frames = {("", "base"): frame}
    rows = tables.repository_rows(frames) + tables.similarity_rows(frames, rules=rules)
    numbers = pd.DataFrame(rows)
    table = numbers[["metric"]].assign(number=readable(numbers, 3))
    write(json.loads(frame[FUNCTION_FIELDS].to_json(orient="records")), output, table)


def _function(record: dict) -> Any:
    """One line of input as a function and its completion. Raises UserError if the line is malformed."""
    from lookuplab.benchmark import written
    from lookuplab.toolgen.evaluation import Reference, inserted

    try:
        root = Path(record["repository"]).resolve(strict=True)
        file = (root / record["file"]).resolve().relative_to(root).as_posix()
        marked = record.get("marked_body", "")
        original = Reference(record["id"], root, file, record["line"], marked)
        inserted(original, record["prediction"])
        return original, written(original.id, record["prediction"])
    except (KeyError, TypeError, ValueError, AttributeError, OSError, UserError) as error:
        raise UserError(f"{type(error).__name__}: {error}") from None


@command(score)
def ds1000(
    file: BinaryIO,
    *,
    problems: str,
    output: Path | None = None,
    environment: str = "ds1000-grader",
    sandbox: Literal["namespaces", "none"] | None = None,
    variant: Literal["official", "repaired"] = "official",
    leave_out: str = "",
    workers: int | None = None,
    scheduler: str | None = None,
) -> None:
    """Run answers to DS-1000 problems against their tests, in a sandbox.

    The process that runs an answer has no access to the test, the expected result or the verdict.

    Each line has the fields problem_id and solution; several lines with the same problem_id are its
    samples, in order. The reference solutions of these problems run first and must pass. If one
    fails (because it needs the network, say), nothing is scored until its problem is excluded with
    --leave-out. Verdicts are kept next to the completion store, so an interrupted run resumes where
    it stopped.

    For each answer, in input order, writes problem_id, sample, passed and error. The table shows
    pass@1 (mean over problems), the average pass rate (mean over answers) and intervals clustered
    by origin problem.

    \b
    Examples:
      lookuplab data get ds1000-grader
      lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl

    Args:
        problems: DS-1000 (`lookuplab data get ds1000`), or a file in the same format.
        output: Write the verdicts to this file instead of stdout.
        environment: The Python that runs the tests: an environment made by `lookuplab data get`, or
            the path of a Python.
        sandbox: How the programs are contained; none means no protection. [default: namespaces]
        variant: How code is cut out of an answer: as DS-1000 does it, or without losing fenced or
            unindented answers.
        leave_out: ID,ID: do not score the answers to these problems.
        workers: Number of servers that run at once. [default: one per CPU]
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    from lookuplab.run.cluster import joined
    from lookuplab.scoring.rates import rate, shares
    from lookuplab.stackoverflow import ds1000, grader
    from lookuplab.stackoverflow.scores import solved

    every, names, samples = ds1000.load(problems), {}, Counter()
    known = {one.id: one for one in every}

    def answer(record: dict) -> grader.Answer:
        check_fields(record, problem_id=int | str, solution=str)
        id, code = str(record["problem_id"]), ds1000.solution_of(record["solution"], variant)
        if id not in known:
            raise UserError(f"unknown problem {id!r}; the file of problems has {len(known)} others")
        if variant == "repaired":
            code = ds1000.indented(known[id], code)
        names[id] = record["problem_id"]
        samples[id] += 1
        return grader.Answer(id, samples[id] - 1, code)

    answers = read_lines(file, output, answer)
    python = grader.environment(environment)
    runs = grader.Grader(python, sandbox or "", workers=workers or 0)
    left = {one for one in leave_out.replace(" ", "").split(",") if one}
    if unknown := left - known.keys():
        raise UserError(f"--leave-out {min(unknown)}: no problem of {problems}")
    asked = [one for one in answers if one.problem_id not in left]
    if not asked:
        raise UserError(f"--leave-out {leave_out} leaves no answer to score")
    with joined(scheduler, runs.workers) as runs.cluster:
        verdicts = grader.grade(every, asked, runs)
    table, frame = [], solved(every, verdicts, [1])
    for name, part in [*frame.groupby("library"), ("total", frame)]:
        (average,) = shares(part[["passed"]], part.cluster, part[["samples"]])
        row = cells("pass@1", rate(part.pass_at_1, part.cluster))
        table.append({"": name, **row, **cells("average pass rate", average)})
    said = [f"sandbox: {runs.sandbox}", *[f"left out by name: {leave_out}"] * bool(left)]
    rows = (
        {
            "problem_id": names[one.problem_id],
            "sample": one.sample,
            "passed": one.passed,
            "error": one.error,
        }
        for one in verdicts
    )
    write(rows, output, table, *said)
