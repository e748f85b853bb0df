"""``lookuplab train``: make the mini models again."""

import os
from pathlib import Path

import click

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group(short_help="Train the kit's own small models.", epilog="""\b
Examples:
  lookuplab train mini --size small""")
def command() -> None:
    """Train the kit's own small models."""


@command.command(short_help="The mini code models of three sizes.", epilog="""\b
Examples:
  lookuplab train mini                          all three sizes, one epoch
  lookuplab train mini --size small --epochs 2
  lookuplab train mini --corpus-only            only build and tokenise the corpus
On several GPUs, after --corpus-only:
  accelerate launch -m lookuplab.mini.train --size large""")
@click.option("--size", default="all", show_default=True, type=click.Choice(["small", "medium", "large", "all"]))
@click.option("--epochs", default=1, show_default=True, type=click.IntRange(min=1), help="Whole passes over the corpus.")
@click.option("--seed", default=0, show_default=True, help="Of the corpus, the weights and the order of the data.")
@click.option("--out", type=_FOLDER, help="Folder for the model folders [default: data/mini/models].")
@click.option("--work", type=_FOLDER, help="Folder for corpus, checkpoints, logs [default: runs/train].")
@click.option("--rebuild", is_flag=True, help="Build the corpus again even where it stands.")
@click.option("--corpus-only", is_flag=True, help="Stop after the tokenised corpus.")
def mini(size: str, epochs: int, seed: int, out: Path | None, work: Path | None, rebuild: bool, corpus_only: bool) -> None:
    """Build the corpus, train, and write model folders with their cards.

    A killed run goes on from its last checkpoint when the same command is given again. Progress goes to the terminal,
    losses to runs/train/SIZE/log.csv.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin starve each other when the machine is shared
    from lookuplab.mini import pipeline

    work, out = work or pipeline.WORK, out or pipeline.MODELS
    out.mkdir(parents=True, exist_ok=True)  # a place that cannot be written shows now and not after the training
    pipeline.prepare_corpus(work / "corpus", seed, rebuild)
    if corpus_only:
        click.echo(f"corpus: {work / 'corpus'}")
        return
    for name in ("large", "medium", "small") if size == "all" else (size,):
        facts = pipeline.train_and_save(work / "corpus", out / name, work / name, size=name, epochs=epochs, seed=seed)
        click.echo(f"{name}: {facts['parameters']:,} parameters, {facts['seconds'] / 60:.1f} minutes -> {out / name}")
