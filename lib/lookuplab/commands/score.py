"""``lookuplab score``: judge completions that were made elsewhere."""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from tqdm import tqdm

from lookuplab.atomic import write_lines
from lookuplab.cli import LazyGroup
from lookuplab.cloudapi.specs import INDEX, ApiIndex, load_index
from lookuplab.cloudapi.validity import CATEGORIES, Judgement, judge
from lookuplab.commands.run import scheduler_option
from lookuplab.errors import UserError

# The client's construction in a prompt: boto3.client("s3"), session.client('s3'), client = BlobClient(
CONSTRUCTIONS = {
    "aws": re.compile(r"""\bclient\(\s*(?:service_name\s*=\s*)?["']([\w-]+)["']"""),
    "azure": re.compile(r"^\s*client\s*=\s*(?:\w+\.)*([A-Z]\w*)(?:\.from_\w+)?\(", re.MULTILINE),
}
DETAILS = ("name", "reason", "flags", "exists_anywhere")


@click.group(cls=LazyGroup, modules={"ds1000": "lookuplab.commands.score_ds1000:command"},
             short_help="Judge completions that were made elsewhere.", epilog="""\b
Examples:
  lookuplab score cloudapi completions.jsonl -o judged.jsonl
  lookuplab score toolgen functions.jsonl -o judged.jsonl
  lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl""")
def command() -> None:
    """Judge completions that were made elsewhere."""


@command.command(short_help="Valid API invocation and failure category.")
@click.argument("file", metavar="FILE.jsonl")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the judgements here, not to stdout.")
@click.option("--details", is_flag=True, help="Add the called name, the reason, flags and the name-only existence.")
@click.option("--index", "index_path", type=click.Path(path_type=Path), default=INDEX, show_default="the committed one",
              help="Another API index (index.jsonl.xz): of `lookuplab data build cloudapi`, or of `... build api` for a "
              "package (provider python; every line names its client).")
def cloudapi(file: str, output: Path | None, details: bool, index_path: Path) -> None:
    """Valid API invocation and failure category of completions of CloudAPIBench prompts.

    FILE has one JSON object a line ("-" reads standard input) with the fields id, prompt, candidate, target, service,
    client and provider. A candidate is what the model wrote behind the prompt's `client.`, taken literally: nothing
    is stripped. `target` may be a list of names, of which one must bind. Where `client` is missing it is read from
    the prompt (boto3.client("...") or client = SomeClient(...)), then, for AWS, from `service`.

    Writes id, valid, valid_closed, category and call per line, and a summary table with Wilson intervals (to stderr
    when the judgements go to stdout). Where the lines carry labels (`valid`, `category`), it reports the agreement.

    \b
    Examples:
      lookuplab score cloudapi completions.jsonl -o judged.jsonl
      cat completions.jsonl | lookuplab score cloudapi - --details > judged.jsonl
    """
    if output is not None and file != "-" and output.resolve() == Path(file).resolve():
        raise UserError(f"{output} is the input; name another output file")
    index = load_index(index_path)
    lines = tqdm(read_lines(file), desc="judging", unit=" lines", delay=1)
    judged = [(record, judge_record(record, index, place)) for place, record in lines]
    rows = [json.dumps(_row(record, judgement, details), ensure_ascii=False) for record, judgement in judged]
    if output is None:
        click.echo("".join(row + "\n" for row in rows), nl=False)
    else:
        write_lines(output, rows)
    click.echo(summary(judged), err=output is None)


def read_lines(file: str) -> Iterator[tuple[str, dict]]:
    """("file, line n", object) of every line that is not blank; raises UserError with file and line number."""
    name = "standard input" if file == "-" else file
    try:
        source = sys.stdin.buffer if file == "-" else open(file, "rb")  # bytes: a bad encoding gets its line number too
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    with source:
        for number, line in enumerate(source, 1):
            if line.strip():
                yield f"{name}, line {number}", _object(line, f"{name}, line {number}")


def _object(line: bytes, place: str) -> dict:
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # ValueError: bad JSON and bad UTF-8
        raise UserError(f"{place}: not a JSON object: {error}") from None
    if not isinstance(record, dict):
        raise UserError(f"{place}: not a JSON object but {type(record).__name__}")
    return record


def judge_record(record: dict, index: ApiIndex, place: str) -> Judgement:
    """Judge one line; raises UserError for a missing or ill-typed field, an unknown provider or client."""
    for field in ("id", "candidate", "target", "provider"):
        if record.get(field) is None:
            raise UserError(f"{place}: the field {field!r} is missing")
    for field in ("prompt", "candidate", "service", "client", "provider"):
        if not isinstance(record.get(field) or "", str):
            raise UserError(f"{place}: the field {field!r} must be a string")
    targets = record["target"] if isinstance(record["target"], list) else [record["target"]]
    if not targets or not all(isinstance(target, str) and target for target in targets):
        raise UserError(f"{place}: the field 'target' must be a name or a list of names")
    if record["provider"] not in index.providers:
        raise UserError(f"{place}: unknown provider {record['provider']!r}; known are {', '.join(index.providers)}")
    try:
        client = record.get("client") or _client(record, place)
        return judge(record["candidate"], targets, index, record["provider"], client, record.get("service"))
    except UserError as error:
        raise UserError(f"{error}" if place in str(error) else f"{place}: {error}") from None


