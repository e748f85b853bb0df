"""What an API is: its place, its arguments and its documentation (Appendix A.2, steps 2 and 4).

The committed index contains every AWS operation and every Azure method as one JSON line; reading it
needs no SDK.
"""

import inspect
import json
import lzma
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, get_overloads

from lookuplab import paths
from lookuplab.cloudapi.prose import documented_types, first_sentence
from lookuplab.errors import UserError
from lookuplab.paths import records, write_lines

INDEX = paths.MINI / "cloudapi" / "index.jsonl.xz"
DOCUMENTATION = paths.MINI / "cloudapi" / "documentation.jsonl.xz"
_TYPES = {  # the first that matches: "list[str]" is a list, "Optional[str]" a string
    "list": r"list|iterable|sequence|tuple|\[(?:str|int)\]$",
    "map": r"dict|mapping|json",
    "blob": r"bytes|io\b|stream|anystr",
    "timestamp": r"datetime|timedelta|\bdate\b",
    "boolean": r"\bbool",
    "integer": r"\bint\b|\blong\b",
    "float": r"\bfloat\b",
    "string": r"\bstr\b|string",
    "structure": r"\w",
}
LIMIT = 5_000  # characters of full documentation that are kept (Appendix B.1)
COMMON = 4  # a name in more clients than this says nothing about the service


class Parameter(NamedTuple):
    """One argument. ``kind`` is inspect's (``KEYWORD_ONLY``, ``POSITIONAL_OR_KEYWORD``,
    ``VAR_KEYWORD`` ...). ``required`` is 0 or 1. ``type`` is one word for the value: string,
    integer, float, boolean, list, structure, map, blob, timestamp, or "".
    """

    name: str
    kind: str = "KEYWORD_ONLY"
    required: int = 0
    type: str = ""


Signature = tuple[Parameter, ...]
Place = tuple[str, str, str, str]  # provider, service, client, name


def signature(function: Callable, types: Mapping[str, str], unbound: bool = False) -> Signature:
    """The signature that ``inspect`` reports, without ``self`` for an ``unbound`` method.

    ``types`` gives the types of arguments without an annotation. If Python knows no signature (many compiled
    functions), anything is accepted.
    """
    try:
        arguments = inspect.signature(function).parameters.values()
    except Exception:  # a package's own ``__signature__`` may raise anything
        return Parameter("args", "VAR_POSITIONAL"), Parameter("kwargs", "VAR_KEYWORD")
    found = []
    for p in arguments:
        one = Parameter(p.name, p.kind.name)
        if not one.kind.startswith("VAR_"):
            given = types.get(p.name, "") if p.annotation is p.empty else p.annotation
            given = given if isinstance(given, str) else inspect.formatannotation(given)
            one = Parameter(*one[:2], int(p.default is p.empty), type_word(given))
        found.append(one)
    without_self = unbound and found and found[0].kind.startswith("POSITIONAL")
    return tuple(found[1:] if without_self else found)


@dataclass(frozen=True)
class ApiSpec:
    """One callable of a cloud SDK's client, or of a Python package (provider ``python``, service: the package).

    ``client`` is what the prompt names: the boto3 service, the Azure class, or the dotted path of a package's module or
    class. ``module`` is where a class is imported from, empty for functions of a module. In the closed binding
    (``validity.bind_error``), one of the ``overloads`` must bind too, and the ``documented`` keywords, which only the
    docstring mentions, are accepted. ``flags`` say why an API is not sampled into the benchmark (``autofilled``,
    ``generic_name``, ``open_signature`` ...). ``operation`` is False for client methods that are not API operations
    (``can_paginate``, ``get_paginator``, ``upload_file`` ...).
    """

    provider: str
    service: str
    client: str
    name: str
    parameters: Signature
    overloads: tuple[Signature, ...] = ()
    documented: tuple[str, ...] = ()
    description: str = ""
    module: str = ""
    flags: tuple[str, ...] = ()
    operation: bool = True

    @property
    def id(self) -> str:
        return f"{self.provider}/{self.service}.{self.client}.{self.name}"

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters if p.required)

    @property
    def optional(self) -> tuple[str, ...]:
        taken = {p.name for p in self.parameters}
        named = (p.name for p in self.parameters if not p.required and p.kind[:4] != "VAR_")
        return *named, *(name for name in self.documented if name not in taken)


Described = tuple[ApiSpec, str]  # an API with its documentation


def inspected(place: Place, function: Callable, unbound: bool = False, **more) -> Described:
    """(specification, docstring) of a Python callable at a (provider, service, client, name).

    The specification is read from its signature, overloads and docstring; ``more`` are further fields.
    """
    variants = [function]
    variants += get_overloads(inspect.unwrap(getattr(function, "__func__", function)))
    docstring = next(filter(None, map(inspect.getdoc, variants)), "")
    types = documented_types(docstring)
    parameters, *overloads = (signature(one, types, unbound) for one in variants)
    known = {p.name for one in (parameters, *overloads) for p in one}
    anything = {"VAR_POSITIONAL", "VAR_KEYWORD"} <= {p.kind for p in parameters}
    spec = ApiSpec(
        *(*place, parameters, tuple(overloads)),
        documented=tuple(sorted(types.keys() - known)),
        description=first_sentence(docstring),
        **more,
    )
    if anything and not spec.required:
        spec = replace(spec, flags=("open_signature",))
    return spec, docstring[:LIMIT]


