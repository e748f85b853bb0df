"""``lookuplab verify``, ``claims``, ``report`` and ``store``: what runs have left. Nothing is run."""

import os
import sys
from pathlib import Path

import click

from lookuplab import paths
from lookuplab.cli import aligned, profile_option
from lookuplab.errors import UserError

VERDICTS = {"holds": "holds", "fails": "fails", "undecided": "not decided"}  # as typed, as judged
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    short_help="Compare a fresh run's figures with the committed ones.",
    epilog="""\b
Examples:
  lookuplab reproduce && lookuplab verify
  lookuplab verify cloudapibench
  lookuplab verify --commit v1.0 --fresh path/to/other/figures""",
)
@click.argument("paper", required=False)
@profile_option
@click.option(
    "--commit",
    "revision",
    default="HEAD",
    show_default=True,
    help="What git has as the committed side.",
)
@click.option(
    "--fresh",
    type=click.Path(path_type=Path),
    help="A figures folder instead of the working tree's.",
)
def verify(paper: str | None, profile: str, revision: str, fresh: Path | None) -> None:
    """Compare figures/PROFILE/ in the working tree with git's HEAD: numbers, pictures, answers.
    Nothing is run.

    On the same type of processor, with as many threads, everything must be equal, byte by byte.
    Otherwise floats may differ in the last digits, and by more only if an answer differs that was a
    near tie; those are named. Times are not judged. Exit code 0 if nothing differs, 1 if something
    does; figures that were not made again differ, too.
    """
    from lookuplab import verify as verifying
    from lookuplab.notebooks import all_notebooks, load_profile

    name, known = load_profile(profile).name, all_notebooks()
    if paper:
        all_notebooks(paper)  # refuses an unknown one
    if fresh is not None and not fresh.is_dir():
        raise UserError(f"--fresh {str(fresh)!r} is no folder")
    folder = fresh or paths.FIGURES
    old = verifying.committed(name, revision, paper)
    new = verifying.fresh(folder / name if (folder / name).is_dir() else folder)
    own = {notebook.paper for notebook in known if notebook.on_demand} - {
        file.split("/")[0] for file in old
    }
    new = {
        file: content for file, content in new.items() if file.split("/")[0] not in own
    }  # your runs on demand
    makers = {
        artifact: notebook.id
        for notebook in known
        for artifact in (notebook.id, *notebook.artifacts)
    }
    verdict = verifying.compare(old, new, makers, paper)
    for kind, lines in (
        ("", verdict.near_ties),
        ("explained: ", verdict.explained),
        ("different: ", verdict.differences),
        ("timed, not judged: ", verdict.timed),
    ):
        for line in lines:
            click.echo(kind + line)
    for one, other in sorted(verdict.processors):
        said = (
            "the same: no tolerance"
            if one == other
            else f"floats may differ by {verifying.TOLERANCE:.2%}"
        )
        click.echo(f"processor committed: {one}; fresh: {other} ({said})")
    click.echo(verdict.summary())
    sys.exit(1 if verdict.differences else 0)


@click.command(
    short_help="The papers' claims, judged on a run.",
    epilog="""\b
Examples:
  lookuplab claims                          every claim, mini profile
  lookuplab claims cloudapibench --profile paper
  lookuplab claims --verdict fails --details
  lookuplab claims --artifact table2_index_lookup
  lookuplab claims --csv > claims.csv""",
)
@click.argument("paper_name", metavar="[PAPER]", required=False)
@profile_option
@click.option(
    "--figures", type=click.Path(path_type=Path), help="Another folder with one folder per profile."
)
@click.option(
    "--artifact", "artifacts", multiple=True, help="Only this table or figure; may be given again."
)
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    type=click.Choice(list(VERDICTS)),
    help="Only claims with this verdict; may be given again.",
)
@click.option(
    "--details", is_flag=True, help="Every comparison, and where the numbers of the test come from."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, one row per comparison.")
def claims(
    paper_name: str | None,
    profile: str,
    figures: Path | None,
    artifacts: tuple[str, ...],
    verdicts: tuple[str, ...],
    details: bool,
    as_csv: bool,
) -> None:
    """Does what the papers claim hold in our runs?

    Per claim: the paper's value, ours with its 95% interval, n, and a verdict. It *holds* or
    *fails* if the whole interval is on one side of what is claimed, and is *not decided* if the
    interval contains it or the artifact is missing. Two of our numbers are compared by the interval
    of their difference, the paired one if the artifact states it. The exit code is 0 whatever the
    verdicts: a claim that fails is a result.
    """
    from lookuplab import claims as judging
    from lookuplab import paper
    from lookuplab.notebooks import load_profile

    chosen = load_profile(profile)
    folder = (figures or chosen.figures) / chosen.name
    if figures and not folder.is_dir():
        raise UserError(
            f"no folder {folder}; --figures names the folder that holds one folder per profile"
        )
    if paper_name and paper_name not in paper.papers():
        raise UserError(f"no paper {paper_name!r}; known: {', '.join(paper.papers())}")
    of_paper = [claim for claim in judging.load() if paper_name in (None, claim.paper)]
    known = {claim.artifact for claim in of_paper}
    if unknown := set(artifacts) - known:
        raise UserError(
            f"no claim about {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}"
        )
    judged = judging.judge_run(
        [claim for claim in of_paper if claim.artifact in (artifacts or known)], folder
    )
    wanted = {VERDICTS[name] for name in verdicts or VERDICTS}
    judged = [one for one in judged if one.verdict in wanted]
    click.echo(
        judging.table(judged).to_csv(index=False).rstrip()
        if as_csv
        else judging.text(judged, details)
    )


@click.command(
    short_help="Build a static site of the last runs.",
    epilog="""\b
Examples:
  lookuplab report
  lookuplab report --profile paper -o ~/paper-report
  lookuplab report --profile paper --against mini
  python -m http.server -d runs/report/mini           # the same site from a server""",
)
@profile_option
@click.option("--against", metavar="PROFILE", help="A second profile, shown beside the first.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    show_default="runs/report/PROFILE",
    help="The folder to write; a report that is there is replaced.",
)
def report(profile: str, against: str | None, output: Path | None) -> None:
    """Build a site that a browser opens from disk or from a server, and print where its front page
    is.

    It shows every artifact with its picture, numbers, provenance and the verdicts on the papers'
    claims, every notebook, and the documentation. The artifacts are those of the last run, in a
    fresh checkout the committed ones; notebooks have outputs if they ran here. Nothing is executed
    and nothing is fetched.
    """
    from lookuplab import report as building

    runs = list(
        {
            run.profile: run
            for run in (building.last_run(name) for name in (profile, against) if name)
        }.values()
    )
    folder = (
        output.expanduser()
        if output
        else paths.RUNS / "report" / "-".join(run.profile for run in runs)
    )
    built = building.build(runs, folder)
    for warning in built.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"open {built.front}")


