"""Compares a generated function with its reference by BLEU-4, CodeBLEU, edit similarity,
identifiers and the coverage of dependencies.

The measures are those of the paper's Section IV-C and Table II. BLEU and CodeBLEU of a corpus are
computed from sums over its functions. For a pair of functions, this module therefore returns counts
instead of scores. From the sums of these counts, ``bleu`` and ``code_bleu`` compute the scores of
the whole corpus or of any part of it.

Dependency coverage (Table III): the dependencies of a reference are its expressions (calls,
attribute accesses) that Jedi traces to a definition inside the repository
(``evaluation.dependencies_of``). The coverage is the share of these expressions that the generated
function also contains. Expressions are compared by their keys, which omit arguments and the
contents of subscripts. For example, ``foo(bar).a[i].b`` has the keys ``foo``, ``bar``, ``foo().a``,
``i`` and ``foo().a[].b``. A reference without dependencies gives no coverage; the number of such
references is reported. The replication packages do not use Jedi for this. They extract the keys
from the marked words with regular expressions (``package_coverage``, ``package_2023_coverage``).
"""

import keyword
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from operator import itemgetter

import numpy as np
import tree_sitter_python
from parso.python.tree import Name
from parso.tree import NodeOrLeaf
from rapidfuzz import fuzz
from rapidfuzz.distance import Prefix
from tree_sitter import Language, Node, Parser

from lookuplab.paths import hashed
from lookuplab.scoring.rates import Array
from lookuplab.toolgen.functions import package_docstring, without_comments
from lookuplab.toolgen.rules import MARK, PAPER_RULES, Rules
from lookuplab.toolgen.source import (
    Location,
    Token,
    code_tokens,
    is_identifier,
    leaves,
    names_of_match,
    reindent,
    tokens,
)

# 1. Texts and words

ORDERS = (1, 2, 3, 4)
# the columns that ``similarities`` returns for a judged function; values are 0 to 1 or None
COLUMNS = ("edit_similarity", "exact_match", "next_identifier", "identifier_sequence", "prefix")
COMPONENTS = ("ngram", "weighted_ngram", "syntax", "dataflow")
# in CodeBLEU, keywords weigh five times as much as other words
KEYWORDS = {*keyword.kwlist, "match", "case", "type"}
PACKAGE_KEYWORDS = {*keyword.kwlist}
# the CodeBLEU of package-2023 uses the keywords of Java, although it compares Python
JAVA_KEYWORDS = set(
    """abstract assert boolean break byte case catch char class const continue default do double
    else enum extends final finally float for goto if implements import instanceof int interface
    long native new package private protected public return short static strictfp super switch
    synchronized this throw throws transient try void volatile while""".split()
)
# Subtrees of up to this height are compared by their text. Higher subtrees, which ordinary code
# does not have, are compared by a hash, because the total length of their texts would grow with the
# square of the depth.
HIGHEST = 300
PARSER = Parser(Language(tree_sitter_python.language()))


def blank_strings(text: str) -> str:
    """Return the text with every string literal replaced by ``''``. package-2024 compares such
    texts. As in the package, a literal is anything between two equal quotes on one line.
    """
    for quote in "'\"":
        text = re.sub(f"{quote}[^{quote}\n]*{quote}", "''", text)
    return text.strip()


def package_2023_text(location: Location, body: str) -> str:
    """Return the text that package-2023 compares: the signature of the function at ``location`` and
    the given body, without a docstring. String literals stay. As in the package, the token MARK
    is removed together with the blanks around it: ``return <COMP>name`` becomes ``returnname``.
    """
    return re.sub(f" ?{MARK} ?", "", f"{without_comments(location.signature)}\n{body}").strip()


def package_text(location: Location, body: str, documented: bool) -> str:
    """Return the text that package-2024 compares: the signature of the function at ``location`` and
    the given body, with string literals replaced by ``''`` (``blank_strings``).

    If ``documented`` is True, the function's own docstring is put between signature and body. This
    is for models that continue a prompt, because their texts contain the docstring.
    """
    docstring = f"{location.body_indent}'''{package_docstring(location.docstring)}'''"
    parts = without_comments(location.signature), docstring if documented else "", body
    return blank_strings("\n".join(filter(None, parts)))


