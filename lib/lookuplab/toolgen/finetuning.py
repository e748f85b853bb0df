"""Fine-tuning on pairs of docstring and function (paper, Sections III-B-2 and IV-B), with and
without marks, and what the models learned.

The base variant learns the same pairs without marks, and its vocabulary stays unchanged (Equation 1
is ToolGen's).
"""

import copy
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import training
from lookuplab.models.decoding import distributions
from lookuplab.models.local import LocalModel
from lookuplab.models.names import folder_of, table_name
from lookuplab.models.training import Recipe
from lookuplab.results import provenance
from lookuplab.scoring.rates import average, row
from lookuplab.toolgen.pairs import (
    IGNORED,
    MARK,
    EncodedPair,
    Pair,
    add_mark,
    encode,
    kind_of,
)
from lookuplab.toolgen.tool_use import role_of

# Section IV-B, "Model Fine-tuning". Optimiser, schedule, warm-up and weight decay are not stated,
# so they are the Trainer's defaults. Rank 16 on all four projections of CodeLlama-7B is 16.8 of
# 6,738 million weights, the paper's 0.25 %; on q and v alone it would be half of that.
_PAPER = Recipe(loss_on="function")
# The replication package's recipes, for corpora marked by its variant; its CodeT5 is
# Salesforce/codet5p-220m-py.
_PACKAGE = Recipe(warmup_steps=100, loss_on="all", validation=3000, group_by_length=True)
RECIPES = {
    "codegpt": _PAPER,
    "codet5": _PAPER,
    "codellama": replace(_PAPER, epochs=2, lora_rank=16, lora_alpha=16),
    "package-codegpt": _PACKAGE,
    "package-codet5": _PACKAGE,
    "package-codellama": replace(
        _PACKAGE, epochs=2, lora_rank=8, lora_dropout=0.05, lora_embeddings=True
    ),
}


