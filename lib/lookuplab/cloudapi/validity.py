"""Valid API invocation and the three kinds of failure (paper, Sections 2.2 and 2.3, Appendices A.3 and A.5).

A completion is judged by the outermost first call on the client and nothing behind it: ``client.`` + completion. The
text is taken literally; a completion that repeats the prompt, or that begins with ``client.``, calls something else.

A call is valid if a stub with the API's signature takes its arguments: only their names and places count (Section 2.2
and Figure 3), never their values. Two bindings exist: *open* mirrors the signature, ``**kwargs`` included; *closed*
takes only keywords that are known from somewhere. For AWS they are the same, because botocore refuses every positional
argument and every unknown keyword. (It lets unknown keywords of an operation without any input pass and drops them; the
stub refuses them, as the documentation does.)
"""

import ast
import keyword
import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import Parameter as StubParameter
from inspect import Signature

from lookuplab.cloudapi.first_call import first_call
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter

VALID = "valid"
INVALID_USAGE = "invalid_usage"  # the target, called wrongly (or named and not called)
INCORRECT_EXISTING = "incorrect_existing"  # another method of the prompt's client
NONEXISTENT = "nonexistent"  # no method of the prompt's client, or nothing at all
CATEGORIES = (VALID, INVALID_USAGE, INCORRECT_EXISTING, NONEXISTENT)

FIRST_NAME = re.compile(r"(?:[\s\\])*([^\W\d]\w*)")

# What azure-core's pipeline takes from the keywords of any operation (its policies and its transport, 1.30.1).
PIPELINE_OPTIONS = frozenset(
    "cls headers params api_version content_type error_map continuation_token polling polling_interval stream "
    "request_id auto_request_id user_agent user_agent_overwrite raw_request_hook raw_response_hook response_encoding "
    "logger logging_enable logging_body network_span_namer tracing_attributes enforce_https insecure_domain_change "
    "permit_redirects redirect_max timeout retry_total retry_connect retry_read retry_status retry_mode "
    "retry_backoff_factor retry_backoff_max retry_on_methods retry_on_status_codes connection_timeout read_timeout "
    "connection_verify connection_cert proxies cookies decompress use_env_settings "
    "connection_data_block_size enable_cae".split()
)

# Required members that botocore fills in itself (idempotency tokens; the account of glacier). They are required in
# the documentation, but the SDK accepts the call without them. Applies to specifications with the flag "autofilled".
AUTOFILLED = frozenset(
    "ClientRequestToken clientRequestToken ClientToken clientToken IdempotencyToken CreatorRequestId RequestId "
    "requestId NamedQueryId QueryExecutionId CallbackId CreationToken ExecuteToken ProvisionToken TerminateToken "
    "UpdateToken accountId".split()
)

# botocore's ParameterAlias handlers: service -> (name in the model, name in the documentation); both are accepted
# where the model has the first.
ALIASES = {
    "ec2": ("Filter", "Filters"),
    "logs": ("from", "fromTime"),
    "cloudsearchdomain": ("return", "returnFields"),
}


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
    candidate: str,
    targets: str | Sequence[str],
    index: ApiIndex,
    provider: str,
    client: str,
    service: str | None = None,
) -> Judgement:
    """Judge what stands after ``client.`` in a completion.

    ``targets`` are the acceptable APIs, as names or ids; one that binds suffices (Appendix A.3). "Exists" means: is a
    method of the prompt's ``client``. ``service`` is only needed where one class name belongs to several packages; one
    that the index does not have is passed over, since others name the packages otherwise. Raises UserError for a client
    that is not in the index.
    """
    methods = index.methods(
        provider, client, service if index.has(provider, client, service) else None
    )
    wanted = {
        target.rsplit(".", 1)[-1] for target in ([targets] if isinstance(targets, str) else targets)
    }
    call, name = _first_call(candidate)
    spec, arguments, closed_error, error = methods.get(name or ""), None, "", ""
    if spec is None:
        category = NONEXISTENT
        error = f"{client} has no method {name}" if name else "nothing is called"
    else:
        category = INVALID_USAGE if spec.name in wanted else INCORRECT_EXISTING
        try:
            arguments = parse_call(call)
            error = bind_error(spec, arguments)
        except CallError as wrong:
            error = str(wrong)
        if category == INVALID_USAGE and not error:
            category, closed_error = VALID, closed_bind_error(spec, arguments)
    valid = category == VALID
    reason = (
        (f"closed: {closed_error}" if closed_error else "")
        if valid
        else error or "not an acceptable target"
    )
    flags = {
        "open_signature": spec and "open_signature" in spec.flags,
        "autofilled": spec and "autofilled" in spec.flags,
        "unknown_target": not wanted & methods.keys(),
        "unresolved_splat": arguments and arguments.unresolved,
    }
    anywhere = name in _provider_names(index, provider)
    flagged = tuple(flag for flag, raised in flags.items() if raised)
    return Judgement(
        valid, valid and not closed_error, category, call, name, reason, flagged, anywhere
    )


def _first_call(candidate: str) -> tuple[str | None, str | None]:
    """(text of the first complete call or None, the dotted name it calls or the first name of an unfinished one)."""
    found, named = first_call(candidate), FIRST_NAME.match(candidate)
    if found.end is not None:
        call = candidate[found.start : found.end]
        name = re.sub(r"[\s\\]+", "", candidate[found.start : found.paren])
    else:
        call, name = None, named and named[1]
    return call, name and unicodedata.normalize("NFKC", name)  # as Python reads identifiers


