"""``lookuplab record`` and ``audit``: write the record of answers and judgements, and make a sample
of it anew.
"""

import sys

import click

from lookuplab.run.commands import command


@command()
def record() -> None:
    """Write data/mini/record from the stores of a cold run: every answer and judgement behind the
    mini figures.

    `lookuplab reproduce --cold` fills these stores. The same answers give the same bytes. Commit
    the record together with the figures of the same run.

    \b
    Example:
      lookuplab reproduce --cold
      lookuplab record
    """
    from lookuplab.models.record import folder
    from lookuplab.run import audit

    for store, kinds in audit.write(audit.cold()).items():
        for kind, number in kinds.items():
            click.echo(f"{number:>9,}  {store if kind == store else f'{store}: {kind}'}")
    size = sum(file.stat().st_size for file in folder().glob("*.parquet"))
    click.echo(f"{size / 1e6:.1f} MB in {folder()}")


@command()
def audit(
    name: str | None = None,
    *,
    share: str = "2%",
    jobs: int = 0,
    scheduler: str | None = None,
) -> None:
    """Make a sample of the record's answers and judgements anew, and compare them one by one.

    The notebooks of the mini profile, or only those of NAME (a paper, a notebook or an artifact),
    are executed with the record, and figures stay as they are. Then the questions of the sample
    that they asked are answered anew. Every token and verdict must be equal, and every
    log-probability up to its last digits, which depend on the batch and on the processor; near ties
    are listed. Judgements are compared only under the record's Python. The exit code is 1 if
    something differs. An audit that was interrupted goes on where it was.

    \b
    Examples:
      lookuplab audit
      lookuplab audit table1_base_models --share 100%
      lookuplab audit --share 100%          all of it: about as long as `make reproduce COLD=1`

    Args:
        share: Share of the rows of each model and kind, at least 50 of each; the commit decides
            which, so that over time other rows are tried.
        jobs: Number of notebooks to run at once (default: the number of cores).
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    from dataclasses import replace

    from lookuplab import paths
    from lookuplab.run import audit as auditing
    from lookuplab.run.commands.run import execute
    from lookuplab.run.notebooks import all_notebooks, find, plan, request

    notebooks = [
        notebook
        for notebook in all_notebooks()
        if name in (None, notebook.paper) and not notebook.on_demand
    ]
    if name and not notebooks:
        notebooks = [find(name)]
    begun, place = auditing.begin(share), paths.RUNS / "audit"
    environment = auditing.audit_environment(begun)
    planned = [
        replace(
            plan(notebook, request("mini")),
            output=place / f"{notebook.id}.ipynb",
            figures=place / "figures",
            environment=environment,
        )
        for notebook in notebooks
    ]
    sys.exit(auditing.finish(begun, execute(planned, jobs, scheduler, again=True)))
