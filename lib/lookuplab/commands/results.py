"""``lookuplab verify``, ``claims``, ``results``, ``report`` and ``store``: what runs have left. Nothing is run."""

import sys
from pathlib import Path

import click

from lookuplab import paths
from lookuplab.commands import Group, command
from lookuplab.errors import UserError


@command()
def verify(paper: str | None = None, *, profile: str = "mini") -> None:
    """Compare figures/PROFILE/ in the working tree with git's HEAD: numbers, pictures, answers. Nothing is run.

    On the same type of processor, with as many threads, everything must be equal, byte by byte. Otherwise floats may
    differ in the last digits, and by more only if an answer differs that was a near tie; those are named. Times are not
    judged. Exit code 0 if nothing differs, 1 if something does; figures that were not made again differ, too.

    \b
    Examples:
      lookuplab reproduce && lookuplab verify
      lookuplab verify cloudapibench

    Args:
        profile: smoke, mini, paper, or the path of a YAML file.
    """
    from lookuplab import verify as verifying
    from lookuplab.notebooks import all_notebooks, load_profile

    name = load_profile(profile).name
    makers = {id: one.id for one in all_notebooks() for id in (one.id, *one.artifacts)}
    old, new = verifying.committed(name), verifying.fresh(paths.FIGURES / name)
    verdict = verifying.compare(old, new, makers, paper)
    click.echo("\n".join(verdict.lines()))
    sys.exit(bool(verdict.said["different"]))


@command()
def claims(
    paper: str | None = None,
    *,
    profile: str = "mini",
    details: bool = False,
    markdown: bool = False,
) -> None:
    """Does what the papers claim hold in our runs?

    Per claim: the paper's value, ours with its 95% interval, n, and two verdicts. The direction *holds* or *fails* if
    the whole interval is on one side of what is claimed, and is *not decided* if the interval contains the bound or the
    artifact is missing. The size says whether our interval *covers* the number that the paper prints. Two of our
    numbers are compared by the interval of their difference, the paired one if the artifact states it. The exit code is
    0 whatever the verdicts: a claim that fails is a result.

    \b
    Examples:
      lookuplab claims                          every claim, mini profile
      lookuplab claims cloudapibench --profile paper/bigcode/starcoder2-3b
      lookuplab claims --details

    Args:
        profile: smoke, mini, paper, or the path of a YAML file.
        details: Every comparison, and where the numbers of the test come from.
        markdown: Print the page CLAIMS.md, a table for each paper.
    """
    from lookuplab import claims as judging
    from lookuplab import report as building
    from lookuplab.notebooks import made_profile

    chosen = made_profile(profile)
    asked = [one for one in judging.load() if paper in (None, one.paper)]
    if not asked:
        raise UserError(f"no claim about {paper}")
    judged = judging.judge_run(asked, chosen.figures / chosen.name)
    page = building.claims_page(judged, chosen) if markdown else judging.text(judged, details)
    click.echo(page)


@command()
def results(*, profile: str = "mini") -> None:
    """Print the page RESULTS.md: question, method, picture and result of every notebook, with the verdicts on the claims.

    Nothing is run: sentences and pictures are those of the last run (`lookuplab draw` makes them again from the numbers).

    \b
    Example:
      lookuplab results > RESULTS.md

    Args:
        profile: smoke, mini, paper, or the path of a YAML file.
    """
    from lookuplab import report as building
    from lookuplab.notebooks import made_profile

    click.echo(building.results_page(made_profile(profile)))


@command()
def report(*, profile: str = "mini") -> None:
    """Build a static site of the last runs below runs/report, which a browser opens from disk; print its front page.

    It shows every artifact with its picture, numbers, provenance and the verdicts on the papers' claims, every
    notebook, and the documentation. The artifacts are those of the last run, in a fresh checkout the committed ones;
    notebooks have outputs if they ran here. Nothing is executed and nothing is fetched.

    \b
    Examples:
      lookuplab report
      lookuplab report --profile paper/bigcode/starcoder2-3b

    Args:
        profile: smoke, mini, paper, or the path of a YAML file.
    """
    from lookuplab import report as building
    from lookuplab.notebooks import made_profile

    chosen = made_profile(profile)
    click.echo(f"open {building.build(chosen, paths.RUNS / 'report' / chosen.name)}")


@click.group(cls=Group)
def store() -> None:
    """The completion store (runs/completions.sqlite, or what LOOKUPLAB_STORE names) as a file for another machine.

    Each command is whole or not at all: one that is killed leaves the store as it was. `lookuplab status` says what the
    store holds. To keep a part of it only, export that part and put the file in the store's place.

    \b
    Examples:
      lookuplab store export mine.sqlite
      lookuplab store import mine.sqlite
    """


@command(store, "export")
def export_answers(file: Path, *, model: tuple[str, ...] = ()) -> None:
    """Write all answers, or those of some models, to FILE, which is a completion store itself.

    Without --model, the judgements and verdicts beside the store go with it.

    \b
    Examples:
      lookuplab store export everything.sqlite
      lookuplab store export small.sqlite --model mini-small
      LOOKUPLAB_STORE=small.sqlite lookuplab run table1_base_models

    Args:
        model: Only answers of this model, as `lookuplab status` names it; repeatable.
    """
    from lookuplab.models.store import CompletionStore, export

    count = export(file, [CompletionStore, *([] if model else _beside())], model)
    click.echo(f"{count:,} answers -> {file} ({file.stat().st_size / 1e6:,.1f} MB)")


@command(store, "import")
def import_answers(file: Path) -> None:
    """Add what FILE holds, an export or another store, to the store.

    Nothing is written over: an answer that both have stays as it is here.

    \b
    Example:
      lookuplab store import from-the-cluster.sqlite
    """
    from lookuplab.models.store import CompletionStore, merge

    for name, new in merge(file, [CompletionStore, *_beside()]).items():
        click.echo(f"{name}: {new:,} new")


def _beside() -> tuple[type, ...]:
    from lookuplab.stackoverflow.grader import VerdictStore
    from lookuplab.toolgen.analysers import JudgementStore

    return JudgementStore, VerdictStore
