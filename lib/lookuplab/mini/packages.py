"""Part (a) of the mini corpus: Python source and documentation of the packages that the kit itself depends on.

Only packages of the explicit list below are read, from the stated sources (``python_sources``); a package whose
metadata states no permissive licence is left out, and ``sources()`` says so. Left out on purpose: the repositories held
out for ToolGen's notebooks, the cloud SDKs and every file that mentions one (they would change the exact API counts),
and a tenth of the docstring examples of four libraries (test problems for the data-science notebooks).
"""

import ast
import hashlib
import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from lookuplab.python_sources import distribution

PACKAGES = tuple("""
    accelerate attrs cloudpickle datasets fastapi fonttools formulaic fsspec httpx huggingface_hub hypothesis ipykernel
    ipython jedi jinja2 joblib jsonschema jupyter_client jupyter_server matplotlib nbconvert nbformat networkx numpy
    openai packaging pandas parso patsy platformdirs pluggy pydantic pygments pytest pyyaml scikit-learn scipy starlette
    statsmodels sympy tenacity tornado tqdm traitlets transformers urllib3 uvicorn
""".split())
HELD_OUT_PACKAGES = ("rich", "click", "requests", "papermill", "nbclient", "seaborn")  # repositories of later notebooks
EXAMPLE_PACKAGES = {"numpy": "numpy", "pandas": "pandas", "scipy": "scipy", "scikit-learn": "sklearn"}
PERMISSIVE = re.compile(
    r"\b(MIT|0?BSD|Apache|PSF|ISC|Python Software Foundation|HPND|Zlib|CC0|BSL|LLVM-exception|Unlicense)\b", re.I)
CLOUD = re.compile(r"boto3|botocore|\bazure\b", re.I)
SKIPPED_PARTS = frozenset(
    "tests test testing _vendor vendored externals _vendored_packages __pycache__ conftest.py".split())
CHUNK = 3000  # characters: a document of about 800 tokens at most


@dataclass(frozen=True)
class Source:
    """One distribution of the list: used, or why not."""

    name: str
    version: str
    licence: str
    excluded: str = ""


def held_out_example(qualified_name: str) -> bool:
    """Whether the docstring examples of this object are kept out of the corpus (one name in ten).

    Decided by a hash of top package and last name only, so that ``numpy.average``, the private place that it is defined
    in and a re-export agree, and so do ``DataFrame.merge`` and ``pandas.merge``, which share examples.
    """
    package, _, rest = qualified_name.partition(".")
    key = f"{package}:{rest.rpartition('.')[2]}"
    return int(hashlib.sha256(key.encode()).hexdigest(), 16) % 10 == 0


def licence_of(dist: metadata.Distribution) -> str:
    """The stated licence: SPDX expression, else the trove classifiers, else the first line of the free text."""
    fields = dist.metadata
    classifiers = [c.split("::")[-1].strip() for c in fields.get_all("Classifier") or () if c.startswith("License")]
    text = (fields.get("License") or "").strip().splitlines()
    return fields.get("License-Expression") or "; ".join(classifiers) or (text[0].strip() if text else "")


def is_permissive(licence: str) -> bool:
    """Whether every licence of an AND/OR/; list is a permissive one (MPL and GPL are not)."""
    terms = [term.strip(" ()") for term in re.split(r"\bAND\b|\bOR\b|;", licence)]
    return bool(terms) and all(PERMISSIVE.search(term) for term in terms if term != "CNRI-Python")


def sources() -> list[Source]:
    """Every listed package with version, licence and, where it is left out, the reason."""
    found = []
    for name in PACKAGES:
        dist = distribution(name)
        licence = licence_of(dist)
        reason = "" if is_permissive(licence) else "licence not clearly permissive"
        found.append(Source(name, dist.version, licence, reason))
    return found


def package_documents(characters: int = 18_000_000, seed: int = 0) -> Iterator[tuple[str, str]]:
    """(source id, text) of about ``characters`` characters in all, deterministic for the stated sources.

    Files come in an order given by a hash; the next file is always taken from the package that has given least so far,
    so that a large package does not crowd out the others.
    """
    queues = [(0, source.name, files_of(source.name, seed)) for source in sources() if not source.excluded]
    heapq.heapify(queues)
    total = 0
    while queues and total < characters:
        given, name, files = heapq.heappop(queues)
        for path in files:
            text = _usable_text(name, path)
            if text:
                for number, chunk in enumerate(chunks(text)):
                    yield f"{name}/{path[0]}#{number}", chunk
                total += len(text)
                heapq.heappush(queues, (given + len(text), name, files))
                break


