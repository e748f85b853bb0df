"""How much a generated function looks like its reference: BLEU-4, CodeBLEU, edit similarity, identifiers.

Paper, Section IV-C, Table II. BLEU and CodeBLEU are ratios of sums over the functions of a corpus, so that both are
computed from the counts of its pairs, and a resample of the corpus from the same counts with weights.
"""

import keyword
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from os.path import commonprefix

import numpy as np
import parso
from codebleu.codebleu import PACKAGE_DIR
from codebleu.dataflow_match import normalize_dataflow
from codebleu.parser import DFG_python, remove_comments_and_docstrings
from codebleu.utils import get_tree_sitter_language
from codebleu.weighted_ngram_match import modified_recall
from parso.tree import Leaf
from rapidfuzz import fuzz
from tree_sitter import Parser

from lookuplab.toolgen.insertion import indented

ORDERS = 4
COMPONENTS = ("ngram", "weighted_ngram", "syntax", "dataflow")
KEYWORDS = set((PACKAGE_DIR / "keywords" / "python.txt").read_text(encoding="utf-8").split())


def normalized(text: str) -> str:
    """Every run of white space as one blank, none at the ends."""
    return " ".join(text.split())


def edit_similarity(prediction: str, reference: str) -> float:
    """rapidfuzz's ratio of the white-space-normalized texts in percent, 0 to 100; the paper's EditSim is its mean."""
    return fuzz.ratio(normalized(prediction), normalized(reference))


def bleu_counts(prediction: Sequence, reference: Sequence) -> list[int]:
    """What BLEU needs of one pair of token lists, (10,): matches and totals of orders 1 to 4, both lengths."""
    found, wanted = (
        [Counter(zip(*(row[i:] for i in range(n)), strict=False)) for n in range(1, ORDERS + 1)]
        for row in (prediction, reference)
    )
    matches = [(some & others).total() for some, others in zip(found, wanted, strict=True)]
    return [*matches, *(grams.total() for grams in found), len(prediction), len(reference)]


def bleu(counts: np.ndarray) -> np.ndarray:
    """BLEU-4, 0 to 1, of summed counts (..., 10): +1 on every order, brevity penalty of the whole corpus."""
    matches, totals = counts[..., :ORDERS], counts[..., ORDERS : 2 * ORDERS]
    precision = np.exp(np.log((matches + 1) / (totals + 1)).mean(axis=-1))
    return precision * _brevity(counts[..., -2], counts[..., -1])


