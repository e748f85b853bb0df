"""Reads part (a) of the mini corpus: Python source and documentation of the packages that the kit
itself depends on.

The packages have permissive licences and are read from the pinned sources (``python_sources``).
Three things are left out on purpose: the repositories held out for ToolGen's notebooks; the cloud
SDKs and every file that mentions one of them, because such code would change the exact API counts;
and a fifth of the docstring examples of four libraries, because the data-science notebooks make
problems and queries from these examples.
"""

import ast
import re
from collections.abc import Iterator
from importlib import metadata
from itertools import pairwise
from pathlib import Path

from lookuplab.errors import UserError
from lookuplab.paths import hashed
from lookuplab.python_sources import PINS, folder
from recipes.mini import split_of

CORPUS_PACKAGES = """
    accelerate attrs cloudpickle datasets fastapi fonttools formulaic fsspec httpx huggingface_hub
    ipykernel ipython jedi jinja2 joblib jsonschema jupyter_client jupyter_server matplotlib
    nbconvert nbformat networkx numpy openai packaging pandas parso patsy platformdirs pluggy
    pydantic pygments pytest pyyaml scikit-learn scipy starlette statsmodels sympy tenacity tornado
    traitlets transformers urllib3 uvicorn
    """.split()
HELD_OUT_PACKAGES = "rich click requests papermill nbclient seaborn".split()
# libraries whose docstring examples become problems: name in the package index -> import name
EXAMPLE_PACKAGES = {
    "numpy": "numpy",
    "pandas": "pandas",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
}
CLOUD = re.compile(r"boto3|botocore|\bazure\b", re.I)
SKIPPED_PARTS = frozenset(
    "tests test testing _vendor _vendored vendored externals _vendored_packages __pycache__ "
    "conftest.py".split()
)
CHUNK = 3000  # characters of a document, which are about 800 tokens


def example_split(qualified_name: str) -> str:
    """Return the split of an object's docstring examples: "test" (a tenth of all names),
    "development" (another tenth) or "training".

    The code models read only the examples in the split "training". The split depends on a hash of
    the top package and the last name. So ``numpy.average`` has the same split under every path from
    which it can be imported, and ``DataFrame.merge`` has the same split as ``pandas.merge``, with
    which it shares examples.
    """
    package, _, rest = qualified_name.partition(".")
    return split_of(f"{package}:{rest.rpartition('.')[2]}", 10)


def distribution(name: str) -> metadata.Distribution:
    """Return the distribution (metadata and list of files) of a package in the pinned sources.
    Raises UserError if the package is missing.
    """
    found = next(iter(metadata.Distribution.discover(name=name, path=[str(folder())])), None)
    if found is None:
        raise UserError(f"{name} is not among the sources of {PINS.name}")
    return found


def licence_of(found: metadata.Distribution) -> str:
    """Return the licence that a package states, in the first of these forms that the package has:
    an SPDX expression, trove classifiers, or the first line of a licence text.
    """
    fields = found.metadata
    classifiers = "\n".join(fields.get_all("Classifier", ()))
    licences = "; ".join(re.findall(".*:: *(.*License.*)", classifiers))
    return fields["License-Expression"] or licences or (fields["License"] or "").split("\n")[0]


def licences() -> str:
    """Return the names of all packages of the corpus with their versions and licences, as one line
    of text for PACKAGES.md.
    """
    found = [distribution(name) for name in CORPUS_PACKAGES]
    return ", ".join(f"{one.name} {one.version} ({licence_of(one)[:40]})" for one in found)


def package_documents(characters: int) -> Iterator[tuple[str, str]]:
    """Yield (source id, text) of documents with about ``characters`` characters in all. The same
    sources give the same documents.

    The next file always comes from the package that has contributed the fewest characters so far,
    so that a large package does not crowd out the others.
    """
    given = dict.fromkeys(CORPUS_PACKAGES, 0)
    files = {name: iter(files_of(name)) for name in CORPUS_PACKAGES}
    while files and sum(given.values()) < characters:
        name = min(files, key=lambda name: (given[name], name))
        for path, place in files[name]:
            if text := usable_text(name, place):
                yield from ((f"{name}/{path}#{n}", chunk) for n, chunk in enumerate(chunks(text)))
                given[name] += len(text)
                break
        else:
            del files[name]


