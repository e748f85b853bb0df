"""``lookuplab data``: downloads, what is built from them, and marked corpora."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import click

from lookuplab.cli import Group, command, with_settings

_BUILDERS = {
    "cloudapi": "lookuplab.cloudapi.build:command",
    "problems": "lookuplab.mini.problems.build:command",
}


@click.group(cls=Group, modules={"frequencies": "lookuplab.cloudapi.frequency:command"})
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
    """Print every download of data/sources.toml, its size, licence and use; a star marks what has been fetched.

    \b
    Example:
      lookuplab data list
    """
    from lookuplab import data_sources

    for source in data_sources.load().values():
        mark = "*" if data_sources.is_fetched(source) else " "
        size = (
            f"{source.size / 1e6:,.1f} MB"
            if source.size
            else "streamed"
            if source.streamed
            else source.kind
        )
        click.echo(f"{mark} {source.name:22} {size:10} {source.address}")
        click.echo(f"    {source.purpose}\n    licence: {source.licence}")


@command(data, "get")
def get_source(name: str) -> None:
    """Fetch the download NAME unless it is there, resume it if it was cut off, check size and sha256.

    An environment is a Python of its own: pip installs its packages, and each is imported; what is missing or does not
    import is named and installed again.

    \b
    Examples:
      lookuplab data get starcoder2-3b
      lookuplab data get ds1000-grader
    """
    from lookuplab import data_sources

    click.echo(data_sources.get(data_sources.find(name)))


@command(data)
def mark(
    repositories: tuple[str, ...],
    *,
    output: Path,
    variant: Literal["paper", "package"] = "paper",
    jobs: int | None = None,
    time_limit: float = 10.0,
    set_: tuple[str, ...] = (),
    scheduler: str | None = None,
) -> None:
    """Extract functions with docstrings from folders or packages and mark, by Jedi, where completion helps.

    Settings (-s): max_files (500; repositories with more are left out), max_file_lines (1000; files), max_lines (50;
    functions) and max_tokens (512; Python tokens of a function).

    What is left out is counted and printed with its reason; nothing stops at a bad file.

    \b
    Examples:
      lookuplab data mark rich click -o marked.jsonl
      lookuplab data mark path/to/repository --variant package -o marked.jsonl
      lookuplab data mark httpx -s max_lines=30 --jobs 8 -o marked.jsonl
      lookuplab data mark httpx -o marked.jsonl --scheduler tcp://head-node:8786

    Args:
        output: JSON Lines, one function a line; a run that was cut off goes on there.
        variant: Algorithm 1, or the replication package's reading of it.
        jobs: Jedi processes. [default: one a processor]
        time_limit: Seconds of computing for one call to Jedi.
        set: NAME=VALUE changes one of the settings above; repeatable.
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    from lookuplab.cluster import joined
    from lookuplab.toolgen import corpus, files
    from lookuplab.toolgen.filters import Filters

    places, filters = [files.locate(name) for name in repositories], with_settings(Filters(), set_)
    with joined(scheduler, jobs or os.cpu_count() or 1) as cluster:
        made = corpus.build(places, output, filters, variant, jobs, time_limit, cluster=cluster)
    click.echo(f"{'':18}{'here':>12}{'paper':>12}")
    for name, value in made.statistics().items():
        form = ",.2f" if isinstance(corpus.PAPER[name], float) else ",d"
        click.echo(f"{name:18}{value:>12{form}}{corpus.PAPER[name]:>12{form}}")
    echo_counts("left out or failed:" if made.left_out else "nothing was left out", made.left_out)
    click.echo(f"written: {output}")


@data.group(cls=Group, modules=_BUILDERS)
def build() -> None:
    """Build what data/mini holds from its sources; `api` makes the same of any Python package.

    \b
    Examples:
      lookuplab data build api networkx
      lookuplab data build cloudapi
      lookuplab data build benchmark
      lookuplab data build snippets
    """


