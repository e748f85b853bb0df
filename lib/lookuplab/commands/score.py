"""``lookuplab score``: judge completions that were made elsewhere."""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lookuplab.cli import aligned, scheduler_option
from lookuplab.errors import UserError

if TYPE_CHECKING:
    from lookuplab.toolgen.evaluation import Task

# The client's construction in a prompt: boto3.client("s3"), session.client('s3'), client = BlobClient(
CONSTRUCTIONS = {
    "aws": re.compile(r"""\bclient\(\s*(?:service_name\s*=\s*)?["']([\w-]+)["']"""),
    "azure": re.compile(r"^\s*client\s*=\s*(?:\w+\.)*([A-Z]\w*)(?:\.from_\w+)?\(", re.MULTILINE),
}


FUNCTION_FIELDS = [
    *("id", "exact_match", "edit_similarity", "dependencies", "covered", "passed", "lost"),
    *("messages", "next_identifier", "identifier_sequence", "prefix"),
]


@click.group(
    short_help="Judge completions that were made elsewhere.",
    epilog="""\b
Examples:
  lookuplab score cloudapi completions.jsonl -o judged.jsonl
  lookuplab score toolgen functions.jsonl -o judged.jsonl
  lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl""",
)
def score() -> None:
    """Judge completions that were made elsewhere.

    FILE has one JSON object per line; "-" reads standard input. Judgements are written in the same
    form, and a table with intervals is printed (to stderr when the judgements go to stdout).
    """


def files(command: Callable) -> Callable:
    """The input and the output of a command that scores."""
    command = click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help="Write the judgements here, not to stdout.",
    )(command)
    return click.argument("file", metavar="FILE.jsonl")(command)