@click.group(
    short_help="Export and import answers.",
    epilog="""\b
Examples:
  lookuplab store export mine.sqlite
  lookuplab store import mine.sqlite""",
)
def store() -> None:
    """The completion store (runs/completions.sqlite, or what LOOKUPLAB_STORE names) as a file for
    another machine.

    Each command is whole or not at all: one that is killed leaves the store as it was. `lookuplab
    status` says what the store holds. To keep a part of it only, export that part and put the file
    in the store's place.
    """


@store.command(
    "export",
    short_help="Write answers to a file.",
    epilog="""\b
Examples:
  lookuplab store export everything.sqlite
  lookuplab store export small.sqlite --model mini-small
  LOOKUPLAB_STORE=small.sqlite lookuplab run table1_base_models""",
)
@click.argument("file", type=_FILE)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Only answers of this model, as `lookuplab status` names it; repeatable.",
)
def export_answers(file: Path, models: tuple[str, ...]) -> None:
    """Write all answers, or those of some models, to FILE, which is a completion store itself.

    Without --model, the judgements and verdicts beside the store go with it.
    """
    from lookuplab.models.store import CompletionStore, export

    count = export(file, [CompletionStore, *([] if models else _beside())], models)
    click.echo(f"{count:,} answers -> {file} ({file.stat().st_size / 1e6:,.1f} MB)")


@store.command(
    "import",
    short_help="Add the answers of a file.",
    epilog="""\b
Example:
  lookuplab store import from-the-cluster.sqlite""",
)
@click.argument("file", type=_FILE)
def import_answers(file: Path) -> None:
    """Add what FILE holds, an export or another store, to the store.

    Nothing is written over: an answer that both have stays as it is here.
    """
    from lookuplab.models.store import CompletionStore, merge

    for name, new in merge(file, [CompletionStore, *_beside()]).items():
        click.echo(f"{name}: {new:,} new")


def place() -> Path:
    """The store that runs write. Raises UserError for a folder."""
    file = Path(os.environ.get("LOOKUPLAB_STORE") or paths.RUNS / paths.STORE.name)
    if file.is_dir():
        raise UserError(
            f"LOOKUPLAB_STORE names the folder {file}; name a file, as in {file / paths.STORE.name}"
        )
    return file


def store_text() -> str:
    """Sizes of the store and of those beside it, and a table of the models that answered."""
    from lookuplab.models.store import CompletionStore

    with CompletionStore(place() if place().is_file() else ":memory:") as store:
        rows = [(model, f"{count:,}", f"{size / 1e6:,.1f}") for model, count, size in store.held()]
    files = sorted(place().parent.glob("*.sqlite"))
    sizes = (
        ", ".join(f"{file.stem} {file.stat().st_size / 1e6:,.1f} MB" for file in files)
        or "nothing on disk yet"
    )
    return f"store {place()} ({sizes})\n" + aligned([("model", "answers", "MB"), *rows])


def _beside() -> tuple[type, ...]:
    from lookuplab.stackoverflow.verdicts import VerdictStore
    from lookuplab.toolgen.analysers import JudgementStore

    return JudgementStore, VerdictStore
