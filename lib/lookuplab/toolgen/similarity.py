"""Similarity of a generated function to its reference: BLEU-4, CodeBLEU, edit similarity,
identifiers.

Paper, Section IV-C, Table II. BLEU and CodeBLEU are ratios of sums over the functions of a corpus,
so both are computed from the counts of its pairs, for the whole corpus or any part of it.
"""

import keyword
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import itemgetter

import numpy as np
import tree_sitter_python
from rapidfuzz import fuzz
from rapidfuzz.distance import Prefix
from tree_sitter import Language, Node, Parser

from lookuplab.models.store import hashed
from lookuplab.scoring.rates import Array
from lookuplab.toolgen.functions import package_docstring, without_comments
from lookuplab.toolgen.insertion import Location, indented
from lookuplab.toolgen.pairs import MARK
from lookuplab.toolgen.rules import PAPER_RULES, Rules
from lookuplab.toolgen.tokens import is_name, leaves, tokens

ORDERS = (1, 2, 3, 4)
# columns of a judged function, 0 to 1 or None
COLUMNS = ("edit_similarity", "exact_match", "next_identifier", "identifier_sequence", "prefix")
COMPONENTS = ("ngram", "weighted_ngram", "syntax", "dataflow")
# keywords weigh five times as much as other words
KEYWORDS = {*keyword.kwlist, "match", "case", "type"}
PACKAGE_KEYWORDS = {*keyword.kwlist}
# package-2023 uses the keywords of Java
JAVA_KEYWORDS = set(
    """abstract assert boolean break byte case catch char class const continue default do double
    else enum extends final finally float for goto if implements import instanceof int interface
    long native new package private protected public return short static strictfp super switch
    synchronized this throw throws transient try void volatile while""".split()
)
# levels of the highest subtree that is compared as a text; of higher ones, such as no code has, the
# texts would be quadratic in the depth
HIGHEST = 300
PARSER = Parser(Language(tree_sitter_python.language()))


def normalized(text: str) -> str:
    """Return the text with every run of white space as one blank, and none at the ends."""
    return " ".join(text.split())


def blanked(text: str) -> str:
    """Return the text with every string literal reduced to ``''``, as the replication package
    compares it: everything between two equal quotes of a line.
    """
    for quote in "'\"":
        text = re.sub(f"{quote}[^{quote}\n]*{quote}", "''", text)
    return text.strip()


def package_2023_text(location: Location, body: str) -> str:
    """Return the function at ``location`` with another body, as package-2023 compares it: without a
    docstring, with its literals. A mark is removed together with the blanks beside it
    (``returnname``).
    """
    return re.sub(f" ?{MARK} ?", "", f"{without_comments(location.signature)}\n{body}").strip()


def package_text(location: Location, body: str, documented: bool) -> str:
    """Return the function at ``location`` with another body, as the replication package compares
    it.

    Its literals are ``blanked``. After the signature comes the function's own docstring if
    ``documented``: only models that continue a prompt have it in their texts.
    """
    docstring = f"{location.body_indent}'''{package_docstring(location.docstring)}'''"
    parts = without_comments(location.signature), docstring if documented else "", body
    return blanked("\n".join(filter(None, parts)))


def bleu_counts(prediction: Sequence, reference: Sequence) -> list[int]:
    """Return the counts that BLEU needs for a pair of token lists, (10,): matches of orders 1 to 4,
    totals of orders 1 to 4, and both lengths.
    """
    common = _common(_grams(prediction), _grams(reference))
    totals = [max(0, len(prediction) - n + 1) for n in ORDERS]
    return [*map(Counter.total, common), *totals, len(prediction), len(reference)]


def _grams(words: Sequence) -> list[Counter]:
    """Return how often each n-gram occurs, for each of the orders 1 to 4."""
    return [Counter(zip(*(words[at:] for at in range(n)), strict=False)) for n in ORDERS]


def _common(predicted: list[Counter], reference: list[Counter]) -> list[Counter]:
    return [one & other for one, other in zip(reference, predicted, strict=True)]


def bleu(counts: Array) -> Array:
    """Return BLEU-4, 0 to 1, of summed counts (..., 10): the product of ``precision`` and
    ``brevity_penalty``.
    """
    return precision(counts) * brevity_penalty(counts)


def precision(counts: Array) -> Array:
    """Return the geometric mean of the n-gram precisions, smoothed by +1 on every order."""
    matches = counts[..., :4]
    totals = counts[..., 4:8]
    return np.exp(np.log((matches + 1) / (totals + 1)).mean(axis=-1))


