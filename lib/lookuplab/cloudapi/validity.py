"""Valid API invocation and the three kinds of failure (paper, Sections 2.2 and 2.3, Appendices A.3 and A.5).

A completion is judged by the outermost first call on the client and nothing behind it: ``client.`` + completion. The
text is taken literally; a completion that repeats the prompt, or that begins with ``client.``, calls something else.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lookuplab.cloudapi.binding import CallArguments, CallError, bind_error, closed_bind_error, parse_call
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec
from lookuplab.models.first_call import first_call
from lookuplab.models.types import Completion

if TYPE_CHECKING:
    import pandas

VALID = "valid"
INVALID_USAGE = "invalid_usage"  # the target, called wrongly (or named and not called)
INCORRECT_EXISTING = "incorrect_existing"  # another method of the prompt's client
NONEXISTENT = "nonexistent"  # no method of the prompt's client, or nothing at all
CATEGORIES = (VALID, INVALID_USAGE, INCORRECT_EXISTING, NONEXISTENT)

FIRST_NAME = re.compile(r"(?:[\s\\])*([^\W\d]\w*)")


@dataclass(frozen=True)
class Judgement:
    """What one completion is worth.

    ``call`` is the text of the first call (None: there is none, or it never ends) and ``name`` what it calls;
    ``reason`` says in words why an invalid call does not bind. ``exists_anywhere`` is the name-only variant of
    existence: the name belongs to some client of the provider. Flags: ``unresolved_splat`` (judged on the visible
    arguments), ``open_signature`` (the API accepts an empty call), ``autofilled`` (botocore fills in a required member
    of this API), ``unknown_target`` (no acceptable target is a method of the client, so nothing can be valid).
    """

    valid: bool
    valid_closed: bool
    category: str
    call: str | None
    name: str | None
    reason: str = ""
    flags: tuple[str, ...] = ()
    exists_anywhere: bool = False


def judge(
    candidate: str, targets: str | Sequence[str], index: ApiIndex, provider: str, client: str,
    service: str | None = None,
) -> Judgement:
    """Judge what stands after ``client.`` in a completion.

    ``targets`` are the acceptable APIs, as names or ids; one that binds suffices (Appendix A.3). "Exists" means: is a
    method of the prompt's ``client``. ``service`` is only needed where one class name belongs to several packages; one
    that the index does not have is passed over, since others name the packages otherwise. Raises UserError for a client
    that is not in the index.
    """
    methods = index.methods(provider, client, service if index.has(provider, client, service) else None)
    wanted = {targets} if isinstance(targets, str) else set(targets)
    wanted = {target.rsplit(".", 1)[-1] for target in wanted}
    call, name = _first_call(candidate)
    spec = methods.get(name or "")
    flags = _flags(spec) + (() if wanted & methods.keys() else ("unknown_target",))
    elsewhere = name in provider_names(index, provider)

    def judged(category: str, reason: str, closed: bool = False, more: tuple[str, ...] = ()) -> Judgement:
        return Judgement(category == VALID, closed, category, call, name, reason, flags + more, elsewhere)

    if spec is None:
        return judged(NONEXISTENT, f"{client} has no method {name}" if name else "nothing is called")
    failure = INVALID_USAGE if spec.name in wanted else INCORRECT_EXISTING
    if call is None:
        return judged(failure, "no complete call")
    try:
        arguments = parse_call(call)
    except CallError as error:
        return judged(failure, str(error))
    return judged(*_bound(spec, arguments, failure))


def _bound(spec: ApiSpec, arguments: CallArguments, failure: str) -> tuple[str, str, bool, tuple[str, ...]]:
    """Category, reason, closed validity and further flags of a well-formed call of an existing method."""
    splat = ("unresolved_splat",) if arguments.unresolved else ()
    error = bind_error(spec, arguments)
    if failure == INCORRECT_EXISTING or error:
        return failure, error or "not an acceptable target", False, splat
    closed_error = closed_bind_error(spec, arguments)
    return VALID, f"closed: {closed_error}" if closed_error else "", closed_error is None, splat


def _first_call(candidate: str) -> tuple[str | None, str | None]:
    """(text of the first complete call or None, the dotted name it calls or the first name of an unfinished one)."""
    found = first_call(candidate)
    if found.end is not None:
        name = re.sub(r"[\s\\]+", "", candidate[found.start:found.paren])
        return candidate[found.start:found.end], unicodedata.normalize("NFKC", name)  # as Python reads identifiers
    named = FIRST_NAME.match(candidate)
    return None, unicodedata.normalize("NFKC", named.group(1)) if named else None


def _flags(spec: ApiSpec | None) -> tuple[str, ...]:
    return tuple(flag for flag in ("open_signature", "autofilled") if spec and flag in spec.flags)


@lru_cache(maxsize=8)
def provider_names(index: ApiIndex, provider: str) -> frozenset[str]:
    """The names of all methods of all clients of a provider."""
    return frozenset(spec.name for spec in index.specs if spec.provider == provider)


def validity_table(completions: Iterable[Completion], tasks: Iterable, index: ApiIndex) -> "pandas.DataFrame":
    """One row a completion: ``task, sample, api, provider, frequency, valid, valid_closed, category, call, name``.

    ``tasks`` are ``cloudapi.benchmark.Task``; a completion belongs to the task whose id it carries. Rows come in the
    order of the tasks. ``api`` is the task's first target: the cluster of the confidence intervals. Raises KeyError
    for a completion of no task.
    """
    import pandas

    by_id = {task.id: task for task in tasks}
    position = {task_id: at for at, task_id in enumerate(by_id)}
    rows = []
    for completion in sorted(completions, key=lambda c: (position[c.id], c.sample)):
        task = by_id[completion.id]
        found = judge(completion.text, task.targets, index, task.provider, task.client, task.service)
        rows.append({
            "task": task.id, "sample": completion.sample, "api": task.targets[0], "provider": task.provider,
            "frequency": task.frequency, "valid": found.valid, "valid_closed": found.valid_closed,
            "category": found.category, "call": found.call, "name": found.name,
        })
    columns = "task sample api provider frequency valid valid_closed category call name".split()
    return pandas.DataFrame(rows, columns=columns)
