"""Implements ``lookuplab train``, which fine-tunes any model for ToolGen."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

import click

from lookuplab.run.cli import Group, claim, echo_counts, with_settings
from lookuplab.work import env_int

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # parameters of glibc's mallopt


@click.group(cls=Group)
def train() -> None:
    """Fine-tune any model for ToolGen.

    \b
    Example:
      lookuplab train toolgen --base gpt2 --corpus marked.jsonl -o models/gpt2-toolgen
    """
    steady()


def steady() -> None:
    """Set up this process so that training on a CPU is fast."""
    # threads that spin while they wait would take the processor from other programs
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with suppress(OSError, AttributeError):  # no glibc
        # By default, glibc returns the memory of large arrays to the system after each step, and
        # requests it again in the next step, which makes a step 50% slower.
        for option, value in {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: -1, M_TOP_PAD: 256 << 20}.items():
            ctypes.CDLL(None).mallopt(option, value)


@train.command()
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
    no_signature: bool = False,
    limit: int | None = None,
    half: bool = False,
    save_every: int = 200,
    work: Path | None = None,
) -> None:
    """Fine-tune a model on docstrings and functions.

    The model may be a decoder or an encoder-decoder. ToolGen describes the method (Section IV-B).
    If a run is killed, repeat the command to resume from the last checkpoint. Pairs of docstring
    and function that are too long are left out, and their number is printed.

    Settings (-s) change a recipe: epochs, learning_rate, batch_size (pairs per step, over all
    processes and parts), accumulation (the number of parts into which a batch is split to save
    memory), seed, lora_rank (null trains all weights), lora_alpha, lora_dropout, warmup_steps (a
    number below 1 is a share of all steps), max_tokens (longer pairs are left out; null means the
    length of the model's context), loss_on (for decoders: answer, function or all; function means
    signature and body) and validation (the number of pairs held out; the checkpoint with the lowest
    loss on them is kept).

    These settings are true or false: lora_embeddings (trains the embeddings, too), bf16,
    group_by_length (puts pairs of similar length into one batch, which needs less padding) and
    checkpoint_activations (takes less memory and more time).

    \b
    Examples:
      lookuplab data mark rich click -o marked.jsonl
      lookuplab train toolgen --base gpt2 --corpus marked.jsonl -o models/gpt2-toolgen
      lookuplab train toolgen --base gpt2 --corpus marked.jsonl --variant base -o models/gpt2-base
      lookuplab train toolgen --base codellama/CodeLlama-7b-Python-hf --recipe codellama \\
        -s accumulation=8 -s checkpoint_activations=true --corpus marked.jsonl.gz \\
        -o models/llama-toolgen
    On several GPUs:
      accelerate launch -m lookuplab train toolgen ...

    Args:
        base: The model to start from: a folder, a mini model, or a name on the hub.
        corpus: JSON Lines file written by `lookuplab data mark`; may be compressed (.gz).
        output: Folder to write; must not exist.
        variant: Train on functions with marks (toolgen), or on the same functions without marks
            (base).
        recipe: The settings of the paper or, with package-, of the replication package.
        setting: NAME=VALUE changes one of the settings above; repeatable.
        no_signature: The model reads only the docstring and learns to write the signature, too, as
            in the paper's Algorithm 2. Run notebooks on such a model with -p given_signature=false.
            By default, the model also reads the signature, as in the replication package.
        limit: Use only this many functions from the start of the corpus.
        half: Store the weights in fp16.
        save_every: Number of steps between checkpoints.
        work: Folder for checkpoints and logs [default: in runs/train].
    """
    # A launcher sets these variables. Accelerate reads all three, so all are checked here.
    rank, *_ = (env_int(name, 0, -1) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
    if rank <= 0:  # of several processes, only the first claims the folder and prints
        claim(output)
    from lookuplab.toolgen.finetuning import RECIPES, finetune
    from lookuplab.toolgen.pairs import read_pairs

    pairs, left_out = read_pairs(corpus, not no_signature)
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
    if rank > 0:
        return
    click.echo(
        "{pairs:,} pairs, {steps:,} steps in {seconds:.0f} seconds, loss {loss:.3f}, {trainable:,} "
        "of {parameters:,} weights trained".format(**done)
    )
    left_out += done["left_out"]
    echo_counts("left out:" if left_out else "", left_out)
    click.echo(f"written: {output}")
