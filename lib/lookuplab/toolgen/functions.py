"""Finds the functions with docstrings in a repository, and their exact positions. Functions that
are left out are counted by reason.

Lines count from 1. Columns count from 0, in characters. Both refer to the file's text with ``\\n``
line ends and without a byte order mark.
"""

import ast
import functools
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookuplab import paths, python_sources
from lookuplab.errors import UserError
from lookuplab.toolgen.pairs import corpus_records
from lookuplab.toolgen.rules import PAPER_RULES, Rules
from lookuplab.toolgen.source import (
    DEFINITIONS,
    Token,
    cut_comments,
    end_of,
    read_source,
    reindent,
    syntax_tree,
    whole_tokens,
)

# matches lower-cased docstrings that the replication packages reject
REFUSED_DOCSTRINGS = re.compile(
    r"^(deprecated|todo|note|test|overrides|we |you |this |\w+:)|[?!]$"
    r"|<img |https://|---| -- |=|[^ ]{26}"
)
MAX_BYTES = 1_000_000  # larger files are not parsed; this limit is the kit's, not the package's
# syntax nodes that may be, or may contain, the definition of a function
_Block = ast.stmt | ast.excepthandler | ast.match_case


@dataclass(frozen=True)
class Filters:
    """Says which files and functions are used. The default limits are the replication package's.

    A repository with more than ``max_files`` Python files is not used, nor is a file with more than
    ``max_file_lines`` lines. ``max_lines`` and ``max_tokens`` (Python tokens) limit a function's
    signature and body together, without docstring, comments and blank lines. ``max_model_tokens``
    limits signature and body (``Function.code``) in tokens of a model; it is ignored if no
    tokenizer is given. ``rules`` decide which docstrings are accepted, and whether an ``async def``
    is accepted. ``trained_on`` is the path of a marked corpus, or ""; functions whose
    docstring and signature occur in this corpus are left out.
    """

    max_files: int = 500
    max_file_lines: int = 1000
    max_lines: int = 50
    max_tokens: int = 512
    max_model_tokens: int = 128
    rules: Rules = PAPER_RULES
    trained_on: str = ""


@dataclass(frozen=True)
class Function:
    """One function of a repository. ``indent`` is the white space before its ``def``; it is removed
    from the lines of ``source``, ``signature`` and ``body``.
    """

    # "<repository>/<file>:<qualified name>#<line>", in which <repository> is only a folder's name
    id: str
    repository: str
    root: Path = field(repr=False)
    file: str  # relative to root, with slashes
    line: int  # the line of ``def``, after any decorators
    end_line: int
    signature: str  # from ``def`` to the colon, both included
    docstring: str  # only the first sentence
    body: str  # the lines after the docstring
    source: str  # the whole ``def``, docstring included
    indent: str
    body_line: int  # the line of the file on which ``body`` begins
    # the tokens of signature and body
    tokens: tuple[Token, ...] = field(repr=False, compare=False)

    @property
    def code(self) -> str:
        """Return the signature and the body, without the docstring."""
        return f"{self.signature}\n{self.body}"

    def lines(self) -> list[str]:
        """Return the lines of the function's whole file, each with its line end."""
        return lines_of(read_source(self.root / self.file))


@dataclass
class Extraction:
    """The usable functions of one repository, the number of its Python files, and ``left_out``,
    {reason: how many functions or files were left out}.
    """

    functions: list[Function] = field(default_factory=list)
    files: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


class LeftOut(Exception):
    """Raised when a file or function is left out. The message is the reason under which it is
    counted.
    """


def locate(name: str) -> Path:
    """Return the folder of a repository. ``name`` is a folder's path or, if there is no such
    folder, the import name of a package among the pinned sources (``python_sources``).

    Raises UserError if ``name`` is neither.
    """
    folder = paths.located(name) if "/" in name else Path(name)
    if name and folder.is_dir():
        return folder.resolve()
    package = python_sources.folder() / name
    if not (name.isidentifier() and package.is_dir()):
        raise UserError(
            f"{name!r} is neither a folder nor a package among the sources of "
            f"{python_sources.PINS.name}; give the path of its folder"
        )
    return package.resolve()


