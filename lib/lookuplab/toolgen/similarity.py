"""How similar a generated function is to its reference: BLEU-4, CodeBLEU, edit similarity, identifiers.

Paper, Section IV-C, Table II. BLEU and CodeBLEU are ratios of sums over the functions of a corpus, so both are computed
from the counts of its pairs, for the whole corpus or any part of it.
"""

import keyword
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from os.path import commonprefix

import numpy as np
import parso
from codebleu.bleu import modified_precision
from codebleu.codebleu import PACKAGE_DIR
from codebleu.dataflow_match import normalize_dataflow
from codebleu.parser import DFG_python, remove_comments_and_docstrings
from codebleu.utils import get_tree_sitter_language
from codebleu.weighted_ngram_match import modified_recall
from parso.tree import Leaf
from rapidfuzz import fuzz
from tree_sitter import Parser

from lookuplab.toolgen.functions import package_docstring, without_comments
from lookuplab.toolgen.insertion import Place, indented

ORDERS = (1, 2, 3, 4)
COMPONENTS = ("ngram", "weighted_ngram", "syntax", "dataflow")
KEYWORDS = set((PACKAGE_DIR / "keywords" / "python.txt").read_text(encoding="utf-8").split())


def normalized(text: str) -> str:
    """The text with every run of white space as one blank, and none at the ends."""
    return " ".join(text.split())


def blanked(text: str) -> str:
    """The text with everything between two equal quotes of a line reduced to ``''``, as the replication package scores
    it.
    """
    for quote in "'\"":
        text = re.sub(f"{quote}[^{quote}\n]*{quote}", "''", text)
    return text.strip()


def package_text(place: Place, body: str, documented: bool) -> str:
    """The function at ``place`` with another body, as the replication package compares it.

    Its literals are ``blanked``. After the signature comes the function's own docstring if ``documented``: only models
    that continue a prompt have it in their texts.
    """
    said = f"{place.body_indent}'''{package_docstring(place.docstring)}'''"
    parts = without_comments(place.signature), said if documented else "", body
    return blanked("\n".join(filter(None, parts)))


def edit_similarity(prediction: str, reference: str) -> float:
    """rapidfuzz's ratio of the white-space-normalized texts in percent, 0 to 100; the paper's EditSim is its mean."""
    return fuzz.ratio(prediction, reference, processor=normalized)


def bleu_counts(prediction: Sequence, reference: Sequence) -> list[int]:
    """The counts that BLEU needs for a pair of token lists, (10,): matches and totals of orders 1 to 4,
    both lengths.
    """
    matches = [modified_precision([reference], prediction, n)[0] for n in ORDERS]
    totals = [max(0, len(prediction) - n + 1) for n in ORDERS]
    return [*matches, *totals, len(prediction), len(reference)]


def bleu(counts):
    """BLEU-4, 0 to 1, of summed counts (..., 10): the product of ``precision`` and ``brevity_penalty``."""
    return precision(counts) * brevity_penalty(counts)


def precision(counts):
    """The geometric mean of the precisions of n-grams, smoothed by +1 on every order."""
    matches, totals = counts[..., :4], counts[..., 4:8]
    return np.exp(np.log((matches + 1) / (totals + 1)).mean(axis=-1))


