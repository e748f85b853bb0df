"""Fine-tunes a checkpoint on rows of tokens, either all weights or only LoRA adapters.

The module uses Transformers' Trainer, so it can run on several GPUs: ``accelerate launch -m
lookuplab train toolgen ...``.
"""

import copy
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pandas as pd
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch.utils.data import Sampler
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    DataCollatorForSeq2Seq,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    set_seed,
)

from lookuplab.errors import UserError, check_choice
from lookuplab.models import load
from lookuplab.models.local import LocalModel
from lookuplab.models.names import VLLM, is_remote
from lookuplab.paths import hashed

# architecture -> names of the layers that compute the attention's four projections; architectures
# that are not listed have Llama's names
LLAMA = ("q_proj", "k_proj", "v_proj", "o_proj")
ATTENTION = {"gpt2": ("c_attn", "attn.c_proj"), "t5": ("q", "k", "v", "o")}
LOSSES = ("answer", "function", "all")
# name of a number in ``Recipe`` -> its smallest allowed value
LEAST = dict.fromkeys("epochs batch_size accumulation lora_rank lora_alpha max_tokens".split(), 1)
LEAST |= dict.fromkeys("seed validation warmup_steps lora_dropout".split(), 0)
# The pairs of this many batches are sorted by length together. A larger number would save more
# padding, but make the order less random.
POOL = 50
CARD = """---
license: {licence}
library_name: {library}
tags: [code, python]
---
# {name}

{about}

`{base}`, fine-tuned by lookuplab. Read the code that it writes before you run it.
`log.csv` has the losses. The whole run:

```json
{facts}
```
"""


TokenRow = dict[str, list[int]]  # a pair of prompt and answer, as ``input_ids`` and ``labels``


@dataclass(frozen=True)
class Recipe:
    """The settings that, together with the base model and the rows, determine the weights of a
    fine-tuned model. A row is a pair of a prompt and its answer.

    ToolGen's paper states epochs, learning rate, batch size, seed, and LoRA's rank and alpha; all
    other defaults are those of Transformers. Raises UserError for a value out of range.

    ``batch_size`` is the number of pairs per step, summed over all processes and over the
    ``accumulation`` forward passes of a step. ``lora_rank`` None trains all weights.
    ``lora_targets`` None means the attention's four projections. ``lora_embeddings`` trains and
    stores the whole embedding and head, in addition to the adapters. ``max_tokens`` is the largest
    allowed length of a pair; None means the model's context. A decoder's pair is as long as prompt
    and answer together; an encoder-decoder's pair is as long as the longer of the two.

    ``loss_on`` says on which tokens of a decoder the loss is computed: "answer" (the body),
    "function" (the body and the signature, the paper's F_aug) or "all" (the docstring as well).
    ``validation`` is the number of pairs, chosen by the seed, that are held out of training. If
    there are such pairs, the result is the checkpoint with the lowest loss on them; otherwise the
    result is the last checkpoint. ``bf16`` computes in bfloat16 (autocast); with LoRA, the frozen
    weights are bfloat16, too. ``group_by_length`` puts pairs of similar length into the same batch,
    which saves padding but changes the order. ``checkpoint_activations`` saves memory: activations
    are not kept, but computed again in the backward pass.
    """

    epochs: int = 10
    learning_rate: float = 5e-6
    batch_size: int = 32
    seed: int = 42
    lora_rank: int | None = None
    lora_alpha: int = 16
    lora_targets: tuple[str, ...] | None = None
    lora_dropout: float = 0.0
    lora_embeddings: bool = False
    warmup_steps: float = 0.0  # below 1: a share of all steps
    max_tokens: int | None = None
    loss_on: str = "answer"
    validation: int = 0
    bf16: bool = False
    group_by_length: bool = False
    accumulation: int = 1
    checkpoint_activations: bool = False

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"recipe: {name} is {value}; it must be at least {least}")
        if not (self.learning_rate > 0 and self.lora_dropout < 1 and self.seed < 2**32):
            raise UserError(
                "recipe: learning_rate must be above 0, lora_dropout <1 and seed <2**32"
            )
        check_choice("recipe: loss_on", self.loss_on, LOSSES)


