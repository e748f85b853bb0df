"""CodeBLEU with its four components, through the package ``codebleu`` (paper, Section IV-C, Table II).

Every component is a ratio of sums over the pairs of a corpus, so a corpus is scored from the counts of its pairs, and a
resample of it from the same counts with weights.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookuplab.toolgen.metrics.insertion import dedented
from lookuplab.toolgen.metrics.similarity import ORDERS, check_variant

COMPONENTS = ("ngram", "weighted_ngram", "syntax", "dataflow")
# Columns of the counts: matches and totals of n-grams of orders 1 to 4, the same weighted, both lengths and the length
# that the package takes for a weighted reference, subtrees of the syntax matched and all, data flows matched and all,
# and the pair's own share of data flows and whether it has any
COLUMNS = 4 * ORDERS + 9
_WEIGHTED_LENGTH = 2  # it measures the pair (words, weights); no brevity penalty comes of it, as in the original code
_EPSILON = 0.1  # the package counts a tenth of a match where there is none (Chen and Cherry's method 1)


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
    """CodeBLEU of a corpus (one pair is a corpus too), equal weights.

    ``variant="package"`` scores as the package does: a data-flow match of 0, be it that nothing agrees or that there
    is none, counts as 1 in the score. By default nothing that is missing counts.
    """
    if not predictions or len(predictions) != len(references):
        raise ValueError("CodeBLEU needs as many predictions as references and at least one")
    counts = pair_counts(predictions, references)
    parts = [None if np.isnan(part) else float(part) for part in components(counts.sum(axis=0))]
    share, flows = counts[:, -2].sum(), int(counts[:, -1].sum())
    return CodeBleu(*parts, float(share / flows) if flows else None, float(score(counts.sum(axis=0), variant)),
                    len(counts), len(counts) - flows)


def components(sums: np.ndarray) -> np.ndarray:
    """The COMPONENTS (..., 4) of summed counts (..., COLUMNS); NaN for data flow where there is none."""
    grams, weighted = (sums[..., start:start + 2 * ORDERS] for start in (0, 2 * ORDERS))
    predicted, wanted, fixed, trees, all_trees, flows, all_flows = np.moveaxis(sums[..., 4 * ORDERS:-2], -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([_bleu(grams, predicted, wanted), _bleu(weighted, predicted, fixed), trees / all_trees,
                         np.where(all_flows > 0, flows / all_flows, np.nan)], axis=-1)


def score(sums: np.ndarray, variant: str = "paper") -> np.ndarray:
    """CodeBLEU (...) of summed counts (..., COLUMNS); ``variant`` as in ``code_bleu``."""
    parts = components(sums)
    if check_variant(variant) == "package":
        flow = np.nan_to_num(parts[..., 3])
        return (parts[..., :3].sum(axis=-1) + np.where(flow == 0, 1.0, flow)) / len(COMPONENTS)
    return np.nanmean(parts, axis=-1)


def _bleu(counts: np.ndarray, predicted: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """BLEU of the package: 0 without a common word, a small count for other orders without one."""
    matches, totals = counts[..., :ORDERS], counts[..., ORDERS:]
    precision = np.exp(np.log(np.where(matches == 0, _EPSILON, matches) / totals).mean(axis=-1))
    penalty = np.where(predicted > wanted, 1.0, np.exp(1 - wanted / predicted))
    return np.where((matches[..., 0] == 0) | (predicted == 0), 0.0, precision * penalty)


def pair_counts(predictions: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """(pairs, COLUMNS): what the components need of each pair, both moved to the margin: a body is no broken code."""
    from codebleu.codebleu import PACKAGE_DIR
    from codebleu.utils import get_tree_sitter_language

    keywords = set((PACKAGE_DIR / "keywords" / "python.txt").read_text(encoding="utf-8").split())
    language = get_tree_sitter_language("python")
    return np.array([_counts(*(dedented(text).strip() for text in pair), keywords, language)
                     for pair in zip(predictions, references, strict=True)], dtype=float)


def _counts(prediction: str, reference: str, keywords: set[str], language) -> list[float]:
    from codebleu.bleu import modified_precision
    from codebleu.weighted_ngram_match import modified_recall

    found, wanted = prediction.split(), reference.split()
    weights = {word: 1 if word in keywords else 0.2 for word in wanted}
    grams = [modified_precision([wanted], found, order) for order in range(1, ORDERS + 1)]
    weighted = [modified_recall([[wanted, weights]], found, order) for order in range(1, ORDERS + 1)]
    roots = _root(prediction, language), _root(reference, language)
    had, trees = set(_subtrees(roots[0])), _subtrees(roots[1])
    has, edges = (Counter(_edges(root)) for root in roots)
    flows, all_flows = (edges & has).total(), edges.total()
    return [*(match for match, _ in grams), *(total for _, total in grams),
            *(match for match, _ in weighted), *(total for _, total in weighted), len(found), len(wanted),
            _WEIGHTED_LENGTH, sum(tree in had for tree in trees), len(trees),
            flows, all_flows, flows / all_flows if all_flows else 0, all_flows > 0]


def _root(text: str, language):
    """The syntax tree of a text without comments and docstrings; broken code has one, too."""
    from codebleu.parser import remove_comments_and_docstrings
    from tree_sitter import Parser

    try:
        text = remove_comments_and_docstrings(text, "python")
    except Exception:  # tokenize refuses broken code in many ways; the package goes on with the text as it is
        pass
    return Parser(language).parse(text.encode("utf-8", "replace")).root_node


def _subtrees(root) -> list[str]:
    """The root and every node below it that has children, written out."""
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        found.append(str(node))
        waiting += [child for child in node.children if child.children]
    return found


def _edges(root) -> list[tuple[str, str, tuple[str, ...]]]:
    """The normalized data flow of a tree: variables numbered by first appearance.

    The package's own function merges the sources of a variable through a set of strings, so its numbers vary with
    Python's hash seed, and it cuts tokens by bytes, which goes wrong behind non-ASCII text. Hence these lines; the
    analysis itself is the package's.
    """
    from codebleu.parser import DFG_python

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
