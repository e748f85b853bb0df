"""``lookuplab view`` and ``compare``: the answers of earlier runs. Nothing is run."""

from pathlib import Path

import click

from lookuplab import paths
from lookuplab.run.commands import claimed, command

MOST_ROWS = 12  # lines of a comparison printed to the terminal


@command()
def view(notebooks: tuple[str, ...], *, output: Path | None = None) -> None:
    """Write a page that shows every answer of a run, and why it is right or wrong.

    NOTEBOOKS are named as for `lookuplab run` and stand for their last run, with or without -p.
    NAME~1 is the run before the last; the last six runs with different parameters are kept. Name an
    executed copy by its path. Several runs are shown on one page.

    The page shows prompt, documents, answer, verdict and reason, the model's confidence in each
    token, and the names that Jedi offered. You can filter answers by verdict, model, way of asking
    and class. You can also compare two models or ways of asking; answers that are "right here,
    wrong there" come first. The page opens from the disk and from any web server, and needs no
    network.

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


@command()
def compare(first: str, second: str, *, output: Path | None = None) -> None:
    """Compare two runs task by task.

    FIRST and SECOND are notebooks, named as for `lookuplab run`. They stand for their last run,
    with or without -p; NAME~1 is the run before the last. FIRST and SECOND may also be executed
    copies, or folders of executed copies (runs/mini).

    The command first prints the parameters that changed. Answers are paired by model, way of
    asking, task and sample. For each model and way of asking, the command prints the change in
    points with its clustered 95% interval, how many answers are right in one run only, and
    McNemar's p value.

    \b
    Examples:
      lookuplab run fig7a_retriever_precision -p models=mini-small
      lookuplab run fig7a_retriever_precision -p models=mini-large
      lookuplab compare fig7a_retriever_precision~1 fig7a_retriever_precision
      lookuplab compare runs/mini/cloudapibench/table1_base_models.ipynb table1_base_models

    Args:
        output: Write the whole comparison to this CSV file.
    """
    from lookuplab.run import answers  # takes a second

    sides = answers.side(first), answers.side(second)
    table = answers.compared(*sides)
    changed = answers.changed(*sides)
    click.echo(
        "\n".join(["parameters that changed:", *changed] if changed else ["same parameters"])
    )
    click.echo("\npaired by task")
    click.echo(table.head(MOST_ROWS).to_string(index=False))
    if (more := len(table) - MOST_ROWS) > 0:
        click.echo(f"... {more} more lines: --output FILE.csv keeps all")
    if output:
        paths.write_lines(output, [table.to_csv(index=False).removesuffix("\n")])
    click.echo(f"answer by answer: lookuplab view {first} {second}")
