"""Fine-tuning on pairs of docstring and function (paper, Sections III-B-2 and IV-B), with and without marks.

Through Transformers' Trainer, so also on several GPUs: ``accelerate launch -m lookuplab train toolgen ...``. The base
variant learns the same pairs without marks, and its vocabulary stays as it is (Equation 1 is ToolGen's).
"""

import copy
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from transformers import DataCollatorForSeq2Seq, TrainingArguments, set_seed
from transformers.utils import logging

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.checkpoint import Checkpoint, context_of, read_checkpoint
from lookuplab.models.load import mini_models, split_revision
from lookuplab.toolgen import lora, training_log
from lookuplab.toolgen.finetune_card import BASE, MARKED, Subject, licence_of, write_card
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.order import Order, OrderedTrainer
from lookuplab.toolgen.pairs import IGNORED, Example, Pair, TextPair, add_mark, encode_all, kind_of, unmarked
from lookuplab.toolgen.recipe import PAPER, Recipe

__all__ = ["PAPER", "Finetuned", "Recipe", "finetune"]
WORK = paths.RUNS / "train" / "toolgen"


@dataclass(frozen=True)
class Finetuned:
    """A finished run. ``left_out`` counts pairs by reason, ``loss`` is the last line of log.csv (nats a token),
    ``seconds`` are of training, those before a kill included; ``trainable`` of ``parameters`` weights were trained."""

    folder: Path
    pairs: int
    left_out: Counter
    steps: int
    seconds: float
    loss: float
    parameters: int
    trainable: int


@dataclass(frozen=True)
class Start:
    """What a run begins with: the base model as it was found and as it is trained, and the pairs in tokens."""

    base: str
    revision: str | None
    checkpoint: Checkpoint
    model: torch.nn.Module
    parameters: int
    examples: list[Example]
    left_out: Counter


def finetune(base: str | Path, pairs: Sequence[Pair | TextPair], output: Path, recipe: Recipe, *, marked: bool,
             work: Path | None = None, half: bool = False, log_every: int = 10, save_every: int = 200,
             left_out: Counter | None = None, about: str = "", licence: str | None = None,
             subject: Subject | None = None, progress: bool = True) -> Finetuned:
    """Fine-tune the checkpoint ``base`` (folder or name) and write the folder ``output``, which ``models.load`` loads.

    ``pairs`` carry their marks for both variants: ``marked=False`` takes them out, and a pair whose marked form is too
    long is left out of both, so that both learn the same pairs. ``half`` stores the weights in fp16. ``work`` (default:
    runs/train/toolgen/OUTPUT'S NAME) holds log.csv, TensorBoard's events and, until the run is complete, checkpoints
    every ``save_every`` steps: a killed run goes on from the last one. The card gets ``left_out`` (pairs that the
    caller dropped, by reason), ``about`` (where the pairs come from), ``licence`` (default: the base's card's) and
    ``subject`` (default: functions, with or without marks).
    UserError for no usable pair, another run's checkpoints in ``work``, an ``output`` that exists, a diverged loss.
    """
    state = PartialState()
    output, work = Path(output), Path(work or WORK / Path(output).name)
    if output.exists():
        raise UserError(f"{output} exists; delete it, or give another output")
    output.parent.mkdir(parents=True, exist_ok=True)  # a place that cannot be written shows now, not after the training
    with _quiet():
        start = _start(str(base), pairs, recipe, marked, left_out or Counter())
        identity = {"recipe": asdict(recipe), "base": start.checkpoint.identity, "marked": marked,
                    "pairs": _hash(start.examples)}
        with state.main_process_first():
            resumed = _resume_point(work, identity)
        trainer, books = _trainer(start, recipe, work, resumed, log_every, save_every, progress)
        trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
        done = Finetuned(output, len(start.examples), start.left_out, trainer.state.global_step,
                         round(books.seconds, 1), training_log.lines(trainer.state.log_history)[-1]["loss"],
                         start.parameters, lora.trainable(start.model))
        if state.is_main_process:
            facts = {**vars(done), "name": output.name, "base": _called(start), "marked": marked, "about": about,
                     "kind": start.checkpoint.module.config.model_type, "hash": identity["pairs"],
                     "recipe": asdict(recipe), "processes": state.num_processes,
                     "licence": licence or licence_of(start.base)}
            del facts["folder"]
            _save(start, work, output, half, facts, subject or (MARKED if marked else BASE))
        state.wait_for_everyone()
    return done


