"""The methods of every boto3 client, as specifications (paper, Appendix A.2 steps 2 and 4).

The paper reads stubs made by mypy_boto3_builder and scrapes boto3's web pages. Both are generated from the service
models inside botocore, so these models are read directly: nothing is fetched and no request is sent.
"""

import gc
import inspect
import keyword
from functools import cache

from lookuplab.cloudapi.prose import html_text, rst_text, sentences, shortened
from lookuplab.cloudapi.specs import ApiSpec, Parameter

VERSIONS = {"boto3": "1.34.108", "botocore": "1.34.108"}
SENTENCES = 5  # of a description (paper, Appendix B.1)
EVERY_CLIENT = frozenset({"can_paginate", "close", "generate_presigned_url", "get_paginator", "get_waiter"})
_WORDS = {"long": "integer", "double": "float"}  # modelled type -> the one word that the index uses
_OLD_NAMES = {"mturk": {"list_hi_ts_for_qualification_type": "list_hits_for_qualification_type"}}  # botocore.handlers


@cache
def _session():
    import boto3

    return boto3.session.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")


def release() -> None:
    """Give back what botocore keeps of the services read so far (400 MB for all; quicksight alone holds 600 MB)."""
    _session.cache_clear()
    gc.collect()


def services() -> list[str]:
    """Every name that ``boto3.client`` takes."""
    return sorted(_session().get_available_services())


def specifications(service: str) -> list[ApiSpec]:
    """Every public method of one client, operations first; each group in order of name."""
    client = _session().client(service)
    modelled = client.meta.method_to_api_mapping
    # Two operations are modelled but taken off the class, because they need HTTP/2: ask the client, not the model.
    operations = [_operation(client, service, name) for name in sorted(modelled) if hasattr(client, name)]
    by_name = {spec.name: spec for spec in operations}
    public = [name for name in dir(client) if not name.startswith("_") and name not in modelled]
    others = [_helper(client, service, name) for name in public if inspect.ismethod(getattr(client, name))]
    aliases = [
        ApiSpec("aws", service, service, old, by_name[new].parameters, operation=False, flags=("alias",))
        for old, new in _OLD_NAMES.get(service, {}).items()
    ]
    return operations + others + aliases


def documentation(service: str) -> dict[str, str]:
    """API id -> boto3's page of the method as plain text, truncated. Slow: 10 ms a method, some 0.3 s.

    The methods that every client has are left out: their pages say nothing about the service.
    """
    client = _session().client(service)
    names = sorted(name for name in dir(client) if not name.startswith("_") and name not in EVERY_CLIENT)
    return {
        f"aws/{service}.{service}.{name}": shortened(rst_text(inspect.cleandoc(str(method.__doc__))))
        for name in names
        if inspect.ismethod(method := getattr(client, name)) and method.__doc__ is not None
    }


def _operation(client, service: str, name: str) -> ApiSpec:
    model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[name])
    shape = model.input_shape
    members = dict(shape.members) if shape else {}
    required = set(shape.required_members) if shape else set()
    parameters = tuple(
        Parameter(member, "KEYWORD_ONLY", member in required, _WORDS.get(value.type_name, value.type_name))
        for member, value in members.items()
    )
    return ApiSpec(
        "aws", service, service, name, parameters,
        description=_description(model.documentation or ""), flags=_flags(service, members, required),
    )


def _description(html: str) -> str:
    text = html_text(html)
    if "</p>" in text:  # eight models hold escaped HTML inside their HTML
        text = html_text(text)
    return " ".join(sentences(text)[:SENTENCES])


def _flags(service: str, members: dict, required: set[str]) -> tuple[str, ...]:
    """``autofilled``: botocore accepts the call without a required member. ``keyword_argument``: Python does not
    accept the modelled name of a member as a keyword."""
    token = any(members[name].metadata.get("idempotencyToken") for name in required)
    account = service == "glacier" and "accountId" in required  # botocore.handlers.add_glacier_account_id
    flags = ("autofilled",) if token or account else ()
    return flags + (("keyword_argument",) if any(map(keyword.iskeyword, members)) else ())


def _helper(client, service: str, name: str) -> ApiSpec:
    """A method written by hand, such as ``s3.upload_file``: Python's own signature."""
    parameters = tuple(
        Parameter(p.name, p.kind.name, p.default is p.empty and not p.kind.name.startswith("VAR_"))
        for p in inspect.signature(getattr(client, name)).parameters.values()
    )
    summary = sentences(rst_text(inspect.getdoc(getattr(client, name)) or ""))[:1]
    return ApiSpec("aws", service, service, name, parameters, description="".join(summary), operation=False)