def bleu_counts(prediction: Sequence, reference: Sequence) -> list[int]:
    """Return the ten counts that BLEU needs for a pair of token lists: for n from 1 to 4, the
    number of n-grams of the prediction that match the reference; for n from 1 to 4, the number of
    all n-grams of the prediction; and the lengths of the prediction and of the reference.
    """
    common = _common(_grams(prediction), _grams(reference))
    totals = [max(0, len(prediction) - n + 1) for n in ORDERS]
    return [*map(Counter.total, common), *totals, len(prediction), len(reference)]


def _grams(words: Sequence) -> list[Counter]:
    """Return four Counters of how often each n-gram occurs in ``words``, for n from 1 to 4."""
    return [Counter(zip(*(words[at:] for at in range(n)), strict=False)) for n in ORDERS]


def _common(predicted: list[Counter], reference: list[Counter]) -> list[Counter]:
    """Return four Counters of how often each n-gram occurs in both texts, for n from 1 to 4."""
    return [one & other for one, other in zip(reference, predicted, strict=True)]


def bleu(counts: Array) -> Array:
    """Return BLEU-4, from 0 to 1: the product of ``precision`` and ``brevity_penalty``. ``counts``
    are sums of ``bleu_counts`` over pairs, (..., 10).
    """
    return precision(counts) * brevity_penalty(counts)


def precision(counts: Array) -> Array:
    """Return the geometric mean of the precisions of n-grams for n from 1 to 4. Each precision is
    smoothed: 1 is added to the number of matches and to the total. ``counts`` are as in ``bleu``.
    """
    matches = counts[..., :4]
    totals = counts[..., 4:8]
    return np.exp(np.log((matches + 1) / (totals + 1)).mean(axis=-1))


def brevity_penalty(counts: Array) -> Array:
    """Return the brevity penalty, from 0 to 1, of the whole corpus. The last two ``counts`` are the
    summed lengths of predictions and of references. The penalty is 0 if all predictions are empty
    and the references are not.
    """
    predicted, wanted = counts[..., -2], counts[..., -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        # two empty texts give NaN here, which fmin replaces by 0, for a penalty of exp(0) = 1
        return np.exp(np.fmin(0, 1 - wanted / predicted))


# 0 / 0 needs no warning: some sums are 0 without data flow, and all sums are 0 without functions
@np.errstate(divide="ignore", invalid="ignore")
def components(sums: Array) -> Array:
    """Return the four COMPONENTS of CodeBLEU, (..., 4). ``sums`` are sums of ``code_bleu_counts``
    over pairs, (..., 24). The component "dataflow" is NaN if the references have no data flow.
    """
    words = []
    for start, lengths in (0, [16, 17]), (8, [16, 18]):
        matches = sums[..., start : start + 4]
        totals = sums[..., start + 4 : start + 8]
        # If no n-gram matches for some n, a tenth of a match is counted (Chen and Cherry's method
        # 1). If not even a word matches, the component is 0.
        shares = np.exp(np.log(np.where(matches == 0, 0.1, matches) / totals).mean(axis=-1))
        words.append((matches[..., 0] > 0) * shares * brevity_penalty(sums[..., lengths]))
    syntax, flow = sums[..., 19] / sums[..., 20], sums[..., 21] / sums[..., 22]
    return np.stack([*words, syntax, flow], axis=-1)


# 0 / 0 needs no warning: all sums are 0 if the jackknife leaves out a corpus's only repository
@np.errstate(invalid="ignore")
def code_bleu(sums: Array) -> Array:
    """Return CodeBLEU, the mean of its four ``components``: (...) for ``sums`` of shape (..., 24).

    If the references have no data flow, the result is the mean of the other three components. By
    the rules of the replication packages, it is the mean of all four, and the data flow is 0. (The
    package ``codebleu`` on PyPI uses 1 if the data flow is missing or has no match.)
    """
    parts = components(sums)
    # sums[..., 23] is above 0 under the packages' rules, where a missing data flow counts as 0
    parts = np.where(np.isnan(parts) & (sums[..., 23:] > 0), 0, parts)
    return np.nansum(parts, axis=-1) / np.isfinite(parts).sum(axis=-1)


def code_bleu_counts(prediction: str, reference: str, rules: Rules = PAPER_RULES) -> list[float]:
    """Return the 24 counts that CodeBLEU needs for one pair of texts.

    Both texts are unindented first, because an indented body would be broken code. By the paper's
    rules, comments and docstrings are removed before syntax and data flow are compared. By the
    rules of the replication packages, they stay. The counts are, by index:

    - 0 to 3: for n from 1 to 4, how many n-grams of the prediction are also in the reference.
    - 4 to 7: for n from 1 to 4, the number of all n-grams of the prediction.
    - 8 to 15: the same for the component "weighted_ngram", with two differences. For n = 1,
      keywords weigh more than other words. The last four count the n-grams of the reference.
    - 16 to 18: the length of the prediction, the length of the reference, and the length of the
      reference that the package uses for the component "weighted_ngram".
    - 19 and 20: how many of the reference's subtrees the prediction also has, and how many subtrees
      the reference has.
    - 21 and 22: the same for data flows.
    - 23: 1 if a missing data flow counts as 0, else 0.
    """
    keeps = rules.is_package
    keywords = KEYWORDS
    if keeps:
        keywords = JAVA_KEYWORDS if rules.is_package_2023 else PACKAGE_KEYWORDS
    words, grams, subtrees, edges = _analyse(prediction, keeps)
    wanted_words, wanted_grams, wanted_subtrees, wanted_edges = _analyse(reference, keeps)
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
        2,  # by mistake, the package takes the length of the pair (words, weights), which is 2
        sum(times for tree, times in wanted_subtrees.items() if tree in subtrees),
        wanted_subtrees.total(),
        (wanted_edges & edges).total(),
        wanted_edges.total(),
        rules.is_package,
    ]


