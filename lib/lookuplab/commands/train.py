"""``lookuplab train``: make the mini models again, and fine-tune any model for ToolGen."""

import os
from dataclasses import replace
from pathlib import Path

import click

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group(short_help="Train the mini models; fine-tune any model for ToolGen.", epilog="""\b
Examples:
  lookuplab train mini --size small
  lookuplab train toolgen --base gpt2 --corpus marked.jsonl -o models/gpt2-toolgen""")
def command() -> None:
    """Train the kit's own small models; fine-tune any model for ToolGen."""


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


@command.command("mini-toolgen", short_help="The mini models of ToolGen.", epilog="""\b
Examples:
  lookuplab train mini-toolgen                  three families, base and ToolGen each
  lookuplab train mini-toolgen --family llama""")
@click.option("--family", default="all", show_default=True, type=click.Choice(["gpt", "t5", "llama", "all"]))
@click.option("--out", type=_FOLDER, help="Folder for the model folders [default: data/mini/toolgen].")
@click.option("--work", type=_FOLDER, help="Folder for corpus, checkpoints, logs [default: runs/train/toolgen].")
def mini_toolgen(family: str, out: Path | None, work: Path | None) -> None:
    """Pre-train on the functions of the installed packages, mark some of them by Jedi, and fine-tune with and without
    marks.

    What stands in the folders is not made again: delete it to repeat a step. A killed run goes on when the same command
    is given again.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as above
    from lookuplab.mini import toolgen as models

    work, out = work or models.WORK, out or models.MODELS
    out.mkdir(parents=True, exist_ok=True)
    pairs = models.marked_pairs(work, out / "marks.jsonl.gz")
    for name in models.ROLES if family == "all" else (family,):
        for variant in models.VARIANTS:
            click.echo(models.finetuned(work, out, name, variant, pairs))


@command.command("mini-questions", short_help="The mini models that answer questions.", epilog="""\b
Examples:
  lookuplab train mini-questions                three sizes, as adapters over the mini models
  lookuplab train mini-questions --size small""")
@click.option("--size", default="all", show_default=True, type=click.Choice(["small", "medium", "large", "all"]))
@click.option("--out", type=_FOLDER, help="Folder for the model folders [default: data/mini/questions].")
@click.option("--work", type=_FOLDER, help="Folder for problems, checkpoints, logs [default: runs/train/questions].")
def mini_questions(size: str, out: Path | None, work: Path | None) -> None:
    """Make problems of the docstring examples that the mini benchmark does not use, and fine-tune the mini models on
    them.

    What stands in the folders is not made again: delete it to repeat a step. A killed run goes on when the same command
    is given again.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as above
    from lookuplab.mini import questions

    work, out = work or questions.WORK, out or questions.MODELS
    out.mkdir(parents=True, exist_ok=True)
    learned = questions.pairs(work)
    for name in questions.SIZES if size == "all" else (size,):
        click.echo(questions.finetuned(learned, name, out, work))


@command.command("mini-rankers", short_help="The mini rankers of snippets.", epilog="""\b
Examples:
  lookuplab train mini-rankers
  lookuplab train mini-rankers --part encoder""")
@click.option("--part", default="all", show_default=True, type=click.Choice(["words", "encoder", "all"]))
def mini_rankers(part: str) -> None:
    """Learn the word vectors and the sentence encoder that rank the mini corpus of snippets.

    On one core each: the same seed gives the same vectors.
    """
    from lookuplab.mini import rankers

    if part in ("words", "all"):
        click.echo(f"{len(rankers.train_words().words):,} words -> {rankers.WORDS}")
    if part in ("encoder", "all"):
        click.echo(f"{rankers.train_encoder():,} pairs -> {rankers.ENCODER}")


@command.command(short_help="Fine-tune a model on a marked corpus.", epilog="""\b
Examples:
  lookuplab data mark rich click -o marked.jsonl
  lookuplab train toolgen --base gpt2 --corpus marked.jsonl -o models/gpt2-toolgen
  lookuplab train toolgen --base gpt2 --corpus marked.jsonl --variant base -o models/gpt2-base
  lookuplab train toolgen --base codellama/CodeLlama-7b-Python-hf --recipe codellama --precision bf16 \\
    --accumulation 8 --checkpoint-activations --corpus marked.jsonl.gz -o models/llama-toolgen
On several GPUs:
  accelerate launch -m lookuplab train toolgen ...""")
