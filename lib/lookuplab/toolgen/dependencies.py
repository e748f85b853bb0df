"""Dependency coverage: which of the repository's own definitions that the reference uses does a prediction use, too?

Paper, Section IV-C: expressions (calls, attribute accesses) of the ground truth that Jedi traces to a definition inside
the repository are collected as a set; the coverage is the share that the generated function has as well. Keys are
expressions without arguments and subscripts: ``foo(bar(baz)).a[i].b`` gives ``foo``, ``bar``, ``foo().a`` and
``foo().a[].b`` (and ``baz``, if that is the repository's). No keys: no value, and counted.

The replication package's coverage is not offered: it takes its keys from the marks by regular expressions, counts
library names, too, takes ``==`` for an assignment, and divides by zero without a key. That is no other definition of
the paper's quantity, and its errors do not carry a number worth comparing.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lookuplab import python_sources
from lookuplab.toolgen.analysers import PATIENCE, Worker, serve
from lookuplab.toolgen.insertion import Place
from lookuplab.toolgen.jedi_worker import script
from lookuplab.toolgen.similarity import is_name, leaves

KINDS = (
    "method",
    "attribute",
    "function",
    "class",
    "module",
)  # a module's variable is an attribute
BRACKETS = {"(": ")", "[": "]", "{": "}"}
AUGMENTED = ("+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**=")
NOT_ITS_OWN = {"site-packages", "dist-packages", "node_modules"}


class Expression(NamedTuple):
    """One use of a name; ``line`` is 1-based and ``column`` counts characters, both those of the last name."""

    key: str
    line: int
    column: int


def expressions(text: str) -> list[Expression]:
    """The name and attribute expressions of a text, broken or not; no definitions, keyword arguments or imports."""
    tokens = [leaf for leaf in leaves(text) if leaf.value]
    values = ["", *(leaf.value for leaf in tokens), ""]  # of token n: values[n + 1]
    closing, waiting = {}, []
    for number, value in enumerate(values[1:-1]):
        if value in BRACKETS:
            waiting.append(number)
        elif waiting and BRACKETS[values[waiting[-1] + 1]] == value:
            closing[waiting.pop()] = number
    bound = {number for number, leaf in enumerate(tokens) if _binds(leaf, values[number + 2])}
    own = {values[number + 1] for number in bound if values[number] != "."}
    chained, found = set(), []
    for number, leaf in enumerate(tokens):
        if not is_name(leaf) or number in chained:
            continue
        start = "()." if values[number] == "." else ""  # the attribute of a bracket: (a or b).c
        for key, place in _chain(tokens, closing, number):
            chained.add(place)
            leaf, before, behind = tokens[place], values[place], values[place + 2]
            argument = (
                behind == "="
                and before in ("(", ",")
                and leaf.search_ancestor("arglist", "argument", "trailer")
            )
            imported = leaf.search_ancestor("import_name", "import_from")
            if not (place in bound or argument or imported or key in own):
                found.append(Expression(start + key, *leaf.start_pos))
    return found


def _binds(leaf, behind: str) -> bool:
    """Whether a name is bound here; ``x += 1`` is a use of x."""
    defines = leaf.type == "name" and leaf.is_definition() and behind not in AUGMENTED
    return defines and not leaf.search_ancestor("import_name", "import_from")


def _chain(tokens: list, closing: dict[int, int], number: int) -> Iterator[tuple[str, int]]:
    """(key, number of its last name) of every expression that begins with one name and goes on to its right."""
    key = tokens[number].value
    yield key, number
    while number + 1 < len(tokens):
        mark = tokens[number + 1].value
        if mark == "." and number + 2 < len(tokens) and is_name(tokens[number + 2]):
            number += 2
            key += "." + tokens[number].value
            yield key, number
        elif mark in ("(", "[") and number + 1 in closing:
            key += mark + BRACKETS[mark]
            number = closing[number + 1]
        else:
            return


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
        ``root``: those of its body, in order, each key once, ``kind`` one of KINDS. None where Jedi raises; raises
        WorkerLost."""
        lines = [place.line, place.body_line, place.end_line]
        question = {"root": str(root), "file": file, "text": text, "lines": lines}
        return self.ask(question, PATIENCE * self.limit)["found"]


def _answer(question: dict) -> dict:
    root, text, kinds = Path(question["root"]).resolve(), question["text"], {}
    line, body_line, end_line = question["lines"]
    path = root / question["file"]
    try:
        with script(question["root"], question["file"], text) as asked:
            for key, at, column in expressions(
                "\n".join(text.split("\n")[body_line - 1 : end_line])
            ):
                if key in kinds:
                    continue
                for name in asked.goto(at + body_line - 1, column, follow_imports=True):
                    own = _inside(name, root) and not (
                        name.type != "module"
                        and name.module_path.resolve() == path.resolve()
                        and line <= name.line <= end_line
                    )
                    if own:
                        kinds.setdefault(key, _kind(name))
        return {"found": list(kinds.items())}
    except Exception:  # Jedi raises nearly anything on code that it does not understand
        return {"found": None}


def _inside(name, root: Path) -> bool:
    """Whether Jedi's definition is the repository's own."""
    path = name.module_path and name.module_path.resolve()
    if path is None or not path.is_relative_to(root):
        return False
    return not NOT_ITS_OWN & set(path.relative_to(root).parts)


def _kind(name) -> str:
    if name.type == "function":
        parent = name.parent()
        return "method" if parent is not None and parent.type == "class" else "function"
    return name.type if name.type in ("class", "module") else "attribute"


if __name__ == "__main__":
    python_sources.restrict()  # Jedi itself comes from where it is installed
    serve(_answer)
