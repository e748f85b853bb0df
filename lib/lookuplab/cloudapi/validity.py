"""Judges whether an API invocation is valid. An invalid invocation is assigned to one of three
kinds of failure (paper, Sections 2.2 and 2.3, Appendices A.3 and A.5).

The text that is judged is ``client.`` followed by the completion. Only the first outermost call on
the client is judged; later text is ignored. The text is taken literally: a completion that repeats
the prompt, or that begins with ``client.``, is not a call to the API.

A call is valid if a stub with the API's signature accepts the call's arguments. Only the names and
positions of the arguments count (Section 2.2 and Figure 3), never their values. There are two
checks of the arguments: the *open* check uses the signature as it is, ``**kwargs`` included; the
*closed* check accepts only known keywords (``bind_error``). For AWS, both checks give the same
result, because botocore rejects every positional argument and every unknown keyword. (There is one
exception: if an operation takes no input, botocore ignores unknown keywords. The stub rejects them,
because the documentation does not allow them.)
"""

import ast
import inspect
import re
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from lookuplab.cloudapi.first_call import call_extent
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter, Signature

VALID = "valid"
INVALID_USAGE = "invalid_usage"  # the target is called wrongly, or named but not called
INCORRECT_EXISTING = "incorrect_existing"  # another method of the prompt's client
NONEXISTENT = "nonexistent"  # not a method of the prompt's client, or no name at all
CATEGORIES = (VALID, INVALID_USAGE, INCORRECT_EXISTING, NONEXISTENT)

FIRST_NAME = re.compile(r"(?:[\s\\])*([^\W\d]\w*)")

# The keywords that the pipeline of azure-core 1.30.1 (its policies and its transport) accepts for
# any operation.
PIPELINE_OPTIONS = frozenset(
    """
    cls headers params api_version content_type error_map continuation_token polling
    polling_interval stream request_id auto_request_id user_agent user_agent_overwrite
    raw_request_hook raw_response_hook response_encoding logger logging_enable logging_body
    network_span_namer tracing_attributes enforce_https insecure_domain_change permit_redirects
    redirect_max timeout retry_total retry_connect retry_read retry_status retry_mode
    retry_backoff_factor retry_backoff_max retry_on_methods retry_on_status_codes
    connection_timeout read_timeout connection_verify connection_cert proxies cookies decompress
    use_env_settings connection_data_block_size enable_cae
    """.split()
)

# Required arguments that botocore fills in itself (idempotency tokens, and the account id of
# Glacier). The documentation requires them, but the SDK accepts the call without them. Only
# specifications with the flag "autofilled" have such arguments.
AUTOFILLED = frozenset(
    """
    ClientRequestToken clientRequestToken ClientToken clientToken IdempotencyToken
    CreatorRequestId RequestId requestId NamedQueryId QueryExecutionId CallbackId CreationToken
    ExecuteToken ProvisionToken TerminateToken UpdateToken accountId
    """.split()
)

# The aliases that botocore's ParameterAlias handlers define: service -> (name in botocore's
# description of the service, name in the documentation). If the description of an operation has the
# first name, botocore accepts both names.
ALIASES = {
    "aws/ec2": ("Filter", "Filters"),
    "aws/logs": ("from", "fromTime"),
    "aws/cloudsearchdomain": ("return", "returnFields"),
}


@dataclass(frozen=True)
class CallJudgement:
    """The judgement of one completion.

    ``valid`` and ``valid_closed`` say whether the call is valid by the open and by the closed
    check. ``category`` is one of CATEGORIES. ``call`` is the text of the first call, None if there
    is no complete call. ``name`` is the name that is called or, without a complete call, the first
    name; None if there is no name. ``exists_anywhere`` says whether any client in the API index has
    a method of this name (Section 4.1).

    ``reason`` says why the call is not valid: it calls an API that the task does not ask for, or
    the signature rejects the call. For a valid call it is "", or "closed: ..." if the closed check
    rejects the call. ``flags`` may contain ``unresolved_splat`` (the call has arguments that are
    not written out; only its other arguments are checked) and ``unknown_target`` (no acceptable
    target is a method of the client, so no call can be valid).
    """

    valid: bool
    valid_closed: bool
    category: str
    call: str | None
    name: str | None
    reason: str = ""
    flags: tuple[str, ...] = ()
    exists_anywhere: bool = False