def _client(record: dict, place: str) -> str:
    """The client of a line that does not name it: what the prompt constructs last, else the AWS service."""
    constructing = CONSTRUCTIONS.get(record["provider"])  # for a package's API the line has to name the client
    constructed = constructing.findall(record.get("prompt") or "") if constructing else []
    if constructed:
        return constructed[-1]
    if record["provider"] == "aws" and record.get("service"):
        return record["service"]
    raise UserError(f"{place}: the field 'client' is missing, and the prompt does not construct a client")


def _row(record: dict, judgement: Judgement, details: bool) -> dict:
    row = {"id": record["id"]}
    row |= {field: getattr(judgement, field) for field in ("valid", "valid_closed", "category", "call")}
    return row | ({field: getattr(judgement, field) for field in DETAILS} if details else {})


def summary(judged: Sequence[tuple[dict, Judgement]]) -> str:
    """The table per provider and in total, then the warnings and the agreement with labels."""
    providers = sorted({record["provider"] for record, _ in judged})
    groups = {name: [j for record, j in judged if record["provider"] == name] for name in providers}
    header = ["", "n", "valid", "95% interval", "closed", *CATEGORIES[1:]]
    table = [header] + [_rates(name, group) for name, group in groups.items()]
    table += [_rates("total", [j for _, j in judged])]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
    for flag, meaning in (("unresolved_splat", "judged on their visible arguments, because *x or **x hides others"),
                          ("unknown_target", "have no target that is a method of their client: never valid")):
        if count := sum(flag in judgement.flags for _, judgement in judged):
            lines.append(f"{count} {meaning}")
    return "\n".join(lines + _agreement(judged))


def _rates(name: str, judgements: Sequence[Judgement]) -> list[str]:
    from lookuplab.scoring.rates import wilson  # half a second of statsmodels, which `--help` need not wait for

    n, valid = len(judgements), sum(j.valid for j in judgements)
    categories = Counter(j.category for j in judgements)
    if not n:
        return [name, "0", "", "", "", *("0" for _ in CATEGORIES[1:])]
    low, high = wilson(valid, n)
    closed = sum(j.valid_closed for j in judgements) / n
    shares = [str(categories[category]) for category in CATEGORIES[1:]]
    return [name, str(n), f"{valid / n:.1%}", f"{low:.1%} to {high:.1%}", f"{closed:.1%}", *shares]


def _agreement(judged: Sequence[tuple[dict, Judgement]]) -> list[str]:
    """One line for each label that the input carries, with the ids that differ."""
    lines = []
    for field in ("valid", "category"):
        labelled = [(r["id"], r[field] == getattr(j, field)) for r, j in judged if r.get(field) is not None]
        different = [str(name) for name, same in labelled if not same]
        if labelled:
            agreed = f"{len(labelled) - len(different)} of {len(labelled)}"
            names = ", ".join(different[:20]) + (" ..." if different[20:] else "")
            lines.append(f"agrees with the labels in {field!r}: {agreed}{'; not for id ' + names if names else ''}")
    return lines


@command.command(short_help="Similarity, dependency coverage and success rate of functions.")
@click.argument("file", metavar="FILE.jsonl")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the judgements here, not to stdout.")
@click.option("--variant", type=click.Choice(["paper", "package"]), default="paper", show_default=True,
              help="The paper's metrics, or as the authors' package computes them.")
@scheduler_option
def toolgen(file: str, output: Path | None, variant: str, scheduler: str | None) -> None:
    """Similarity, dependency coverage and success rate of generated functions in their repositories.

    FILE has one JSON object a line ("-" reads standard input) with the fields id, repository (a folder), file (relative
    to it), line (of the `def` to replace; what stands there is the reference) and prediction (the whole function, or
    its body). No file of a repository is changed. What Jedi and pylint said is kept beside the completion store, so that a
    run that was stopped goes on where it ended.

    Writes one judgement a line, and a summary table with intervals clustered by repository (to stderr when the
    judgements go to stdout). BLEU-4 is on tokens between blanks, since no model is known here.

    \b
    Examples:
      lookuplab score toolgen functions.jsonl -o judged.jsonl
    """
    from lookuplab.cluster import joined
    from lookuplab.toolgen.metrics import judging, report

    if output is not None and file != "-" and output.resolve() == Path(file).resolve():
        raise UserError(f"{output} is the input; name another output file")
    tasks = [report.task(record, place) for place, record in read_lines(file)]
    with joined(scheduler, os.cpu_count() or 1) as cluster:
        judged = judging.judge(tasks, variant, cluster=cluster)
    rows = [json.dumps(judging.row(found), ensure_ascii=False) for found in judged]
    if output is None:
        click.echo("".join(row + "\n" for row in rows), nl=False)
    else:
        write_lines(output, rows)
    click.echo(report.table(judged, variant), err=output is None)
