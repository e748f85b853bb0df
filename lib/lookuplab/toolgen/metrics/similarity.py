"""Exact match, BLEU-4 and edit similarity (paper, Section IV-C, Table II).

What is compared is up to the caller: ``scored_text`` gives the body (the default) or, with ``variant="package"``, the
whole function: signature and docstring stand in both texts then, which raises every number.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from rapidfuzz import fuzz

from lookuplab.scoring.rates import Rate, resampled_weights

VARIANTS = ("paper", "package")
ORDERS = 4


def scored_text(signature: str, docstring: str, body: str, variant: str = "paper") -> str:
    """The text that similarity is computed on; ``docstring`` as written, with its quotes, or empty."""
    if check_variant(variant) == "paper":
        return body
    return "\n".join(part for part in (signature, docstring, body) if part)


def check_variant(variant: str) -> str:
    """``variant`` itself; raises ValueError for an unknown one."""
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}; known are {', '.join(VARIANTS)}")
    return variant


def normalized(text: str) -> str:
    """Every run of white space as one blank, none at the ends."""
    return " ".join(text.split())


def exact_match(prediction: str, reference: str) -> bool:
    """Equal up to white space."""
    return normalized(prediction) == normalized(reference)


def edit_similarity(prediction: str, reference: str) -> float:
    """rapidfuzz's ratio of the white-space-normalized texts in percent, 0 to 100; the paper's EditSim is its mean."""
    return fuzz.ratio(normalized(prediction), normalized(reference))


def bleu_counts(prediction: Sequence, reference: Sequence) -> np.ndarray:
    """What BLEU needs of one pair of token lists, (10,): matches and totals of orders 1 to 4, both lengths."""
    matches, totals = [], []
    for order in range(1, ORDERS + 1):
        found, wanted = (Counter(zip(*(tokens[start:] for start in range(order)), strict=False))
                         for tokens in (prediction, reference))
        matches.append((found & wanted).total())
        totals.append(found.total())
    return np.array([*matches, *totals, len(prediction), len(reference)], dtype=float)


def bleu_from_counts(counts: np.ndarray) -> np.ndarray:
    """BLEU-4, 0 to 1, of summed counts (..., 10): +1 on every order, brevity penalty of the whole corpus."""
    matches, totals = counts[..., :ORDERS], counts[..., ORDERS:2 * ORDERS]
    predicted, wanted = counts[..., -2], counts[..., -1]
    precision = np.exp(np.log((matches + 1) / (totals + 1)).mean(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.where(predicted >= wanted, 1.0, np.exp(1 - wanted / predicted))
    return precision * np.where((predicted == 0) & (wanted > 0), 0.0, penalty)


def bleu4(predictions: Sequence, references: Sequence, tokenize: Callable[[str], Sequence] = str.split) -> float:
    """Corpus-level BLEU-4, 0 to 1. The paper's tokens are the model's own: pass its ``tokenize``, or token lists."""
    return float(bleu_from_counts(_all_counts(predictions, references, tokenize).sum(axis=0)))


def bleu4_rate(
    predictions: Sequence, references: Sequence, clusters: Sequence, tokenize: Callable[[str], Sequence] = str.split
) -> Rate:
    """``bleu4`` with the percentile interval over resampled clusters (repositories); no interval for one cluster."""
    counts = _all_counts(predictions, references, tokenize)
    value = float(bleu_from_counts(counts.sum(axis=0)))
    if len(set(clusters)) < 2:
        return Rate(value, 0.0, 1.0, len(counts))
    drawn = np.concatenate([bleu_from_counts(weights @ counts) for weights in resampled_weights(clusters)])
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Rate(value, float(low), float(high), len(counts))


def _all_counts(predictions, references, tokenize) -> np.ndarray:
    pairs = list(zip(predictions, references, strict=True))
    if not pairs:
        raise ValueError("BLEU of no pairs")
    tokens = [[tokenize(text) if isinstance(text, str) else list(text) for text in pair] for pair in pairs]
    return np.array([bleu_counts(found, wanted) for found, wanted in tokens])