@command(build, "benchmark")
def build_benchmark(
    *,
    frequencies: Path | None = None,
    comments_model: str | None = None,
    seed: int = 0,
    output: Path | None = None,
) -> None:
    """Build the 622 CloudAPIBench tasks from the API index and a frequency table.

    \b
    Examples:
      lookuplab data build benchmark
      lookuplab data build benchmark --frequencies stack.csv -o tasks.jsonl
      lookuplab data build benchmark --frequencies stack.csv --comments-model openai:gpt-4o -o tasks.jsonl

    Args:
        frequencies: CSV with columns api, count_name, count_bound, as `lookuplab data frequencies` writes it.
            [default: the mini corpus's counts]
        comments_model: Have this model word the comments, as the paper does, instead of rewriting descriptions.
        seed: Which APIs are dealt.
        output: JSON Lines file. [default: the mini profile's tasks]
    """
    from lookuplab.cloudapi import benchmark
    from lookuplab.cloudapi.specs import load_index

    index, wordings, output = load_index(), None, output or benchmark.TASKS
    if frequencies is None:
        from lookuplab.mini.counts import assign

        names = bound = assign(index, seed)
    else:
        from lookuplab.cloudapi.frequency_table import read_frequencies

        names, bound = read_frequencies(frequencies)
    if comments_model:
        from lookuplab.cloudapi.comment_writer import model_comments
        from lookuplab.models import load

        dealt = {task.target for task in benchmark.build(index, names, seed=seed)}
        wordings = benchmark.ApiComments(index)
        written = model_comments(load(comments_model), (index.by_id[api] for api in sorted(dealt)))
        wordings.update(
            {api: comments for api, comments in written.items() if comments}
        )  # else the rewritten ones
    tasks = benchmark.build(index, names, bound, seed, wordings=wordings)
    benchmark.write_tasks(tasks, output)
    click.echo(f"{len(tasks)} tasks of {len({task.target for task in tasks})} APIs -> {output}")


@command(build, "api")
def build_api(
    packages: tuple[str, ...],
    *,
    output: Path | None = None,
    corpus: str | None = None,
    per_class: int = 100,
    comments_model: str | None = None,
    seed: int = 0,
    jobs: int = 1,
) -> None:
    """Build the API index of any importable package and a benchmark in the style of CloudAPIBench.

    PACKAGES are import names (networkx, or a part: networkx.algorithms) or packages' folders. Each is imported in a
    process of its own. Writes index.jsonl.xz, documentation.jsonl.xz, frequencies.csv and tasks.jsonl; a call is valid
    iff it binds to the signature that Python reports. What cannot be read or asked for is counted and printed.

    \b
    Examples:
      lookuplab data build api networkx
      lookuplab data build api path/to/my_package --corpus path/to/code/that/uses/it -o my_api
      lookuplab data build api networkx --comments-model openai:gpt-4o
    Then:
      lookuplab run own/package -p package=networkx

    Args:
        output: Folder to write to. [default: runs/packages/PACKAGE]
        corpus: Code to count frequencies in: a folder, JSON Lines or data set, as for `lookuplab data frequencies`.
            [default: the package's own sources and tests]
        per_class: Tasks of each frequency class, at most.
        comments_model: Have this model word the comments, as the paper does, instead of rewriting descriptions.
        seed: Which APIs are dealt.
        jobs: Processes that count.
    """
    from lookuplab.cloudapi import own_api
    from lookuplab.cloudapi import packages as installed

    folder = output or installed.folder_of(packages)
    made = own_api.build(packages, folder, corpus, per_class, seed, jobs, comments_model)
    for package in made.packages:
        left_out = {f"left out: {reason}": times for reason, times in package.left_out.items()}
        echo_counts(f"{package.name} {package.version}".strip(), {**package.counts(), **left_out})
    click.echo(made.counting)
    echo_counts("operations that no task asks for:" if made.obstacles else "", made.obstacles)
    classes = ", ".join(f"{name} {number}" for name, number in made.classes().items())
    apis = len({task.target for task in made.tasks})
    click.echo(f"{len(made.tasks)} tasks ({classes}) of {apis} APIs -> {folder}")


@command(build, "snippets")
def build_snippets(*, output: Path | None = None) -> None:
    """Build the mini corpus of snippets: descriptions, code and queries from the docstrings of numpy, pandas, scipy and
    scikit-learn.

    \b
    Examples:
      lookuplab data build snippets
      lookuplab data build snippets -o somewhere

    Args:
        output: Folder to write to. [default: data/mini/stackoverflow]
    """
    from lookuplab.mini import snippets

    made, output = snippets.build(), output or snippets.MINI
    snippets.save(made, output)
    queries = " and ".join(f"{len(found)} {split}" for split, found in made.queries.items())
    click.echo(
        f"{len(made.snippets):,} snippets, {len(made.held_out):,} held out, {queries} queries -> {output}"
    )


def echo_counts(head: str, counts: Mapping[str, int]) -> None:
    """Print what was counted below ``head``, the largest number first."""
    if head:
        click.echo(head)
    for what, number in sorted(counts.items(), key=lambda item: -item[1]):
        click.echo(f"  {number:>7,}  {what}")