def locate_all(names: Iterable[str]) -> list[Path]:
    """Return the folder of each repository in ``names`` (see ``locate``). ``FOLDER/*`` means all
    folders in FOLDER that are not hidden.

    Raises UserError if a name fits no folder, or if two folders have the same name.
    """
    repositories = []
    for name in names:
        folders: Sequence[Path | str] = [name]
        if name.endswith("/*"):
            folders = sorted(paths.located(name.removesuffix("/*")).glob("[!.]*/"))
        if not folders:
            raise UserError(f"{name!r} has no folders: put the repositories there, one folder each")
        repositories += [locate(str(folder)) for folder in folders]
    if len({place.name for place in repositories}) < len(repositories):
        raise UserError("two repositories have the same name, so ids collide; rename one folder")
    return repositories


def extract(
    repository: Path,
    filters: Filters = Filters(),
    seen: set[tuple[str, str]] | None = None,
    count_tokens: Callable[[str], int] | None = None,
    files: Sequence[Path] | None = None,
) -> Extraction:
    """Return every usable function with a docstring, in the order of ``files`` (by default all
    Python files of the repository) and, within a file, of the lines.

    ``seen`` has the pairs (docstring, signature) of functions that are already in use, perhaps from
    other repositories. A function whose pair is in ``seen`` is left out. The pair of every returned
    function is added to ``seen``. ``count_tokens`` returns the number of a model's tokens in a
    text; without it, ``filters.max_model_tokens`` is ignored.
    """
    files = python_sources.python_files(repository) if files is None else files
    seen = set() if seen is None else seen
    result = Extraction(files=len(files))
    if filters.trained_on:
        seen |= _training_prompts(paths.located(filters.trained_on))
    if not files:
        result.left_out["repository: no Python file that can be read"] += 1
    if len(files) > filters.max_files:
        result.left_out[f"repository: more than {filters.max_files} files"] += 1
        return result
    for path in files:
        try:
            lines, tree = _parse(path, filters)
        except LeftOut as reason:
            result.left_out[f"file: {reason}"] += 1
            continue
        for name, node in definitions(tree):
            try:
                function = _build_function(repository, path, lines, name, node, filters)
                key = prompt_key(vars(function))
                if key in seen:
                    raise LeftOut("same docstring and signature as another")
                if count_tokens and count_tokens(function.code) > filters.max_model_tokens:
                    raise LeftOut(f"more than {filters.max_model_tokens} model tokens")
                seen.add(key)
                result.functions.append(function)
            except LeftOut as reason:
                result.left_out[f"function: {reason}"] += 1
    return result


def definitions(tree: ast.AST, scope: str = "") -> Iterator[tuple[str, DEFINITIONS]]:
    """Yield (qualified name, node) of every ``def`` and ``async def`` in a syntax tree, at any
    depth, in the order of the text. Qualified names begin with ``scope``.
    """
    for child in ast.iter_child_nodes(tree):
        inner = scope
        if isinstance(child, DEFINITIONS | ast.ClassDef):
            inner = f"{scope}.{child.name}".lstrip(".")
        if isinstance(child, DEFINITIONS):
            yield inner, child
        if isinstance(child, _Block):
            yield from definitions(child, inner)


def first_sentence(docstring: str) -> str:
    """Return the first sentence of a docstring's first paragraph, on one line."""
    paragraph = re.split(r"\n\s*\n", docstring.strip(), maxsplit=1)[0]
    return re.split(r"(?<=[.!?])\s", " ".join(paragraph.split()), maxsplit=1)[0]


def package_docstring(docstring: str) -> str:
    """Return the part of a docstring that the replication packages keep, on one line.

    The packages cut the docstring at the first blank line, ``:param`` or ``:return``. They then
    remove the last line if this line begins with a capital letter, and cut the rest at the first
    full stop.
    """
    text = docstring.strip().strip("\"'").strip()
    for end in ("\n\n", ":param", ":return"):
        text = text.partition(end)[0].strip()
    return " ".join(re.sub(r"\n\s*[A-Z].*$", "", text).split()).partition(". ")[0]


def without_comments(text: str) -> str:
    """Return code without comments and blank lines, as the replication packages compare it."""
    lines = cut_comments(text).split("\n")
    return "\n".join(filter(str.strip, lines))


@functools.cache
def _training_prompts(corpus: Path) -> set[tuple[str, str]]:
    return set(map(prompt_key, corpus_records(corpus, ["docstring", "signature"])))