def begin(base: str | Path, output: Path, recipe: Recipe) -> LocalModel:
    """Return the checkpoint ``base`` (folder or name), ready for training. Raises UserError if
    ``output`` exists, or if ``base`` is not a local model.
    """
    if output.exists():
        raise UserError(f"{output} exists; delete it, or choose another output")
    # if the folder cannot be made, the error comes before training, not after it
    output.parent.mkdir(parents=True, exist_ok=True)
    # the weights that LoRA does not train need no more precision than the computation
    dtype = "bfloat16" if recipe.lora_rank is not None and recipe.bf16 else "float32"
    name = str(base)
    if is_remote(name) or name.startswith(VLLM):
        raise UserError(f"{name} is not a local checkpoint, so it cannot be trained")
    return cast(LocalModel, load(name, dtype=dtype, device_map="cpu"))


def train(
    checkpoint: LocalModel,
    rows: list[TokenRow],
    output: Path,
    recipe: Recipe,
    *,
    work: Path,
    add_token: Callable[[Any, Any], int] | None = None,
    half: bool = False,
    log_every: int = 10,
    save_every: int = 200,
    about: str = "",
    licence: str = "other",
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Train ``checkpoint``, which ``begin`` returned, on rows of ``input_ids`` and ``labels``.
    Write the model to the folder ``output``, from which ``models.load`` can load it, and return the
    model's card.

    ``add_token`` adds a token to the tokenizer and the module, and returns the token's id; with
    LoRA, the token's rows in embedding and head are trained, too. ``half`` stores the weights in
    fp16. ``log_every`` and ``save_every`` are numbers of steps. The folder ``work`` gets
    TensorBoard's events, if TensorBoard is installed, and a checkpoint every ``save_every`` steps.
    If an interrupted run is started again, it continues from its last checkpoint. A complete run
    deletes its checkpoints.

    The card is also written into ``output``, as card.json and in README.md. It has the given
    ``facts``, ``pairs`` (the number of rows, without those for validation), ``steps``, ``loss``
    (the training loss in the last line of log.csv, in nats per token), ``taken_step`` (the step
    whose weights were saved), ``validation_loss`` of these weights (or None), ``seconds`` (since
    the last interruption), ``trainable`` and ``parameters`` (numbers of trained and of all
    weights), and more. README.md begins with ``about``, a description of the rows and of the model.
    Raises UserError if the loss or a weight is no longer finite.
    """
    adapted = recipe.lora_rank is not None
    module = checkpoint.module
    tokenizer = checkpoint.tokenizer
    # a hash of this text names the folder of the checkpoints, so only the same run can resume
    run = repr([recipe, checkpoint.identity, add_token is not None, rows])
    rows, validation = _split_rows(rows, recipe)
    set_seed(recipe.seed)  # the new token's rows and LoRA's weights are drawn at random
    token = add_token(tokenizer, module) if add_token else None
    # counted from the configuration, because the head of a model that was loaded in 16 bits has an
    # additional copy of its weight in float32
    parameters = trained_share(module.config, recipe)[1]
    model = prepare(module, recipe, token)
    # 1. train, from the last checkpoint of the same run if there is one
    work = work / hashed(run)[:12]
    padding = copy.deepcopy(tokenizer)  # a copy, because ``tokenizer`` is saved later, unchanged
    padding.padding_side = "right"
    padding.pad_token = padding.pad_token or padding.eos_token
    trainer = Trainer(
        model,
        _arguments(recipe, work, log_every, save_every),
        DataCollatorForSeq2Seq(padding, return_tensors="pt"),
        rows,
        validation or None,
        callbacks=[Milestones()],
    )
    order = Order([length(row) for row in rows], recipe)
    trainer._get_train_sampler = lambda *_: order  # type: ignore[method-assign]
    done = trainer.train(resume_from_checkpoint=last_checkpoint(work))
    log = pd.DataFrame([line for line in trainer.state.log_history if "loss" in line])
    model.to("cpu", torch.float16 if half else None)
    # The last logged loss was computed before the last step, so only the weights can show an
    # overflow in that step. The norm is also infinite if finite weights are so large that their
    # squares overflow, but such a model is not usable: its loss is not finite, either.
    finite = all(one.float().norm().isfinite() for one in model.parameters())
    if not (finite and math.isfinite(log.loss.iloc[-1])):
        raise UserError(
            "loss or weights are no longer finite; lower the learning rate, or train in float32"
        )
    # 2. write a temporary folder, and rename it when it is complete
    facts = {
        "base": checkpoint.identity.get("checkpoint", checkpoint.name),
        **(facts or {}),
        "recipe": asdict(recipe),
        "pairs": len(rows),
        "steps": done.global_step,
        "seconds": round(done.metrics["train_runtime"], 1),
        "loss": float(log.loss.iloc[-1]),
        "validation_loss": trainer.state.best_metric,
        "taken_step": trainer.state.best_global_step or done.global_step,
        "parameters": parameters,
        "trainable": module.num_parameters(only_trainable=True),
        "versions": {each: metadata.version(each) for each in ("torch", "transformers", "peft")},
    }
    if trainer.is_world_process_zero():
        part = output.with_name(f".{output.name}.partial")
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(model, PeftModel):
            _save_adapter(model, part, checkpoint, output)
        else:
            model.config.use_cache = True  # the Trainer switched it off
            model.save_pretrained(str(part))
        if add_token or not adapted:
            tokenizer.save_pretrained(part)
        log[["step", "epoch", "loss", "learning_rate"]].to_csv(part / "log.csv", index=False)
        card = json.dumps(facts, indent=1)
        (part / "card.json").write_text(card + "\n", "utf-8")
        told = {"name": output.name, "about": about, "licence": licence, "base": facts["base"]}
        readme = CARD.format(**told, library="peft" if adapted else "transformers", facts=card)
        (part / "README.md").write_text(readme, "utf-8")
        part.rename(output)
        for folder in work.glob("checkpoint-*"):
            shutil.rmtree(folder)
    trainer.accelerator.wait_for_everyone()
    return facts


def last_checkpoint(work: Path) -> str | None:
    """Return the folder of a run's last complete checkpoint, or None if there is none."""
    whole = [str(file.parent) for file in work.glob("checkpoint-*/complete")]
    # the largest step in a name, not the latest time of a file, because copying may change times
    return max(whole, key=lambda place: int(place.rpartition("-")[2]), default=None)


def _split_rows(rows: list[TokenRow], recipe: Recipe) -> tuple[list[TokenRow], list[TokenRow]]:
    """Draw the rows for validation with the recipe's seed. Return the rows for training, in the
    given order, and the rows for validation. Raises UserError if no row is left for training.
    """
    if recipe.validation >= len(rows):
        raise UserError(
            f"{len(rows)} pairs are too few to hold out {recipe.validation} (-s validation=0)"
        )
    chance = torch.Generator().manual_seed(recipe.seed)
    order = torch.randperm(len(rows), generator=chance).tolist()
    apart = order[: recipe.validation]
    left = sorted(order[recipe.validation :])
    return [rows[at] for at in left], [rows[at] for at in apart]


def length(row: TokenRow) -> int:
    """Return how many tokens of context a pair needs: the length of ``input_ids`` or of ``labels``,
    whichever is longer. In the rows for a decoder, ``input_ids`` has both prompt and answer.
    """
    return max(map(len, row.values()))


def _arguments(recipe: Recipe, work: Path, log_every: int, save_every: int) -> TrainingArguments:
    arguments = TrainingArguments(
        output_dir=str(work),
        num_train_epochs=recipe.epochs,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
        warmup_steps=recipe.warmup_steps,
        bf16=recipe.bf16,
        gradient_accumulation_steps=recipe.accumulation,
        activation_checkpointing=recipe.checkpoint_activations,
        logging_steps=log_every,
        logging_nan_inf_filter=False,
        save_steps=save_every,
        save_total_limit=2,
        eval_strategy="steps" if recipe.validation else "no",
        eval_steps=save_every,
        load_best_model_at_end=recipe.validation > 0,
        label_names=["labels"],
        # without a GPU, bf16 is refused unless this is set
        use_cpu=not torch.cuda.is_available(),
        report_to="tensorboard" if find_spec("tensorboard") else "none",
        ddp_find_unused_parameters=False,
        log_level="error",
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    parts = arguments.world_size * max(1, arguments.n_gpu) * recipe.accumulation
    if recipe.batch_size % parts:
        raise UserError(
            f"a batch of {recipe.batch_size} cannot be divided into {parts} parts (processes x "
            "accumulation); change batch size or accumulation"
        )
    arguments.per_device_train_batch_size = recipe.batch_size // parts
    return arguments


class Order(Sampler[int]):
    """Puts the pairs of each epoch into an order that depends only on the recipe and the epoch. A
    run therefore sees the same batches on any number of processes, and after an interruption.

    The pairs are shuffled. With ``group_by_length``, pairs of similar length are then put into the
    same batch, and the batches are shuffled.
    """

    def __init__(self, lengths: Sequence[int], recipe: Recipe):
        self.lengths = torch.tensor(lengths)
        self.recipe = recipe
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        chance = torch.Generator().manual_seed(self.recipe.seed * 100_003 + self.epoch)
        order = torch.randperm(len(self), generator=chance)
        if self.recipe.group_by_length:
            size = self.recipe.batch_size
            pools = torch.split(order, POOL * size)
            like = torch.cat([pool[self.lengths[pool].argsort(stable=True)] for pool in pools])
            full = len(self) // size
            batches = like[: full * size].view(full, size)
            last = like[full * size :]
            order = torch.cat([batches[torch.randperm(full, generator=chance)].flatten(), last])
        return iter(order.tolist())


class Milestones(TrainerCallback):
    """Makes the Trainer log the last step and, if there are validation pairs, evaluate them after
    the last step. Also marks each completely written checkpoint with a file ``complete``.
    """

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        last = state.global_step >= state.max_steps
        control.should_log |= last
        control.should_evaluate |= last and args.load_best_model_at_end

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        **_: Any,
    ) -> None:
        if state.is_world_process_zero:
            Path(args.output_dir or "", f"checkpoint-{state.global_step}", "complete").touch()


def prepare(module: Any, recipe: Recipe, token: int | None = None) -> Any:
    """Return the model to train: the module itself or, with LoRA, the frozen module with adapters
    on ``recipe.lora_targets``, by default the attention's four projections.

    With LoRA, the row of a new ``token`` in the embedding is trained as well. If the head has
    weights of its own, the token's row in the head is trained, too: with a random row, the token
    would hardly ever have the largest logit. With ``recipe.lora_embeddings``, all rows of embedding
    and head are trained instead.
    """
    if recipe.lora_rank is None:
        return module
    family = module.config.model_type
    embedding = module.get_input_embeddings()
    whole = recipe.lora_embeddings
    head = module.get_output_embeddings()
    layers = [embedding] if head.weight is embedding.weight else [embedding, head]
    names = [name for name, layer in module.named_modules() if layer in layers]
    config = LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=recipe.lora_dropout,
        fan_in_fan_out=family == "gpt2",  # GPT-2 stores its projections transposed
        target_modules=list(recipe.lora_targets or ATTENTION.get(family, LLAMA)),
        task_type="SEQ_2_SEQ_LM" if module.config.is_encoder_decoder else "CAUSAL_LM",
        modules_to_save=[name.rpartition(".")[2] for name in names] if whole else None,
        trainable_token_indices=None
        if token is None or whole
        else {name: [token] for name in names},
    )
    wrapped = get_peft_model(module, config)
    # empty, because PEFT would otherwise query the hub at every checkpoint
    config.base_model_name_or_path = ""
    return wrapped