def brevity_penalty(counts):
    """The brevity penalty of the whole corpus, from its two lengths, which are the last of the counts.

    It is 0 for an empty prediction of something.
    """
    predicted, wanted = counts[..., -2], counts[..., -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.exp(np.fmin(0, 1 - wanted / predicted))  # fmin: nothing is as long as nothing


@np.errstate(divide="ignore", invalid="ignore")  # an empty prediction has no n-grams
def components(sums):
    """The COMPONENTS (..., 4) of summed counts (..., 23); NaN for a missing data flow."""
    words = []
    for start, lengths in (0, [16, 17]), (8, [16, 18]):
        matches, totals = sums[..., start : start + 4], sums[..., start + 4 : start + 8]
        # a tenth of a match for orders without one (Chen and Cherry's method 1), 0 without a common word
        shares = np.exp(np.log(np.where(matches == 0, 0.1, matches) / totals).mean(axis=-1))
        words.append((matches[..., 0] > 0) * shares * brevity_penalty(sums[..., lengths]))
    syntax, flow = sums[..., 19] / sums[..., 20], sums[..., 21] / sums[..., 22]
    return np.stack([*words, syntax, flow], axis=-1)


def code_bleu(sums, variant: str = "paper"):
    """CodeBLEU (...) of summed counts (..., 23): the mean of its components, without a missing data flow.

    ``variant="package"``: a missing data flow counts as 0, as in the replication package. (The package ``codebleu`` of
    the Python index counts a data flow that is missing or has no match as 1.)
    """
    parts = components(sums)
    return np.nanmean(np.nan_to_num(parts) if variant == "package" else parts, axis=-1)


def code_bleu_counts(prediction: str, reference: str, variant: str = "paper") -> list[float]:
    """The counts that CodeBLEU needs for one pair, (23,).

    Both texts are moved to the margin, so that a body is not broken code. Syntax and data flow leave out comments and
    docstrings, which ``variant="package"`` keeps. The counts are matches and totals of n-grams of orders 1 to 4, the
    same weighted, both lengths and the length that the package uses for a weighted reference, matched and all subtrees
    of the syntax, matched and all data flows.
    """
    texts = [indented(text, "").strip() for text in (prediction, reference)]
    found, wanted = map(str.split, texts)
    weights = {word: 1 if word in KEYWORDS else 0.2 for word in wanted}
    plain = [modified_precision([wanted], found, n) for n in ORDERS]
    weighted = [modified_recall([(wanted, weights)], found, n) for n in ORDERS]
    predicted, root = (_root(text, variant) for text in texts)
    known, trees = set(_subtrees(predicted)), _subtrees(root)
    edges = Counter(_edges(root))
    return [
        *np.transpose(plain).flat,
        *np.transpose(weighted).flat,
        len(found),
        len(wanted),
        2,  # the package takes the length of the pair (words, weights)
        sum(tree in known for tree in trees),
        len(trees),
        (edges & Counter(_edges(predicted))).total(),
        edges.total(),
    ]


def _root(text: str, variant: str):
    """The syntax tree of a text; even broken code has one."""
    if variant == "paper":
        # tokenize fails on broken code in many ways; the package codebleu keeps such a text
        with suppress(Exception):
            text = remove_comments_and_docstrings(text, "python")
    parser = Parser(get_tree_sitter_language("python"))
    return parser.parse(text.encode("utf-8", "replace")).root_node


def _subtrees(root) -> list[str]:
    """The root and every node below it that has children, written out."""
    inner = [text for child in root.children if child.children for text in _subtrees(child)]
    return [str(root), *inner]


def _edges(root) -> list[tuple]:
    """The normalized data flow of a tree: variables numbered by first appearance.

    The package's own function merges the sources of a variable through a set of strings, so its numbers vary with
    Python's hash seed, and it cuts tokens by bytes, which goes wrong after non-ASCII text. It is therefore rewritten
    here; the analysis itself is the package's. In loops that, too, passes names through a set: here they come in the
    order of their places.
    """
    found = _tokens(root)
    texts = [leaf.text.decode("utf-8", "replace") for leaf in found]
    spans = ((leaf.start_point, leaf.end_point) for leaf in found)
    tokens = dict(zip(spans, enumerate(texts), strict=True))
    try:
        flow = sorted(DFG_python(root, tokens, {})[0], key=lambda edge: edge[1])
    except Exception:  # a broken tree; the package, too, takes it for one without a flow
        return []
    linked = {place for edge in flow if edge[4] for place in (edge[1], *edge[4])}
    merged: dict[int, tuple] = {}
    for name, place, relation, _, places in flow:
        if place in linked:
            sources = merged.setdefault(place, (name, place, relation, {}))[3]
            sources |= dict.fromkeys(texts[source] for source in places)
    edges = normalize_dataflow(merged.values())
    return [(name, relation, tuple(names)) for name, relation, names in edges]


def _tokens(node) -> list:
    """The leaves below a syntax node; a string is one token, whatever it consists of."""
    if not node.children or node.type in ("string", "string_literal", "character_literal"):
        return [] if node.type == "comment" else [node]
    return [leaf for child in node.children for leaf in _tokens(child)]


@lru_cache(maxsize=8)
def leaves(text: str) -> tuple[Leaf, ...]:
    """parso's tokens of a text, in order. Parso does not stop at an error, in which generated functions often end."""
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
    """Monitor-guided decoding's metrics (Section 5), None if the reference has nothing to match.

    ``next_identifier``: the first identifiers are equal; ``identifier_sequence``: the common prefix of both identifier
    sequences over the reference's length; ``prefix``: the same over all tokens.
    """
    names = identifiers(prediction), identifiers(reference)
    tokens = [
        [leaf.value for leaf in leaves(text) if leaf.value.strip()]
        for text in (prediction, reference)
    ]

    def common(found, wanted):
        return len(commonprefix([found, wanted])) / len(wanted) if wanted else None

    return {
        "next_identifier": names[0][:1] == names[1][:1] if names[1] else None,
        "identifier_sequence": common(*names),
        "prefix": common(*tokens),
    }