def judge_call(
    candidate: str,
    targets: Sequence[str],
    index: ApiIndex,
    provider: str,
    client: str,
    service: str | None = None,
) -> CallJudgement:
    """Judge a completion (``candidate``), which is the text after ``client.``.

    ``targets`` are the acceptable APIs, as names or ids. A call is valid if it binds to the
    signature of one of them (Appendix A.3). A name "exists" if it is a method of the prompt's
    ``client``. ``service`` is as in ``ApiIndex.methods``. Raises UserError for a client that is not
    in the index.
    """
    methods = index.methods(provider, client, service)
    names = {target.rsplit(".", 1)[-1] for target in targets}
    call, name = _call_and_name(candidate)
    category = NONEXISTENT
    valid_closed = False
    arguments = CallArguments()
    reason: str | None = f"{client} has no method {name}" if name else "nothing is called"
    if spec := methods.get(name or ""):
        try:
            arguments = parse_call(call)
            reason = bind_error(spec, arguments)
        except ValueError as wrong:
            reason = str(wrong)
        category = INVALID_USAGE if reason else VALID
        if spec.name not in names:
            category = INCORRECT_EXISTING
            reason = f"the task asks for {' or '.join(sorted(names))}"
    if spec and category == VALID:
        closed = bind_error(spec, arguments, closed=True)
        reason = f"closed: {closed}" if closed else ""
        valid_closed = not closed
    flags = []
    if not names & methods.keys():
        flags.append("unknown_target")
    if arguments.unresolved:
        flags.append("unresolved_splat")
    return CallJudgement(
        valid=category == VALID,
        valid_closed=valid_closed,
        category=category,
        call=call,
        name=name,
        reason=reason or "",
        flags=tuple(flags),
        exists_anywhere=any((one, name) in index.names for one in index.providers),
    )


def _call_and_name(candidate: str) -> tuple[str | None, str | None]:
    """Return the text of the first complete call, and the dotted name that it calls. Without a
    complete call, the text is None, and the name is the first name in ``candidate``, if any.
    """
    extent = call_extent(candidate)
    first_name = FIRST_NAME.match(candidate)
    call = None
    name = first_name and first_name[1]
    if extent.end is not None:
        call = candidate[extent.start : extent.end]
        name = re.sub(r"[\s\\]+", "", candidate[extent.start : extent.paren])
    # Python normalises identifiers in this way, so differently encoded names may be equal
    return call, name and unicodedata.normalize("NFKC", name)


class CallArguments(NamedTuple):
    """The visible arguments of one call: the number of positional arguments, and the names of the
    keyword arguments in order.

    ``unresolved`` is True if the call has a splat, such as ``*args`` or ``**kwargs``, whose
    elements are not written out. The call may then have further arguments.
    """

    positional: int = 0
    keywords: tuple[str, ...] = ()
    unresolved: bool = False


def parse_call(call: str | None) -> CallArguments:
    """Return the arguments of ``call``, the text ``name(...)`` that follows ``client.`` in the
    completion.

    If the elements of a splat are written out, each element counts as an argument. This applies to
    a list, tuple or string after ``*``, and to a dictionary after ``**``, even if the dictionary is
    merged with ``|`` or made by ``dict``. The text goes through ``compile`` as well as
    ``ast.parse``, because the parser alone accepts repeated keywords.

    Raises ValueError if there is no complete call, or if Python would not run it because of a
    syntax error, a keyword that is given twice, or a keyword that is not a string.
    """
    if call is None:
        raise ValueError("no complete call")
    try:
        # the generated text may contain invalid escapes such as "\(", which only cause warnings
        with warnings.catch_warnings(action="ignore"):
            tree: Any = ast.parse(f"client.{call}", mode="eval")
            compile(tree, "<completion>", "eval")
        if not isinstance(tree.body, ast.Call):
            raise ValueError("no call")
        elements, names = _elements(tree.body.args), _keywords(tree.body.keywords)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise ValueError(
            f"{type(error).__name__}: {getattr(error, 'msg', None) or error}"
        ) from None
    visible = tuple(name for name in names if name is not None)
    if not all(isinstance(name, str) for name in visible):
        raise ValueError("keywords must be strings")
    if len(set(visible)) < len(visible):
        raise ValueError("multiple values for a keyword argument")
    return CallArguments(elements.count(True), visible, None in names or False in elements)


