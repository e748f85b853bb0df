"""Exact match, BLEU-4, CodeBLEU and edit similarity (paper, Section IV-C, Table II).

What is compared is up to the caller: ``scored_text`` gives the body (the default) or, with ``variant="package"``, the
whole function: signature and docstring stand in both texts then, which raises every number.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz

from lookuplab.scoring.rates import Rate, resampled_weights

VARIANTS = ("paper", "package")
ORDERS = 4
COMPONENTS = ("ngram", "weighted_ngram", "syntax", "dataflow")


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


@dataclass(frozen=True)
class CodeBleu:
    """CodeBLEU and its components, all 0 to 1; ``dataflow`` is None where the reference has no data flow.

    ``score`` is the mean of the components that there are. ``without_dataflow`` counts the references without one, and
    ``mean_dataflow`` is the mean over the pairs that have one, beside the pooled ``dataflow`` of the definition.
    """

    ngram: float
    weighted_ngram: float
    syntax: float
    dataflow: float | None
    mean_dataflow: float | None
    score: float
    n: int
    without_dataflow: int


def code_bleu(predictions: Sequence[str], references: Sequence[str], variant: str = "paper") -> CodeBleu:
    """CodeBLEU of a corpus (one pair is a corpus too), equal weights, through the package ``codebleu``.

    ``variant="package"`` scores as that package does: a data-flow match of 0, be it that nothing agrees or that there
    is none, counts as 1 in the score. By default nothing that is missing counts.
    """
    from codebleu import bleu, syntax_match, utils, weighted_ngram_match
    from codebleu.codebleu import PACKAGE_DIR

    if check_variant(variant) and (not predictions or len(predictions) != len(references)):
        raise ValueError("CodeBLEU needs as many predictions as references and at least one")
    found, wanted = [text.strip() for text in predictions], [[text.strip()] for text in references]
    keywords = set((PACKAGE_DIR / "keywords" / "python.txt").read_text(encoding="utf-8").split())
    tokens, target = [text.split() for text in found], [[text.split() for text in texts] for texts in wanted]
    weighted = [[[words, {word: 1 if word in keywords else 0.2 for word in words}] for words in texts]
                for texts in target]
    language = utils.get_tree_sitter_language("python")
    flows = [_dataflow(text, texts[0], language) for text, texts in zip(found, wanted, strict=True)]
    pooled, mean = _pooled(flows)
    parts = [float(bleu.corpus_bleu(target, tokens)), float(weighted_ngram_match.corpus_bleu(weighted, tokens)),
             float(syntax_match.corpus_syntax_match(wanted, found, "python", tree_sitter_language=language))]
    counted = [*parts, pooled or 1.0] if variant == "package" else [*parts, *([] if pooled is None else [pooled])]
    return CodeBleu(*parts, pooled, mean, sum(counted) / len(counted), len(found), sum(not flow[1] for flow in flows))


def _pooled(flows: Sequence[tuple[int, int]]) -> tuple[float | None, float | None]:
    """All matches over all data flows, and the mean of the pairs' shares; None for both where there is no data flow."""
    shares = [matched / total for matched, total in flows if total]
    if not shares:
        return None, None
    return sum(matched for matched, _ in flows) / sum(total for _, total in flows), sum(shares) / len(shares)


def _dataflow(prediction: str, reference: str, language) -> tuple[int, int]:
    """(data flows of the reference that the prediction has, data flows of the reference)."""
    wanted, found = (Counter(_edges(text, language)) for text in (reference, prediction))
    return (wanted & found).total(), wanted.total()


def _edges(text: str, language) -> list[tuple[str, str, tuple[str, ...]]]:
    """The normalized data flow of CodeBLEU: variables numbered by first appearance.

    The package's own function merges the sources of a variable through a set of strings, so its numbers vary with
    Python's hash seed, and it cuts tokens by bytes, which goes wrong behind non-ASCII text. Hence these lines; the
    analysis itself is the package's.
    """
    from codebleu.parser import DFG_python, remove_comments_and_docstrings
    from tree_sitter import Parser

    try:
        text = remove_comments_and_docstrings(text, "python")
    except Exception:  # tokenize refuses broken code in many ways; the package goes on with the text as it is
        pass
    root = Parser(language).parse(text.encode("utf-8", "replace")).root_node
    tokens = {(leaf.start_point, leaf.end_point): (number, leaf.text.decode("utf-8", "replace"))
              for number, leaf in enumerate(_tokens(root))}
    try:
        flow = sorted(DFG_python(root, tokens, {})[0], key=lambda edge: edge[1])
    except (KeyError, AttributeError, RecursionError, TypeError, IndexError):  # the analysis gives up on broken trees
        return []
    linked = {place for edge in flow if edge[4] for place in (edge[1], *edge[4])}
    merged: dict[int, tuple] = {}
    for name, place, relation, names, _ in flow:
        if place in linked:
            _, first, before = merged.get(place, (name, relation, []))
            merged[place] = (name, first, list(dict.fromkeys(before + names)))
    numbers: dict[str, str] = {}
    for name, _, names in merged.values():
        for each in (*names, name):
            numbers.setdefault(each, f"var_{len(numbers)}")
    return [(numbers[name], relation, tuple(numbers[each] for each in names))
            for name, relation, names in merged.values()]


def _tokens(node) -> list:
    """The leaves below a syntax node; a string is one token, whatever it consists of."""
    if not node.children or node.type in ("string", "string_literal", "character_literal"):
        return [] if node.type == "comment" else [node]
    return [leaf for child in node.children for leaf in _tokens(child)]
