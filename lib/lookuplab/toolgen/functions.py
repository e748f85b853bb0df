"""Functions with docstrings: extracted from a repository at exact positions, with a reason for each left out.

Lines count from 1 and columns from 0, in characters, in the file's text with ``\\n`` line ends and without a byte order
mark. Identifiers inside f-strings belong to a string literal and are no tokens of their own (as in Python 3.11).
"""

import ast
import keyword
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lookuplab.toolgen.files import LeftOut, Parsed, Repository, column_of, parse, python_files
from lookuplab.toolgen.filters import Filters, docstring_reason, first_sentence, is_trivial, size_reason

_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_FSTRING = [getattr(tokenize, f"FSTRING_{part}", -1) for part in ("START", "END")]
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Token:
    """One token of a function, where it begins in its file."""

    line: int
    column: int
    text: str
    is_name: bool


@dataclass(frozen=True)
class Function:
    """One function. ``source``, ``signature`` and ``body`` are without ``indent``, the whitespace before ``def``."""

    id: str  # "<repository>/<file>:<qualified name>#<line>", unique and the same wherever the repository lies
    repository: str
    root: Path = field(repr=False)
    file: str  # relative to root, with slashes
    line: int  # of ``def``; decorators stand before it
    end_line: int
    qualified_name: str
    signature: str  # from ``def`` to the colon, both included
    docstring: str  # its first sentence
    body: str  # the lines behind the docstring
    source: str  # the whole ``def``, docstring included
    indent: str
    body_line: int  # first line of body
    tokens: tuple[Token, ...] = field(repr=False, compare=False)  # signature and body, without layout and docstring
    kept: frozenset[int] = field(repr=False, compare=False, default=frozenset())  # lines that begin as in the file


@dataclass
class Extraction:
    """The functions of one repository, the number of its Python files, and how often which reason left one out."""

    functions: list[Function] = field(default_factory=list)
    files: int = 0
    left_out: Counter = field(default_factory=Counter)


def extract(repository: Repository, filters: Filters = Filters(), seen: set[tuple[str, str]] | None = None,
            count_tokens: Callable[[str], int] | None = None) -> Extraction:
    """Every usable function with a docstring, in the order of files and lines.

    ``seen`` holds (docstring, signature) of functions already taken, here or in other repositories, and is extended.
    ``count_tokens`` is a model's token count of a text; without it ``filters.max_model_tokens`` is not asked.
    """
    result, seen = Extraction(), set() if seen is None else seen
    paths = python_files(repository.root, result.left_out)
    result.files = len(paths)
    if len(paths) > filters.max_files:
        result.left_out[f"repository: more than {filters.max_files} files"] += 1
        return result
    for path in paths:
        try:
            parsed = parse(path, filters)
        except LeftOut as reason:
            result.left_out[str(reason)] += 1
            continue
        for function, reason in _functions(repository, path, parsed, filters):
            key = (function.docstring, " ".join(function.signature.split())) if function else None
            if not reason and key in seen:
                reason = "same docstring and signature as another"
            if not reason and count_tokens and count_tokens(code_of(function)) > filters.max_model_tokens:
                reason = f"more than {filters.max_model_tokens} model tokens"
            if reason:
                result.left_out[f"function: {reason}"] += 1
            else:
                seen.add(key)
                result.functions.append(function)
    return result


def code_of(function: Function) -> str:
    """Signature and body without the docstring."""
    return f"{function.signature}\n{function.body}"


def definitions(tree: ast.Module) -> Iterator[tuple[str, _Definition]]:
    """(qualified name, node) of every ``def`` and ``async def``, however deep, in the order of the text."""
    stack: list[tuple[str, ast.AST]] = [("", tree)]
    while stack:
        scope, node = stack.pop()
        if isinstance(node, _Definition):
            yield scope, node
        children = []
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, _Definition | ast.ClassDef)
            children.append((f"{scope}.{child.name}".lstrip(".") if named else scope, child))
        stack.extend(reversed(children))


def _kept(lines: list[str], first: int, end: int, indent: str, tokens: list[tokenize.TokenInfo]) -> frozenset[int]:
    """Numbers of the lines that lose no indentation: the inside of strings, and what stands further left."""
    inside = {number for token in tokens if token.end[0] > token.start[0] and token.type not in _LAYOUT
              for number in range(token.start[0] + 1, token.end[0] + 1)}
    return frozenset(inside | {n for n in range(first, end + 1) if not lines[n - 1].startswith(indent)})


def _functions(repository: Repository, path: Path, parsed: Parsed, filters: Filters
               ) -> Iterator[tuple[Function | None, str]]:
    """(function, "") for what is usable, (None, reason) for the rest."""
    file = path.relative_to(repository.root).as_posix()
    for name, node in definitions(parsed.tree):
        if not ast.get_docstring(node, clean=False):
            yield None, "no docstring"
        elif node.name.startswith(filters.excluded_prefix):
            yield None, f"name begins with {filters.excluded_prefix}"
        elif is_trivial(node.body[1:]):
            yield None, "body does nothing"
        elif node.body[1].lineno <= node.body[0].end_lineno or node.body[0].lineno == node.lineno:
            yield None, "docstring shares its line with code"
        else:
            yield _build(repository, file, name, node, parsed, filters)


def _build(repository: Repository, file: str, name: str, node: _Definition, parsed: Parsed, filters: Filters
           ) -> tuple[Function | None, str]:
    start = (node.lineno, column_of(parsed.lines[node.lineno - 1], node.col_offset))
    end = (node.end_lineno, column_of(parsed.lines[node.end_lineno - 1], node.end_col_offset))
    raw = [token for token in parsed.tokens if start <= token.start < end]
    doc = node.body[0]
    code = [token for token in raw if not doc.lineno <= token.start[0] <= doc.end_lineno and token.type not in _LAYOUT]
    sentence = first_sentence(ast.get_docstring(node))
    lines = {number for token in code for number in range(token.start[0], token.end[0] + 1)}
    if reason := docstring_reason(sentence, filters) or size_reason(len(lines), len(code), filters):
        return None, reason
    indent = parsed.lines[start[0] - 1][:start[1]]
    kept = _kept(parsed.lines, start[0], end[0], indent, raw)
    last = parsed.lines[end[0] - 1][:end[1]]  # what stands behind the function on its last line is not its own

    def text(first: int, final: str, stop: int) -> str:
        lines = [*parsed.lines[first - 1:stop - 1], final]
        return "".join(line if first + i in kept else line[len(indent):] for i, line in enumerate(lines))

    colon = _colon(raw)
    signature = text(start[0], parsed.lines[colon[0] - 1][:colon[1] + 1], colon[0])
    return Function(
        id=f"{repository.name}/{file}:{name}#{node.lineno}", repository=repository.name, root=repository.root,
        file=file, line=node.lineno, end_line=end[0], qualified_name=name, signature=signature, docstring=sentence,
        body=text(doc.end_lineno + 1, last, end[0]), source=text(start[0], last, end[0]), indent=indent,
        body_line=doc.end_lineno + 1, tokens=tuple(_tokens(code)), kept=kept), ""


def _colon(tokens: list[tokenize.TokenInfo]) -> tuple[int, int]:
    """Where the colon stands that ends a signature: the first one outside brackets."""
    depth = 0
    for token in tokens:
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == ":" and depth == 0:
                return token.start
    raise ValueError("a def without a colon")


def _tokens(tokens: list[tokenize.TokenInfo]) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        depth += (token.type == _FSTRING[0]) - (token.type == _FSTRING[1])
        if depth == 0:
            name = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
            yield Token(*token.start, token.string, name)
