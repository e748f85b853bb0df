"""What an API is: its place, its arguments and its documentation (paper, Appendix A.2 steps 2 and 4).

The committed index holds every AWS operation and every Azure method as one JSON line; what reads it needs no SDK.
"""

import json
import lzma
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.paths import replacing
from lookuplab.errors import UserError

INDEX = paths.MINI / "cloudapi" / "index.jsonl.xz"
DOCUMENTATION = paths.MINI / "cloudapi" / "documentation.jsonl.xz"


@dataclass(frozen=True)
class Parameter:
    """One argument. ``kind`` is inspect's (``KEYWORD_ONLY``, ``POSITIONAL_OR_KEYWORD``, ``VAR_KEYWORD`` ...).

    ``type`` is one word for the value: string, integer, float, boolean, list, structure, map, blob, timestamp, or "".
    """

    name: str
    kind: str = "KEYWORD_ONLY"
    required: bool = False
    type: str = ""


@dataclass(frozen=True)
class ApiSpec:
    """One callable of a cloud SDK's client, or of any Python package (provider ``python``, service: the package).

    ``client`` is what the prompt names: the boto3 service name, the Azure class, or a package's module or class with
    its whole path. ``module`` is where a class is imported from, empty for what is called on a module. ``overloads``
    are further signatures of which one must bind; ``documented`` are keywords that only the docstring knows (used by
    the closed binding). ``operation`` is False for client methods that are no
    API operation (``can_paginate``, ``get_paginator``, ``upload_file`` ...). ``flags`` say why an API is not
    sampled into the benchmark (``autofilled``, ``keyword_argument``, ``generic_name``, ``open_signature`` ...).
    Of packages only: ``also``, other names by which the client has the same callable (``algorithms.bfs_tree``), and
    for a class ``bases``, the clients whose methods it inherits.
    """

    provider: str
    service: str
    client: str
    name: str
    parameters: tuple[Parameter, ...]
    overloads: tuple[tuple[Parameter, ...], ...] = ()
    documented: tuple[str, ...] = ()
    description: str = ""
    module: str = ""
    operation: bool = True
    flags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.provider}/{self.service}.{self.client}.{self.name}"

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters if p.required)

    @property
    def optional(self) -> tuple[str, ...]:
        named = tuple(p.name for p in self.parameters if not p.required and not p.kind.startswith("VAR_"))
        return named + tuple(name for name in self.documented if name not in {p.name for p in self.parameters})


def to_json(spec: ApiSpec) -> dict:
    """A compact JSON object: parameters as [name, kind, required, type], empty fields left out."""
    row: dict = {"provider": spec.provider, "service": spec.service, "client": spec.client, "name": spec.name}
    row["parameters"] = [[p.name, p.kind, int(p.required), p.type] for p in spec.parameters]
    if spec.overloads:
        row["overloads"] = [[[p.name, p.kind, int(p.required), p.type] for p in o] for o in spec.overloads]
    for field in ("documented", "description", "module", "flags", "also", "bases"):
        if getattr(spec, field):
            row[field] = getattr(spec, field)
    if not spec.operation:
        row["operation"] = False
    return row


def from_json(row: dict) -> ApiSpec:
    """The inverse of ``to_json``."""
    def signature(rows: list) -> tuple[Parameter, ...]:
        return tuple(Parameter(name, kind, bool(required), type_) for name, kind, required, type_ in rows)

    return ApiSpec(
        provider=row["provider"], service=row["service"], client=row["client"], name=row["name"],
        parameters=signature(row["parameters"]),
        overloads=tuple(signature(o) for o in row.get("overloads", ())),
        documented=tuple(row.get("documented", ())), description=row.get("description", ""),
        module=row.get("module", ""), operation=row.get("operation", True), flags=tuple(row.get("flags", ())),
        also=tuple(row.get("also", ())), bases=tuple(row.get("bases", ())),
    )


class ApiIndex:
    """All specifications, by id and by client; ``documentation``: the file of their full texts."""

    def __init__(self, specs: Iterable[ApiSpec], documentation: Path = DOCUMENTATION):
        self.specs = tuple(specs)
        self.documentation = documentation
        self.providers = tuple(sorted({spec.provider for spec in self.specs}))
        self.by_id = {spec.id: spec for spec in self.specs}
        self._by_client: dict[tuple[str, str, str | None], dict[str, ApiSpec]] = defaultdict(dict)
        for spec in self.specs:
            self._by_client[spec.provider, spec.client, spec.service][spec.name] = spec
            self._by_client[spec.provider, spec.client, None][spec.name] = spec
        self._bases: dict[tuple[str, str], tuple[str, ...]] = {}
        for spec in self.specs:
            for service in (spec.service, None):
                for name in spec.also:
                    self._by_client[spec.provider, spec.client, service].setdefault(name, spec)
                if spec.bases:
                    self._by_client[spec.provider, f"{spec.client}.{spec.name}", service]  # it may have no own method
            if spec.bases:
                self._bases[spec.provider, f"{spec.client}.{spec.name}"] = spec.bases

    def has(self, provider: str, client: str, service: str | None = None) -> bool:
        """Whether this client is in the index (in this service, where one is named)."""
        return (provider, client, service) in self._by_client

    def methods(self, provider: str, client: str, service: str | None = None) -> dict[str, ApiSpec]:
        """name -> specification of every method of one client, inherited ones and other names included.

        Raises UserError for a client that is not in the index.

        Some Azure classes (``Operations``) exist in several services: without ``service`` their methods come together.
        """
        if not self.has(provider, client, service):
            place = f"client {client!r}" + (f" of service {service!r}" if service else "")
            raise UserError(f"no {place} of provider {provider!r} in the API index ({len(self.specs)} APIs)")
        found: dict[str, ApiSpec] = {}
        for base in reversed(self._bases.get((provider, client), ())):
            found |= self._by_client.get((provider, base, None), {})
        return found | self._by_client[provider, client, service]


@lru_cache(maxsize=2)
def load_index(path: Path = INDEX) -> ApiIndex:
    """The committed index (or another one in the same format); raises UserError where there is none."""
    return ApiIndex(_rows(path, from_json), Path(path).with_name(DOCUMENTATION.name))


@lru_cache(maxsize=2)
def load_documentation(path: Path = DOCUMENTATION) -> dict[str, str]:
    """API id -> full documentation, right-truncated to 5,000 characters (paper, Appendix B.1); errors as above."""
    return dict(_rows(path, lambda row: (row["id"], row["documentation"])))


def _rows(path: Path, read: Callable[[dict], Any]) -> list:
    """What ``read`` makes of every line; raises UserError for a file that is missing, torn or in another format."""
    if not Path(path).exists():
        raise UserError(f"no API index at {path}: run `lookuplab data build cloudapi`")
    try:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            return [read(json.loads(line)) for line in lines]
    except (lzma.LZMAError, EOFError, OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is no API index ({error}): run `lookuplab data build cloudapi`") from None


def write_rows(path: Path, rows: Iterable[dict]) -> None:
    """The compressed JSON Lines that ``load_index`` and ``load_documentation`` read: the same rows, the same bytes."""
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    with replacing(path) as unfinished:
        unfinished.write_bytes(lzma.compress(text.encode("utf-8"), preset=9))