def _save_adapter(model: PeftModel, folder: Path, checkpoint: LocalModel, output: Path) -> None:
    """Write the adapter into ``folder``, which will be renamed to ``output``.

    The adapter's configuration names a local base model by its path relative to ``output``, and a
    base model on the hub by its name and commit.
    """
    config = cast(LoraConfig, model.peft_config["default"])
    base = Path(checkpoint.source[0])
    if base.is_dir():
        place = Path(os.path.relpath(base.resolve(), output.resolve())).as_posix()
        config.base_model_name_or_path = place if place.startswith(".") else f"./{place}"
    else:
        called = checkpoint.identity["checkpoint"]
        config.base_model_name_or_path, _, config.revision = called.rpartition("@")
    # sorted, so that equal adapters give equal files; PEFT has a set here, whose order may vary
    config.target_modules = sorted(config.target_modules or ())
    model.save_pretrained(str(folder), save_embedding_layers=False)


def trained_share(config: Any, recipe: Recipe) -> tuple[int, int]:
    """Return the number of weights that the recipe trains, and the number of all weights, for a
    model with this Transformers ``config``. Both follow from the shapes of the weights, so
    no weights are held in memory. The weights of new tokens are not counted.
    """
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    with torch.device("meta"):
        module = kind.from_config(config)
        everything = module.num_parameters()
        prepare(module, recipe)
        return module.num_parameters(only_trainable=True), everything
