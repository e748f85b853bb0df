"""Reads the specifications of APIs from Python signatures and docstrings, and writes the files of
an index (Appendix A.2, steps 2 and 4).
"""

import importlib
import inspect
import json
import pkgutil
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from lookuplab.cloudapi.specs import (
    DOCUMENTATION,
    INDEX,
    ApiIndex,
    ApiSpec,
    Parameter,
    Signature,
    load_documentation,
    load_index,
)
from lookuplab.errors import UserError
from lookuplab.paths import write_lines
from recipes.prose import opening_sentence

LONGEST_DOCUMENTATION = 5_000  # characters of full documentation that are kept (Appendix B.1)
COMMON = 4  # a name that more than this many clients have does not tell which service is meant
Described = tuple[ApiSpec, str]  # the specification of an API, and its documentation


PRIVATE = "_.*|tests?|conftest"  # names of modules that are not for a package's users


def refuse(name: str, error: BaseException) -> None:
    """Raise UserError for the module ``name``, whose import raised ``error``."""
    raise UserError(f"{name!r} does not import: {type(error).__name__}: {error}") from None


def public_modules(
    package: str,
    hidden: str = PRIVATE,
    failed: Callable[[str, BaseException], None] = lambda _name, _error: None,
) -> Iterator[ModuleType]:
    """Import a package and all its public modules, and yield these modules in the order of their
    names, with parents before their children.

    ``hidden`` is a regular expression; modules whose name matches it are left out, with everything
    below them. ``failed`` is called with the name and the error of each module that cannot be
    imported, for example because an optional dependency is missing.
    """
    pending = [package]
    while pending:
        name = pending.pop()
        try:
            with warnings.catch_warnings(action="ignore"):
                module = importlib.import_module(name)
        except (Exception, SystemExit) as error:
            failed(name, error)
            continue
        yield module
        parts = {one.name for one in pkgutil.iter_modules(getattr(module, "__path__", ()))}
        public = (f"{name}.{part}" for part in parts if not re.fullmatch(hidden, part))
        pending += sorted(public, reverse=True)


def signature(function: Callable[..., object], unbound: bool = False) -> Signature:
    """Return the signature that ``inspect`` reports, without ``self`` for an ``unbound`` method. If
    Python knows no signature, as for many compiled functions, return ``(*args, **kwargs)``.
    """
    try:
        arguments = inspect.signature(function).parameters.values()
    except Exception:  # an object may define a ``__signature__`` that raises any error
        return Parameter("args", "VAR_POSITIONAL"), Parameter("kwargs", "VAR_KEYWORD")
    found = [
        Parameter(p.name, p.kind.name, int(p.default is p.empty and p.kind.name[:4] != "VAR_"))
        for p in arguments
    ]
    if unbound and found and found[0].kind.startswith("POSITIONAL"):
        found = found[1:]
    return tuple(found)


def inspected(
    place: tuple[str, str, str, str],
    function: Callable[..., object],
    unbound: bool = False,
    **more: Any,
) -> Described:
    """Return (specification, docstring) of a Python callable. ``place`` is its (provider, service,
    client, name), ``unbound`` is as in ``signature``, and ``more`` contains further fields of the
    specification. The docstring is cut at LONGEST_DOCUMENTATION characters.
    """
    docstring = inspect.getdoc(function) or ""
    parameters = signature(function, unbound)
    spec = ApiSpec(
        *place, parameters, description=opening_sentence(docstring.partition("\n:")[0]), **more
    )
    if {"VAR_POSITIONAL", "VAR_KEYWORD"} <= {p.kind for p in parameters} and not spec.required:
        spec = replace(spec, flags=("open_signature",))
    return spec, docstring[:LONGEST_DOCUMENTATION]


def to_json(spec: ApiSpec) -> dict[str, Any]:
    """Return a specification as a compact JSON object. Parameters are written as [name, kind,
    required, type], and fields with their default value are left out.
    """
    return {f.name: v for f in fields(spec) if (v := getattr(spec, f.name)) != f.default}


def write_index(folder: Path, described: Iterable[Described]) -> ApiIndex:
    """Write an index and its documentation into ``folder``, as ``load_index`` and
    ``load_documentation`` read them, and return the index.

    ``described`` are pairs (specification, full documentation) in any order. The same APIs give the
    same bytes.
    """
    described = sorted(described, key=lambda pair: pair[0].id)
    pages = [{"id": spec.id, "documentation": page} for spec, page in described if page]
    specs = map(to_json, flagged([spec for spec, _ in described]))
    for name, rows in (INDEX.name, specs), (DOCUMENTATION.name, pages):
        lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
        write_lines(folder / name, (line.encode("utf-8", "ignore").decode() for line in lines))
    load_index.cache_clear()  # the cache may hold an older index that was at the same path
    load_documentation.cache_clear()
    return load_index(folder / INDEX.name)


def flagged(specs: Sequence[ApiSpec]) -> list[ApiSpec]:
    """Return the specifications with two flags for names that do not identify one API by
    themselves.

    ``shared_name`` says that another client of the provider has an operation of this name.
    ``generic_name`` says that the name is a single word (``encrypt``; a leading ``begin_`` does not
    count), or that more than four clients of a cloud have it (``list_by_resource_group``).
    ``tasks.obstacle`` says which flags keep an API out of the tasks.
    """
    holders = Counter((spec.provider, spec.name) for spec in specs if spec.operation)
    found = []
    for spec in specs:
        times = holders[spec.provider, spec.name]
        flags = set(spec.flags)
        is_word = "_" not in spec.name.removeprefix("begin_")
        if is_word or (times > COMMON and spec.provider != "python"):
            flags.add("generic_name")
        if times > 1:
            flags.add("shared_name")
        found.append(replace(spec, flags=tuple(sorted(flags))))
    return found