def methods(cls: type) -> Iterator[tuple[str, Callable, bool]]:
    """(name, method, whether it needs no instance) of the public methods of a class."""
    for name, method in inspect.getmembers(cls, inspect.isroutine):
        if not name.startswith("_") and callable(method):  # a cached property passes for a routine
            static = inspect.getattr_static(cls, name, None)
            yield name, method, isinstance(static, classmethod | staticmethod)


def type_word(annotation: str) -> str:
    """One word for the type of a value; for a union, that of its first alternative."""
    text = re.sub(r"[\w.~]+\.(?=\w)", "", annotation).replace("`", "").strip()
    while wrapped := re.fullmatch(r"(?:Optional|Union|Required)\[(.*)\]", text):
        text = wrapped[1]
    outside = re.sub(r"\[.*?\]", lambda inside: "_" * len(inside[0]), text)
    if cut := re.search(r",|\|| or ", outside):
        return type_word(text[: cut.start()])
    return next((word for word, pattern in _TYPES.items() if re.search(pattern, text.lower())), "")


def to_json(spec: ApiSpec) -> dict:
    """A compact JSON object: parameters as [name, kind, required, type], empty fields left out."""
    return {f.name: v for f in fields(spec) if (v := getattr(spec, f.name)) != f.default}


def from_json(row: dict) -> ApiSpec:
    """The inverse of ``to_json``."""

    plain = {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
    first, *overloads = (
        tuple(Parameter(*one) for one in rows)
        for rows in (row["parameters"], *row.get("overloads", ()))
    )
    return ApiSpec(**plain | {"parameters": first, "overloads": tuple(overloads)})


class ApiIndex:
    """All specifications, by id and by client; ``documentation`` is the file of their full texts."""

    def __init__(self, specs: Iterable[ApiSpec], documentation: Path = DOCUMENTATION):
        self.specs = tuple(specs)
        self.documentation = documentation
        self.operations = tuple(spec for spec in self.specs if spec.operation)
        self.by_id = {spec.id: spec for spec in self.specs}
        self.names = {(spec.provider, spec.name) for spec in self.specs}
        self.providers = tuple(sorted({provider for provider, _ in self.names}))
        self._clients = defaultdict(dict)
        for spec in self.specs:
            for service in (spec.service, None):
                self._clients[spec.provider, spec.client, service][spec.name] = spec

    def methods(self, provider: str, client: str, service: str | None = None) -> dict[str, ApiSpec]:
        """name -> specification of every method of one client.

        Some Azure classes (``Operations``) exist in several services. Their methods are merged without ``service``, and
        also if ``service`` is not in the index, since others may name the packages differently. Raises UserError for a
        client that is not in the index.
        """
        for place in (service, None):
            if found := self._clients.get((provider, client, place)):
                return found
        raise UserError(
            f"no client {client!r} of provider {provider!r} in the API index ({len(self.specs)} APIs)"
        )


@cache
def load_index(path: Path = INDEX) -> ApiIndex:
    """The committed index, or another in its format. Raises UserError where there is none."""
    return ApiIndex(_read(path, from_json), Path(path).with_name(DOCUMENTATION.name))


@cache
def load_documentation(path: Path = DOCUMENTATION) -> dict[str, str]:
    """API id -> full documentation, right-truncated to 5,000 characters (Appendix B.1)."""
    return dict(_read(path, itemgetter("id", "documentation")))


def _read(path: Path, kind: Callable[[dict], object]) -> list:
    message = "is no API index ({}): run `lookuplab data build cloudapi`"
    with wanted(path, message):
        return [kind(record) for _, record in records(path)]


@contextmanager
def wanted(path: Path, message: str) -> Iterator[None]:
    """Whatever shows that a file is missing or holds something else becomes a UserError: path, message and error."""
    try:
        yield
    except (lzma.LZMAError, EOFError, OSError, ValueError, KeyError, TypeError, UserError) as error:
        raise UserError(f"{path} {message.format(error)}") from None


def write_index(folder: Path, described: Iterable[Described]) -> ApiIndex:
    """Write (specification, full documentation) of APIs, given in any order, for ``load_index`` and
    ``load_documentation``.

    The same APIs give the same bytes.
    """
    described = sorted(described, key=lambda pair: pair[0].id)
    pages = [{"id": spec.id, "documentation": page} for spec, page in described if page]
    specs = map(to_json, flagged([spec for spec, _ in described]))
    for name, rows in (INDEX.name, specs), (DOCUMENTATION.name, pages):
        lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
        write_lines(folder / name, (line.encode("utf-8", "ignore").decode() for line in lines))
    load_index.cache_clear()  # the old index may have had the same path
    load_documentation.cache_clear()
    return load_index(folder / INDEX.name)


def flagged(specs: Sequence[ApiSpec]) -> list[ApiSpec]:
    """Flag names that do not identify one API by themselves; ``benchmark.candidates`` leaves out most of these.

    ``shared_name``: another client of the provider has an operation of this name. ``generic_name``: a single word
    (``encrypt``; ``begin_`` does not count), or a name in more than four clients (``list_by_resource_group``).
    """
    holders, found = Counter((spec.provider, spec.name) for spec in specs if spec.operation), []
    for spec in specs:
        times, flags = holders[spec.provider, spec.name], set(spec.flags)
        if times > COMMON or "_" not in spec.name.removeprefix("begin_"):
            flags.add("generic_name")
        if times > 1:
            flags.add("shared_name")
        found.append(replace(spec, flags=tuple(sorted(flags))))
    return found
