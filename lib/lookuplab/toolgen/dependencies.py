"""Dependency coverage: which of the repository's own definitions that the reference uses does a prediction use, too?

Paper, Section IV-C: expressions (calls, attribute accesses) of the ground truth that Jedi traces to a definition inside
the repository are collected as a set; the coverage is the share that the generated function has as well. Keys are
expressions without arguments and subscripts: ``foo(bar(baz)).a[i].b`` gives ``foo``, ``bar``, ``foo().a`` and
``foo().a[].b`` (and ``baz``, if that is the repository's). No keys: no value, and counted.

The replication package's coverage is not offered: it takes its keys from the marks by regular expressions, counts
library names, too, takes ``==`` for an assignment, and divides by zero without a key.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lookuplab import python_sources
from lookuplab.toolgen.analysers import PATIENCE, Worker, serve
from lookuplab.toolgen.insertion import Place
from lookuplab.toolgen.jedi_worker import script
from lookuplab.toolgen.similarity import is_name, leaves

KINDS = ("method", "attribute", "function", "class", "module")  # a module's variable: an attribute
BRACKETS = {")": "(", "]": "[", "}": "{"}
AUGMENTED = ("+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**=")
NOT_ITS_OWN = {"site-packages", "dist-packages", "node_modules"}


class Expression(NamedTuple):
    """One use of a name; ``line`` is 1-based and ``column`` counts characters, both those of the last name."""

    key: str
    line: int
    column: int


def expressions(text: str) -> list[Expression]:
    """The name and attribute expressions of a text, broken or not, in the order of their last names; no definitions,
    keyword arguments or imports."""
    tokens = [leaf for leaf in leaves(text) if leaf.value]
    values = ["", *(leaf.value for leaf in tokens), ""]  # of token n: values[n + 1]
    keys: dict[int, str] = {}  # token -> the expression that ends with it: a name, or a bracket
    opened, own, found = [], set(), []
    for at, leaf in enumerate(tokens):
        before, value, behind = values[at : at + 3]
        if value in BRACKETS.values():
            opened.append(at)
        elif value in BRACKETS and opened and values[opened[-1] + 1] == BRACKETS[value]:
            start = opened.pop()
            if start - 1 in keys and value != "}":
                keys[at] = keys[start - 1] + BRACKETS[value] + value
        elif is_name(leaf):
            keys[at] = value if before != "." else f"{keys.get(at - 2, '()')}.{value}"
            if leaf.search_ancestor("import_name", "import_from"):
                continue
            if leaf.type == "name" and leaf.is_definition() and behind not in AUGMENTED:
                if before != ".":
                    own.add(value)
            elif not (
                behind == "="
                and before in ("(", ",")
                and leaf.search_ancestor("arglist", "argument", "trailer")
            ):
                found.append(Expression(keys[at], *leaf.start_pos))
    return [one for one in found if one.key.removeprefix("().") not in own]


def covered(dependencies: Sequence[Sequence[str]], prediction: str) -> list[bool]:
    """For each dependency (key, kind) whether the predicted body has its expression, too."""
    found = {expression.key for expression in expressions(prediction)}
    return [key in found for key, _ in dependencies]


class DependencyTool(Worker):
    """Jedi in a process of its own."""

    def __init__(self, limit: float = 60.0):
        super().__init__("lookuplab.toolgen.dependencies", limit)

    def judge(self, root: Path, file: str, text: str, place: Place) -> list[list[str]] | None:
        """[key, kind] of the dependencies of the function at ``place`` in ``text``, the content of ``file`` below
        ``root``: those of its body, each key once, ``kind`` one of KINDS. None where Jedi raises; raises WorkerLost."""
        lines = [place.line, place.body_line, place.end_line]
        question = {"root": str(root), "file": file, "text": text, "lines": lines}
        return self.ask(question, PATIENCE * self.limit)["found"]


def _answer(question: dict) -> dict:
    root, text, kinds = Path(question["root"]).resolve(), question["text"], {}
    line, body_line, end_line = question["lines"]
    path = root / question["file"]
    body = "\n".join(text.split("\n")[body_line - 1 : end_line])
    try:
        with script(question["root"], question["file"], text) as asked:
            for key, at, column in expressions(body):
                if key in kinds:
                    continue
                for name in asked.goto(at + body_line - 1, column, follow_imports=True):
                    place = name.module_path and name.module_path.resolve()
                    inside = place and place.is_relative_to(root)
                    if not inside or NOT_ITS_OWN & set(place.relative_to(root).parts):
                        continue
                    itself = place == path.resolve() and name.type != "module"
                    if not (itself and line <= name.line <= end_line):
                        kinds.setdefault(key, _kind(name))
        return {"found": list(kinds.items())}
    except Exception:  # Jedi raises nearly anything on code that it does not understand
        return {"found": None}


def _kind(name) -> str:
    if name.type == "function":
        parent = name.parent()
        return "method" if parent is not None and parent.type == "class" else "function"
    return name.type if name.type in ("class", "module") else "attribute"


if __name__ == "__main__":
    python_sources.restrict()  # Jedi itself comes from where it is installed
    serve(_answer)
