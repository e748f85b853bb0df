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
from dataclasses import dataclass
from pathlib import Path

from lookuplab import python_sources
from lookuplab.scoring.rates import Rate, estimate, rate
from lookuplab.toolgen.metrics.identifiers import is_name, leaves
from lookuplab.toolgen.metrics.insertion import Place
from lookuplab.toolgen.metrics.worker import PATIENCE, Worker, serve

KINDS = ("method", "attribute", "function", "class", "module")
BRACKETS = {"(": ")", "[": "]", "{": "}"}
NOT_ITS_OWN = {"site-packages", "dist-packages", "node_modules"}
LIMIT = 60.0  # seconds for one function: some tenths a name, and the first one waits for Jedi to read the libraries


@dataclass(frozen=True)
class Expression:
    """One use of a name; ``line`` is 1-based and ``column`` counts characters, both those of the last name."""

    key: str
    line: int
    column: int


def expressions(text: str) -> list[Expression]:
    """The name and attribute expressions of a text, broken or not; no definitions, keyword arguments or imports."""
    tokens = [leaf for leaf in leaves(text) if leaf.value]
    own = {leaf.value for number, leaf in enumerate(tokens) if _defines(tokens, number) and not _dotted(tokens, number)}
    closing, chained, found = _closing(tokens), set(), []
    for number, leaf in enumerate(tokens):
        if is_name(leaf) and number not in chained:
            start = "()." if _dotted(tokens, number) else ""  # the attribute of a bracket: (a or b).c
            for key, place in _chain(tokens, closing, number):
                chained.add(place)
                if _used(tokens, place) and key not in own:
                    found.append(Expression(start + key, *tokens[place].start_pos))
    return found


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


def _closing(tokens: list) -> dict[int, int]:
    """Number of each opening bracket's token -> of the closing one."""
    pairs, waiting = {}, []
    for number, leaf in enumerate(tokens):
        if leaf.value in BRACKETS:
            waiting.append(number)
        elif leaf.value in BRACKETS.values() and waiting and BRACKETS[tokens[waiting[-1]].value] == leaf.value:
            pairs[waiting.pop()] = number
    return pairs


def _value(tokens: list, number: int) -> str:
    return tokens[number].value if 0 <= number < len(tokens) else ""


def _dotted(tokens: list, number: int) -> bool:
    return _value(tokens, number - 1) == "."


def _defines(tokens: list, number: int) -> bool:
    """Whether a name is bound here; ``x += 1`` is a use of x."""
    leaf = tokens[number]
    bound = leaf.type == "name" and leaf.is_definition() and not leaf.search_ancestor("import_name", "import_from")
    return bound and _value(tokens, number + 1) not in ("+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=",
                                                        ">>=", "<<=", "**=")


def _used(tokens: list, number: int) -> bool:
    """Whether a name is an expression and not a definition, a keyword argument's name or part of an import."""
    leaf = tokens[number]
    if _defines(tokens, number) or leaf.search_ancestor("import_name", "import_from"):
        return False
    named = _value(tokens, number + 1) == "=" and leaf.search_ancestor("arglist", "argument", "trailer")
    return not (named and _value(tokens, number - 1) in ("(", ","))


@dataclass(frozen=True)
class Dependency:
    """An expression that leads into the repository; ``kind`` is one of KINDS (a module's variable is an attribute)."""

    key: str
    kind: str


def trace(text: str, file: str, line: int, body_line: int, end_line: int, root: Path) -> list[Dependency]:
    """The dependencies of the function from ``line`` to ``end_line``: of its body, in order, each key once.

    In this process and without a time limit; ``DependencyTool`` has both.
    """
    from lookuplab.toolgen.jedi_worker import script as fresh_script

    body = "\n".join(text.split("\n")[body_line - 1:end_line])
    kinds: dict[str, str] = {}
    with fresh_script(str(root), file, text) as script:
        for expression in expressions(body):
            place = (expression.line + body_line - 1, expression.column)
            for name in () if expression.key in kinds else script.goto(*place, follow_imports=True):
                if _inside(name, root, root / file, line, end_line):
                    kinds.setdefault(expression.key, _kind(name))
    return [Dependency(key, kind) for key, kind in kinds.items()]