def read_lines(file: str, output: Path | None) -> Iterator[tuple[str, dict]]:
    """("file, line n", object) for every line that is not blank. Raises UserError with file and
    line number.
    """
    name = "standard input" if file == "-" else file
    if output is not None and file != "-" and output.resolve() == Path(file).resolve():
        raise UserError(f"{output} is the input; name another output file")
    try:
        source = (
            sys.stdin.buffer if file == "-" else open(file, "rb")
        )  # bytes: a bad encoding gets its line number too
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    with source:
        for number, line in enumerate(source, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:  # ValueError: bad JSON and bad UTF-8
                raise UserError(f"{name}, line {number}: not a JSON object: {error}") from None
            if not isinstance(record, dict):
                raise UserError(
                    f"{name}, line {number}: not a JSON object but {type(record).__name__}"
                )
            yield f"{name}, line {number}", record


def write(rows: Iterable[dict], output: Path | None, table: str) -> None:
    """The judgements to ``output`` or stdout, then the table."""
    from lookuplab.paths import write_lines

    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    if output is None:
        click.echo("".join(line + "\n" for line in lines), nl=False)
    else:
        write_lines(output, lines)
    click.echo(table, err=output is None)


@score.command(
    short_help="Valid API invocation and failure category.",
    epilog="""\b
Examples:
  lookuplab score cloudapi completions.jsonl -o judged.jsonl
  cat completions.jsonl | lookuplab score cloudapi - --details > judged.jsonl""",
)
@files
@click.option(
    "--details",
    is_flag=True,
    help="Add the called name, the reason, flags and the name-only existence.",
)
@click.option(
    "--index",
    "index_path",
    type=click.Path(path_type=Path),
    show_default="the committed one",
    help="Another API index (index.jsonl.xz): of `lookuplab data build cloudapi`, or of `... build api` for a "
    "package (provider python; every line names its client).",
)
def cloudapi(file: str, output: Path | None, details: bool, index_path: Path | None) -> None:
    """Valid API invocation and failure category of completions of CloudAPIBench prompts.

    The fields of a line are id, prompt, candidate, target, service, client and provider. A
    candidate is what the model wrote behind the prompt's `client.`, taken literally: nothing is
    stripped. `target` may be a list of names, one of which must bind. If `client` is missing, it is
    read from the prompt (boto3.client("...") or client = SomeClient(...)), then, for AWS, from
    `service`.

    Writes id, valid, valid_closed, category and call per line. If the lines carry labels (`valid`,
    `category`), it reports the agreement.
    """
    from tqdm import tqdm

    from lookuplab.cloudapi.specs import INDEX, load_index

    index, fields = load_index(index_path or INDEX), ["valid", "valid_closed", "category", "call"]
    fields += ["name", "reason", "flags", "exists_anywhere"] if details else []
    lines = tqdm(read_lines(file, output), desc="judging", unit=" lines", delay=1)
    judged = [(record, judge_record(record, index, place)) for place, record in lines]
    rows = (
        {"id": record["id"]} | {field: getattr(one, field) for field in fields}
        for record, one in judged
    )
    write(rows, output, "\n".join([*_validity(judged), *_agreement(judged)]))


def judge_record(record: dict, index: Any, place: str) -> Any:
    """Judge one line. Raises UserError for a missing or ill-typed field, an unknown provider or
    client.
    """
    from lookuplab.cloudapi.validity import judge

    for field in ("id", "candidate", "target", "provider"):
        if record.get(field) is None:
            raise UserError(f"{place}: the field {field!r} is missing")
    for field in ("prompt", "candidate", "service", "client", "provider"):
        if not isinstance(record.get(field) or "", str):
            raise UserError(f"{place}: the field {field!r} must be a string")
    provider, targets = record["provider"], record["target"]
    targets = targets if isinstance(targets, list) else [targets]
    if not targets or not all(isinstance(target, str) and target for target in targets):
        raise UserError(f"{place}: the field 'target' must be a name or a list of names")
    if provider not in index.providers:
        raise UserError(
            f"{place}: unknown provider {provider!r}; known are {', '.join(index.providers)}"
        )
    # for a package's API, the line has to name the client
    constructed = re.findall(CONSTRUCTIONS.get(provider, r"(?!)"), record.get("prompt") or "")
    client = (
        record.get("client")
        or (constructed or [record.get("service") if provider == "aws" else None])[-1]
    )
    if not client:
        raise UserError(
            f"{place}: the field 'client' is missing, and the prompt does not construct a client"
        )
    try:
        return judge(record["candidate"], targets, index, provider, client, record.get("service"))
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def _validity(judged: Sequence[tuple[dict, Any]]) -> Iterator[str]:
    """The table per provider and in total, then the warnings."""
    from lookuplab.cloudapi.validity import CATEGORIES
    from lookuplab.scoring.rates import wilson

    rows = [["", "n", "valid", "95% interval", "closed", *CATEGORIES[1:]]]
    for name in [*sorted({record["provider"] for record, _ in judged}), "total"]:
        group = [one for record, one in judged if name in ("total", record["provider"])]
        n, valid, categories = (
            len(group),
            sum(one.valid for one in group),
            Counter(one.category for one in group),
        )
        low, high = wilson(valid, n) if n else (0, 0)
        rates = [
            f"{valid / n:.1%}",
            f"{low:.1%} to {high:.1%}",
            f"{sum(one.valid_closed for one in group) / n:.1%}",
        ]
        rows.append(
            [
                name,
                str(n),
                *(rates if n else [""] * 3),
                *(str(categories[one]) for one in CATEGORIES[1:]),
            ]
        )
    yield aligned(rows, right=True)
    for flag, meaning in (
        ("unresolved_splat", "judged on their visible arguments, because *x or **x hides others"),
        ("unknown_target", "have no target that is a method of their client: never valid"),
    ):
        if count := sum(flag in judgement.flags for _, judgement in judged):
            yield f"{count} {meaning}"


def _agreement(judged: Sequence[tuple[dict, Any]]) -> Iterator[str]:
    """One line for each label that the input carries, with the ids that differ."""
    for field in ("valid", "category"):
        labelled = [
            (str(r["id"]), r[field] == getattr(j, field))
            for r, j in judged
            if r.get(field) is not None
        ]
        different = [name for name, same in labelled if not same]
        if labelled:
            names = (
                f"; not for id {', '.join(different[:20])}{' ...' * (len(different) > 20)}"
                if different
                else ""
            )
            yield f"agrees with the labels in {field!r}: {len(labelled) - len(different)} of {len(labelled)}{names}"


@score.command(
    short_help="Similarity, dependency coverage and success rate of functions.",
    epilog="""\b
Example:
  lookuplab score toolgen functions.jsonl -o judged.jsonl""",
)
@files
@click.option(
    "--variant",
    type=click.Choice(["paper", "package"]),
    default="paper",
    show_default=True,
    help="The paper's metrics, or as the authors' package computes them.",
)
@scheduler_option
def toolgen(file: str, output: Path | None, variant: str, scheduler: str | None) -> None:
    """Similarity, dependency coverage and success rate of generated functions in their
    repositories.

    The fields of a line are id, repository (a folder), file (relative to it), line (of the `def` to
    replace; what is there is the reference) and prediction (the whole function, or its body). No
    file of a repository is changed. What Jedi and pylint said is kept beside the completion store,
    so that a run that was stopped goes on where it was.

    Intervals are clustered by repository. BLEU-4 is on tokens between blanks, since no model is
    known here.
    """
    from pandas import DataFrame

    from lookuplab.artifact import readable
    from lookuplab.cluster import joined
    from lookuplab.toolgen import evaluation, tables

    tasks = [_function(record, place) for place, record in read_lines(file, output)]
    with joined(scheduler, os.cpu_count() or 1) as cluster:
        judged = evaluation.judge(tasks, variant, cluster=cluster)
    if judged.empty:
        return write([], output, "no functions")
    frames = {("", "base"): judged}
    numbers = DataFrame(
        tables.repository_rows(frames) + tables.similarity_rows(frames, variant=variant)
    )
    shown = numbers.assign(number=readable(numbers, 3))[["metric", "number"]]
    write(
        json.loads(judged[FUNCTION_FIELDS].to_json(orient="records")),
        output,
        shown.to_string(index=False, header=False),
    )


def _function(record: dict, where: str) -> "Task":
    """One line of input; raises UserError for anything that is not as it must be."""
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


@score.command(
    short_help="Answers to DS-1000 problems, judged by execution.",
    epilog="""\b
Examples:
  lookuplab data get ds1000-grader
  lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl""",
)
@files
@click.option(
    "--problems",
    "problems_file",
    required=True,
    metavar="P.jsonl[.gz]",
    help="DS-1000 (`lookuplab data get ds1000`), or a file of the same form.",
)
@click.option(
    "--environment",
    "environment_name",
    default="ds1000-grader",
    show_default=True,
    metavar="NAME",
    help="The Python that runs the tests: made by `lookuplab data get`, or a Python's path.",
)
@click.option(
    "--sandbox",
    "sandbox_name",
    type=click.Choice(["bubblewrap", "unshare", "docker", "none"]),
    help="What keeps the programs from harm; none is no protection.  [default: the first that works]",
)
@click.option(
    "--variant",
    type=click.Choice(["official", "repaired"]),
    default="official",
    show_default=True,
    help="DS-1000's own cutting of an answer's text, or one that loses no fenced or unindented answer.",
)
@click.option(
    "--leave-out", default="", metavar="ID,ID", help="Do not score the answers to these problems."
)
@click.option("--workers", type=click.IntRange(1), help="Servers at a time.  [default: one a CPU]")
@click.option(
    "--seconds",
    type=click.FloatRange(1),
    default=120,
    show_default=True,
    help="CPU time of a program.",
)
@scheduler_option
def ds1000(
    file: str,
    problems_file: str,
    output: Path | None,
    environment_name: str,
    sandbox_name: str | None,
    variant: str,
    leave_out: str,
    workers: int | None,
    seconds: float,
    scheduler: str | None,
) -> None:
    """Run answers to DS-1000's problems against their tests, in a sandbox.

    It protects the machine; a verdict presupposes an answer that does not attack its test.

    The fields of a line are problem_id and solution; several lines with one problem_id are its
    samples, in their order. First the references of these problems must pass; if one does not, such
    as one that needs the network, nothing is scored until its problem is named with --leave-out.
    Verdicts are kept beside the completion store, so that a run that was stopped goes on where it
    was.

    Writes problem_id, sample, passed and error per line, by problem and sample, and a table with
    pass@1 (mean over problems), the average pass rate (mean over answers) and intervals clustered
    by origin problem.
    """
    from lookuplab.cluster import joined
    from lookuplab.execution.sandbox import choose
    from lookuplab.stackoverflow import ds1000, environment, grader

    problems = ds1000.load(problems_file)
    names, answers = read_answers(
        read_lines(file, output), {problem.id: problem for problem in problems}, variant
    )
    runs = grader.Grader(
        environment.environment(environment_name),
        choose(sandbox_name),
        workers=workers,
        limits=grader.limited(seconds),
    )
    left = [one for one in leave_out.replace(" ", "").split(",") if one]
    with joined(scheduler, runs.workers) as runs.cluster:
        verdicts = grader.grade(problems, answers, runs, left)
    rows = (
        {
            "problem_id": names[one.problem_id],
            "sample": one.sample,
            "passed": one.passed,
            "error": one.error,
        }
        for one in verdicts
    )
    said = [
        _passes(problems, verdicts),
        *([f"left out by name: {', '.join(left)}"] if left else []),
        f"sandbox: {runs.sandbox.name}",
    ]
    write(rows, output, "\n".join(said))


def read_answers(
    lines: Iterable[tuple[str, dict]], problems: dict, variant: str
) -> tuple[dict[str, Any], list]:
    """(problem id -> the id as the file has it, the answers with their code cut out); samples
    count up per problem.
    """
    from lookuplab.stackoverflow.ds1000 import indented, solution_of
    from lookuplab.stackoverflow.grader import Answer

    names, answers, samples = {}, [], Counter()
    for place, record in lines:
        one = record.get("problem_id")
        if isinstance(one, bool) or not isinstance(one, int | str):
            raise UserError(f"{place}: the field 'problem_id' is missing or no id")
        if str(one) not in problems:
            raise UserError(
                f"{place}: unknown problem {str(one)!r}; the problems' file holds {len(problems)} others"
            )
        if not isinstance(record.get("solution"), str):
            raise UserError(f"{place}: the field 'solution' is missing or no text")
        code = solution_of(record["solution"], variant)
        code = indented(problems[str(one)], code) if variant == "repaired" else code
        answers.append(Answer(str(one), samples[str(one)], code))
        samples[str(one)] += 1
        names[str(one)] = one
    if not answers:
        raise UserError("the input holds no answer")
    return names, answers


def _passes(problems: Sequence, verdicts: Sequence) -> str:
    """pass@1 and the average pass rate, by library and in total."""
    from lookuplab.scoring.pass_at_k import passes
    from lookuplab.stackoverflow.passing import average_pass_rate, by_problem

    known = {problem.id: problem for problem in problems}
    rows = [
        ["", "problems", "pass@1", "95% interval", "answers", "average pass rate", "95% interval"]
    ]
    for name in [*sorted({known[one.problem_id].library for one in verdicts}), "total"]:
        passed = by_problem(
            one for one in verdicts if name in ("total", known[one.problem_id].library)
        )
        clusters = {one: known[one].cluster for one in passed}
        found = (passes(passed, clusters, 1), average_pass_rate(passed, clusters)) if passed else ()
        rows.append(
            [
                name,
                *(
                    cell
                    for rate in found
                    for cell in (
                        str(rate.n),
                        f"{rate.value:.1%}",
                        f"{rate.low:.1%} to {rate.high:.1%}",
                    )
                ),
            ]
            if found
            else [name, "0", "", "", "0", "", ""]
        )
    return aligned(rows, right=True)
