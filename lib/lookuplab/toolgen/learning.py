"""What a fine-tuning was and what it taught: cards, loss curves, the share of trained weights, where marks are expected.

Rows are dictionaries of the tidy schema. A checkpoint's table name is what stands before its last hyphen, its condition
what stands behind it, as in ``toolgen.tables``.
"""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from lookuplab.errors import UserError
from lookuplab.models.load import folder_of
from lookuplab.models.local import LocalModel
from lookuplab.scoring.rates import average
from lookuplab.scoring.rows import row
from lookuplab.toolgen import lora
from lookuplab.toolgen.pairs import Pair, add_mark, encode_all, kind_of
from lookuplab.toolgen.recipe import Recipe

_TRAINING = {"epochs": "epochs", "learning_rate": "learning_rate", "batch_size": "batch_size", "seed": "seed"}
_LORA = {"rank": "lora_rank", "alpha": "lora_alpha"}


def card_of(name: str) -> dict[str, Any]:
    """The card of a model that ``toolgen.finetune`` wrote, named as for ``models.load``. UserError without one."""
    file = folder_of(name) / "card.json"
    try:
        card = json.loads(file.read_text(encoding="utf-8"))
        return {name: card[name] for name in ("recipe", "parameters", "trainable", "pairs", "steps", "seconds", "loss")}
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{name} has no card of a fine-tuning ({file.name}: {type(error).__name__}); give a model that "
                        "`lookuplab train toolgen` wrote") from error


def card_rows(models: Sequence[str]) -> list[dict]:
    """The recipes in the metrics of data/paper/toolgen/finetuning.csv, conditions ``model``, ``training``, ``lora``; of
    models of one table name the first one's."""
    rows = []
    for role, name in {_split(name)[0]: name for name in reversed(models)}.items():
        card = card_of(name)
        recipe = card["recipe"]
        numbers = {("model", "parameters_million"): card["parameters"] / 1e6, ("training", "pairs"): card["pairs"]}
        numbers |= {("training", metric): recipe[field] for metric, field in _TRAINING.items()}
        if recipe["lora_rank"] is not None:
            numbers |= {("lora", metric): recipe[field] for metric, field in _LORA.items()}
            numbers["lora", "trainable_percent"] = 100 * card["trainable"] / card["parameters"]
        rows = [_row(role, condition, metric, value) for (condition, metric), value in numbers.items()] + rows
    return rows


def loss_rows(models: Sequence[str]) -> list[dict]:
    """Each model's log.csv: metric ``loss`` (nats a token) under ``step_<n>/<condition>``, the mean since the line
    before."""
    rows = []
    for name in models:
        role, condition = _split(name)
        try:
            with (folder_of(name) / "log.csv").open(encoding="utf-8", newline="") as stream:
                rows += [_row(role, f"step_{line['step']}/{condition}", "loss", float(line["loss"]))
                         for line in csv.DictReader(stream)]
        except (OSError, KeyError, ValueError) as error:
            raise UserError(f"{name} has no readable log.csv; give a model that `lookuplab train toolgen` wrote"
                            ) from error
    return rows


def trained_share(config: Any, recipe: Recipe) -> tuple[int, int]:
    """(trained, all) weights of a Transformers configuration, from its shapes: no memory is taken, no mark added."""
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    with torch.device("meta"):
        module = kind.from_config(config)
        everything = sum(weight.numel() for weight in module.parameters())
        return lora.trainable(module if recipe.lora_rank is None else lora.wrap(module, recipe, None)), everything


def mark_probabilities(model: LocalModel, pairs: Sequence[Pair], seed: int = 0) -> pd.DataFrame:
    """One row for each token of the marked answers: ``id``, ``marked`` (the answer has the mark there), the mark's
    ``probability``, and whether it is the most likely token (``written``).

    A model without the mark gets one, with a random row drawn from ``seed``, as before a fine-tuning.
    """
    torch.manual_seed(seed)
    mark, kind = add_mark(model.tokenizer, model.module), kind_of(model.module.config)
    parts = []
    for example in encode_all(model.tokenizer, pairs, kind):
        answer = torch.tensor([example.answer], device=model.module.device)
        prompt = torch.tensor([example.prompt], device=model.module.device)
        with torch.inference_mode():
            if kind == "decoder":
                logits = model.module(torch.cat([prompt, answer], dim=1)).logits[0, len(example.prompt) - 1:-1]
            else:
                logits = model.module(input_ids=prompt, labels=answer).logits[0]
        chances = logits.float().softmax(dim=-1)
        parts.append(pd.DataFrame({
            "id": example.id, "marked": np.array(example.answer) == mark, "probability": chances[:, mark].cpu().numpy(),
            "written": (chances.argmax(dim=-1) == mark).cpu().numpy()}))
    return pd.concat(parts, ignore_index=True)


def mark_rows(model: str, condition: str, found: pd.DataFrame) -> list[dict]:
    """``mark_probabilities`` as means over tokens, conditions ``<condition>/marked`` and ``/unmarked``: metrics
    ``mark_probability_percent`` and ``mark_written_percent``, intervals over the functions."""
    rows = []
    for name, part in (("marked", found[found.marked]), ("unmarked", found[~found.marked])):
        for metric, field in (("mark_probability_percent", "probability"), ("mark_written_percent", "written")):
            mean = average(100 * part[field].astype(float), part.id)
            rows.append(row(model, f"{condition}/{name}", metric, mean))
    return rows


def _split(name: str) -> tuple[str, str]:
    """(table name, condition) of a checkpoint."""
    called = name if name.startswith("mini-") else folder_of(name).name
    role, _, condition = called.rpartition("-")
    return role, condition


def _row(model: str, condition: str, metric: str, value: float) -> dict:
    return {"model": model, "condition": condition, "metric": metric, "value": value}
