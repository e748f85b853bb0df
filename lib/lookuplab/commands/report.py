"""``lookuplab report``: a static site of the last runs."""

from pathlib import Path

import click


@click.command(short_help="Build a static site of the last runs.", epilog="""\b
Examples:
  lookuplab report
  lookuplab report --profile paper -o ~/paper-report
  lookuplab report --profile paper --against mini
  python -m http.server -d runs/report/mini           # the same site from a server""")
@click.option("--profile", default="mini", show_default=True, help="smoke, mini, paper, or the path of a YAML file.")
@click.option("--against", metavar="PROFILE", help="A second profile, shown beside the first.")
@click.option("-o", "--output", type=click.Path(path_type=Path), show_default="runs/report/PROFILE",
              help="The folder to write; a report that stands there is replaced.")
def command(profile: str, against: str | None, output: Path | None) -> None:
    """Build a site that a browser opens from disk or from a server, and print where its front page lies.

    It shows every artifact with its picture, numbers, provenance and the verdicts on the papers' claims, every
    notebook, and the documentation. The artifacts are those of the last run, in a fresh checkout the committed ones;
    notebooks have outputs where they ran here. Nothing is executed and nothing is fetched.
    """
    from lookuplab import paths, report

    runs = [report.last_run(name) for name in (profile, against) if name]
    if len(runs) == 2 and runs[0].profile == runs[1].profile:
        runs = runs[:1]
    folder = output.expanduser() if output else paths.RUNS / "report" / "-".join(run.profile for run in runs)
    built = report.build(runs, folder)
    for warning in built.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"open {built.front}")