def _weight(words: Counter, keywords: set[str]) -> float:
    """Return the summed weight of words: a keyword weighs 1, any other word 0.2. The weights are
    added in a loop, because Python 3.12 changed how ``sum`` rounds.
    """
    weight = 0.0
    for (word,), times in words.items():
        weight += times * (1 if word in keywords else 0.2)
    return weight


@lru_cache(maxsize=2048)  # a reference is compared with the predictions of all models
def _analyse(text: str, commented: bool) -> tuple[int, list[Counter], Counter, Counter]:
    """Analyse a text for CodeBLEU. Return the number of its words, its n-grams (see ``_grams``), a
    Counter of its syntactic subtrees and a Counter of its data flows. If ``commented`` is True, the
    syntax includes comments and docstrings.
    """
    text = reindent(text, "").strip()
    words = text.split()
    code = text if commented else strip_comments(text)
    root = PARSER.parse(code.encode("utf-8", "replace")).root_node  # even broken code has a tree
    nodes = [root]
    children = []  # for each node, the indices of its children in ``nodes``
    for node in nodes:  # the loop reaches all descendants, because it appends them to the list
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


def strip_comments(text: str) -> str:
    """Return a text without comments, docstrings and blank lines. These are found in the same way
    as in the package ``codebleu``. Lines that a backslash joins become one line. A text that cannot
    be tokenised is returned unchanged.
    """
    kept: list[str] = []
    at = 0
    before = "indent"
    try:
        for kind, start, end in tokens(text):
            if kind != "joined":
                # a string at the beginning of a statement is a docstring
                opens = before in ("indent", "newline") or text[start - 1 : start] in ("", "\n")
                dropped = kind == "comment" or (kind == "string" and opens)
                kept += " " * (start - at), "" if dropped else text[start:end]
                before = kind
            at = end
    except SyntaxError:
        return text
    return "\n".join(filter(str.strip, "".join(kept).split("\n")))


Span = tuple[int, int, str]  # (first byte, byte after the last one, text) of a token
Edge = tuple[Span, str, list[Span]]  # (variable, "comesFrom" or "computedFrom", its sources)
Definitions = dict[str, list[Span]]  # a variable's name -> the places where it got its value


def _variables(node: Node) -> list[Span]:
    """Return the tokens below a node in the order of the text, without keywords, operators,
    punctuation and comments. (Literals are included, as in the package ``codebleu``.) A string is
    one token.
    """
    spans: list[Span] = []
    if node.children and node.type != "string":
        for child in node.children:
            spans += _variables(child)
    else:
        text = (node.text or b"").decode("utf-8", "replace")
        # the type of a keyword, an operator or punctuation is its own text
        if node.type not in ("comment", text):
            spans.append((*node.byte_range, text))
    return spans


