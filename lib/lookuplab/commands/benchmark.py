"""`lookuplab data build benchmark`: the 622 tasks from an index and a frequency table."""

from pathlib import Path

import click

EPILOG = """\b
Examples:
  lookuplab data build benchmark
  lookuplab data build benchmark --frequencies stack.csv -o tasks.jsonl
  lookuplab data build benchmark --frequencies stack.csv --comments-model openai:gpt-4o -o tasks.jsonl
"""


@click.command("benchmark", short_help="The 622 CloudAPIBench tasks.", epilog=EPILOG)
@click.option("--frequencies", type=click.Path(path_type=Path, dir_okay=False),
              help="CSV with columns api, count_name, count_bound, as `lookuplab data frequencies` writes it.  "
                   "[default: the mini corpus's counts]")
@click.option("--comments-model", help="Have this model word the comments, as the paper does, instead of rewriting "
              "descriptions.")
@click.option("--seed", default=0, show_default=True, help="Which APIs are dealt.")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False),
              help="JSON Lines file.  [default: the mini profile's tasks]")
def command(frequencies: Path | None, comments_model: str | None, seed: int, out: Path | None) -> None:
    """Build the 622 CloudAPIBench tasks from the API index and a frequency table."""
    from lookuplab.cloudapi import benchmark
    from lookuplab.cloudapi.specs import load_index

    index = load_index()
    names, bound = _counts(frequencies, index, seed)
    wordings = _model_wordings(comments_model, index, names, seed) if comments_model else None
    tasks = benchmark.build(index, names, bound, seed, wordings=wordings)
    benchmark.write_tasks(tasks, out or benchmark.TASKS)
    click.echo(f"{len(tasks)} tasks of {len({task.target for task in tasks})} APIs -> {out or benchmark.TASKS}")


def _counts(path: Path | None, index, seed: int) -> tuple[dict[str, int], dict[str, int]]:
    """count_name and count_bound by API id, from a table or as the mini corpus assigns them."""
    if path is None:
        from lookuplab.mini.counts import assign

        counts = assign(index, seed)
        return counts, counts
    from lookuplab.cloudapi.frequency_table import read_frequencies

    return read_frequencies(path)


def _model_wordings(name: str, index, counts: dict[str, int], seed: int) -> dict[str, list[str]]:
    """The model words the APIs that the plain benchmark deals; where it fails, rewriting steps in."""
    from lookuplab.cloudapi import benchmark
    from lookuplab.cloudapi.comment_writer import model_comments
    from lookuplab.models import load

    dealt = {task.target for task in benchmark.build(index, counts, seed=seed)}
    wordings = benchmark.ApiComments(index)
    written = model_comments(load(name), (index.by_id[api] for api in sorted(dealt)))
    wordings.update({api: comments for api, comments in written.items() if comments})
    return wordings