@click.option("--base", required=True, help="The model to start from: a folder, a mini model, or a name on the hub.")
@click.option("--corpus", required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="JSON Lines of `lookuplab data mark`, or the same as .gz.")
@click.option("--variant", type=click.Choice(["toolgen", "base"]), default="toolgen", show_default=True,
              help="With marks, or the same functions without.")
@click.option("-o", "--output", required=True, type=_FOLDER, help="Folder to write; must not exist.")
@click.option("--recipe", "paper", type=click.Choice(["codegpt", "codet5", "codellama"]), default="codegpt",
              show_default=True, help="The paper's settings; the options below change single ones.")
@click.option("--epochs", type=click.IntRange(1))
@click.option("--learning-rate", type=click.FloatRange(0, min_open=True))
@click.option("--batch-size", type=click.IntRange(1), help="Pairs a step, over all processes and parts.")
@click.option("--accumulation", type=click.IntRange(1), help="Parts of a batch, one after the other: less memory.")
@click.option("--seed", type=int)
@click.option("--lora-rank", type=click.IntRange(0), help="0 trains all weights.")
@click.option("--lora-alpha", type=click.IntRange(1))
@click.option("--schedule", help="Of the learning rate, by its name in Transformers (linear, cosine, constant ...).")
@click.option("--warmup-steps", type=click.FloatRange(0), help="Below 1: a share of all steps.")
@click.option("--weight-decay", type=click.FloatRange(0))
@click.option("--max-tokens", type=click.IntRange(1), help="Longer pairs are left out. [default: the model's context]")
@click.option("--loss-on", type=click.Choice(["answer", "all"]), help="Whether a decoder's prompt counts.")
@click.option("--precision", type=click.Choice(["float32", "bf16"]), help="bf16: autocast.")
@click.option("--sampling", type=click.Choice(["random", "group_by_length"]), help="group_by_length: less padding.")
@click.option("--checkpoint-activations", is_flag=True, default=None, help="Less memory, more time.")
@click.option("--limit", type=click.IntRange(1), help="Only the first functions of the corpus.")
@click.option("--half", is_flag=True, help="Store the weights in fp16.")
@click.option("--save-every", default=200, show_default=True, type=click.IntRange(1), help="Steps to a checkpoint.")
@click.option("--log-every", default=10, show_default=True, type=click.IntRange(1), help="Steps to a line of log.csv.")
@click.option("--work", type=_FOLDER, help="Folder for checkpoints and logs [default: runs/train/toolgen/NAME].")
@click.option("--about", default="", help="For the card: where the functions come from.")
@click.option("--licence", help="For the card. [default: that of the base's card]")
def toolgen(base: str, corpus: Path, variant: str, output: Path, paper: str, limit: int | None, half: bool,
            save_every: int, log_every: int, work: Path | None, about: str, licence: str | None, **changes) -> None:
    """Fine-tune a causal or encoder-decoder model on pairs of docstring and function (ToolGen, Section IV-B).

    A killed run goes on from its last checkpoint when the same command is given again. Pairs that are too long are
    counted and printed.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as above
    from lookuplab.toolgen.finetune import PAPER, finetune
    from lookuplab.toolgen.pairs import pairs, read

    given = {name: value for name, value in changes.items() if value is not None}
    if given.get("lora_rank") == 0:
        given["lora_rank"] = None
    records, left_out = read(corpus)
    done = finetune(base, pairs(records[:limit], True), output, replace(PAPER[paper], **given),
                    marked=variant == "toolgen", work=work, half=half, save_every=save_every, log_every=log_every,
                    left_out=left_out, about=about, licence=licence)
    if os.environ.get("RANK", "0") != "0":  # of several processes one speaks
        return
    click.echo(f"{done.pairs:,} pairs, {done.steps:,} steps in {done.seconds / 60:.1f} minutes, loss {done.loss:.3f}, "
               f"{done.trainable:,} of {done.parameters:,} weights trained ({done.trainable / done.parameters:.2%})")
    for reason, times in done.left_out.most_common():
        click.echo(f"  left out: {times:,} {reason}")
    click.echo(f"written: {done.folder}")
