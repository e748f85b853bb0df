"""``lookuplab verify``: does the run in the working tree equal the committed one?"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lookuplab import paths
from lookuplab.errors import UserError

if TYPE_CHECKING:
    from lookuplab.verify import Verdict


@click.command(short_help="Compare a fresh run's figures with the committed ones.", epilog="""\b
Examples:
  lookuplab reproduce && lookuplab verify
  lookuplab verify cloudapibench
  lookuplab verify --commit v1.0 --fresh path/to/other/figures""")
@click.argument("paper", required=False)
@click.option("--profile", default="mini", show_default=True, help="Whose figures.")
@click.option("--commit", "revision", default="HEAD", show_default=True, help="What git has as the committed side.")
@click.option("--fresh", type=click.Path(path_type=Path), help="A figures folder in the place of the working tree's.")
def command(paper: str | None, profile: str, revision: str, fresh: Path | None) -> None:
    """Compare figures/PROFILE/ in the working tree with git's HEAD: numbers, pictures, answers. Nothing is run.

    On the same type of processor, with as many threads, everything must be equal, byte by byte. Else floats may differ
    in the last digits, and more only where an answer that differs was a near tie; those are named. Times are not
    judged. Exit code 0 when nothing differs, 1 when something does; figures that were not made again differ, too.
    """
    from lookuplab import verify
    from lookuplab.report.last_run import notebook_of_artifacts
    from lookuplab.runner.notebooks import all_notebooks
    from lookuplab.runner.profiles import load

    name, known = load(profile).name, all_notebooks()
    if paper:
        all_notebooks(paper)  # an unknown paper has other things to say than one without figures
    if fresh is not None and not fresh.is_dir():
        raise UserError(f"--fresh {str(fresh)!r} is no folder")
    folder = fresh or paths.FIGURES
    old = verify.committed(name, revision, paper)
    new = verify.fresh(folder / name if (folder / name).is_dir() else folder)
    own = {notebook.paper for notebook in known if notebook.on_demand} - {file.split("/")[0] for file in old}
    new = {file: content for file, content in new.items() if file.split("/")[0] not in own}  # a user's runs on demand
    makers = {artifact: notebook.id for artifact, notebook in notebook_of_artifacts(known).items()}
    verdict = verify.compare(old, new, makers, paper)
    _print(verdict)
    sys.exit(1 if verdict.differences else 0)


def _print(verdict: "Verdict") -> None:
    from lookuplab.verify import TOLERANCE

    for line in (*verdict.near_ties, *(f"explained: {line}" for line in verdict.explained)):
        click.echo(line)
    for line in verdict.differences:
        click.echo(f"different: {line}")
    for artifact in verdict.timed:
        click.echo(f"timed, not judged: {artifact}")
    for one, other in sorted(verdict.processors):
        said = "the same: no tolerance" if one == other else f"floats may differ by {TOLERANCE:.2%}"
        click.echo(f"processor committed: {one}; fresh: {other} ({said})")
    click.echo(verdict.summary())