def _flow(root: Node) -> Iterator[tuple]:
    """Yield the normalised data flow of a syntax tree as (variable, relation, sources). Variables
    are numbered in the order of their first appearance.

    The analysis is that of the package ``codebleu`` (MIT License, Microsoft and Konstantin
    Chernyshev) with two corrections. The package merges the sources of a variable in sets of
    strings, so its results vary with Python's hash seed; here sources are ordered by position. The
    package also cuts tokens out of the text by byte positions, which gives wrong tokens after
    non-ASCII characters; here they are right.
    """
    edges: list[Edge] = []
    try:
        _follow(root, {}, edges)
    except Exception:  # the tree is broken or very deep, and the package fails on it as well
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
    """Follow the data flow below a node, and append the origin of each value to ``edges``.
    ``defined`` has the definitions that are valid before the node. Return the definitions that are
    valid after the node.
    """
    match node.type:
        case "assignment" | "augmented_assignment":
            if node.child_by_field_name("right") is None:
                return defined
            return _follow_assignment(*_sides(node), defined, edges)
        case "default_parameter":
            sources: list[list[Span]] = [[]]
            if value := node.child_by_field_name("value"):
                defined = _follow(value, defined, edges)
                sources = [[span] for span in _variables(value)]
            targets = _variables(_field(node, "name"))
            edges += [(span, "comesFrom", source) for span in targets for source in sources]
            return defined | {span[-1]: [span] for span in targets}
        case "for_in_clause":
            return _follow_assignment([_field(node, "left")], node.children[-1:], defined, edges)
        case "if_statement":
            return _follow_if(node, defined, edges)
        case "for_statement" | "while_statement":
            return _follow_loop(node, defined, edges)
    if node.children and node.type != "string":
        # The ``for`` clauses of a comprehension come first, because they define the variables that
        # the expression before them uses.
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


def _follow_assignment(
    targets: Sequence[Node], values: Sequence[Node], defined: Definitions, edges: list[Edge]
) -> Definitions:
    """Follow an assignment, as ``_follow`` does. Each target gets the value at the same index."""
    defined = _visit(values, defined, edges)
    for target, value in zip(targets, values, strict=True):
        spans, sources = _variables(target), _variables(value)
        edges += [(span, "computedFrom", sources) for span in spans]
        defined = defined | {span[-1]: [span] for span in spans}
    return defined


def _follow_if(node: Node, before: Definitions, edges: list[Edge]) -> Definitions:
    """Follow an if statement, as ``_follow`` does. After the statement, a name has all definitions
    that it has at the end of any branch.
    """
    ends = []
    defined = before
    for child in node.children:
        if child.type in ("elif_clause", "else_clause"):
            ends.append(_follow(child, before, edges))
        else:
            defined = _follow(child, defined, edges)
    ends.append(defined)
    # without an else, possibly no branch runs, and the definitions before the statement stay valid
    if not any("else" in child.type for child in node.children):
        ends.append(before)
    return {
        name: sorted({span for end in ends for span in end.get(name, ())})
        for name in set().union(*ends)
    }


def _follow_loop(node: Node, defined: Definitions, edges: list[Edge]) -> Definitions:
    """Follow a for or while statement, as ``_follow`` does."""
    start = len(edges)
    inside = node.children
    for _ in range(2):  # twice, because a loop may use values from its previous iteration
        if node.type == "for_statement":
            defined = _follow_assignment(*_sides(node), defined, edges)
            inside = [child for child in node.children[-1:] if child.type == "block"]
        defined = _visit(inside, defined, edges)
    merged: dict[tuple[Span, str], set[Span]] = defaultdict(set)
    for span, relation, sources in edges[start:]:
        merged[span, relation].update(sources)
    edges[start:] = [(*key, sorted(sources)) for key, sources in merged.items()]
    return defined


def _field(node: Node, name: str) -> Node:
    """Return the child of a node that has this field name. Raises LookupError if there is no such
    child, as in the tree of broken code.
    """
    child = node.child_by_field_name(name)
    if child is None:
        raise LookupError(name)
    return child