def files_of(name: str) -> list[tuple[str, Path]]:
    """Return (path in the sources, path on disk) of a package's Python files, in the order of a
    hash. Tests and vendored code are left out.
    """
    found = distribution(name)
    kept = [
        (str(file), Path(file.locate()))
        for file in found.files or ()
        if file.suffix == ".py" and {"..", *SKIPPED_PARTS}.isdisjoint(file.parts)
    ]
    return sorted(kept, key=lambda one: hashed(f"0:{one[0]}"))


def parsed(place: Path) -> tuple[str, ast.Module]:
    """Return the text and the syntax tree of a file. Both are empty if the file cannot be read or
    parsed.
    """
    try:
        text = place.read_text(encoding="utf-8")
        return text, ast.parse(text)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return "", ast.Module([], [])


def usable_text(name: str, place: Path) -> str:
    """Return the text of a file of the package ``name``, with held-out examples removed. Return ""
    for a file that mentions a cloud SDK, does not parse, is very short, has very long lines or is a
    data table.
    """
    text, _ = parsed(place)
    is_table = sum(map(str.isdigit, text)) > 0.15 * len(text)
    if len(text) < 200 or CLOUD.search(text) or max(map(len, text.splitlines())) > 400 or is_table:
        return ""
    package = EXAMPLE_PACKAGES.get(name)
    return without_held_out_examples(text, package) if package else text


def without_held_out_examples(text: str, package: str) -> str:
    """Return a module's source without the ``>>>`` paragraphs of held-out objects.

    If a string with examples belongs to no known object (for example a template that several
    docstrings share), its examples are always removed.
    """
    owners: dict[ast.Constant, str | None] = {}  # string -> the object that it documents
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Constant(value=str(said)) if ">>>" in said:
                owners.setdefault(node, None)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                match node.body[0]:
                    case ast.Expr(ast.Constant(str()) as doc):
                        owners[doc] = node.name
            # numpy documents compiled objects by the calls add_newdoc(module, name, text) and
            # add_newdoc(module, class, (method, text))
            case ast.Call(
                func=ast.Name("add_newdoc"),
                args=[_, ast.Constant(str(name)), ast.Constant() as doc]
                | [_, _, ast.Tuple([ast.Constant(str(name)), ast.Constant() as doc])],
            ):
                owners[doc] = name
    lines = text.splitlines(keepends=True)
    for doc, owner in sorted(owners.items(), key=lambda item: -item[0].lineno):
        if ">>>" in str(doc.value) and (
            owner is None or example_split(f"{package}.{owner}") != "training"
        ):
            here = slice(doc.lineno - 1, doc.end_lineno)
            lines[here] = _without_examples(lines[here])
    return "".join(lines)


def _without_examples(lines: list[str]) -> list[str]:
    """Return the source lines of one string without its ``>>>`` paragraphs. The quotes in the first
    and last line are kept.
    """
    kept = lines[:1]
    inside = False
    for line in lines[1:-1]:
        inside = bool(line.strip()) and (inside or line.lstrip().startswith(">>>"))
        kept += [] if inside else [line]
    last = lines[-1]
    if inside or last.lstrip().startswith(">>>"):
        closing = max(last.rfind('"""'), last.rfind("'''"), 0)
        last = last[: len(last) - len(last.lstrip())] + last[closing:]
    return [*kept, last]


def first_line(node: ast.stmt) -> int:
    """Return the line where a statement begins, including its decorators."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def chunks(text: str, size: int = CHUNK) -> Iterator[str]:
    """Yield a module's text in pieces of about ``size`` characters. The text is cut before
    top-level statements and methods, or between any two lines if a piece would have more than twice
    the size.
    """
    starts = {0}
    for node in ast.parse(text).body:
        for part in (node, *(node.body[1:] if isinstance(node, ast.ClassDef) else ())):
            starts.add(first_line(part) - 1)
    lines = text.splitlines(keepends=True)
    piece = ""
    for begin, end in pairwise([*sorted(starts), len(lines)]):
        if piece and len(piece) + sum(map(len, lines[begin:end])) > size:
            yield piece
            piece = ""
        for line in lines[begin:end]:
            if len(piece) + len(line) > 2 * size:  # a single function or table may be this long
                yield piece
                piece = ""
            piece += line
    if piece.strip():
        yield piece