def prompt_key(function: Mapping[str, Any]) -> tuple[str, str]:
    """Return (docstring, signature) of a function, which is all that a prompt may contain.
    Functions with the same key count as duplicates. White space in the signature is normalised.
    """
    return function["docstring"], " ".join(function["signature"].split())


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, each with its line end. Only ``\\n`` ends a line, whereas
    str.splitlines would also split at form feeds.
    """
    return list(io.StringIO(text, newline="\n"))


def _parse(path: Path, filters: Filters) -> tuple[list[str], ast.Module]:
    """Return a file's lines and syntax tree. Raises LeftOut if the file is not used."""
    if os.fsencode(path) != str(path).encode("utf-8", "replace"):
        raise LeftOut("its path is not UTF-8")
    if path.stat().st_size > MAX_BYTES:
        raise LeftOut(f"more than {MAX_BYTES} bytes")
    try:
        text = read_source(path)
    except UserError:
        raise LeftOut("cannot be read") from None
    lines = lines_of(text)
    if len(lines) > filters.max_file_lines:
        raise LeftOut(f"more than {filters.max_file_lines} lines")
    try:
        return lines, syntax_tree(text)
    except UserError:
        raise LeftOut("does not parse") from None


def _build_function(
    repository: Path,
    path: Path,
    lines: list[str],
    name: str,
    node: DEFINITIONS,
    filters: Filters,
) -> Function:
    """Return the function that a syntax node defines. Raises LeftOut if the filters reject it."""
    doc = node.body[0]
    raw = ast.get_docstring(node, clean=False)
    package = filters.rules.is_package
    if not raw:
        raise LeftOut("no docstring")
    if node.name.startswith("test_"):
        raise LeftOut("name begins with test_")
    if all(map(_does_nothing, node.body[1:])):
        raise LeftOut("body does nothing")
    body_line = end_of(doc, lines)[0] + 1
    if node.body[1].lineno < body_line or doc.lineno == node.lineno:
        raise LeftOut("docstring shares its line with code")
    if package and isinstance(node, ast.AsyncFunctionDef):
        raise LeftOut("async")
    end = end_of(node, lines)
    tokens = whole_tokens("".join(lines[node.lineno - 1 : end[0]]), node.lineno)
    code = [token for token in tokens if not doc.lineno <= token.line < body_line]
    docstring = package_docstring(raw) if package else first_sentence(raw)
    # the lines that have code, since a limit on lines must not count comments and blank lines
    filled = {token.line + below for token in code for below in range(token.text.count("\n") + 1)}
    for what, number, least, most in (
        ("words of docstring", len(docstring.split()), 3, 256),
        ("lines", len(filled), 2, filters.max_lines),
        ("Python tokens", len(code), 0, filters.max_tokens),
    ):
        if not least <= number <= most:
            raise LeftOut(f"not {least} to {most} {what}")
    if not re.match("[A-Za-z]", docstring):
        raise LeftOut("docstring does not begin with a letter")
    if package and REFUSED_DOCSTRINGS.search(docstring.lower()):
        raise LeftOut("docstring that the package refuses")
    # everything before the ``def`` is white space, because decorators have their own lines
    indent = lines[node.lineno - 1][: node.col_offset]
    # the signature ends with the last colon before the docstring
    *_, colon = [t for t in tokens if t.text == ":" and t[:2] < (doc.lineno, doc.col_offset)]

    def text(first: int, stop: tuple[int, int]) -> str:
        whole = [*lines[first - 1 : stop[0] - 1], lines[stop[0] - 1][: stop[1]]]
        return reindent("".join(whole), "", indent)

    file = path.relative_to(repository).as_posix()
    return Function(
        id=f"{repository.name}/{file}:{name}#{node.lineno}",
        repository=repository.name,
        root=repository,
        file=file,
        line=node.lineno,
        end_line=end[0],
        signature=text(node.lineno, (colon.line, colon.column + 1)),
        docstring=docstring,
        body=text(body_line, end),
        source=text(node.lineno, end),
        indent=indent,
        body_line=body_line,
        tokens=tuple(code),
    )


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Return(None | ast.Constant(None) | ast.Name("NotImplemented")):
            return True
        case ast.Return(ast.Constant(value)) | ast.Expr(ast.Constant(value)):
            return value is ...
        case ast.Raise(ast.Name(name) | ast.Call(ast.Name(name))):
            return name == "NotImplementedError"
    return False