def finetune(
    base: str | Path,
    pairs: Sequence[Pair],
    output: Path,
    recipe: Recipe,
    *,
    marked: bool,
    work: Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Fine-tune the checkpoint ``base`` (folder or name) on pairs; write the folder ``output``.

    ``pairs`` carry their marks for both variants: ``marked=False`` removes them, and a pair whose
    marked form is too long is left out of both, so that both learn the same pairs. ``work``
    (default: runs/train/toolgen/OUTPUT'S NAME), ``options`` and the card that is returned are those
    of ``models.training.train``; the card also has ``left_out`` by reason. Raises UserError if no
    pair is usable, if ``output`` exists, or if the loss diverges.
    """
    output = Path(output)
    checkpoint = training.begin(base, output, recipe)
    rows, left_out = training_rows(checkpoint, pairs, recipe, marked)
    device = f"{provenance.device()} ({provenance.processor()})"
    return training.train(
        checkpoint,
        rows,
        output,
        recipe,
        work=Path(work or paths.RUNS / "train" / "toolgen" / output.name),
        add_token=add_mark if marked else None,
        facts={"marked": marked, "left_out": left_out, "device": device},
        **options,
    )


def training_rows(
    checkpoint: LocalModel, pairs: Sequence[Pair], recipe: Recipe, marked: bool
) -> tuple[list[dict[str, list[int]]], Counter[str]]:
    """The pairs as ``labelled``, and how many were left out by reason; the marked form decides."""
    kind, tokenizer = kind_of(checkpoint.config), copy.deepcopy(checkpoint.tokenizer)
    if marked and not any(MARK in pair.answer("encoder-decoder") for pair in pairs):
        raise UserError(
            "no pair has a mark; mark the corpus first (`lookuplab data mark`), or train the base"
        )
    add_mark(tokenizer)
    limit = min(recipe.max_tokens or math.inf, checkpoint.context or math.inf)
    left_out, usable = Counter[str](), []
    for pair, example in zip(pairs, encode(tokenizer, pairs, kind), strict=True):
        if training.length(labelled(example, kind)) > limit:
            left_out[f"longer than {limit} tokens"] += 1
        elif not example.exact:
            left_out["not spelled by the model's tokenizer"] += 1
        else:
            usable.append(pair if marked else pair.unmarked())
    if not usable:
        raise UserError(f"nothing to train on: {len(pairs)} pairs, left out: {dict(left_out)}")
    examples = encode(tokenizer if marked else checkpoint.tokenizer, usable, kind)
    return [labelled(example, kind, recipe.loss_on) for example in examples], left_out


def labelled(example: EncodedPair, kind: str, loss_on: str = "answer") -> dict[str, list[int]]:
    """``input_ids`` and ``labels`` as Transformers' models take them; labels are not shifted, the
    model does that.
    """
    prompt, answer = example.prompt, example.answer
    if kind == "encoder-decoder":
        return {"input_ids": prompt, "labels": answer}
    learned = {"answer": 0, "function": example.signature, "all": len(prompt)}[loss_on]
    ignored = [IGNORED] * (len(prompt) - learned)
    return {"input_ids": prompt + answer, "labels": prompt[:learned] + ignored + answer}


def cards(models: Sequence[str]) -> pd.DataFrame:
    """The recipes of models that ``finetune`` wrote, in the metrics of
    data/paper/toolgen/finetuning.csv.

    ``model`` is the first part of ``role_of``; of several checkpoints with one name the first
    counts.
    """
    rows = []
    for name in models:
        file, (role, _) = _written(name, "card.json")
        card = json.loads(file.read_text(encoding="utf-8"))
        recipe, weights = card["recipe"], card["parameters"]
        values = {"model parameters_million": weights / 1e6, "training pairs": card["pairs"]}
        for metric in ("epochs", "learning_rate", "batch_size", "seed"):
            values[f"training {metric}"] = recipe[metric]
        if recipe["lora_rank"] is not None:
            values |= {"lora rank": recipe["lora_rank"], "lora alpha": recipe["lora_alpha"]}
            values["lora trainable_percent"] = 100 * card["trainable"] / weights
        rows += [(role, *metric.split(), value) for metric, value in values.items()]
    columns = ["model", "condition", "metric"]
    return pd.DataFrame(rows, columns=[*columns, "value"]).drop_duplicates(columns)


def losses(models: Sequence[str]) -> pd.DataFrame:
    """Each model's log.csv: metric ``loss`` (nats per token) under ``step_<n>/<condition>``, the
    mean since the line before.

    ``model`` and condition are the two parts of ``role_of``.
    """
    parts = []
    for name in models:
        file, (role, condition) = _written(name, "log.csv")
        log = pd.read_csv(file)
        steps = "step_" + log.step.astype(str) + f"/{condition}"
        columns = {"model": role, "condition": steps, "metric": "loss", "value": log.loss}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _written(name: str, file: str) -> tuple[Path, tuple[str, str]]:
    """A file that ``finetune`` wrote, and the model's name and condition (``role_of``)."""
    path = folder_of(name) / file
    if not path.is_file():
        raise UserError(f"{name} has no {file}; give a model that `lookuplab train toolgen` wrote")
    return path, role_of(table_name(name))


def mark_probabilities(model: LocalModel, pairs: Sequence[Pair], seed: int = 0) -> pd.DataFrame:
    """One row for each token of the marked answers: ``id``, ``marked`` (the answer has the mark
    there), the mark's ``probability``, and whether it is the most likely token (``written``).

    A model without the mark gets one, with a random row drawn from ``seed``, as before fine-tuning.
    """
    torch.manual_seed(seed)
    mark, kind = add_mark(model.tokenizer, model.module), kind_of(model.config)
    parts = []
    for example in encode(model.tokenizer, pairs, kind):
        probabilities = distributions(model.module, example.prompt, example.answer).cpu()
        columns = {
            "id": example.id,
            "marked": [token == mark for token in example.answer],
            "probability": probabilities[:, mark],
            "written": probabilities.argmax(dim=-1) == mark,
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def mark_rows(model: str, condition: str, tokens: pd.DataFrame) -> list[dict[str, Any]]:
    """``mark_probabilities`` as means over tokens, conditions ``<condition>/marked`` and
    ``/unmarked``.

    The metrics are ``mark_probability_percent`` and ``mark_written_percent``, with intervals over
    the functions.
    """
    return [
        row(
            model,
            f"{condition}/{name}",
            f"mark_{field}_percent",
            average(100 * part[field].astype(float), part.id),
        )
        for name, part in (("marked", tokens[tokens.marked]), ("unmarked", tokens[~tokens.marked]))
        for field in ("probability", "written")
    ]
