"""``lookuplab view`` and ``compare``: the answers and numbers of earlier runs. Nothing is run."""

from pathlib import Path

import click

from lookuplab import paths
from lookuplab.run.commands import claimed, command


@command()
def view(notebooks: tuple[str, ...], *, output: Path | None = None) -> None:
    """Write a page that shows every answer of a run, and why it is right or wrong.

    NOTEBOOKS are named as for `lookuplab run`; the last run counts, with or without -p. NAME~1 is
    the run before it: the last six with different parameters are kept. An executed copy is named
    by its path. With several runs, they stand side by side.

    The page shows prompt, documents, answer, verdict and reason, the model's confidence in each
    token, and the names that Jedi offered. It filters by verdict, model, way of asking and class,
    and compares two of them: "right here, wrong there" comes first. It opens from the disk and from
    any web server, and needs no network:

    \b
    Examples:
      lookuplab run table3_dag_plus_plus && lookuplab view table3_dag_plus_plus
      lookuplab view table1_base_models~1 table1_base_models
      lookuplab view runs/mini/toolgen/monitor_mode.ipynb --output ~/monitor
      python -m http.server -d runs/view        (on a machine without a screen; then open port 8000)

    Args:
        output: Write to this folder. [default: runs/view/NOTEBOOK]
    """
    from lookuplab.run import answers  # takes a second

    files = [answers.logs(name)[0] for name in notebooks]
    names = [file.name.removesuffix(f".{answers.JUDGED}") for file in files]
    place = paths.expanded(output) if output else paths.RUNS / "view" / "+".join(names)
    claimed(place)
    count = answers.write_page(files, place)
    click.echo(f"{count:,} answers: open {place / 'index.html'}")