def _sides(node: Node) -> tuple[list[Node], list[Node]]:
    """Return (targets, values) of an assignment, or of the head of a loop. If there are not as many
    targets as values, each side is returned as a whole. Raises LookupError if a side is missing, or
    if there are as many targets as values and a side is a string.
    """
    left, right = (_field(node, name) for name in ("left", "right"))
    targets, values = ([one for one in side.children if one.type != ","] for side in (left, right))
    if not targets or len(targets) != len(values):
        return [left], [right]
    if "string" in (left.type, right.type):
        # ``codebleu`` takes the quotes of a string for variables. It therefore fails here, and
        # counts no data flow for the whole text. After this error, ``_flow`` does the same.
        raise LookupError("string")
    return targets, values


@lru_cache(maxsize=4096)  # every model's answers are compared with the same references
def identifiers(text: str) -> list[str]:
    """Return all identifiers in a text, with repetitions. Strings and comments contain no
    identifiers, except for the expressions in f-strings.
    """
    return [leaf.value for leaf in leaves(text) if is_identifier(leaf)]


def similarities(
    body: str, original_body: str, text: str, original_text: str, rules: Rules
) -> dict[str, float | None]:
    """Return the COLUMNS for a generated function and its original. ``text`` and ``original_text``
    are the texts that the ``rules`` compare (bodies or whole functions).

    - ``edit_similarity``: rapidfuzz's ratio of the two texts after white space is normalised. The
      ratio is rounded to six digits, or to two by a replication package's rules. The paper's
      EditSim is the mean of this column.
    - ``exact_match``: whether the normalised texts are equal.

    The other columns compare the bodies, as the paper on monitor-guided decoding does (Section 5).
    Each of these columns is None if the original has no identifiers (or no tokens, for ``prefix``).

    - ``next_identifier``: whether the first identifiers are equal.
    - ``identifier_sequence``: the length of the common prefix of the two sequences of identifiers,
      divided by the length of the original's sequence.
    - ``prefix``: the same for the sequences of all tokens.
    """
    texts = [" ".join(one.split()) for one in (text, original_text)]
    written, original = identifiers(body), identifiers(original_body)
    return {
        "edit_similarity": round(fuzz.ratio(*texts) / 100, 2 if rules.is_package else 6),
        "exact_match": texts[0] == texts[1],
        "next_identifier": written[:1] == original[:1] if original else None,
        "identifier_sequence": _common_share(written, original),
        "prefix": _common_share(code_tokens(body), code_tokens(original_body)),
    }


def _common_share(written: list[str], original: list[str]) -> float | None:
    return Prefix.similarity(written, original) / len(original) if original else None


# 2. Dependencies

BRACKETS = {")": "(", "]": "[", "}": "{"}
# parso's types of the nodes, apart from imports, in which names may be defined
BINDING = "expr_stmt sync_comp_for with_stmt for_stmt param del_stmt namedexpr_test".split()
AUGMENTED = "+= -= *= /= //= %= @= &= |= ^= >>= <<= **=".split()


def expressions(text: str) -> list[Token]:
    """Return the name and attribute expressions of a text, in order. The text may be broken code.
    An expression is returned as a Token, which has the expression's key as its text and the
    position of the last name (for ``a.b``, the position of ``b``).

    Names that are defined in the text, names of keyword arguments, and imports are left out. A name
    that is declared ``global`` or ``nonlocal`` is defined elsewhere, even if the text assigns it.
    """
    tokens = [leaf for leaf in leaves(text) if leaf.value]
    values = ["", *(leaf.value for leaf in tokens), ""]  # the value of token n is values[n + 1]
    # index of a token (a name or a closing bracket) -> the expression that ends with this token
    keys: dict[int, str] = {}
    opening: list[int] = []
    defined = names_of_match(text)
    # pairs (function, name that is declared global or nonlocal in this function)
    declared: set[tuple[NodeOrLeaf | None, str]] = set()
    uses: list[Token] = []
    bound = cache(lambda node: {*map(id, node.get_defined_names())})

    def is_definition(name: Name) -> bool:
        """Return ``name.is_definition()``. To be fast, list each statement's names only once."""
        if name.parent and name.parent.type in ("funcdef", "classdef", "except_clause"):
            return name.is_definition()
        node = name.search_ancestor(*BINDING, "suite")
        return node is not None and node.type != "suite" and id(name) in bound(node)

    for at, leaf in enumerate(tokens):
        before, value, behind = values[at : at + 3]
        if value in BRACKETS.values():
            opening.append(at)
        elif value in BRACKETS and opening and values[opening[-1] + 1] == BRACKETS[value]:
            start = opening.pop()
            if start - 1 in keys and value != "}":
                keys[at] = keys[start - 1] + BRACKETS[value] + value
        elif is_identifier(leaf):
            keys[at] = value if before != "." else f"{keys.get(at - 2, '()')}.{value}"
            if leaf.search_ancestor("import_name", "import_from"):
                continue
            function = leaf.search_ancestor("funcdef")
            if leaf.parent and leaf.parent.type in ("global_stmt", "nonlocal_stmt"):
                declared.add((function, value))
            is_bound = (
                # parso knows no definition in ``f(x := 1)`` and ``with (a as x, b as y)``
                behind == ":="
                or (before == "as" and behind not in (".", "(", "["))
                # ``x += 1`` does not count as a definition, because it also reads x
                or (isinstance(leaf, Name) and is_definition(leaf) and behind not in AUGMENTED)
            )
            if is_bound:
                if before != "." and (function, value) not in declared:
                    defined.add(value)
            # any other name is a use, unless it is the name of a keyword argument
            elif not (
                behind == "="
                and before in ("(", ",")
                and leaf.search_ancestor("arglist", "argument", "trailer")
            ):
                uses.append(Token(*leaf.start_pos, keys[at]))
    return [use for use in uses if use.text not in defined]