def files_of(name: str, seed: int) -> Iterator[tuple[str, Path]]:
    """(path among the sources, place on disk) of a package's Python files, in the order of a seeded hash."""
    dist = distribution(name)
    kept = [str(file) for file in dist.files or () if file.suffix == ".py" and not SKIPPED_PARTS & set(file.parts)]
    kept.sort(key=lambda path: hashlib.sha256(f"{seed}:{path}".encode()).digest())
    return iter([(path, Path(dist.locate_file(path))) for path in kept if not path.startswith("..")])


def _usable_text(name: str, path: tuple[str, Path]) -> str:
    """A file's text without held-out examples; empty for cloud code, data tables and files that do not parse."""
    try:
        text = path[1].read_text(encoding="utf-8")
        if len(text) < 200 or CLOUD.search(text) or max(map(len, text.splitlines())) > 400:
            return ""
        if sum(map(str.isdigit, text)) > 0.15 * len(text):
            return ""
        ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return ""
    return without_held_out_examples(text, EXAMPLE_PACKAGES[name]) if name in EXAMPLE_PACKAGES else text


def without_held_out_examples(text: str, package: str) -> str:
    """A module's source without the ``>>>`` blocks of held-out objects.

    A string with examples that belongs to no object that we can name (shared templates) loses them in any case.
    """
    lines = text.splitlines(keepends=True)
    owners = _string_owners(ast.parse(text))
    for node, name in sorted(owners.items(), key=lambda item: -item[0].lineno):
        if ">>>" in node.value and (name is None or held_out_example(f"{package}.{name}")):
            lines[node.lineno - 1:node.end_lineno] = _without_examples(lines[node.lineno - 1:node.end_lineno])
    return "".join(lines)


def _string_owners(tree: ast.Module) -> dict[ast.Constant, str | None]:
    """Each multi-line string of a module -> the name of the object that it documents, or None."""
    owners: dict[ast.Constant, str | None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno > node.lineno:
            owners.setdefault(node, None)
        documentable = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if documentable and ast.get_docstring(node, clean=False):
            owners[node.body[0].value] = node.name
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("add_newdoc") and len(node.args) == 3:
            # numpy documents compiled objects by add_newdoc(place, name, text or (name, text))
            name, doc = node.args[1:]
            if isinstance(doc, ast.Tuple) and len(doc.elts) == 2:
                name, doc = doc.elts
            if isinstance(name, ast.Constant) and isinstance(doc, ast.Constant):
                owners[doc] = str(name.value)
    return owners


def _without_examples(lines: list[str]) -> list[str]:
    """Source lines of one string without its ``>>>`` paragraphs; its first and last line keep the quotes."""
    kept, inside = lines[:1], False
    for line in lines[1:-1]:
        inside = bool(line.strip()) and (inside or line.lstrip().startswith(">>>"))
        if not inside:
            kept.append(line)
    last = lines[-1]
    if inside or last.lstrip().startswith(">>>"):
        closing = max(last.rfind('"""'), last.rfind("'''"), 0)
        last = last[:len(last) - len(last.lstrip())] + last[closing:]
    return kept + [last]


def chunks(text: str, size: int = CHUNK) -> Iterator[str]:
    """Cut a module into pieces of about ``size`` characters: before top-level statements and methods, else anywhere
    between lines."""
    starts = set()
    for node in ast.parse(text).body:
        inner = node.body[1:] if isinstance(node, ast.ClassDef) else ()
        for part in (node, *inner):
            decorators = getattr(part, "decorator_list", ())
            starts.add(min([part.lineno, *(d.lineno for d in decorators)]) - 1)
    lines = text.splitlines(keepends=True)
    edges = [0, *sorted(starts - {0}), len(lines)]
    piece = ""
    for begin, end in zip(edges, edges[1:]):
        if piece and len(piece) + sum(map(len, lines[begin:end])) > size:
            yield piece
            piece = ""
        for line in lines[begin:end]:
            if len(piece) + len(line) > 2 * size:  # one long function or table
                yield piece
                piece = ""
            piece += line
    if piece.strip():
        yield piece
