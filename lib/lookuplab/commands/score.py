"""``lookuplab score``: judge completions that were made elsewhere."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from lookuplab.cli import Group, aligned, command
from lookuplab.errors import UserError

# The client's construction in a prompt: boto3.client("s3"), session.client('s3'), client = BlobClient(
CONSTRUCTIONS = {
    "aws": re.compile(r"""\bclient\(\s*(?:service_name\s*=\s*)?["']([\w-]+)["']"""),
    "azure": re.compile(r"^\s*client\s*=\s*(?:\w+\.)*([A-Z]\w*)(?:\.from_\w+)?\(", re.MULTILINE),
}
FUNCTION_FIELDS = """id exact_match edit_similarity dependencies covered passed lost messages next_identifier
identifier_sequence prefix""".split()


@click.group(cls=Group)
def score() -> None:
    """Judge completions that were made elsewhere.

    FILE has one JSON object per line; "-" reads standard input. Judgements are written in the same form, and a table
    with intervals is printed (to stderr when the judgements go to stdout).

    \b
    Examples:
      lookuplab score cloudapi completions.jsonl -o judged.jsonl
      lookuplab score toolgen functions.jsonl -o judged.jsonl
      lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl
    """


def read_lines(file: str, output: Path | None) -> Iterator[tuple[str, dict]]:
    """("file, line n", object) for every line that is not blank. Raises UserError with file and line number."""
    if output is not None and output.resolve() == Path(file).resolve():
        raise UserError(f"{output} is the input; name another output file")
    try:
        source = click.open_file(file, "rb")  # bytes: a bad encoding gets its line number too
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    with source:
        for number, line in enumerate(source, 1):
            place = f"{file}, line {number}"
            try:
                record = json.loads(line.decode("utf-8-sig")) if line.strip() else None
            except (ValueError, RecursionError) as error:  # ValueError: bad JSON and bad UTF-8
                raise UserError(f"{place}: not a JSON object: {error}") from None
            if isinstance(record, dict):
                yield place, record
            elif record is not None:
                raise UserError(f"{place}: not a JSON object but {type(record).__name__}")


def check_fields(
    place: str, record: dict, required: dict[str, type], optional: dict[str, type]
) -> None:
    """The fields are there and of their types. Raises UserError."""
    for name, kind in {**required, **optional}.items():
        value = record.get(name)
        if value in (None, []) and name in required:
            raise UserError(f"{place}: the field {name!r} is missing")
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise UserError(
                f"{place}: the field {name!r} must be of type {getattr(kind, '__name__', kind)}"
            )


def write(rows: Iterable[dict], output: Path | None, table: str) -> None:
    """The judgements to ``output`` or stdout, then the table."""
    from lookuplab.paths import write_lines

    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    if output is None:
        click.echo("".join(line + "\n" for line in lines), nl=False)
    else:
        write_lines(output, lines)
    click.echo(table, err=output is None)


@command(score)
def cloudapi(
    file: str, *, output: Path | None = None, details: bool = False, index: Path | None = None
) -> None:
    """Valid API invocation and failure category of completions of CloudAPIBench prompts.

    The fields of a line are id, prompt, candidate, target, service, client and provider. A candidate is what the model
    wrote behind the prompt's `client.`, taken literally: nothing is stripped. `target` may be a list of names, one of
    which must bind. If `client` is missing, it is read from the prompt (boto3.client("...") or client = SomeClient(...)),
    then, for AWS, from `service`.

    Writes id, valid, valid_closed, category and call per line. If the lines carry labels (`valid`, `category`), it
    reports the agreement.

    \b
    Examples:
      lookuplab score cloudapi completions.jsonl -o judged.jsonl
      cat completions.jsonl | lookuplab score cloudapi - --details > judged.jsonl

    Args:
        output: Write the judgements here, not to stdout.
        details: Add the called name, the reason, flags and the name-only existence.
        index: Another API index (index.jsonl.xz): of `lookuplab data build cloudapi`, or of `... build api` for a
            package (provider python; every line names its client).
    """
    from lookuplab.cloudapi.specs import INDEX, load_index

    specs = load_index(index or INDEX)
    judged = [
        (record, judge_record(record, specs, place)) for place, record in read_lines(file, output)
    ]
    fields = ["valid", "valid_closed", "category", "call"]
    fields += ["name", "reason", "flags", "exists_anywhere"] if details else []
    rows = (
        {"id": record["id"]} | {field: getattr(one, field) for field in fields}
        for record, one in judged
    )
    write(rows, output, "\n".join([*_validity(judged), *_agreement(judged)]))


def judge_record(record: dict, index: Any, place: str) -> Any:
    """Judge one line. Raises UserError for a missing or ill-typed field, an unknown provider or client."""
    from lookuplab.cloudapi.validity import judge

    needed = {"id": object, "candidate": str, "target": str | list, "provider": str}
    check_fields(place, record, needed, dict.fromkeys(("prompt", "service", "client"), str))
    provider, targets, service = record["provider"], record["target"], record.get("service")
    if provider not in index.providers:
        raise UserError(
            f"{place}: unknown provider {provider!r}; known are {', '.join(index.providers)}"
        )
    # for a package's API, the line has to name the client
    constructed = re.findall(CONSTRUCTIONS.get(provider, r"(?!)"), record.get("prompt") or "")
    client = record.get("client") or (constructed or [service if provider == "aws" else None])[-1]
    if not client:
        raise UserError(
            f"{place}: the field 'client' is missing, and the prompt does not construct a client"
        )
    try:
        targets = targets if isinstance(targets, list) else [targets]
        return judge(record["candidate"], targets, index, provider, client, service)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def _validity(judged: Sequence[tuple[dict, Any]]) -> Iterator[str]:
    """The table per provider and in total, then the warnings."""
    from lookuplab.cloudapi.validity import CATEGORIES
    from lookuplab.scoring.rates import rate

    rows = [["", "n", "valid", "95% interval", "closed", *CATEGORIES[1:]]]
    for name in [*sorted({record["provider"] for record, _ in judged}), "total"]:
        group = [one for record, one in judged if name in ("total", record["provider"])]
        closed, counts = (
            rate([one.valid_closed for one in group]),
            Counter(one.category for one in group),
        )
        categories = [str(counts[one]) for one in CATEGORIES[1:]]
        rows.append(
            [name, *_cells(rate([one.valid for one in group])), f"{closed.value:.1%}", *categories]
        )
    yield aligned(rows, right=True)
    for flag, meaning in (
        ("unresolved_splat", "judged on their visible arguments, because *x or **x hides others"),
        ("unknown_target", "have no target that is a method of their client: never valid"),
    ):
        if count := sum(flag in judgement.flags for _, judgement in judged):
            yield f"{count} {meaning}"


def _cells(found: Any) -> list[str]:
    """n, rate and interval as texts."""
    return [str(found.n), f"{found.value:.1%}", f"{found.low:.1%} to {found.high:.1%}"]


def _agreement(judged: Sequence[tuple[dict, Any]]) -> Iterator[str]:
    """One line for each label that the input carries, with the ids that differ."""
    for field in ("valid", "category"):
        labelled = [
            (record["id"], record[field] == getattr(one, field))
            for record, one in judged
            if field in record
        ]
        different = [str(name) for name, same in labelled if not same]
        if labelled:
            names = f"; not for id {', '.join(different)}" if different else ""
            yield f"agrees with the labels in {field!r}: {len(labelled) - len(different)} of {len(labelled)}{names}"


@command(score)
def toolgen(
    file: str,
    *,
    output: Path | None = None,
    variant: Literal["paper", "package"] = "paper",
    scheduler: str | None = None,
) -> None:
    """Similarity, dependency coverage and success rate of generated functions in their repositories.

    The fields of a line are id, repository (a folder), file (relative to it), line (of the `def` to replace; what is
    there is the reference) and prediction (the whole function, or its body). No file of a repository is changed. What
    Jedi and pylint said is kept beside the completion store, so that a run that was stopped goes on where it was.

    Intervals are clustered by repository. BLEU-4 is on tokens between blanks, since no model is known here.

    \b
    Example:
      lookuplab score toolgen functions.jsonl -o judged.jsonl

    Args:
        output: Write the judgements here, not to stdout.
        variant: The paper's metrics, or as the authors' package computes them.
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    import pandas as pd

    from lookuplab.artifact import readable
    from lookuplab.cluster import joined
    from lookuplab.toolgen import evaluation, tables

    tasks = [_function(record, place) for place, record in read_lines(file, output)]
    with joined(scheduler, os.cpu_count() or 1) as cluster:
        judged = evaluation.judge(tasks, variant, cluster=cluster)
    if judged.empty:
        return write([], output, "no functions")
    frames = {("", "base"): judged}
    rows = tables.repository_rows(frames) + tables.similarity_rows(frames, variant=variant)
    numbers = pd.DataFrame(rows)
    shown = numbers.assign(number=readable(numbers, 3))[["metric", "number"]]
    lines = json.loads(judged[FUNCTION_FIELDS].to_json(orient="records"))
    write(lines, output, shown.to_string(index=False, header=False))


def _function(record: dict, where: str) -> Any:
    """One line of input as a task; raises UserError for anything that is not as it must be."""
    from lookuplab.toolgen.evaluation import Task
    from lookuplab.toolgen.insertion import insert, locate, read_source

    try:
        root = Path(record["repository"]).resolve(strict=True)
        path = (root / record["file"]).resolve()
        text = read_source(path)
        insert(text, locate(text, record["line"]), record["prediction"])
        name = path.relative_to(root).as_posix()
        return Task(record["id"], root, name, record["line"], record["prediction"])
    except (KeyError, TypeError, ValueError, AttributeError, OSError, UserError) as error:
        raise UserError(f"{where}: {type(error).__name__}: {error}") from None


@command(score)
def ds1000(
    file: str,
    *,
    problems: str,
    output: Path | None = None,
    environment: str = "ds1000-grader",
    sandbox: Literal["namespaces", "none"] | None = None,
    variant: Literal["official", "repaired"] = "official",
    leave_out: str = "",
    workers: int | None = None,
    seconds: float = 120,
    scheduler: str | None = None,
) -> None:
    """Run answers to DS-1000's problems against their tests, in a sandbox.

    The process that runs an answer sees neither the test nor the expected result, nor a way to the verdict.

    The fields of a line are problem_id and solution; several lines with one problem_id are its samples, in their order.
    First the references of these problems must pass; if one does not, such as one that needs the network, nothing is
    scored until its problem is named with --leave-out. Verdicts are kept beside the completion store, so that a run
    that was stopped goes on where it was.

    Writes problem_id, sample, passed and error per line, by problem and sample, and a table with pass@1 (mean over
    problems), the average pass rate (mean over answers) and intervals clustered by origin problem.

    \b
    Examples:
      lookuplab data get ds1000-grader
      lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl

    Args:
        problems: DS-1000 (`lookuplab data get ds1000`), or a file of the same form.
        output: Write the verdicts here, not to stdout.
        environment: The Python that runs the tests: made by `lookuplab data get`, or a Python's path.
        sandbox: What keeps the programs from harm; none is no protection. [default: namespaces]
        variant: DS-1000's own cutting of an answer's text, or one that loses no fenced or unindented answer.
        leave_out: ID,ID: do not score the answers to these problems.
        workers: Servers at a time. [default: one a CPU]
        seconds: CPU time of a program.
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    from lookuplab.cluster import joined
    from lookuplab.execution.server import Limits
    from lookuplab.stackoverflow import ds1000, grader

    known = {problem.id: problem for problem in ds1000.load(problems)}
    names, answers = read_answers(read_lines(file, output), known, variant)
    runs = grader.Grader(
        grader.environment(environment),
        sandbox or "",
        workers=workers or 0,
        limits=Limits(seconds=2 * seconds, cpu_seconds=seconds),
    )
    left = [one for one in leave_out.replace(" ", "").split(",") if one]
    with joined(scheduler, runs.workers) as runs.cluster:
        verdicts = grader.grade(list(known.values()), answers, runs, left)
    rows = (
        {
            "problem_id": names[one.problem_id],
            "sample": one.sample,
            "passed": one.passed,
            "error": one.error,
        }
        for one in verdicts
    )
    said = [_passes(known, verdicts), f"sandbox: {runs.sandbox}"]
    write(rows, output, "\n".join(said + [f"left out by name: {', '.join(left)}"] * bool(left)))


def read_answers(
    lines: Iterable[tuple[str, dict]], problems: dict, variant: str
) -> tuple[dict[str, Any], list]:
    """(problem id -> the id as the file has it, the answers with their code cut out); samples count up per problem."""
    from lookuplab.stackoverflow.ds1000 import indented, solution_of
    from lookuplab.stackoverflow.grader import Answer

    names, answers, samples = {}, [], Counter()
    for place, record in lines:
        check_fields(place, record, {"problem_id": int | str, "solution": str}, {})
        id = str(record["problem_id"])
        if id not in problems:
            raise UserError(
                f"{place}: unknown problem {id!r}; the problems' file holds {len(problems)} others"
            )
        code = solution_of(record["solution"], variant)
        answers.append(
            Answer(id, samples[id], indented(problems[id], code) if variant == "repaired" else code)
        )
        samples[id] += 1
        names[id] = record["problem_id"]
    if not answers:
        raise UserError("the input holds no answer")
    return names, answers


def _passes(known: dict, verdicts: Sequence) -> str:
    """pass@1 and the average pass rate, by library and in total."""
    from lookuplab.scoring.pass_at_k import passes
    from lookuplab.stackoverflow.scores import average_pass_rate, by_problem

    rows = [
        ["", "problems", "pass@1", "95% interval", "answers", "average pass rate", "95% interval"]
    ]
    for name in [*sorted({known[one.problem_id].library for one in verdicts}), "total"]:
        passed = by_problem(
            one for one in verdicts if name in ("total", known[one.problem_id].library)
        )
        clusters = {one: known[one].cluster for one in passed}
        if passed:
            rows.append(
                [
                    name,
                    *_cells(passes(passed, clusters, 1)),
                    *_cells(average_pass_rate(passed, clusters)),
                ]
            )
    return aligned(rows, right=True)