def _start(base: str, pairs: Sequence[Pair | TextPair], recipe: Recipe, marked: bool, left_out: Counter) -> Start:
    """Load the base on the CPU, from where the Trainer moves it. What is trained is float32, frozen weights may be
    what computes."""
    name, revision = split_revision(str(mini_models().get(base, base)))
    frozen = recipe.lora_rank is not None and recipe.precision == "bf16"
    checkpoint = read_checkpoint(name, revision, "bfloat16" if frozen else "float32", "cpu")
    if "checkpoint" in checkpoint.identity:  # on the hub: the commit that a branch stood for, for the adapter's record
        name, _, revision = checkpoint.identity["checkpoint"].rpartition("@")
    examples, too_long = _usable(checkpoint, pairs, recipe, marked)
    set_seed(recipe.seed)  # of the mark's rows and of LoRA's
    mark = add_mark(checkpoint.tokenizer, checkpoint.module) if marked else None
    parameters = sum(weight.numel() for weight in checkpoint.module.parameters())
    model = checkpoint.module if recipe.lora_rank is None else lora.wrap(checkpoint.module, recipe, mark)
    return Start(name, revision, checkpoint, model, parameters, examples, left_out + too_long)


def _usable(checkpoint: Checkpoint, pairs: Sequence[Pair | TextPair], recipe: Recipe,
            marked: bool) -> tuple[list[Example], Counter]:
    """The pairs in tokens, and how many were left out for which reason; their marked form decides."""
    if marked and not any(MARK in pair.answer("encoder-decoder") for pair in pairs):
        raise UserError("no pair has a mark; mark the corpus first (`lookuplab data mark`), or train the base variant")
    with_mark = copy.deepcopy(checkpoint.tokenizer)
    add_mark(with_mark)
    kind, context = kind_of(checkpoint.module.config), context_of(checkpoint.module.config)
    left_out, kept = Counter(), []
    for pair, example in zip(pairs, encode_all(with_mark, pairs, kind), strict=True):
        if context and length(example, kind) > context:
            left_out[f"longer than the model's context of {context} tokens"] += 1
        elif recipe.max_tokens and length(example, kind) > recipe.max_tokens:
            left_out[f"longer than max_tokens ({recipe.max_tokens})"] += 1
        elif not example.exact:
            left_out["not spelled by the model's tokenizer"] += 1
        else:
            kept.append((pair, example))
    if not kept:
        why = "; ".join(f"{n} are {reason}" for reason, n in left_out.items()) or "there are no pairs"
        raise UserError(f"nothing to train on: {why}")
    if marked:
        return [example for _, example in kept], left_out
    return encode_all(checkpoint.tokenizer, [unmarked(pair) for pair, _ in kept], kind), left_out


def length(example: Example, kind: str) -> int:
    """Tokens that a pair needs room for: prompt and answer share a decoder's context, elsewhere each has its own."""
    prompt, answer = len(example.prompt), len(example.answer)
    return max(prompt, answer) if kind == "encoder-decoder" else prompt + answer


def row(example: Example, kind: str, loss_on: str = "answer") -> dict[str, list[int]]:
    """``input_ids`` and ``labels`` as Transformers' models take them; labels are the inputs, the model shifts them."""
    if kind == "encoder-decoder":
        return {"input_ids": example.prompt, "labels": example.answer}
    prompt = example.prompt if loss_on == "all" else [IGNORED] * len(example.prompt)
    return {"input_ids": example.prompt + example.answer, "labels": prompt + example.answer}


def _hash(examples: Sequence[Example]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps([example.id, example.prompt, example.answer]).encode())
    return digest.hexdigest()


def _resume_point(work: Path, identity: dict[str, Any]) -> Path | None:
    """The last complete checkpoint of the same run in ``work``. UserError for another run's."""
    work.mkdir(parents=True, exist_ok=True)
    file, text = work / "identity.json", json.dumps(identity, indent=1) + "\n"
    found = sorted((folder for folder in work.glob("checkpoint-*") if (folder / "trainer_state.json").is_file()),
                   key=_step)  # the state is written last
    before = json.loads(file.read_text(encoding="utf-8")) if found and file.is_file() else json.loads(text)
    if changed := [name for name, value in json.loads(text).items() if before.get(name) != value]:
        raise UserError(f"{work} holds checkpoints of another run (other {', '.join(changed)}); "
                        "delete that folder, or give another one (--work)")
    file.write_text(text, encoding="utf-8")
    return found[-1] if found else None


