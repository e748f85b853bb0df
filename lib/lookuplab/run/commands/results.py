"""Implements ``lookuplab verify``, ``claims``, ``results`` and ``report``, which check or show the
results of earlier runs. No notebook is run.
"""

import runpy
import sys

import click

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.run.cli import claim, command
from lookuplab.run.notebooks import load_profile, profile_with_figures, select
from lookuplab.work import Progress


@command()
def verify(name: str | None = None, *, profile: str = "") -> None:
    """Compare fresh figures with committed ones.

    The command compares numbers, pictures and answers in figures/PROFILE/ with those in git's HEAD.
    No notebook is run. NAME is a paper, or a notebook as for `lookuplab run`; without NAME, all
    figures are compared.

    On the same type of processor and with the same number of threads, everything must be equal byte
    for byte. Otherwise floats may differ in the last digits. They may differ by more only where a
    near tie between two tokens changed an answer; such answers are listed. Timings are not
    compared. The exit code is 0 if nothing differs, and 1 if something does. A figure that was not
    regenerated counts as different. There is one exception: without NAME, figures of notebooks that
    run only on demand need not be regenerated.

    \b
    Examples:
      lookuplab reproduce && lookuplab verify
      lookuplab verify cloudapibench
      lookuplab run fig7a_retriever_precision && lookuplab verify fig7a_retriever_precision

    Args:
        profile: smoke, mini, gemma, paper, published, or the path of a YAML file.
    """
    from lookuplab.results import verify as verifying

    notebooks = select([name] if name else [])
    folder = load_profile(profile or (notebooks[0].home if name else "mini")).name
    makers = {id: notebook.id for notebook in notebooks for id in notebook.artifacts}
    old = verifying.committed_files(folder)
    new = verifying.fresh_files(paths.FIGURES / folder)
    rare = {id for notebook in notebooks if notebook.on_demand for id in notebook.artifacts}
    differences = verifying.compare(old, new, makers, None if name else rare)
    click.echo("\n".join(differences.lines()))
    sys.exit(differences.failed)


@command()
def claims(
    paper: str | None = None,
    *,
    profile: str = "mini",
    details: bool = False,
    markdown: bool = False,
) -> None:
    """Check the papers' claims against our runs.

    For each claim, the command prints the paper's value, our value with its 95% interval, n, and
    two verdicts.

    The first verdict is about the direction. The claim *holds* if the whole interval is on the
    claimed side of a bound, *fails* if the whole interval is on the other side, and is *open* if
    the interval contains the bound. Claims whose artifact is missing are *not run*; one line says
    how many there are. A claim about validity is *not testable: floor* on models that get hardly
    anything right (for example, if the intervals begin below 5% valid calls in every class). A
    claim about sizes is *not testable: sizes* if no two models differ only in size.
    docs/glossary.md explains the other verdicts.

    The second verdict is about the size: whether our interval *covers* the number printed in the
    paper. If a claim compares two of our numbers, the interval of their difference is used (the
    paired interval, if the artifact has one).

    The exit code is 0 whatever the verdicts, because a failed claim is a result, too.

    \b
    Examples:
      lookuplab claims                          every claim, mini profile
      lookuplab claims cloudapibench --profile paper/bigcode/starcoder2-3b
      lookuplab claims --details

    Args:
        profile: smoke, mini, gemma, paper, published, or the path of a YAML file.
        details: Show every comparison, and where the numbers of the test come from.
        markdown: Print the page CLAIMS.md, with one table per paper.
    """
    from lookuplab.results import claims as judging
    from lookuplab.run import report as building

    chosen = profile_with_figures(profile)
    of_paper = [claim for claim in judging.load() if paper in (None, claim.paper)]
    if not of_paper:
        raise UserError(f"no claim about {paper!r}: without a name, every claim is shown")
    judged = judging.judge_run(of_paper, chosen.figures / chosen.name)
    if markdown:
        click.echo(building.claims_page(judged, chosen))
    else:
        click.echo(building.claims_text(judged, details))


@command()
def results(*, profile: str = "mini") -> None:
    """Print the page RESULTS.md.

    The page has each notebook's picture, its result, and the verdicts on the claims. Nothing is
    run. Sentences and pictures come from the last run; `lookuplab draw` makes them again from the
    numbers.

    \b
    Example:
      lookuplab results > RESULTS.md

    Args:
        profile: smoke, mini, gemma, paper, published, or the path of a YAML file.
    """
    from lookuplab.run import report as building

    click.echo(building.results_page(profile_with_figures(profile)))


@command()
def report(*, profile: str = "mini") -> None:
    """Build a static site of the last runs.

    The site is written to runs/report, and the path of its front page is printed. A browser can
    open this page straight from the disk. The site shows the pages RESULTS.md and CLAIMS.md, every
    notebook, and the documentation. Results come from the last run (in a fresh checkout, from the
    repository). Notebooks have outputs if they ran on this machine. Nothing is executed or fetched.

    \b
    Examples:
      lookuplab report
      lookuplab report --profile paper/bigcode/starcoder2-3b

    Args:
        profile: smoke, mini, gemma, paper, published, or the path of a YAML file.
    """
    chosen = profile_with_figures(profile)
    website = runpy.run_path(str(paths.ROOT / "docs" / "website.py"))
    claim(paths.RUNS / "report" / chosen.name)
    with Progress("site", None):
        front = website["build"](chosen, paths.RUNS / "report" / chosen.name)
    click.echo(f"open {front}")
