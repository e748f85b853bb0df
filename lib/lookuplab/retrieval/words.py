"""The words of queries, descriptions and code, as Heyman and Van Cutsem's code search reads them (nokia/codesearch).

They lemmatise with spaCy's English model, which no package registry offers; here the subwords of fastText have to see
that "columns" and "column" are near.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import tree_sitter_python
from tree_sitter import Language, Node, Parser

STOP_WORDS = frozenset("""
    a an the this that these those it its i me my we our you your he she they them their there here is are was were be
    been being am do does did doing have has had having will would shall should can could may might must of in on at by
    to from with without into onto for as and or but if then than so such how what which who whom whose when while why
    also very just some any please want need
""".split())
HOW_TO = re.compile(r"^\s*(how to|how do (i|you)|how does one|(the )?best way to|(how )?can (you|i))\s+", re.I)
BINARY_OPERATORS = frozenset("< > + - / // * ** @ %".split())
OPERATIONS = frozenset({"binary_operator", "comparison_operator"})
LOOPS = frozenset({"for", "while"})
_WORD = re.compile(r"[A-Za-z0-9_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z]+|[A-Z]")


def identifier_words(name: str) -> list[str]:
    """The words of a snake_case or camelCase name, lower-cased, digits at its end taken off.

    ``getHTTPResponse`` -> get, http, response; ``__init__`` -> init; ``_`` -> nothing.
    """
    name = name.strip("_").rstrip("0123456789")
    return [word.lower() for part in name.split("_") for word in _CAMEL.findall(part)]


def query_words(text: str) -> list[str]:
    """The words of a question, a description or a comment: without "how to", stop words, numbers and punctuation.

    Names of code are split as in code, so that ``read_csv`` in a question meets ``read_csv`` in a snippet.
    """
    words = (word for name in _WORD.findall(HOW_TO.sub("", text)) for word in identifier_words(name))
    return [word for word in words if word not in STOP_WORDS]


def code_words(code: str) -> list[str]:
    """The words of Python code: its comments and identifiers, loops and binary operators, in the order of the code.

    Literals, docstrings and all other keywords and punctuation are dropped. Code that does not parse (Python 2, a
    fragment, a console session) gives the words of the parts that do.
    """
    return [word for node in _leaves(_parser().parse(code.encode()).root_node) for word in _words_of(node)]


def _words_of(node: Node) -> list[str]:
    if node.type == "identifier":
        return identifier_words(node.text.decode(errors="replace"))
    if node.type == "comment":
        return query_words(node.text.decode(errors="replace"))
    operator = node.type in BINARY_OPERATORS and node.parent.type in OPERATIONS
    return [node.type] if operator or node.type in LOOPS else []


def _leaves(root: Node) -> Iterator[Node]:
    """Nodes without children, in the order of the code; an explicit stack, because expressions nest deeply."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.children:
            stack.extend(reversed(node.children))
        else:
            yield node


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_python.language()))