def _brevity(predicted: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The brevity penalty; 0 for an empty prediction of something."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(predicted >= wanted, 1.0, np.exp(1 - wanted / predicted))


def components(sums: np.ndarray) -> np.ndarray:
    """The COMPONENTS (..., 4) of summed counts (..., 25); NaN for data flow where there is none."""
    grams, weighted, rest, _ = np.split(sums, (2 * ORDERS, 4 * ORDERS, -2), axis=-1)
    predicted, wanted, fixed, trees, all_trees, flows, all_flows = np.moveaxis(rest, -1, 0)
    words = []
    for counts, length in (grams, wanted), (weighted, fixed):
        matches, totals = counts[..., :ORDERS], counts[..., ORDERS:]
        # a tenth of a match for orders without one (Chen and Cherry's method 1), 0 without a common word
        precision = np.exp(np.log(np.where(matches == 0, 0.1, matches) / totals).mean(axis=-1))
        words.append((matches[..., 0] > 0) * precision * _brevity(predicted, length))
    flow = flows / np.where(all_flows > 0, all_flows, np.nan)
    return np.stack([*words, trees / all_trees, flow], axis=-1)


def code_bleu(sums: np.ndarray, variant: str = "paper") -> np.ndarray:
    """CodeBLEU (...) of summed counts (..., 25): the mean of its components, nothing for a missing data flow.

    ``variant="package"`` scores as the package ``codebleu`` does: a data-flow match of 0, be it that nothing agrees or
    that there is none, counts as 1.
    """
    parts = components(sums)
    if variant == "package":
        parts[..., 3] = np.where(parts[..., 3] > 0, parts[..., 3], 1.0)
    return np.nanmean(parts, axis=-1)


def code_bleu_counts(prediction: str, reference: str) -> list[float]:
    """What CodeBLEU needs of one pair, (25,). Both are moved to the margin: a body is no broken code.

    Matches and totals of n-grams of orders 1 to 4, the same weighted, both lengths and the length that the package
    takes for a weighted reference, subtrees of the syntax matched and all, data flows matched and all, the pair's own
    share of data flows, and whether it has any.
    """
    texts = [indented(text, "").strip() for text in (prediction, reference)]
    found, wanted = (text.split() for text in texts)
    grams = bleu_counts(found, wanted)
    weights = {word: 1 if word in KEYWORDS else 0.2 for word in wanted}
    weighted = [modified_recall([(wanted, weights)], found, n + 1) for n in range(ORDERS)]
    roots = [_root(text) for text in texts]
    known, trees = set(_subtrees(roots[0])), _subtrees(roots[1])
    ours, edges = (Counter(_edges(root)) for root in roots)
    flows, all_flows = (edges & ours).total(), edges.total()
    return [
        *grams[:ORDERS],
        *(max(1, total) for total in grams[ORDERS : 2 * ORDERS]),
        *(matched for matched, _ in weighted),
        *(total for _, total in weighted),
        len(found),
        len(wanted),
        2,  # the package measures the pair (words, weights)
        sum(tree in known for tree in trees),
        len(trees),
        flows,
        all_flows,
        flows / (all_flows or 1),
        all_flows > 0,
    ]


def _root(text: str):
    """The syntax tree of a text without comments and docstrings; broken code has one, too."""
    try:
        text = remove_comments_and_docstrings(text, "python")
    except Exception:  # tokenize refuses broken code in many ways; the package keeps such a text
        pass
    parser = Parser(get_tree_sitter_language("python"))
    return parser.parse(text.encode("utf-8", "replace")).root_node


def _subtrees(root) -> list[str]:
    """The root and every node below it that has children, written out."""
    inner = [text for child in root.children if child.children for text in _subtrees(child)]
    return [str(root), *inner]


def _edges(root) -> list[tuple]:
    """The normalized data flow of a tree: variables numbered by first appearance.

    The package's own function merges the sources of a variable through a set of strings, so its numbers vary with
    Python's hash seed, and it cuts tokens by bytes, which goes wrong behind non-ASCII text. Hence these lines; the
    analysis itself is the package's.
    """
    tokens = {
        (leaf.start_point, leaf.end_point): (number, leaf.text.decode("utf-8", "replace"))
        for number, leaf in enumerate(_tokens(root))
    }
    try:
        flow = sorted(DFG_python(root, tokens, {})[0], key=lambda edge: edge[1])
    except (KeyError, AttributeError, RecursionError, TypeError, IndexError):  # on broken trees
        return []
    linked = {place for edge in flow if edge[4] for place in (edge[1], *edge[4])}
    merged: dict[int, tuple] = {}
    for name, place, relation, names, _ in flow:
        if place in linked:
            _, _, first, before = merged.get(place, (name, place, relation, []))
            merged[place] = name, place, first, list(dict.fromkeys(before + names))
    edges = normalize_dataflow(merged.values())
    return [(name, relation, tuple(names)) for name, relation, names in edges]


def _tokens(node) -> list:
    """The leaves below a syntax node; a string is one token, whatever it consists of."""
    if not node.children or node.type in ("string", "string_literal", "character_literal"):
        return [] if node.type == "comment" else [node]
    return [leaf for child in node.children for leaf in _tokens(child)]


@lru_cache(maxsize=8)
def leaves(text: str) -> tuple[Leaf, ...]:
    """parso's tokens of a text, in order; it does not stop at an error, where generated functions often end."""
    found = [parso.parse(text).get_first_leaf()]
    while (leaf := found[-1].get_next_leaf()) is not None:
        found.append(leaf)
    return tuple(found)


def is_name(leaf: Leaf) -> bool:
    """Whether the token is an identifier; in broken code parso calls some keywords names."""
    return leaf.value.isidentifier() and not keyword.iskeyword(leaf.value)


def identifiers(text: str) -> list[str]:
    """All identifiers of a text, with repetitions; not those inside plain strings and comments."""
    return [leaf.value for leaf in leaves(text) if is_name(leaf)]


def identifier_metrics(prediction: str, reference: str) -> dict[str, float | None]:
    """Monitor-guided decoding's metrics (Section 5), None where the reference has nothing to be matched.

    ``next_identifier``: the first identifiers are equal; ``identifier_sequence``: the common prefix of both identifier
    sequences over the reference's length; ``prefix``: the same over all tokens.
    """
    texts = prediction, reference
    names = [identifiers(text) for text in texts]
    tokens = [[leaf.value for leaf in leaves(text) if leaf.value.strip()] for text in texts]

    def common(found: list, wanted: list) -> float | None:
        return len(commonprefix([found, wanted])) / len(wanted) if wanted else None

    return {
        "next_identifier": names[0][:1] == names[1][:1] if names[1] else None,
        "identifier_sequence": common(*names),
        "prefix": common(*tokens),
    }
