"""Which files and functions enter the corpus: the replication package's limits as named parameters."""

import ast
import inspect
import re
from dataclasses import dataclass

_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True)
class Filters:
    """Limits of the replication package; ``max_bytes`` is ours: no file of megabytes is parsed.

    ``max_lines``, ``min_lines`` and ``max_tokens`` (Python tokens) are those of signature and body, without docstring,
    comments and blank lines; ``max_model_tokens`` counts the same text by a model's tokenizer, where one is given.
    """

    max_files: int = 500
    max_file_lines: int = 1000
    max_bytes: int = 1_000_000
    min_lines: int = 2
    max_lines: int = 50
    max_tokens: int = 512
    max_model_tokens: int = 128
    min_docstring_words: int = 3
    max_docstring_words: int = 256
    excluded_prefix: str = "test_"


def first_sentence(docstring: str) -> str:
    """The first sentence of a docstring's first paragraph, on one line."""
    paragraph = re.split(r"\n\s*\n", inspect.cleandoc(docstring).strip(), maxsplit=1)[0]
    return _SENTENCE_END.split(" ".join(paragraph.split()), maxsplit=1)[0]


def docstring_reason(sentence: str, filters: Filters) -> str:
    """Why a docstring's first sentence is not usable; empty where it is."""
    words = len(sentence.split())
    if words < filters.min_docstring_words:
        return f"docstring of fewer than {filters.min_docstring_words} words"
    if words > filters.max_docstring_words:
        return f"docstring of more than {filters.max_docstring_words} words"
    return "" if re.match("[A-Za-z]", sentence) else "docstring does not begin with a letter"


def size_reason(lines: int, tokens: int, filters: Filters) -> str:
    """Why a function of so many lines and Python tokens is not usable; empty where it is."""
    if lines < filters.min_lines:
        return f"fewer than {filters.min_lines} lines"
    if lines > filters.max_lines:
        return f"more than {filters.max_lines} lines"
    return f"more than {filters.max_tokens} Python tokens" if tokens > filters.max_tokens else ""


def is_trivial(statements: list[ast.stmt]) -> bool:
    """Whether a body (without its docstring) only passes, returns nothing or raises NotImplementedError."""
    return all(_does_nothing(statement) for statement in statements)


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Return(value=None) | ast.Return(value=ast.Constant(value=None)):
            return True
        case ast.Expr(value=ast.Constant(value=value)) | ast.Return(value=ast.Constant(value=value)) if value is ...:
            return True
        case ast.Return(value=ast.Name(id="NotImplemented")) | ast.Raise(exc=ast.Name(id="NotImplementedError")):
            return True
        case ast.Raise(exc=ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
    return False
