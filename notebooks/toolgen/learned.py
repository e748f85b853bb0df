"""The results of fine-tuning: the models' recipes and losses, as ``finetuning.finetune`` wrote
them, and the probability that they give the mark.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from lookuplab.errors import UserError
from lookuplab.models.decoding import distributions
from lookuplab.models.local import LocalModel
from lookuplab.models.names import model_folder, table_name
from lookuplab.scoring.rates import rate, row
from lookuplab.toolgen.pairs import Pair, add_mark, encode, kind_of
from lookuplab.toolgen.tool_use import role_of


def cards(models: Sequence[str]) -> pd.DataFrame:
    """Return the recipes of fine-tuned models as rows, in the metrics of
    data/paper/toolgen/finetuning.csv.

    ``model`` is the first part of ``role_of``. If several checkpoints have the same name, the first
    is used.
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
    """Return each model's log.csv: metric ``loss`` (nats per token) under ``step_<n>/<condition>``,
    the mean since the previous line.

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
    """Return a file in a fine-tuned model's folder, and the model's name and condition
    (``role_of``).
    """
    path = model_folder(name) / file
    if not path.is_file():
        raise UserError(f"{name} has no {file}; give a model that `lookuplab train toolgen` wrote")
    return path, role_of(table_name(name))


def mark_probabilities(model: LocalModel, pairs: Sequence[Pair], seed: int = 0) -> pd.DataFrame:
    """Return one row for each token of the marked answers: ``id``, ``marked`` (the answer has the
    mark there), the mark's ``probability``, and whether it is the most likely token (``written``).

    A model without the mark gets one, with a random row drawn from ``seed``, as before fine-tuning.
    """
    torch.manual_seed(seed)
    mark = add_mark(model.tokenizer, model.module)
    kind = kind_of(model.config)
    parts = []
    for pair, example in zip(pairs, encode(model.tokenizer, pairs, kind), strict=True):
        probabilities = distributions(model.module, example.prompt, example.answer).cpu()
        columns = {
            "id": pair.id,
            "marked": [token == mark for token in example.answer],
            "probability": probabilities[:, mark],
            "written": probabilities.argmax(dim=-1) == mark,
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def mark_rows(model: str, condition: str, tokens: pd.DataFrame) -> list[dict[str, Any]]:
    """Return ``mark_probabilities`` as means over tokens, conditions ``<condition>/marked`` and
    ``/unmarked``.

    The metrics are ``mark_probability_percent`` and ``mark_written_percent``, with intervals over
    the functions.
    """
    return [
        row(
            model,
            f"{condition}/{name}",
            f"mark_{field}_percent",
            rate(part[field], part.id).percent(),
        )
        for name, part in (("marked", tokens[tokens.marked]), ("unmarked", tokens[~tokens.marked]))
        for field in ("probability", "written")
    ]
