"""``lookuplab data``: downloads, what is built from them, and marked corpora."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import click

from lookuplab.cli import LazyGroup, scheduler_option, settings_option, with_settings

_BUILDERS = {
    "cloudapi": "lookuplab.cloudapi.sdks:command",
}
_OTHERS = {"frequencies": "lookuplab.cloudapi.frequency:command"}
seed_option = click.option("--seed", default=0, show_default=True, help="Which APIs are dealt.")


@click.group(
    cls=LazyGroup,
    modules=_OTHERS,
    short_help="List and fetch downloads; build the committed data.",
    epilog="""\b
Examples:
  lookuplab data list
  lookuplab data get starcoder2-3b
  lookuplab data build cloudapi
  lookuplab data frequencies path/to/sources
  lookuplab data mark rich click -o marked.jsonl""",
)
def data() -> None:
    """What the kit reads: downloads named in data/sources.toml, and the builders of the
    committed data.
    """


@data.command(
    "list",
    short_help="Every download, its size, licence and use.",
    epilog="""\b
Example:
  lookuplab data list""",
)
def list_sources() -> None:
    """Print every download of data/sources.toml; a star marks what has been fetched."""
    from lookuplab import data_sources

    for source in data_sources.load().values():
        mark = "*" if data_sources.is_fetched(source) else " "
        amount = (
            f"{source.size / 1e6:,.1f} MB"
            if source.size
            else "streamed"
            if source.streamed
            else source.kind
        )
        click.echo(f"{mark} {source.name:22} {amount:10} {source.address}")
        click.echo(f"    {source.purpose}\n    licence: {source.licence}")


@data.command(
    "get",
    short_help="Fetch one download.",
    epilog="""\b
Examples:
  lookuplab data get starcoder2-3b
  lookuplab data get ds1000-grader""",
)
@click.argument("name")
def get_source(name: str) -> None:
    """Fetch NAME unless it is there, resume it if it was cut off, check size and sha256.

    An environment is a Python of its own: pip installs its packages, and each is imported; what is
    missing or does not import is named and installed again.
    """
    from lookuplab import data_sources

    click.echo(data_sources.get(data_sources.find(name)))


@data.command(
    "mark",
    short_help="Mark functions where a completion tool would help.",
    epilog="""\b
Examples:
  lookuplab data mark rich click -o marked.jsonl
  lookuplab data mark path/to/repository --variant package -o marked.jsonl
  lookuplab data mark httpx -s max_lines=30 --jobs 8 -o marked.jsonl
  lookuplab data mark httpx -o marked.jsonl --scheduler tcp://head-node:8786""",
)
@click.argument("repositories", nargs=-1, required=True, metavar="REPOSITORY_OR_PACKAGE...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON Lines, one function a line; a run that was cut off goes on there.",
)
@click.option(
    "--variant",
    type=click.Choice(["paper", "package"]),
    default="paper",
    show_default=True,
    help="Algorithm 1, or the replication package's reading of it.",
)
@click.option(
    "-j", "--jobs", type=click.IntRange(1), help="Jedi processes. [default: one a processor]"
)
@settings_option
@scheduler_option
def mark(
    repositories: tuple[str, ...],
    output: Path,
    variant: str,
    jobs: int | None,
    settings: tuple[str, ...],
    scheduler: str | None,
) -> None:
    """Extract functions with docstrings from folders or packages and mark, by Jedi, where
    completion helps.

    Settings (-s): max_files (500; repositories with more are left out), max_file_lines (1000;
    files), max_lines (50; functions) and max_tokens (512; Python tokens of a function).

    What is left out is counted and printed with its reason; nothing stops at a bad file.
    """
    import json

    from lookuplab import paper
    from lookuplab.cluster import joined
    from lookuplab.paths import write_lines
    from lookuplab.toolgen.functions import Filters, extract, locate_all
    from lookuplab.toolgen.marking import marked, statistics_rows

    filters, seen = with_settings(Filters(), settings), set()
    found = [extract(place, filters, seen) for place in locate_all(repositories)]
    functions = [function for one in found for function in one.functions]
    with joined(scheduler, jobs or os.cpu_count() or 1) as cluster:
        records = marked(functions, variant, jobs, cluster=cluster, strict=False)
    output.parent.mkdir(parents=True, exist_ok=True)
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


@data.group(
    "build",
    cls=LazyGroup,
    modules=_BUILDERS,
    short_help="Build the committed data, or your own.",
    epilog="""\b
Examples:
  lookuplab data build api networkx
  lookuplab data build cloudapi
  lookuplab data build benchmark
  lookuplab data build snippets""",
)
def build() -> None:
    """Build what data/mini holds from its sources; `api` makes the same of any Python package."""