def brevity_penalty(counts: Array) -> Array:
    """Return the brevity penalty of the whole corpus, from its two lengths, the last two of the
    counts. It is 0 if the prediction is empty and the reference is not.
    """
    predicted, wanted = counts[..., -2], counts[..., -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        # fmin turns the NaN of two empty texts into a penalty of 1
        return np.exp(np.fmin(0, 1 - wanted / predicted))


@np.errstate(divide="ignore", invalid="ignore")  # an empty prediction has no n-grams
def components(sums: Array) -> Array:
    """Return the COMPONENTS (..., 4) of summed counts (..., 24); NaN for a missing data flow."""
    words = []
    for start, lengths in (0, [16, 17]), (8, [16, 18]):
        matches = sums[..., start : start + 4]
        totals = sums[..., start + 4 : start + 8]
        # an order without a match counts a tenth of one (Chen and Cherry's method 1); all are 0
        # without a common word
        shares = np.exp(np.log(np.where(matches == 0, 0.1, matches) / totals).mean(axis=-1))
        words.append((matches[..., 0] > 0) * shares * brevity_penalty(sums[..., lengths]))
    syntax, flow = sums[..., 19] / sums[..., 20], sums[..., 21] / sums[..., 22]
    return np.stack([*words, syntax, flow], axis=-1)


@np.errstate(invalid="ignore")  # the jackknife leaves nothing of a corpus with one repository
def code_bleu(sums: Array) -> Array:
    """Return CodeBLEU (...) of summed counts (..., 24): the mean of its components; a missing data
    flow is left out.

    By the packages' rules, a missing data flow counts as 0. (The package ``codebleu`` of the Python
    index counts a data flow that is missing or has no match as 1.)
    """
    parts = components(sums)
    parts = np.where(np.isnan(parts) & (sums[..., 23:] > 0), 0, parts)
    return np.nansum(parts, axis=-1) / np.isfinite(parts).sum(axis=-1)


def code_bleu_counts(prediction: str, reference: str, rules: Rules = PAPER_RULES) -> list[float]:
    """Return the counts that CodeBLEU needs for one pair, (24,).

    Both texts are unindented first, so that a body is not broken code. Syntax and data flow leave
    out comments and docstrings, which the packages keep. The counts are: matches and totals of
    n-grams of orders 1 to 4; the same, weighted; both lengths and the length that the package uses
    for a weighted reference; matched and all subtrees of the syntax; matched and all data flows;
    and whether a missing data flow counts.
    """
    keeps = rules.is_package
    keywords = KEYWORDS
    if keeps:
        keywords = JAVA_KEYWORDS if rules.is_first_package else PACKAGE_KEYWORDS
    words, grams, subtrees, edges = _analysis(prediction, keeps)
    wanted_words, wanted_grams, wanted_subtrees, wanted_edges = _analysis(reference, keeps)
    common = _common(grams, wanted_grams)
    matches = [*map(Counter.total, common)]
    totals, weighted = ([max(1, size - n + 1) for n in ORDERS] for size in (words, wanted_words))
    return [
        *matches,
        *totals,
        _weight(common[0], keywords),
        *matches[1:],
        max(1, _weight(wanted_grams[0], keywords)),
        *weighted[1:],
        words,
        wanted_words,
        2,  # the package takes the length of the pair (words, weights), which is 2
        sum(times for tree, times in wanted_subtrees.items() if tree in subtrees),
        wanted_subtrees.total(),
        (wanted_edges & edges).total(),
        wanted_edges.total(),
        rules.is_package,
    ]


def _weight(words: Counter, keywords: set[str]) -> float:
    """Return the weight of words: a keyword weighs 1, another word 0.2. They are added one by one
    because ``sum`` rounds differently from Python 3.12 on.
    """
    weight = 0.0
    for (word,), times in words.items():
        weight += times * (1 if word in keywords else 0.2)
    return weight


@lru_cache(maxsize=2048)  # a reference is compared with the predictions of all models
def _analysis(text: str, commented: bool) -> tuple[int, list[Counter], Counter, Counter]:
    """Return the number of words of a text, its n-grams, and the subtrees and data flows of its
    syntax.
    """
    text = indented(text, "").strip()
    words = text.split()
    code = text if commented else uncommented(text)
    root = PARSER.parse(code.encode("utf-8", "replace")).root_node  # broken code has a tree, too
    nodes = [root]
    children = []  # of each node, where they stand
    for node in nodes:  # the list grows while it is read, so this reaches all descendants
        children.append(range(len(nodes), len(nodes) + node.child_count))
        nodes += node.children
    heights = [0] * len(nodes)
    names = [""] * len(nodes)
    for at in reversed(range(len(nodes))):
        heights[at] = max((heights[one] + 1 for one in children[at]), default=0)
        if heights[at] <= HIGHEST:
            names[at] = str(nodes[at])
        else:
            names[at] = hashed(" ".join([nodes[at].type, *(names[one] for one in children[at])]))
    subtrees = Counter(names[at] for at in range(len(nodes)) if heights[at] or not at)
    return len(words), _grams(words), subtrees, Counter(_flow(root))


def uncommented(text: str) -> str:
    """Return a text without comments, docstrings and blank lines, as ``codebleu`` removes them;
    unchanged if it cannot be tokenised. Lines joined by a backslash become one.
    """
    kept: list[str] = []
    at = 0
    before = "indent"
    try:
        for kind, start, end in tokens(text):
            if kind != "joined":
                opens = before in ("indent", "newline") or text[start - 1 : start] in ("", "\n")
                dropped = kind == "comment" or (kind == "string" and opens)
                kept += " " * (start - at), "" if dropped else text[start:end]
                before = kind
            at = end
    except SyntaxError:
        return text
    return "\n".join(filter(str.strip, "".join(kept).split("\n")))


Span = tuple[int, int, str]  # first byte, byte after the last, text
Edge = tuple[Span, str, list[Span]]  # a variable, "comesFrom" or "computedFrom", the sources
Definitions = dict[str, list[Span]]  # name -> the places where it got its value


def _variables(node: Node) -> list[Span]:
    """Return the tokens below a node, in order, without keywords, signs and comments. A string is
    one token.
    """
    spans: list[Span] = []
    if node.children and node.type != "string":
        for child in node.children:
            spans += _variables(child)
    else:
        text = (node.text or b"").decode("utf-8", "replace")
        if node.type not in ("comment", text):
            spans.append((*node.byte_range, text))
    return spans


def _flow(root: Node) -> Iterator[tuple]:
    """Yield the normalised data flow: variables numbered by first appearance.

    This is the package's analysis (MIT License, Microsoft and Konstantin Chernyshev) with two
    corrections. The package merges the sources of a variable through sets of strings, so that its
    numbers vary with Python's hash seed; here they are ordered by place. It also cuts tokens by
    bytes, which goes wrong after non-ASCII text.
    """
    edges: list[Edge] = []
    try:
        _follow(root, {}, edges)
    except Exception:  # a broken or very deep tree, which the package cannot follow either
        return
    edges.sort(key=itemgetter(0))
    linked = {span for edge in edges if edge[2] for span in (edge[0], *edge[2])}
    merged: dict[tuple, tuple] = {}
    for span, relation, sources in edges:
        if span in linked:
            defined = merged.setdefault(span, (relation, {}))[1]
            defined |= dict.fromkeys(text for *_, text in sources)
    numbers: dict[str, int] = defaultdict(lambda: len(numbers))
    for (*_, name), (relation, sources) in merged.items():
        given = tuple(numbers[source] for source in sources)
        yield numbers[name], relation, given


def _follow(node: Node, defined: Definitions, edges: list[Edge]) -> Definitions:
    """Add the origins of the values below a node to ``edges``. Return the names ``defined`` after
    it, given those defined before.
    """
    match node.type:
        case "assignment" | "augmented_assignment":
            if node.child_by_field_name("right") is None:
                return defined
            return _assigned(*_sides(node), defined, edges)
        case "default_parameter":
            sources: list[list[Span]] = [[]]
            if value := node.child_by_field_name("value"):
                defined = _follow(value, defined, edges)
                sources = [[span] for span in _variables(value)]
            targets = _variables(_field(node, "name"))
            edges += [(span, "comesFrom", source) for span in targets for source in sources]
            return defined | {span[-1]: [span] for span in targets}
        case "for_in_clause":
            return _assigned([_field(node, "left")], node.children[-1:], defined, edges)
        case "if_statement":
            return _branches(node, defined, edges)
        case "for_statement" | "while_statement":
            return _loop(node, defined, edges)
    if node.children and node.type != "string":
        clauses_first = sorted(node.children, key=lambda child: child.type != "for_in_clause")
        return _visit(clauses_first, defined, edges)
    for span in _variables(node):
        edges.append((span, "comesFrom", defined.get(span[-1], [])))
        if node.type == "identifier":
            defined = {span[-1]: [span]} | defined
    return defined


def _visit(nodes: Sequence[Node], defined: Definitions, edges: list[Edge]) -> Definitions:
    for node in nodes:
        defined = _follow(node, defined, edges)
    return defined


def _assigned(
    targets: Sequence[Node], values: Sequence[Node], defined: Definitions, edges: list[Edge]
) -> Definitions:
    defined = _visit(values, defined, edges)
    for target, value in zip(targets, values, strict=True):
        spans, sources = _variables(target), _variables(value)
        edges += [(span, "computedFrom", sources) for span in spans]
        defined = defined | {span[-1]: [span] for span in spans}
    return defined


def _branches(node: Node, before: Definitions, edges: list[Edge]) -> Definitions:
    ends = []
    defined = before
    for child in node.children:
        if child.type in ("elif_clause", "else_clause"):
            ends.append(_follow(child, before, edges))
        else:
            defined = _follow(child, defined, edges)
    ends.append(defined)
    if not any("else" in child.type for child in node.children):
        ends.append(before)
    return {
        name: sorted({span for end in ends for span in end.get(name, ())})
        for name in set().union(*ends)
    }


def _loop(node: Node, defined: Definitions, edges: list[Edge]) -> Definitions:
    start = len(edges)
    inside = node.children
    for _ in range(2):  # a second pass, because a loop may use values of its previous round
        if node.type == "for_statement":
            defined = _assigned(*_sides(node), defined, edges)
            inside = [child for child in node.children[-1:] if child.type == "block"]
        defined = _visit(inside, defined, edges)
    merged: dict[tuple[Span, str], set[Span]] = defaultdict(set)
    for span, relation, sources in edges[start:]:
        merged[span, relation].update(sources)
    edges[start:] = [(*key, sorted(sources)) for key, sources in merged.items()]
    return defined


def _field(node: Node, name: str) -> Node:
    """Return a child by its name. Raises LookupError if a broken tree does not have it."""
    child = node.child_by_field_name(name)
    if child is None:
        raise LookupError(name)
    return child


def _sides(node: Node) -> tuple[list[Node], list[Node]]:
    """Return the targets of an assignment and as many values; if the numbers differ, each side as a
    whole. Raises LookupError.
    """
    left, right = (_field(node, name) for name in ("left", "right"))
    targets, values = ([one for one in side.children if one.type != ","] for side in (left, right))
    if not targets or len(targets) != len(values):
        return [left], [right]
    if "string" in (left.type, right.type):
        # the package looks up a string's quotes as names, too, and does not find them
        raise LookupError("string")
    return targets, values


@lru_cache(maxsize=4096)  # every model's answers are compared with the same references
def identifiers(text: str) -> list[str]:
    """Return all identifiers of a text, with repetitions, except in plain strings and comments."""
    return [leaf.value for leaf in leaves(text) if is_name(leaf)]


@lru_cache(maxsize=4096)
def _code(text: str) -> list[str]:
    """Return all tokens of a text."""
    return [leaf.value for leaf in leaves(text) if leaf.value.strip()]


def similarities(
    body: str, original_body: str, text: str, original_text: str, rules: Rules
) -> dict[str, float | None]:
    """Return the COLUMNS of a generated function and its original, from their bodies and from the
    texts that ``rules`` compare.

    ``edit_similarity`` is rapidfuzz's ratio of the white-space-normalised texts, rounded by the
    rules; the paper's EditSim is its mean. ``exact_match``: they are equal. The others are those of
    monitor-guided decoding (its Section 5): whether the first identifiers are equal
    (``next_identifier``); the length of the common prefix of both identifier sequences, divided by
    the original's length (``identifier_sequence``); and the same over all tokens (``prefix``). None
    if the original has no such part.
    """
    texts = normalized(text), normalized(original_text)
    written, original = identifiers(body), identifiers(original_body)
    return {
        "edit_similarity": round(fuzz.ratio(*texts) / 100, 2 if rules.is_package else 6),
        "exact_match": texts[0] == texts[1],
        "next_identifier": written[:1] == original[:1] if original else None,
        "identifier_sequence": _common_share(written, original),
        "prefix": _common_share(_code(body), _code(original_body)),
    }


def _common_share(written: list[str], original: list[str]) -> float | None:
    return Prefix.similarity(written, original) / len(original) if original else None