def count_covered(dependencies: Sequence[str], prediction: str) -> int:
    """Return how many of the reference's ``dependencies`` (keys) the predicted body also uses."""
    return len(set(dependencies) & {expression.text for expression in expressions(prediction)})


# matches a marked word and, if the word follows a dot, the name before the dot
MARKED_WORD = rf"\W(\w+\.)*{re.escape(MARK)}(\w+)\s*(?:[^\w.=]|$)"
# the pattern by which package-2024 recognises a local or imported name; {0} is the first part of
# the key, {1} the whole key
LOCAL_2024 = r"\s{0}(\W+\w+)*\s*=|as\s+{0}\s*:|for\s+{0}(\W+\w+)*\s+in|from\s+{1}(\W+\w+)*\s+import"


def package_coverage(marked: str, signature: str, prediction: str) -> dict[str, int]:
    """Return {"dependencies": number, "covered": number}, as package-2024 counts dependencies.
    Dependencies are the marked words of a reference that look neither like a parameter nor
    like a local or imported name. A dependency is covered if the prediction contains it.

    ``marked`` is the reference with its marks, ``prediction`` a whole function
    (``package_text``). The package's peculiarities are kept: names of libraries count; a
    marked word is missed if there is only a bracket between the previous marked word and it; ``==``
    counts as an assignment; and a mark is removed together with the blank before it. If a reference
    has no dependencies, the package divides by zero; here both numbers are 0.
    """
    plain = re.sub(f" {MARK} ?", "", marked)
    keys = set()
    for match in re.finditer(MARKED_WORD, marked):
        key = (match[1] or "") + match[2]
        name = key.partition(".")[0]
        parameter = name == key and _has_word(signature, name)
        if not (parameter or re.search(LOCAL_2024.format(name, re.escape(key)), plain)):
            keys.add(key)
    return {"dependencies": len(keys), "covered": sum(_has_word(prediction, key) for key in keys)}


# the pattern by which package-2023 recognises a local name
LOCAL_2023 = r"\s+{0}\s*=|as\s+{0}\s*:|for\s+\W*{0}\W*\s+in"


def package_2023_coverage(marked: str, signature: str, prediction: str) -> dict[str, int]:
    """Return {"dependencies": number, "covered": number}, as package-2023 counts dependencies.
    Dependencies are the marked words of a reference that look neither like a local name nor like a
    parameter. Of ``a.b``, the dependency is only ``b``. A dependency is covered if the prediction
    contains it outside string literals.
    """
    keys = {
        key
        for key in re.findall(rf"{re.escape(MARK)}(\w+)(?:\W|$)", marked)
        if not re.search(LOCAL_2023.format(key), marked) and not _has_word(signature, key)
    }
    bare = re.sub('"(.*?)"', "", re.sub("'(.*?)'", "", prediction))
    return {"dependencies": len(keys), "covered": sum(_has_word(bare, key) for key in keys)}


def _has_word(text: str, word: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))
