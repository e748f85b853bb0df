"""Fine-tunes models on pairs of docstring and function (paper, Sections III-B-2 and IV-B), with or
without marks.

The ToolGen variant learns pairs with marks, and its vocabulary gets the mark (Equation 1). The base
variant learns the same pairs without marks, and its vocabulary stays unchanged.
"""

import copy
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import training
from lookuplab.models.local import LocalModel
from lookuplab.models.training import Recipe
from lookuplab.results import provenance
from lookuplab.toolgen.pairs import IGNORED, EncodedPair, Pair, add_mark, encode, kind_of
from lookuplab.toolgen.rules import MARK, ModelKind

# Section IV-B, "Model Fine-tuning". The paper does not state optimiser, schedule, warm-up and
# weight decay, so we use the Trainer's defaults. For CodeLlama-7B the paper says that LoRA trains
# 0.25 % of the weights. Rank 16 on all four attention projections gives 16.8 of 6,738 million
# weights, which is 0.25 %. Rank 16 on only two of the projections, q and v, would give 0.12 %.
_PAPER = Recipe(loss_on="function")
# The recipe of the replication package, for corpora that are marked by the package's rules. The
# package's CodeT5 is Salesforce/codet5p-220m-py.
_PACKAGE = Recipe(warmup_steps=100, loss_on="all", validation=3000, group_by_length=True)
RECIPES = {
    "codegpt": _PAPER,
    "codet5": _PAPER,
    # bfloat16, because 7 billion weights in float32 would take 27 GB even without activations
    "codellama": replace(_PAPER, epochs=2, lora_rank=16, lora_alpha=16, bf16=True),
    "package-codegpt": _PACKAGE,
    "package-codet5": _PACKAGE,
    "package-codellama": replace(
        _PACKAGE, epochs=2, lora_rank=8, lora_dropout=0.05, lora_embeddings=True, bf16=True
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
    """Fine-tune the checkpoint ``base`` (folder or name) on pairs, write the trained model to the
    folder ``output``, and return its card.

    ``pairs`` have marks, whichever variant is trained; ``marked=False`` removes the marks and
    trains the base variant. A pair whose marked form is too long is left out of both variants, so
    that both learn the same pairs. ``work`` (default: runs/train/toolgen/NAME OF OUTPUT),
    ``options`` and the card are as in ``models.training.train``; the card also has ``left_out``,
    {reason: number of pairs left out}. Raises UserError if no pair is usable, if ``output`` exists,
    or if the loss diverges.
    """
    checkpoint = training.begin(base, output, recipe)
    rows, left_out = training_rows(checkpoint, pairs, recipe, marked)
    device = f"{provenance.device()} ({provenance.processor()})"
    return training.train(
        checkpoint,
        rows,
        output,
        recipe,
        work=work or paths.RUNS / "train" / "toolgen" / output.name,
        add_token=add_mark if marked else None,
        facts={"marked": marked, "left_out": left_out, "device": device},
        **options,
    )


def training_rows(
    checkpoint: LocalModel, pairs: Sequence[Pair], recipe: Recipe, marked: bool
) -> tuple[list[dict[str, list[int]]], Counter[str]]:
    """Return the pairs as training examples (see ``label_tokens``), and {reason: number of pairs
    left out}. For both variants, the length of a pair's marked form decides whether the pair is too
    long. Raises UserError if no pair is usable, or if ``marked`` is True and no pair has a mark.
    """
    kind = kind_of(checkpoint.config)
    tokenizer = copy.deepcopy(checkpoint.tokenizer)
    if marked and pairs and not any(MARK in pair.answer("encoder-decoder") for pair in pairs):
        raise UserError(
            "no pair has a mark; mark the corpus first (`lookuplab data mark`), or train the base"
        )
    add_mark(tokenizer)
    limit = min(recipe.max_tokens or math.inf, checkpoint.context or math.inf)
    left_out = Counter[str]()
    usable = []
    for pair, example in zip(pairs, encode(tokenizer, pairs, kind), strict=True):
        if training.length(label_tokens(example, kind)) > limit:
            left_out[f"longer than {limit} tokens"] += 1
        elif not example.exact:
            left_out["not spelled by the model's tokenizer"] += 1
        else:
            usable.append(pair if marked else pair.unmarked())
    if not usable:
        raise UserError(f"nothing to train on: {len(pairs)} pairs, left out: {dict(left_out)}")
    examples = encode(tokenizer if marked else checkpoint.tokenizer, usable, kind)
    return [label_tokens(example, kind, recipe.loss_on) for example in examples], left_out


def label_tokens(
    example: EncodedPair, kind: ModelKind, loss_on: str = "answer"
) -> dict[str, list[int]]:
    """Return {"input_ids": ..., "labels": ...} for a Transformers model. The model shifts the
    labels itself.

    For a decoder, ``loss_on`` says which tokens have a loss: those of the "answer", of the
    "function" (signature and answer), or "all". For an encoder-decoder, the tokens of the answer
    have a loss.
    """
    prompt = example.prompt
    answer = example.answer
    if kind == "encoder-decoder":
        return {"input_ids": prompt, "labels": answer}
    learned = {"answer": 0, "function": example.signature, "all": len(prompt)}[loss_on]
    ignored = [IGNORED] * (len(prompt) - learned)
    return {"input_ids": prompt + answer, "labels": prompt[:learned] + ignored + answer}
