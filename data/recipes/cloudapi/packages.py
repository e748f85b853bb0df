"""Builds an API index, frequencies and tasks for a Python package of your own, in place of AWS and
Azure. The files have the same formats as the committed files for the clouds.

A call is valid if it binds to the signature that Python reports. The module ``offered`` decides
which names are public.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click

from lookuplab import paths
from lookuplab.cloudapi.specs import ApiIndex
from lookuplab.cloudapi.tasks import COMPOSITION, ApiTask
from lookuplab.errors import UserError
from lookuplab.run.cli import command, echo_counts, run_module
from lookuplab.work import watched
from recipes.cloudapi import frequency, tasks
from recipes.cloudapi.comments import wordings
from recipes.cloudapi.offered import offered
from recipes.cloudapi.reading import write_index

FREQUENCIES, TASKS = "frequencies.csv", "tasks.jsonl"


# result of ``tasks.obstacle`` -> why no task can ask for such operations, in words
REASONS = {
    "": "operations whose docstring cannot be reworded without their name",
    "generic_name": "operations whose name is a single word",
    "open_signature": "operations whose signature takes anything or is unknown to Python",
    "no description of a known verb": "operations without a docstring that makes a sentence",
}


@dataclass(frozen=True)
class OwnApi:
    """A benchmark for a package: the index of its APIs, the tasks, and facts to print.

    ``counting`` says how many files were read and how many operations are in each frequency class.
    ``left_out`` maps a reason to the number of APIs that could not be read or that no task can ask
    for. ``share`` says in words how many of the operations can be asked for. ``warnings`` are
    sentences that a reader of the scores has to know.
    """

    index: ApiIndex
    tasks: list[ApiTask]
    counting: str
    left_out: Counter[str]
    share: str
    warnings: list[str]


def build(
    name: str,
    folder: Path,
    corpus: str | None = None,
    per_class: int = 100,
    seed: int = 0,
) -> OwnApi:
    """Read a package, count how often code uses its APIs, make tasks, and write index,
    documentation, frequencies and tasks into ``folder``.

    ``name`` is an import name (``networkx.algorithms``), a folder or a release. ``corpus`` names
    the code to count in, as in ``frequency.source_files``; with None, the package's own sources are
    counted. There are at most ``per_class`` tasks of each frequency class. Raises UserError if the
    package cannot be imported, if there is no code to count in, or if no task can be made.
    """
    described, left_out, sources = offered(name)
    if not corpus and not sources:
        raise UserError(f"no Python sources to count in: name a corpus that uses {name}")
    if not described:
        raise UserError(f"no task can be made: {name} has no public API")
    index = write_index(folder, described)
    files = frequency.source_files(corpus or sources)
    if not corpus:
        # a path that begins with the package's name shows that the file uses the package
        inside = index.specs[0].service.replace(".", "/")
        files = ((f"{inside}/{path}", text) for path, text in files)
    counts, fates = frequency.count(watched(files, "counting", "files"), index)
    counts.to_csv(folder / FREQUENCIES)
    operations = index.operations
    usable = 0
    for spec in operations:
        if (reason := tasks.obstacle(spec, tasks.IN_PACKAGES)) or not any(wordings(spec, 1)):
            left_out[REASONS[reason]] += 1
        else:
            usable += 1
    share = f"{usable:,} of {len(operations):,} operations can be asked for"
    if not usable:
        why = ", ".join(f"{times:,} {reason}" for reason, times in left_out.most_common())
        raise UserError(f"no API of {name} can be asked for: {why}")
    share += f" ({usable / len(operations):.1%})"
    asked = tasks.build(index, counts, seed, per_class)
    tasks.write_tasks(asked, folder / TASKS)
    classes = {task.frequency for task in asked}
    warnings = [
        f"no task asks for an API of {name} frequency"
        for name in COMPOSITION
        if name not in classes
    ]
    return OwnApi(index, asked, frequency.report(counts, fates), left_out, share, warnings)


def folder_of(name: str) -> Path:
    """Return the default folder for the index and tasks of a package."""
    return paths.RUNS / "packages" / Path(name).name


@command()
def main(
    package: str,
    *,
    output: Path | None = None,
    corpus: str | None = None,
    per_class: int = 100,
    seed: int = 0,
) -> None:
    """Build an API index of any importable package, and a benchmark in the style of CloudAPIBench.

    PACKAGE is an import name (networkx, or a part of it: networkx.algorithms), the folder of a
    package, or a release (networkx==3.4), which is downloaded and not installed. The package is
    imported in a separate process. The command writes index.jsonl.xz, documentation.jsonl.xz,
    frequencies.csv and tasks.jsonl. A call is valid if it binds to the signature that Python
    reports. The command prints how many APIs cannot be read or cannot be used in a task, by reason.

    \b
    Examples:
      python -m recipes.cloudapi.packages networkx
      python -m recipes.cloudapi.packages path/to/my_package --corpus path/to/its/users -o my_api
    Then:
      lookuplab run own/package -p package=networkx

    Args:
        output: Folder to write to. [default: runs/packages/PACKAGE]
        corpus: Code to count frequencies in: a folder, JSON Lines or data set, as for `lookuplab
            data frequencies`. [default: the package's own sources and tests]
        per_class: Maximum number of tasks per frequency class.
        seed: Random seed for choosing the APIs.
    """
    folder = output or folder_of(package)
    made = build(package, folder, corpus, per_class, seed)
    click.echo(f"{len(made.index.specs)} APIs; {made.counting}")
    echo_counts(f"{made.share}; left out:", made.left_out)
    apis = {task.target for task in made.tasks}
    click.echo(f"{len(made.tasks)} tasks of {len(apis)} APIs -> {folder}")
    for warning in made.warnings:
        click.echo(f"warning: {warning}", err=True)


if __name__ == "__main__":
    run_module(main)