@build.command(
    "benchmark",
    short_help="The 622 CloudAPIBench tasks.",
    epilog="""\b
Examples:
  lookuplab data build benchmark
  lookuplab data build benchmark --frequencies stack.csv -o tasks.jsonl""",
)
@click.option(
    "--frequencies",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CSV with columns api, count_name, count_bound, as `lookuplab data frequencies` writes it.  "
    "[default: the mini corpus's counts]",
)
@seed_option
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON Lines file.  [default: the mini profile's tasks]",
)
def build_benchmark(frequencies: Path | None, seed: int, out: Path | None) -> None:
    """Build the 622 CloudAPIBench tasks from the API index and a frequency table."""
    from lookuplab.cloudapi import benchmark
    from lookuplab.cloudapi.specs import load_index

    index = load_index()
    if frequencies is None:
        from lookuplab.mini.corpus import assign

        names = bound = assign(index, seed)
    else:
        from lookuplab.cloudapi.frequency import read_frequencies

        names, bound = read_frequencies(frequencies)
    tasks, out = benchmark.build(index, names, bound, seed), out or benchmark.TASKS
    benchmark.write_tasks(tasks, out)
    click.echo(f"{len(tasks)} tasks of {len({task.target for task in tasks})} APIs -> {out}")


@build.command(
    "api",
    short_help="Index and benchmark of any Python package.",
    epilog="""\b
Examples:
  lookuplab data build api networkx
  lookuplab data build api path/to/my_package --corpus path/to/code/that/uses/it -o my_api
Then:
  lookuplab run own/package -p package=networkx""",
)
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to.  [default: runs/packages/PACKAGE]",
)
@click.option(
    "--corpus",
    help="Code to count frequencies in: a folder, JSON Lines or data set, as for `lookuplab data "
    "frequencies`.  [default: the package's own sources and tests]",
)
@click.option(
    "--per-class",
    default=100,
    show_default=True,
    type=click.IntRange(1),
    help="Tasks of each frequency class, at most.",
)
@seed_option
def build_api(
    packages: tuple[str, ...], output: Path | None, corpus: str | None, per_class: int, seed: int
) -> None:
    """Build the API index of any importable package and a benchmark in the style of CloudAPIBench.

    PACKAGE is an import name (networkx, or a part: networkx.algorithms) or a package's folder. It
    is imported in a process of its own. Writes index.jsonl.xz, documentation.jsonl.xz,
    frequencies.csv and tasks.jsonl; a call is valid iff it binds to the signature that Python
    reports. What cannot be read or asked for is counted and printed.
    """
    from lookuplab.cloudapi import packages as own

    folder = output or own.folder_of(packages)
    made = own.build(packages, folder, corpus, per_class, seed)
    click.echo(f"{len(made.index.specs)} APIs; {made.counting}")
    echo_counts("left out:", made.left_out)
    apis = {task.target for task in made.tasks}
    click.echo(f"{len(made.tasks)} tasks of {len(apis)} APIs -> {folder}")


@build.command(
    "snippets",
    short_help="The mini corpus of snippets.",
    epilog="""\b
Examples:
  lookuplab data build snippets
  lookuplab data build snippets -o somewhere""",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to.  [default: data/mini/stackoverflow]",
)
def build_snippets(out: Path | None) -> None:
    """Build descriptions, code and queries from the docstrings of numpy, pandas, scipy and
    scikit-learn.
    """
    from lookuplab.mini import snippets
    from lookuplab.stackoverflow.corpus import MINI, write

    for name, records in snippets.build().items():
        write((out or MINI) / f"{name}.jsonl.gz", records)
        click.echo(f"{len(records):,} {name} -> {out or MINI}")


@build.command(
    "problems",
    short_help="The mini benchmark of executable problems.",
    epilog="""\b
Example:
  lookuplab data build problems""",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write.  [default: the mini profile's]",
)
def build_problems(out: Path | None) -> None:
    """Make the problems of the mini benchmark again from the docstring examples of numpy, pandas,
    scipy and scikit-learn.

    Which examples and perturbations they are, the committed file says. Each example runs in a
    process of its own, with limits, without writing files or opening connections.
    """
    from lookuplab.mini import problems

    made = list(problems.rebuilt())
    problems.write(out or problems.PROBLEMS, made)
    click.echo(f"{len(made)} problems -> {out or problems.PROBLEMS}")


def echo_counts(head: str, counts: Mapping[str, int]) -> None:
    """Print what was counted below ``head``, the largest number first."""
    if head:
        click.echo(head)
    for what, number in sorted(counts.items(), key=lambda item: -item[1]):
        click.echo(f"  {number:>7,}  {what}")
