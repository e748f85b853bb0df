"""Does a call bind to an API? The metric of CloudAPIBench: a stub with the API's signature takes the call's arguments.

Only names and places of arguments count (paper, Section 2.2 and Figure 3), never their values. Two bindings exist:
*open* mirrors the signature, ``**kwargs`` included; *closed* takes only keywords that are known from somewhere. For
AWS they are the same, because botocore refuses every positional argument and every unknown keyword. (It lets unknown
keywords of an operation without any input pass and drops them; the stub refuses them, as the documentation does.)
"""

import ast
import keyword
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from inspect import Parameter as StubParameter
from inspect import Signature

from lookuplab.cloudapi.specs import ApiSpec, Parameter

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
    "ec2": ("Filter", "Filters"), "logs": ("from", "fromTime"), "cloudsearchdomain": ("return", "returnFields"),
}


@dataclass(frozen=True)
class CallArguments:
    """The visible arguments of one call: how many are positional, and the names of the keywords, in order.

    ``unresolved`` is True when a ``*args`` or ``**kwargs`` that is no literal hides further arguments.
    """

    name: str
    positional: int = 0
    keywords: tuple[str, ...] = ()
    unresolved: bool = False


class CallError(ValueError):
    """The text of a call that Python would not run: a syntax error, a keyword given twice, a key that is no name."""


def parse_call(call: str) -> CallArguments:
    """The arguments of ``call`` (``name(...)``, as the completion wrote it after ``client.``).

    ``compile`` and not only ``ast.parse``, because the parser alone accepts repeated keywords. Raises CallError.
    """
    source = f"client.{call}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\(" in a generated string is no concern of ours
            compile(source, "<completion>", "eval", dont_inherit=True)
            node = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise CallError(f"{type(error).__name__}: {getattr(error, 'msg', None) or error}") from None
    if not isinstance(node, ast.Call):
        raise CallError("not a call")
    positional, hidden = _positional(node.args)
    keywords, hidden_keywords = _keywords(node.keywords)
    if len(set(keywords)) < len(keywords):
        raise CallError("multiple values for a keyword argument")
    return CallArguments(_dotted(node.func), positional, tuple(keywords), hidden or hidden_keywords)


def _dotted(function: ast.expr) -> str:
    """``client.a.b`` -> "a.b"; something else than attributes of the client (a subscript, a call) is no name."""
    names = []
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    if not isinstance(function, ast.Name):
        raise CallError("not a call of a method of the client")
    return ".".join(reversed(names))


def _positional(arguments: Iterable[ast.expr]) -> tuple[int, bool]:
    """Number of positional arguments with ``*[literal]`` expanded, and whether another ``*x`` hides more."""
    count, hidden = 0, False
    for argument in arguments:
        if not isinstance(argument, ast.Starred):
            count += 1
        elif isinstance(argument.value, ast.List | ast.Tuple):
            inner, inner_hidden = _positional(argument.value.elts)
            count, hidden = count + inner, hidden or inner_hidden
        else:
            hidden = True
    return count, hidden


def _keywords(arguments: Iterable[ast.keyword]) -> tuple[list[str], bool]:
    """Names of keyword arguments with ``**{literal}`` expanded, and whether another ``**x`` hides more."""
    names: list[str] = []
    hidden = False
    for argument in arguments:
        if argument.arg is not None:
            names.append(argument.arg)
        elif isinstance(argument.value, ast.Dict):
            inner, inner_hidden = _literal_keys(argument.value)
            names, hidden = names + list(inner), hidden or inner_hidden
        elif isinstance(argument.value, ast.Constant | ast.JoinedStr | ast.List | ast.Tuple | ast.Set):
            raise CallError("the argument after ** must be a mapping")
        else:
            hidden = True
    return names, hidden


def _literal_keys(literal: ast.Dict) -> tuple[dict[str, None], bool]:
    """Keys of a dict display (a later equal key replaces the earlier one, as in Python)."""
    keys: dict[str, None] = {}
    hidden = False
    for key, value in zip(literal.keys, literal.values, strict=True):
        if key is None and isinstance(value, ast.Dict):  # {**{"a": 1}}
            inner, inner_hidden = _literal_keys(value)
            keys, hidden = keys | inner, hidden or inner_hidden
        elif isinstance(key, ast.Constant):
            if not isinstance(key.value, str):
                raise CallError("keywords must be strings")
            keys[key.value] = None
        else:
            hidden = True
    return keys, hidden


def bind_error(spec: ApiSpec, call: CallArguments) -> str | None:
    """None if the call binds to a stub with the signature of ``spec`` (open binding), else why it does not."""
    return _bind(_stub(tuple(_effective(spec))), call.positional, _model_names(spec, call.keywords))


def closed_bind_error(spec: ApiSpec, call: CallArguments) -> str | None:
    """As ``bind_error``, but ``**kwargs`` takes only keywords that the documentation, an overload or, for Azure's
    clients, azure-core knows.

    Of the overloads (and, where there are none, of the signature itself) one must bind.
    """
    error = bind_error(spec, call)
    if error or spec.provider != "azure":
        return error
    variants = spec.overloads or (spec.parameters,)
    errors = [_bind(_stub(_closed(variant, spec)), call.positional, call.keywords) for variant in variants]
    return None if None in errors else errors[0]


def _closed(signature: tuple[Parameter, ...], spec: ApiSpec) -> tuple[Parameter, ...]:
    """``signature`` with its ``**kwargs`` replaced by the keywords that are known; without it, as it is."""
    if not any(p.kind == "VAR_KEYWORD" for p in signature):
        return signature
    named = {p.name for p in signature}
    extra = sorted((PIPELINE_OPTIONS | set(spec.documented)) - named)
    return tuple(p for p in signature if p.kind != "VAR_KEYWORD") + tuple(Parameter(name) for name in extra)


def _effective(spec: ApiSpec) -> Iterable[Parameter]:
    """The signature that the SDK enforces: members that botocore fills in are not required."""
    for p in spec.parameters:
        fills = spec.provider == "aws" and "autofilled" in spec.flags and p.name in AUTOFILLED
        yield Parameter(p.name, p.kind, p.required and not fills, p.type)


def _model_names(spec: ApiSpec, keywords: tuple[str, ...]) -> tuple[str, ...]:
    """Documented aliases replaced by the model's names, where the model has them (some ``Filters`` are ``Filter``)."""
    original, alias = ALIASES.get(spec.service if spec.provider == "aws" else "", ("", ""))
    if not alias or original not in {p.name for p in spec.parameters}:
        return keywords
    return tuple(original if name == alias else name for name in keywords)


def _bind(stub: Signature, positional: int, keywords: tuple[str, ...]) -> str | None:
    if len(set(keywords)) < len(keywords):
        return "an argument and its alias are both given"
    try:
        stub.bind(*[None] * positional, **{_identifier(name): None for name in keywords})
    except TypeError as error:
        return str(error)
    return None


@lru_cache(maxsize=4096)
def _stub(parameters: tuple[Parameter, ...]) -> Signature:
    ordered = sorted(parameters, key=lambda p: getattr(StubParameter, p.kind))  # closed keywords come after *args
    return Signature([
        StubParameter(
            _identifier(p.name), getattr(StubParameter, p.kind),
            default=StubParameter.empty if p.required or p.kind.startswith("VAR_") else None,
        ) for p in ordered
    ])


def _identifier(name: str) -> str:
    """inspect refuses Python's keywords as parameter names (``from``, ``return``); ``**{"from": 1}`` may carry them."""
    return f"{name}_keyword" if keyword.iskeyword(name) else name
