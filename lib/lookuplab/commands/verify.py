"""``lookuplab verify``: do fresh numbers equal the committed ones?"""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lookuplab import paths
from lookuplab.errors import UserError

if TYPE_CHECKING:
    from lookuplab.verify import Comparison


@click.command(short_help="Compare a fresh run with the committed figures, number by number.", epilog="""\b
Examples:
  lookuplab verify
  lookuplab verify cloudapibench -j 2
  lookuplab verify --fresh path/to/other/figures""")
@click.argument("paper", required=False)
@click.option("--profile", default="mini", show_default=True, help="Whose figures.")
@click.option("--fresh", type=click.Path(path_type=Path), help="Compare with this figures folder; run nothing.")
@click.option("-j", "--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Notebooks at a time.")
def command(paper: str | None, profile: str, fresh: Path | None, jobs: int) -> None:
    """Run the notebooks anew, without the completion store, and compare their CSVs with figures/PROFILE/.

    A number is equal (value, interval and n), inside the committed interval, or different; times are listed, not
    judged. Exit code 0 when nothing differs, 1 when something does. On the same type of processor all should be equal.
    """
    from lookuplab.runner.notebooks import all_notebooks
    from lookuplab.runner.profiles import load
    from lookuplab.verify import check_committed, compare_folders

    name, all_ran = load(profile).name, True
    if fresh is None:
        if paper:
            all_notebooks(paper)  # an unknown paper has other things to say than one without figures
        check_committed(paths.FIGURES / name, paper)
        fresh, all_ran = _run_anew(paper, profile, jobs)
    elif not fresh.is_dir():
        raise UserError(f"--fresh {str(fresh)!r} is no folder")
    fresh = fresh / name if (fresh / name).is_dir() else fresh
    comparisons = compare_folders(paths.FIGURES / name, fresh, paper)
    _print(comparisons)
    differs = any(comparison.count("different") for comparison in comparisons)
    sys.exit(0 if all_ran and not differs else 1)


def _run_anew(paper: str | None, profile: str, jobs: int) -> tuple[Path, bool]:
    """Execute into runs/verify with a store of its own; return the figures and whether every notebook ran."""
    from lookuplab.runner import notebooks, profiles
    from lookuplab.runner.display import run_and_report
    from lookuplab.runner.plan import plan
    from lookuplab.runner.resources import check_needs

    chosen = profiles.load(profile)
    check_needs(chosen)
    folder = paths.RUNS / "verify"
    store = {"LOOKUPLAB_STORE": str(folder / "completions.sqlite")}
    planned = [
        plan(notebook, chosen, output=folder / notebook.paper / f"{notebook.name}.ipynb",
             figures=folder / "figures", environment=store)
        for notebook in notebooks.all_notebooks(paper) if paper or notebook.order != "manual"
    ]
    shutil.rmtree(folder, ignore_errors=True)
    code = run_and_report(planned, jobs)
    if code > 1:
        sys.exit(code)
    return folder / "figures", code == 0


def _print(comparisons: "list[Comparison]") -> None:
    from rich.console import Console
    from rich.table import Table

    from lookuplab.verify import DIFFERENT, EQUAL, INSIDE, TIMED

    console = Console(highlight=False)
    table = Table("artifact", EQUAL, INSIDE, DIFFERENT, TIMED)
    for comparison in comparisons:
        counts = [str(comparison.count(status)) for status in (EQUAL, INSIDE, DIFFERENT, TIMED)]
        table.add_row(comparison.artifact, *counts, style="red" if comparison.count(DIFFERENT) else None)
    console.print(table)
    for comparison in comparisons:
        for row in comparison.rows[comparison.rows.status.isin([INSIDE, DIFFERENT])].itertuples():
            console.print(f"{row.status}: {row.paper}/{row.artifact} | {row.model} | {row.condition} | {row.metric}: "
                          f"{_text(row.committed)} -> {_text(row.fresh)}", markup=False, soft_wrap=True)
    judged = [c for c in comparisons if c.count(TIMED) < len(c.rows)]  # times are not run again
    for one, other in sorted({(c.committed_processor, c.fresh_processor) for c in judged}):
        same = "the same type: everything should be equal" if one == other else "another type: last digits may differ"
        console.print(f"processor committed: {one}; fresh: {other} ({same})", markup=False, soft_wrap=True)


def _text(value: float) -> str:
    return "missing" if value != value else f"{value:g}"
