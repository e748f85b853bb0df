"""``lookuplab train``: make the mini models again, and fine-tune any model for ToolGen."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

import click

from lookuplab.commands import Group, command, echo_counts, with_settings

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # of glibc's mallopt


@click.group(cls=Group)
def train() -> None:
    """Train the kit's own small models; fine-tune any model for ToolGen.

    \b
    Examples:
      lookuplab train mini --size small
      lookuplab train toolgen --base gpt2 --corpus marked.jsonl -o models/gpt2-toolgen
    """
    # threads that spin starve each other on a shared machine
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with suppress(OSError, AttributeError):  # no glibc
        # which returns large arrays to the system, so that a step takes half as long again
        for option, value in {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: -1, M_TOP_PAD: 256 << 20}.items():
            ctypes.CDLL(None).mallopt(option, value)


@command(train)
def mini(
    *,
    size: Literal["all", "large", "medium", "small", "medium-arm15"] = "all",
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Build the corpus, train the mini code models, and write model folders with their cards: three sizes, and one for which
    15 of 100 documentations lacked the API that is called.

    A killed run goes on from its last checkpoint when the same command is given again. Losses go to
    runs/train/SIZE/log.csv.

    \b
    Examples:
      lookuplab train mini                          all of them
      lookuplab train mini --size small --seed 1 --out runs/other
    On several GPUs:
      accelerate launch -m lookuplab train mini --size large

    Args:
        size: Which model.
        seed: Of the weights and the order of the data.
        out: Folder for the model folders [default: below data/mini].
    """
    from lookuplab.mini import corpus
    from lookuplab.paths import made

    names = tuple(corpus.ARMS) if size == "all" else (size,)
    for folder in corpus.train(names, made(out or corpus.MODELS), seed):
        click.echo(folder)


@command(train)
def mini_toolgen() -> None:
    """The mini models of ToolGen: three families, pre-trained on the functions of the pinned sources, some of which
    Jedi marks, and fine-tuned with and without marks. First of all it draws the functions of seen repositories that are held out.

    What is in the folders is not made again: delete it to repeat a step. A killed run goes on when the same command is
    given again.

    \b
    Example:
      lookuplab train mini-toolgen
    """
    from lookuplab.mini.toolgen import (
        MODELS,
        VARIANTS,
        WORK,
        finetuned,
        marked_pairs,
        write_held_out,
    )

    write_held_out(WORK, MODELS)
    pairs = marked_pairs(WORK, MODELS / "marks.jsonl.gz")
    for family in ("gpt", "t5", "llama"):
        for variant in VARIANTS:
            click.echo(finetuned(WORK, MODELS, family, variant, pairs))


@command(train)
def mini_questions() -> None:
    """The mini models that answer questions: adapters over the mini models of three sizes, fine-tuned on problems made of
    the docstring examples that the mini benchmark does not use.

    What is in the folders is not made again: delete it to repeat a step. A killed run goes on when the same command is
    given again.

    \b
    Example:
      lookuplab train mini-questions
    """
    from lookuplab.mini.questions import train

    for folder in train():
        click.echo(folder)


@command(train)
def mini_rankers() -> None:
    """Learn the word vectors and the sentence encoder that rank the mini corpus of snippets.

    On one core each: the same seed gives the same vectors.

    \b
    Example:
      lookuplab train mini-rankers
    """
    from lookuplab.mini import snippets
    from lookuplab.retrieval.rankers import save_words, train_words
    from lookuplab.stackoverflow import corpus, ranking

    found = train_words(ranking.training_lines(corpus.load("mini")))
    save_words(corpus.MINI / "words", found)
    click.echo(f"{len(found):,} words, {snippets.save_encoder():,} pairs")


@command(train)
def toolgen(
    *,
    base: str,
    corpus: Path,
    output: Path,
    variant: Literal["toolgen", "base"] = "toolgen",
    recipe: Literal[
        "codegpt",
        "codet5",
        "codellama",
        "package-codegpt",
        "package-codet5",
        "package-codellama",
    ] = "codegpt",
    setting: tuple[str, ...] = (),
    limit: int | None = None,
    half: bool = False,
    save_every: int = 200,
    work: Path | None = None,
) -> None:
    """Fine-tune a causal or encoder-decoder model on pairs of docstring and function (ToolGen, Section IV-B).

    A killed run goes on from its last checkpoint when the same command is given again. Pairs that are too long are
    counted and printed.

    Settings (-s) are those of a recipe: epochs, learning_rate, batch_size (pairs a step, over all processes and parts),
    accumulation (parts of a batch, one after the other: less memory), seed, lora_rank (null trains all weights),
    lora_alpha, lora_dropout, warmup_steps (below 1: a share of all steps), max_tokens (longer pairs are left out; null: the model's
    context), loss_on (of a decoder: answer, function, which is body and signature, or all), validation (so many pairs are kept
    apart, and the checkpoint with the least loss on them is taken), and, true or false, lora_embeddings (trains them, too), bf16,
    group_by_length (of pairs in a batch: less padding) and checkpoint_activations (less memory, more time).

    \b
    Examples:
      lookuplab data mark rich click -o marked.jsonl
      lookuplab train toolgen --base gpt2 --corpus marked.jsonl -o models/gpt2-toolgen
      lookuplab train toolgen --base gpt2 --corpus marked.jsonl --variant base -o models/gpt2-base
      lookuplab train toolgen --base codellama/CodeLlama-7b-Python-hf --recipe codellama -s bf16=true \\
        -s accumulation=8 -s checkpoint_activations=true --corpus marked.jsonl.gz -o models/llama-toolgen
    On several GPUs:
      accelerate launch -m lookuplab train toolgen ...

    Args:
        base: The model to start from: a folder, a mini model, or a name on the hub.
        corpus: JSON Lines of `lookuplab data mark`, or the same as .gz.
        output: Folder to write; must not exist.
        variant: With marks, or the same functions without.
        recipe: The paper's settings, or the replication package's; -s changes single ones.
        setting: NAME=VALUE changes one of the settings above; repeatable.
        limit: Only the first functions of the corpus.
        half: Store the weights in fp16.
        save_every: Steps to a checkpoint.
        work: Folder for checkpoints and logs [default: below runs/train].
    """
    from lookuplab.toolgen.finetuning import RECIPES, finetune
    from lookuplab.toolgen.pairs import read

    pairs, left_out = read(corpus)
    done = finetune(
        base,
        pairs[:limit],
        output,
        with_settings(RECIPES[recipe], setting),
        marked=variant == "toolgen",
        half=half,
        save_every=save_every,
        work=work,
    )
    if os.environ.get("RANK", "0") != "0":  # of several processes one speaks
        return
    click.echo(
        "{pairs:,} pairs, {steps:,} steps in {seconds:.0f} seconds, loss {loss:.3f}, {trainable:,} of {parameters:,} "
        "weights trained".format(**done)
    )
    left_out += done["left_out"]
    echo_counts("left out:" if left_out else "", left_out)
    click.echo(f"written: {output}")
