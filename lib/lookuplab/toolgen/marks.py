"""The marks of a corpus without its code: functions are read again from the same repositories, marks laid over them.

What takes hours in a marked corpus is asking Jedi; the code is other people's and stands in their packages anyway.
"""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lookuplab.errors import UserError
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.marking import Marked
from lookuplab.toolgen.pairs import Pair


def save(records: Iterable[dict[str, Any]], file: Path) -> int:
    """Write the marks of a corpus' records (``toolgen.corpus``), one JSON line a function; returns how many."""
    lines = [json.dumps({"id": r["id"], "code": code_hash(r["source"]), "marks": r["positions"], "asked": r["asked"],
                         "failures": r["failures"], "docstring_tokens": r["docstring_tokens"],
                         "function_tokens": r["function_tokens"]}) + "\n"
             for r in sorted(records, key=lambda r: r["id"])]
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream:  # the same bytes every time
        stream.write("".join(lines).encode())
    return len(lines)


def load(file: Path) -> dict[str, dict[str, Any]]:
    """Id -> marks, and what a corpus' statistics need, as saved. Raises UserError for a file that is not there or none
    of these."""
    try:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            return {line["id"]: line for line in map(json.loads, lines)}
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file} holds no marks ({error}); make them with `lookuplab data mark`") from None


def lay_over(functions: Sequence[Function], saved: dict[str, dict[str, Any]]) -> tuple[list[Marked], Counter]:
    """The functions with their marks, in order, and how many had none saved or were other code when they were marked."""
    found, left_out = [], Counter()
    for function in functions:
        entry = saved.get(function.id)
        if entry is None:
            left_out["not marked"] += 1
        elif entry["code"] != code_hash(function.source):
            left_out["other code when it was marked"] += 1
        else:
            marks = tuple((line, column) for line, column in entry["marks"])
            found.append(Marked(function, marks, entry["asked"], Counter(entry["failures"])))
    return found, left_out


def pair(marked: Marked) -> Pair:
    """The pair of docstring and augmented function."""
    return Pair(marked.function.id, marked.function.docstring, marked.signature, marked.body)


def code_hash(source: str) -> str:
    """Sixteen digits of a function's sha256."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]