def _step(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def _trainer(start: Start, recipe: Recipe, work: Path, resumed: Path | None, log_every: int, save_every: int,
             progress: bool) -> tuple[OrderedTrainer, training_log.Books]:
    kind = kind_of(start.checkpoint.module.config)
    order = Order([length(example, kind) for example in start.examples], recipe.batch_size, recipe.seed,
                  recipe.sampling == "group_by_length")
    padding = copy.deepcopy(start.checkpoint.tokenizer)  # the saved one stays as it is
    padding.padding_side = "right"
    padding.pad_token = padding.pad_token or padding.eos_token
    arguments = _arguments(recipe, work, log_every, save_every)
    books = training_log.Books(work / "log.csv", work.name, progress)
    callbacks = [books]
    if arguments.should_save:
        callbacks += training_log.tensorboard(work / "tensorboard", _step(resumed) if resumed else 0)
    trainer = OrderedTrainer(start.model, arguments, DataCollatorForSeq2Seq(padding, return_tensors="pt"),
                             [row(example, kind, recipe.loss_on) for example in start.examples], callbacks=callbacks,
                             order=order)
    trainer.remove_callback(training_log.PrinterCallback)
    return trainer, books


def _arguments(recipe: Recipe, work: Path, log_every: int, save_every: int) -> TrainingArguments:
    try:
        arguments = TrainingArguments(
            output_dir=str(work), num_train_epochs=recipe.epochs, learning_rate=recipe.learning_rate, seed=recipe.seed,
            optim=recipe.optimizer, lr_scheduler_type=recipe.schedule, warmup_steps=recipe.warmup_steps,
            weight_decay=recipe.weight_decay, max_grad_norm=recipe.max_grad_norm, bf16=recipe.precision == "bf16",
            gradient_accumulation_steps=recipe.accumulation, activation_checkpointing=recipe.checkpoint_activations,
            logging_steps=log_every, logging_nan_inf_filter=False, save_steps=save_every, save_total_limit=2,
            use_cpu=not torch.cuda.is_available(),  # else bf16 is refused where there is no GPU
            report_to="none", disable_tqdm=True, ddp_find_unused_parameters=False,
            remove_unused_columns=False, log_level="error", dataloader_pin_memory=torch.cuda.is_available())
    except ValueError as error:  # a schedule or optimiser that is none, a precision that the device lacks
        raise UserError(f"recipe: {' '.join(str(error).split())}") from error
    parts = arguments.world_size * max(1, arguments.n_gpu) * recipe.accumulation
    if recipe.batch_size % parts:
        raise UserError(f"a batch of {recipe.batch_size} does not divide into {parts} parts "
                        "(processes x accumulation); change batch size or accumulation")
    arguments.per_device_train_batch_size = recipe.batch_size // parts
    return arguments


def _called(start: Start) -> str:
    """The base for a reader: a folder by its name, a model on the hub with its commit."""
    return start.checkpoint.identity.get("checkpoint", start.checkpoint.name)


def _save(start: Start, work: Path, output: Path, half: bool, facts: dict[str, Any],
          subject: Subject) -> None:
    """The folder, complete or not there; then the checkpoints go. An adapter without a mark has its base's tokenizer."""
    part = output.with_name(f".{output.name}.partial")
    shutil.rmtree(part, ignore_errors=True)
    model = start.model.to("cpu", torch.float16 if half else None)
    if isinstance(model, lora.PeftModel):
        lora.save(model, part, start.base, start.revision, output)
    else:
        model.config.use_cache = True  # the Trainer switched it off
        model.save_pretrained(part)
    if facts["marked"] or not isinstance(model, lora.PeftModel):
        start.checkpoint.tokenizer.save_pretrained(part)
    shutil.copyfile(work / "log.csv", part / "log.csv")
    write_card(part, facts, subject)
    part.rename(output)
    for folder in work.glob("checkpoint-*"):
        shutil.rmtree(folder)


@contextmanager
def _quiet() -> Iterator[None]:
    """One progress bar is enough: none of Transformers' for every checkpoint, nor its remarks on tied weights."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