def _elements(arguments: Sequence[ast.expr]) -> list[bool]:
    """Return one boolean per positional argument: False for a splat whose elements are not written
    out, True for anything else.
    """
    found = []
    for argument in arguments:
        match argument:
            case ast.Starred(ast.List(inner) | ast.Tuple(inner)):
                found += _elements(inner)
            case ast.Starred(ast.Constant(str(text))):
                found += [True] * len(text)
            case _:
                found.append(not isinstance(argument, ast.Starred))
    return found


def _keywords(arguments: Sequence[ast.keyword]) -> list[Any]:
    """Return the names of keyword arguments. None stands for a splat whose keys are not written
    out.
    """
    found: list[Any] = []
    for argument in arguments:
        found += [argument.arg] if argument.arg else _keys(argument.value)
    return found


def _keys(mapping: ast.expr) -> dict[Any, None]:
    """Return {key: None} for the keys of a mapping, in order. A single key None stands for all keys
    that are not written out.
    """
    match mapping:
        case ast.Dict(keys, values):
            found: dict[Any, None] = {}
            for key, value in zip(keys, values, strict=True):
                name = key.value if isinstance(key, ast.Constant) else None
                found |= {name: None} if key else _keys(value)
            return found
        case ast.BinOp(left, ast.BitOr(), right):
            return _keys(left) | _keys(right)
        case ast.Call(ast.Name("dict"), [], keywords):
            return dict.fromkeys(_keywords(keywords))
    return {None: None}


def bind_error(spec: ApiSpec, call: CallArguments, closed: bool = False) -> str | None:
    """Check a call against a stub with the signature that the SDK enforces. Return None if the stub
    accepts the call, else the reason why the stub rejects it.

    If ``closed`` is true, the check of Azure's clients is stricter: ``**kwargs`` accepts only
    keywords that the documentation or azure-core knows. If there are overloads, at least one of
    them must accept the call, too.
    """
    parameters = spec.parameters
    keywords = call.keywords
    # Python itself passes ``self`` to a method, so a keyword ``self`` would be a second value
    if "self" in keywords and spec.module and spec.operation:
        return "multiple values for argument 'self'"
    if "autofilled" in spec.flags:
        parameters = tuple(
            p._replace(required=p.required and p.name not in AUTOFILLED) for p in parameters
        )
    modelled, alias = ALIASES.get(spec.id.partition(".")[0], ("", ""))
    # only operations that botocore describes with the name ``modelled`` accept the alias
    if modelled in {p.name for p in parameters}:
        parameters = tuple(p._replace(name=alias) if p.name == modelled else p for p in parameters)
        keywords = tuple(alias if name == modelled else name for name in keywords)
        if len(set(keywords)) < len(keywords):
            return "an argument and its alias are both given"
    error = _bind(parameters, call.positional, keywords)
    if error or not closed or spec.provider != "azure":
        return error
    known = PIPELINE_OPTIONS | set(spec.documented)
    errors = []
    for variant in spec.overloads or (parameters,):
        named = tuple(p for p in variant if p.kind != "VAR_KEYWORD")
        if named != variant:
            named += tuple(map(Parameter, sorted(known - {p.name for p in variant})))
        errors.append(_bind(named, call.positional, keywords))
    return None if None in errors else errors[0]


@lru_cache(maxsize=4096)
def _bind(parameters: Signature, positional: int, keywords: tuple[str, ...]) -> str | None:
    """Return why a stub with these parameters rejects a call, or None if it accepts the call."""
    made = [
        inspect.Parameter(
            p.name,
            getattr(inspect.Parameter, p.kind),
            default=inspect.Parameter.empty if p.required or "VAR_" in p.kind else None,
        )
        for at, p in enumerate(parameters)
        # If an optional positional-only parameter is not filled by position, a keyword argument
        # with its name goes to **kwargs. Before Python 3.13, ``Signature.bind`` rejects it.
        if at < positional or p.required or p.kind != "POSITIONAL_ONLY"
    ]
    # inspect.Signature raises ValueError unless the parameters are sorted by kind
    stub = inspect.Signature(sorted(made, key=lambda p: p.kind))
    try:
        stub.bind(*[None] * positional, **dict.fromkeys(keywords))
    except TypeError as error:
        return str(error)
    return None