def _inside(name, root: Path, file: Path, line: int, end_line: int) -> bool:
    """Whether Jedi's definition is the repository's own and not a local name of the function itself."""
    if name.module_path is None:
        return False
    path, root = name.module_path.resolve(), root.resolve()
    if not path.is_relative_to(root) or NOT_ITS_OWN & set(path.relative_to(root).parts):
        return False
    return name.type == "module" or path != file.resolve() or not line <= name.line <= end_line


def _kind(name) -> str:
    if name.type == "function":
        parent = name.parent()
        return "method" if parent is not None and parent.type == "class" else "function"
    return name.type if name.type in ("class", "module") else "attribute"


class DependencyTool:
    """Jedi in a process of its own; a context manager."""

    def __init__(self, limit: float = LIMIT):
        self.limit = limit
        self._worker = Worker("lookuplab.toolgen.metrics.dependencies", Path.cwd())

    def trace(self, root: Path, text: str, file: str, place: Place) -> list[Dependency] | None:
        """The dependencies of the function at ``place`` (see ``trace``), None where Jedi raises; raises WorkerLost."""
        question = {"text": text, "file": file, "line": place.line, "body_line": place.body_line,
                    "end_line": place.end_line, "root": str(root)}
        answer = self._worker.ask(question, PATIENCE * self.limit)
        return None if "error" in answer else [Dependency(*pair) for pair in answer["found"]]

    def __enter__(self) -> "DependencyTool":
        return self

    def __exit__(self, *_) -> None:
        self._worker.close()


def _answer(question: dict) -> dict:
    root = Path(question.pop("root"))
    try:
        return {"found": [(found.key, found.kind) for found in trace(**question, root=root)]}
    except Exception as error:  # Jedi raises nearly anything on code that it does not understand
        return {"error": f"{type(error).__name__}: {error}"}


def covered(dependencies: Sequence[Dependency], prediction: str) -> list[bool]:
    """For each dependency whether the predicted body has its expression, too."""
    found = {expression.key for expression in expressions(prediction)}
    return [dependency.key in found for dependency in dependencies]


@dataclass(frozen=True)
class Coverage:
    """Dependency coverage of many functions, shares 0 to 1, intervals clustered by repository.

    ``pooled`` is over all dependencies, ``per_function`` the mean over the functions that have any; ``kinds`` is pooled
    per kind. ``without`` counts functions without a dependency, ``failed`` those where Jedi gave no answer.
    """

    pooled: Rate
    per_function: Rate
    kinds: dict[str, Rate]
    without: int
    failed: int


def coverage(
    functions: Sequence[Sequence[Dependency] | None], predictions: Sequence[str], repositories: Sequence[str]
) -> Coverage:
    """One entry a function in all three: its dependencies (None: Jedi failed), the predicted body, the repository."""
    rows = [(name, dependencies, covered(dependencies, text))
            for dependencies, text, name in zip(functions, predictions, repositories, strict=True) if dependencies]
    pairs = [(name, dependency.kind, flag)
             for name, dependencies, flags in rows for dependency, flag in zip(dependencies, flags, strict=True)]

    def pooled(chosen: list[tuple[str, str, bool]]) -> Rate:
        return rate([flag for *_, flag in chosen], [name for name, *_ in chosen])

    shares = [sum(flags) / len(flags) for *_, flags in rows]
    return Coverage(
        pooled(pairs), estimate(shares, [name for name, *_ in rows]) if rows else pooled([]),
        {kind: pooled([pair for pair in pairs if pair[1] == kind]) for kind in KINDS},
        sum(found is not None and not found for found in functions), sum(found is None for found in functions))


if __name__ == "__main__":
    import lookuplab.toolgen.jedi_worker  # noqa: F401  (Jedi itself comes from where it is installed)

    python_sources.restrict()
    serve(_answer)
