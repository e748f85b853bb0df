"""Reads the specifications of APIs. A specification contains an API's provider, service, client and
name, its parameters and its description (Appendix A.2, steps 2 and 4).

The committed index has one JSON line for every AWS operation and every Azure method. Because the
index is committed, no SDK needs to be installed.
"""

import lzma
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lookuplab import paths
from lookuplab.errors import UserError

INDEX = paths.MINI / "cloudapi" / "index.jsonl.xz"
DOCUMENTATION = paths.MINI / "cloudapi" / "documentation.jsonl.xz"
EXAMPLES = "examples.jsonl.xz"  # the file of the SDK's own examples, in the folder of the index


class Parameter(NamedTuple):
    """One parameter of an API. ``kind`` is the name of a kind in ``inspect.Parameter``
    (``KEYWORD_ONLY``, ``POSITIONAL_OR_KEYWORD``, ``VAR_KEYWORD`` ...). ``required`` is 0 or 1.
    ``type`` says what the value is: string, integer, float, boolean, list, structure, map, blob or
    timestamp, or "" if the type is unknown.
    """

    name: str
    kind: str = "KEYWORD_ONLY"
    required: int = 0
    type: str = ""


_parameter = cache(Parameter)  # most parameters belong to many APIs, and are made only once
Signature = tuple[Parameter, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class ApiSpec:
    """The specification of one API: a method of a cloud SDK's client, or a function or method of a
    Python package. For a package, the provider is ``python`` and the service is the package's name.

    ``client`` is the client's name in the prompt: the boto3 service, the Azure class, or the dotted
    path of a package's module or class. ``module`` is the module from which the client's class is
    imported; it is "" for AWS and for functions of a module. ``flags`` say why an API is not
    sampled into the benchmark (``autofilled``, ``generic_name``, ``open_signature`` ...).
    ``operation`` is False for client methods that are not API operations (``can_paginate``,
    ``get_paginator``, ``upload_file`` ...).

    ``overloads`` and ``documented`` are for the closed check of a call (``validity.bind_error``).
    If there are overloads, the call must also fit at least one of them. ``documented`` are keywords
    that only the docstring mentions; the closed check accepts them.
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


def from_json(row: dict[str, Any]) -> ApiSpec:
    """Return the specification that one parsed line of the index contains. This is the inverse of
    ``recipes.cloudapi.reading.to_json``.
    """
    plain: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in row.items()
    }
    first, *overloads = (
        tuple(_parameter(*one) for one in rows)
        for rows in (row["parameters"], *row.get("overloads", ()))
    )
    return ApiSpec(**plain | {"parameters": first, "overloads": tuple(overloads)})


class ApiIndex:
    """All specifications, by id and by client. ``documentation`` is the path of the file with the
    APIs' full documentation.
    """

    def __init__(self, specs: Iterable[ApiSpec], documentation: Path = DOCUMENTATION):
        self.specs = tuple(specs)
        self.documentation = documentation
        self.operations = tuple(spec for spec in self.specs if spec.operation)
        self.by_id = {spec.id: spec for spec in self.specs}
        self.names = {(spec.provider, spec.name) for spec in self.specs}
        self.providers = sorted({provider for provider, _ in self.names})
        self._clients = defaultdict[tuple[str, str, str | None], dict[str, ApiSpec]](dict)
        for spec in self.specs:
            for service in (spec.service, None):
                self._clients[spec.provider, spec.client, service][spec.name] = spec

    def methods(self, provider: str, client: str, service: str | None = None) -> dict[str, ApiSpec]:
        """Return {name: specification} for every method of one client.

        Some Azure services have classes of the same name, such as ``Operations``. The methods of
        these classes are merged if ``service`` is None. They are also merged if the index does not
        know the service, because users' own tasks may have other names for services. Raises
        UserError for a client that is not in the index.
        """
        for group in (service, None):
            if methods := self._clients.get((provider, client, group)):
                return methods
        raise UserError(
            f"no client {client!r} of provider {provider!r} in the API index "
            f"({len(self.specs)} APIs)"
        )


@cache
def load_index(path: Path = INDEX) -> ApiIndex:
    """Return the committed index, or another index in the same format. Raises UserError if the file
    is missing, is empty or is not an index.
    """
    if not (specs := _read(path, from_json)):
        raise UserError(f"{path} holds no API: name another index")
    return ApiIndex(specs, path.with_name(DOCUMENTATION.name))


@cache
def load_documentation(path: Path = DOCUMENTATION) -> dict[str, str]:
    """Return {API id: documentation}. Texts are cut after 5,000 characters (Appendix B.1)."""
    return dict(_read(path, itemgetter("id", "documentation")))


def texts_of(design: str, index: ApiIndex) -> dict[str, str]:
    """Return {API id: text} for an augmentation design: the full documentation (``full``), or the
    SDK's own example of a call (``example``). The result is empty for the other designs, and for an
    index without examples.
    """
    if design == "full":
        return load_documentation(index.documentation)
    examples = index.documentation.with_name(EXAMPLES)
    return load_documentation(examples) if design == "example" and examples.exists() else {}


def _read(path: Path, parse: Callable[[dict[str, Any]], T]) -> list[T]:
    message = "is not an API index ({}): run `python -m recipes.cloudapi.packages`"
    with report_unreadable(path, message):
        return [parse(record) for _, record in paths.json_lines(path)]


@contextmanager
def report_unreadable(path: Path, message: str) -> Iterator[None]:
    """Turn any error that a missing or malformed file causes into a UserError. The error's text is
    the path and ``message``, in which ``{}`` stands for the original error.
    """
    try:
        yield
    except (lzma.LZMAError, EOFError, OSError, ValueError, KeyError, TypeError, UserError) as error:
        raise UserError(f"{path} {message.format(error)}") from None
