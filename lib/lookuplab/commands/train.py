"""``lookuplab train``: make the mini models again, and fine-tune any model for ToolGen."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lookuplab.cli import settings_option, with_settings

_FOLDER = click.Path(path_type=Path, file_okay=False)
out_option = click.option(
    "--out", type=_FOLDER, help="Folder for the model folders [default: below data/mini]."
)
work_option = click.option(
    "--work", type=_FOLDER, help="Folder for checkpoints and logs [default: below runs/train]."
)


@click.group(
    short_help="Train the mini models; fine-tune any model for ToolGen.",
    epilog="""\b
Examples:
  lookuplab train mini --size small
  lookuplab train toolgen --base gpt2 --corpus marked.jsonl -o models/gpt2-toolgen""",
)
def train() -> None:
    """Train the kit's own small models; fine-tune any model for ToolGen."""
    os.environ.setdefault(
        "OMP_WAIT_POLICY", "passive"
    )  # threads that spin starve each other on a shared machine


def part_option(name: str, *parts: str) -> Callable:
    """``--NAME``: one of the parts, or all of them; the function gets a tuple."""
    return click.option(
        f"--{name}",
        "parts",
        default="all",
        show_default=True,
        type=click.Choice([*parts, "all"]),
        callback=lambda _, __, one: parts if one == "all" else (one,),
    )


@train.command(
    short_help="The mini code models of three sizes.",
    epilog="""\b
Examples:
  lookuplab train mini                          all three sizes, one epoch
  lookuplab train mini --size small --epochs 2
  lookuplab train mini --corpus-only            only build the corpus
On several GPUs, after --corpus-only:
  accelerate launch -m lookuplab train mini --size large""",
)
@part_option("size", "large", "medium", "small")
@click.option(
    "--epochs",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Passes over the corpus.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Of the corpus, the weights and the order of the data.",
)
@out_option
@work_option
@click.option("--corpus-only", is_flag=True, help="Stop after the corpus.")
def mini(
    parts: tuple[str, ...],
    epochs: int,
    seed: int,
    out: Path | None,
    work: Path | None,
    corpus_only: bool,
) -> None:
    """Build the corpus, train, and write model folders with their cards.

    A killed run goes on from its last checkpoint when the same command is given again. Losses go to
    runs/train/SIZE/log.csv.
    """
    from lookuplab.mini import corpus

    work, out = work or corpus.WORK, made(out or corpus.MODELS)
    corpus.prepare(work / "corpus", seed)
    click.echo(f"corpus: {work / 'corpus'}")
    for name in () if corpus_only else parts:
        facts = corpus.train(name, work / "corpus", out / name, work / name, epochs, seed)
        click.echo(f"{name}: {facts['parameters']:,} parameters -> {out / name}")


@train.command(
    "mini-toolgen",
    short_help="The mini models of ToolGen.",
    epilog="""\b
Examples:
  lookuplab train mini-toolgen                  three families, base and ToolGen each
  lookuplab train mini-toolgen --family llama""",
)
@part_option("family", "gpt", "t5", "llama")
@out_option
@work_option
def mini_toolgen(parts: tuple[str, ...], out: Path | None, work: Path | None) -> None:
    """Pre-train on the functions of the installed packages, mark some of them by Jedi, and
    fine-tune with and without marks.

    What is in the folders is not made again: delete it to repeat a step. A killed run goes on when
    the same command is given again.
    """
    from lookuplab.mini import toolgen as models

    work, out = work or models.WORK, made(out or models.MODELS)
    pairs = models.marked_pairs(work, out / "marks.jsonl.gz")
    for name in parts:
        for variant in models.VARIANTS:
            click.echo(models.finetuned(work, out, name, variant, pairs))


@train.command(
    "mini-questions",
    short_help="The mini models that answer questions.",
    epilog="""\b
Examples:
  lookuplab train mini-questions                three sizes, as adapters over the mini models
  lookuplab train mini-questions --size small""",
)
@part_option("size", "small", "medium", "large")
@out_option
@work_option
def mini_questions(parts: tuple[str, ...], out: Path | None, work: Path | None) -> None:
    """Make problems from the docstring examples that the mini benchmark does not use, and fine-tune
    the mini models on them.

    What is in the folders is not made again: delete it to repeat a step. A killed run goes on when
    the same command is given again.
    """
    from lookuplab.mini import questions

    work, out = work or questions.WORK, made(out or questions.MODELS)
    learned = questions.pairs()
    for name in parts:
        click.echo(questions.finetuned(learned, name, out, work))


