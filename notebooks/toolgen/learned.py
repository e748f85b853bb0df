"""Measures the probability that a model gives to the mark, before and after fine-tuning."""

from collections.abc import Sequence

import pandas as pd
import torch

from lookuplab.models.decoding import distributions
from lookuplab.models.local import LocalModel
from lookuplab.scoring.rates import Rows, rate, row
from lookuplab.toolgen.pairs import Pair, add_mark, encode, kind_of


def mark_probabilities(model: LocalModel, pairs: Sequence[Pair], seed: int = 0) -> pd.DataFrame:
    """Return one row for each token of the marked functions. The columns are:

    - ``id`` of the function
    - ``marked``: whether this token is the mark
    - ``probability``: the probability that the model gives to the mark here
    - ``written``: whether the mark is the most likely token here

    If the model has no mark, one is added with a random row of weights (``seed``), as at the start
    of fine-tuning.
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


def mark_rows(model: str, condition: str, tokens: pd.DataFrame) -> Rows:
    """Return the means of ``mark_probabilities`` over tokens, as the conditions
    ``<condition>/marked`` and ``<condition>/unmarked``.

    The metrics are ``mark_probability_percent`` and ``mark_written_percent``. Their
    intervals treat each function as a cluster.
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