@lru_cache(maxsize=8)
def _provider_names(index: ApiIndex, provider: str) -> frozenset[str]:
    """The names of all methods of all clients of a provider."""
    return frozenset(spec.name for spec in index.specs if spec.provider == provider)


@dataclass(frozen=True)
class CallArguments:
    """The visible arguments of one call: how many are positional, and the names of the keywords, in order.

    ``unresolved`` is True when a ``*args`` or ``**kwargs`` that is no literal hides further arguments.
    """

    positional: int = 0
    keywords: tuple[str, ...] = ()
    unresolved: bool = False


class CallError(ValueError):
    """The text of a call that Python would not run: a syntax error, a keyword given twice, a key that is no name."""


def parse_call(call: str | None) -> CallArguments:
    """The arguments of ``call`` (``name(...)``, as the completion wrote it after ``client.``); literal splats expanded.

    ``compile`` and not only ``ast.parse``, because the parser alone accepts repeated keywords. Raises CallError.
    """
    if call is None:
        raise CallError("no complete call")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\(" in a generated string is no concern of ours
            compile(f"client.{call}", "<completion>", "eval", dont_inherit=True)
            node = ast.parse(f"client.{call}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise CallError(f"{type(error).__name__}: {getattr(error, 'msg', None) or error}") from None
    positional, keywords, hidden, pending = 0, [], False, list(node.args)
    while pending:
        argument = pending.pop()
        if not isinstance(argument, ast.Starred):
            positional += 1
        elif isinstance(argument.value, ast.List | ast.Tuple):
            pending += argument.value.elts
        else:
            hidden = True
    for argument in node.keywords:
        if argument.arg is not None:
            keywords.append(argument.arg)
        elif isinstance(
            argument.value, ast.Constant | ast.JoinedStr | ast.List | ast.Tuple | ast.Set
        ):
            raise CallError("the argument after ** must be a mapping")
        else:
            keys = list(_keys(argument.value)) if isinstance(argument.value, ast.Dict) else [None]
            keywords += dict.fromkeys(
                key.value for key in keys if isinstance(key, ast.Constant)
            )  # equal keys: one
            hidden = hidden or not all(isinstance(key, ast.Constant) for key in keys)
    if not all(isinstance(name, str) for name in keywords):
        raise CallError("keywords must be strings")
    if len(set(keywords)) < len(keywords):
        raise CallError("multiple values for a keyword argument")
    return CallArguments(positional, tuple(keywords), hidden)


def _keys(literal: ast.Dict) -> Iterator[ast.expr | None]:
    for key, value in zip(literal.keys, literal.values, strict=True):
        if key is None and isinstance(value, ast.Dict):  # {**{"a": 1}}
            yield from _keys(value)
        else:
            yield key


def bind_error(spec: ApiSpec, call: CallArguments) -> str | None:
    """None if the call binds to a stub with the signature that the SDK enforces (open binding), else why not."""
    parameters, keywords = spec.parameters, call.keywords
    if spec.provider == "aws":
        if "autofilled" in spec.flags:
            parameters = tuple(
                p._replace(required=p.required and p.name not in AUTOFILLED) for p in parameters
            )
        modelled, alias = ALIASES.get(spec.service, ("", ""))
        if modelled in {p.name for p in parameters}:  # some ``Filters`` are ``Filter``
            keywords = tuple(modelled if name == alias else name for name in keywords)
            if len(set(keywords)) < len(keywords):
                return "an argument and its alias are both given"
    return _bind(parameters, call.positional, keywords)


def closed_bind_error(spec: ApiSpec, call: CallArguments) -> str | None:
    """As ``bind_error``, but ``**kwargs`` takes only keywords that the documentation, an overload or, for Azure's
    clients, azure-core knows.

    Of the overloads (and, where there are none, of the signature itself) one must bind.
    """
    error = bind_error(spec, call)
    if error or spec.provider != "azure":
        return error
    known = PIPELINE_OPTIONS | set(spec.documented)
    errors = []
    for variant in spec.overloads or (spec.parameters,):
        named = tuple(p for p in variant if p.kind != "VAR_KEYWORD")
        if named != variant:
            named += tuple(map(Parameter, sorted(known - {p.name for p in variant})))
        errors.append(_bind(named, call.positional, call.keywords))
    return None if None in errors else errors[0]


def _bind(
    parameters: tuple[Parameter, ...], positional: int, keywords: tuple[str, ...]
) -> str | None:
    try:
        _stub(parameters).bind(
            *[None] * positional, **{_identifier(name): None for name in keywords}
        )
    except TypeError as error:
        return str(error)
    return None


@lru_cache(maxsize=4096)
def _stub(parameters: tuple[Parameter, ...]) -> Signature:
    ordered = sorted(
        parameters, key=lambda p: getattr(StubParameter, p.kind)
    )  # closed keywords come after *args
    empty = StubParameter.empty
    return Signature(
        StubParameter(
            _identifier(p.name),
            getattr(StubParameter, p.kind),
            default=empty if p.required or p.kind.startswith("VAR_") else None,
        )
        for p in ordered
    )


def _identifier(name: str) -> str:
    """inspect refuses Python's keywords as parameter names (``from``, ``return``); ``**{"from": 1}`` may carry them."""
    return f"{name}_keyword" if keyword.iskeyword(name) else name