@train.command(
    "mini-rankers",
    short_help="The mini rankers of snippets.",
    epilog="""\b
Examples:
  lookuplab train mini-rankers
  lookuplab train mini-rankers --part encoder""",
)
@part_option("part", "words", "encoder")
def mini_rankers(parts: tuple[str, ...]) -> None:
    """Learn the word vectors and the sentence encoder that rank the mini corpus of snippets.

    On one core each: the same seed gives the same vectors.
    """
    from lookuplab.mini import snippets
    from lookuplab.retrieval.rankers import save_words, train_words
    from lookuplab.stackoverflow import corpus, ranking

    if "words" in parts:
        found = train_words(ranking.training_lines(corpus.load("mini-retrieval")))
        save_words(corpus.MINI / "words", found)
        click.echo(f"{len(found):,} words")
    if "encoder" in parts:
        click.echo(f"{snippets.save_encoder():,} pairs")


@train.command(
    short_help="Fine-tune a model on a marked corpus.",
    epilog="""\b
Examples:
  lookuplab data mark rich click -o marked.jsonl
  lookuplab train toolgen --base gpt2 --corpus marked.jsonl -o models/gpt2-toolgen
  lookuplab train toolgen --base gpt2 --corpus marked.jsonl --variant base -o models/gpt2-base
  lookuplab train toolgen --base codellama/CodeLlama-7b-Python-hf --recipe codellama -s precision=bf16 \\
    -s accumulation=8 -s checkpoint_activations=true --corpus marked.jsonl.gz -o models/llama-toolgen
On several GPUs:
  accelerate launch -m lookuplab train toolgen ...""",
)
@click.option(
    "--base",
    required=True,
    help="The model to start from: a folder, a mini model, or a name on the hub.",
)
@click.option(
    "--corpus",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="JSON Lines of `lookuplab data mark`, or the same as .gz.",
)
@click.option(
    "--variant",
    type=click.Choice(["toolgen", "base"]),
    default="toolgen",
    show_default=True,
    help="With marks, or the same functions without.",
)
@click.option(
    "-o", "--output", required=True, type=_FOLDER, help="Folder to write; must not exist."
)
@click.option(
    "--recipe",
    "paper",
    type=click.Choice(["codegpt", "codet5", "codellama"]),
    default="codegpt",
    show_default=True,
    help="The paper's settings; -s changes single ones.",
)
@settings_option
@click.option("--limit", type=click.IntRange(1), help="Only the first functions of the corpus.")
@click.option("--half", is_flag=True, help="Store the weights in fp16.")
@click.option(
    "--save-every",
    default=200,
    show_default=True,
    type=click.IntRange(1),
    help="Steps to a checkpoint.",
)
@click.option(
    "--log-every",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help="Steps to a line of log.csv.",
)
@work_option
def toolgen(
    base: str,
    corpus: Path,
    variant: str,
    paper: str,
    settings: tuple[str, ...],
    limit: int | None,
    **options: Any,
) -> None:
    """Fine-tune a causal or encoder-decoder model on pairs of docstring and function (ToolGen,
    Section IV-B).

    A killed run goes on from its last checkpoint when the same command is given again. Pairs that
    are too long are counted and printed.

    Settings (-s) are those of a recipe: epochs, learning_rate, batch_size (pairs a step, over all
    processes and parts), accumulation (parts of a batch, one after the other: less memory), seed,
    lora_rank (null trains all weights), lora_alpha, schedule and optimizer (by their names in
    Transformers), warmup_steps (below 1: a share of all steps), weight_decay, max_tokens (longer
    pairs are left out; null: the model's context), loss_on (answer, all), precision (float32,
    bf16), sampling (random, group_by_length) and checkpoint_activations (less memory, more time).
    """
    from lookuplab.commands.data import echo_counts
    from lookuplab.toolgen.finetuning import PAPER, finetune
    from lookuplab.toolgen.pairs import read

    pairs, left_out = read(corpus)
    done = finetune(
        base,
        pairs[:limit],
        recipe=with_settings(PAPER[paper], settings),
        marked=variant == "toolgen",
        left_out=left_out,
        **options,
    )
    if os.environ.get("RANK", "0") != "0":  # of several processes one speaks
        return
    click.echo(
        "{pairs:,} pairs, {steps:,} steps in {seconds:.0f} seconds, loss {loss:.3f}, {trainable:,} of {parameters:,} "
        "weights trained".format(**done)
    )
    echo_counts("left out:" if done["left_out"] else "", done["left_out"])
    click.echo(f"written: {options['output']}")


def made(folder: Path) -> Path:
    """The folder, made now: a place that cannot be written should show before the training, not
    after it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return folder
