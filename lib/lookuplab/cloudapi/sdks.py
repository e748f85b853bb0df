"""The API index from the installed SDKs of AWS and Azure (Appendix A.2, steps 2 and 4).

The paper reads stubs made by mypy_boto3_builder and scrapes boto3's web pages. Both are generated
from the service models inside botocore, so these are read directly. For Azure it parses the SDK's
sources, which hold every method many times over (asynchronous twins, overloads, one copy for each
service version); here the packages are imported and inspected, because only the client knows which
copy it resolves to. Nothing is fetched and no request is sent.
"""

import gc
import importlib.metadata
import inspect
import keyword
import multiprocessing
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.cloudapi.prose import first_paragraph, html_text, rst_text, sentences, shortened
from lookuplab.cloudapi.specs import (
    INDEX,
    ApiSpec,
    Parameter,
    flagged,
    inspected,
    signature,
    write_index,
)
from lookuplab.errors import UserError

JOBS = min(os.cpu_count() or 1, 8)  # processes: one needs up to 700 MB, the others 120 MB

# AWS

EVERY_CLIENT = frozenset(
    "can_paginate close generate_presigned_url get_paginator get_waiter".split()
)
_WORDS = {"long": "integer", "double": "float"}  # modelled type -> the one word of the index
_OLD_NAMES = {  # botocore.handlers
    "aws/mturk.mturk.list_hits_for_qualification_type": "list_hi_ts_for_qualification_type"
}


@cache
def session():
    import boto3

    return boto3.session.Session("none", "none", region_name="us-east-1")


def aws_methods(service: str) -> Iterator[tuple[ApiSpec, str]]:
    """Every public method of one boto3 client. Its documentation is boto3's page as plain text
    (slow: 10 ms); the methods that every client has get none.
    """
    client = session().client(service)
    modelled = client.meta.method_to_api_mapping
    # Two modelled operations need HTTP/2 and are off the class: ask the client, not the model.
    for name in dir(client):
        method = getattr(client, name)
        if name.startswith("_") or not inspect.ismethod(method):
            continue
        if name in modelled:
            model = client.meta.service_model.operation_model(modelled[name])
            spec = _operation(model, service, name)
        else:  # written by hand, as s3.upload_file
            summary = "".join(sentences(first_paragraph(inspect.getdoc(method) or ""))[:1])
            place = "aws", service, service, name, signature(method)
            spec = ApiSpec(*place, description=summary, operation=False)
        page = "" if name in EVERY_CLIENT else inspect.cleandoc(str(method.__doc__))
        yield spec, shortened(rst_text(page))
        if old := _OLD_NAMES.get(spec.id):
            yield replace(spec, name=old, flags=("alias",), description="", operation=False), ""


def _operation(model, service: str, name: str) -> ApiSpec:
    members = dict(model.input_shape.members) if model.input_shape else {}
    required = model.input_shape.required_members if members else ()
    text = html_text(model.documentation or "")
    if "</p>" in text:  # eight models hold escaped HTML inside their HTML
        text = html_text(text)
    token = any(members[member].metadata.get("idempotencyToken") for member in required)
    account = service == "glacier" and "accountId" in required  # botocore.handlers fills it in
    parameters = tuple(
        Parameter(m, required=int(m in required), type=_WORDS.get(shape.type_name, shape.type_name))
        for m, shape in members.items()
    )
    # ``autofilled``: botocore accepts the call without a required member. ``keyword_argument``:
    # Python does not accept the modelled name of a member as a keyword.
    flags = {
        "autofilled": token or account,
        "keyword_argument": any(map(keyword.iskeyword, members)),
    }
    return ApiSpec(
        *("aws", service, service, name, parameters),
        description=" ".join(sentences(text)[:5]),  # Appendix B.1
        flags=tuple(flag for flag, holds in flags.items() if holds),
    )


# Azure

AZURE = {  # service, as prompts name it (``# initialize blob client``) -> module of its package
    module.rpartition(".")[2]: module
    for module in (
        "azure.ai.formrecognizer",
        "azure.ai.textanalytics",
        "azure.cognitiveservices.vision.computervision",
        "azure.communication.callautomation",
        "azure.cosmos",
        "azure.eventhub",
        "azure.keyvault.secrets",
        "azure.mgmt.compute",
        "azure.mgmt.network",
        "azure.mgmt.storage",
        "azure.servicefabric",
        "azure.storage.blob",
    )
}
_NO_OPERATION = frozenset({"close", "models", "send_request"})


def azure_methods(service: str) -> Iterator[tuple[ApiSpec, str]]:
    """Every public method of the synchronous clients of one package, with its docstring."""
    for cls in azure_clients(service):
        for name in dir(cls):
            method = getattr(cls, name)
            if not name.startswith("_") and inspect.isroutine(method):
                yield _azure_method(service, cls, name, method)


def azure_clients(service: str) -> set[type]:
    """The classes that a program calls: exported clients, and their ``*Operations`` groups."""
    module = importlib.import_module(AZURE[service])
    clients = {
        getattr(module, name)
        for name in dir(module)
        if re.search("^[^_].*(Client|Proxy|ClientAPIs)$", name)
    }
    return clients.union(*map(_groups, clients))


def _groups(client: type) -> Iterator[type]:
    """Operation groups, reached through an instance: it resolves the service version of each."""
    arguments = list(inspect.signature(client).parameters)
    if "subscription_id" in arguments:
        instance = client(object(), "00000000-0000-0000-0000-000000000000")
    elif arguments[:1] == ["credentials"]:  # azure-servicefabric, older than azure-core
        instance = client(object())
    else:
        return
    for name in dir(instance):
        value = getattr(instance, name) if not name.startswith("_") else None
        if type(value).__name__.endswith("Operations"):
            yield type(value)


def _azure_method(service: str, cls: type, name: str, method: Callable) -> tuple[ApiSpec, str]:
    bound = isinstance(inspect.getattr_static(cls, name), classmethod | staticmethod)
    exported = getattr(importlib.import_module(AZURE[service]), cls.__name__, None) is cls
    spec, docstring = inspected(
        ("azure", service, cls.__name__, name),
        method,
        unbound=not bound,
        module=AZURE[service] if exported else cls.__module__.split("._")[0],
        operation=not (bound or name in _NO_OPERATION),
    )
    return spec, shortened(docstring)


# The index


def build(
    folder: Path = INDEX.parent, services: Iterable[tuple[str, str]] = (), jobs: int = JOBS
) -> int:
    """Write the index and its documentation into ``folder``: of every service, or of these
    (provider, service); return how many APIs. Raises UserError unless the pinned SDKs are there.
    """
    check_versions()
    services = list(services) or [
        *(("aws", service) for service in session().get_available_services()),
        *(("azure", service) for service in AZURE),
    ]
    specs, pages = [], {}
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        parts = pool.imap_unordered(_part, services)
        for found, documented in tqdm(parts, "API index", len(services), unit=" services"):
            specs += found
            pages |= documented
    write_index(folder, flagged(specs), pages)
    return len(specs)


def check_versions() -> None:
    """Raise UserError unless the SDKs are installed in the versions of constraints.txt."""
    sdks = {"boto3", "botocore", *(module.replace(".", "-") for module in AZURE.values())}
    installed = {f"{one.name}=={one.version}" for one in importlib.metadata.distributions()}
    lines = (paths.ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {line for line in lines if line.partition("==")[0] in sdks}
    if missing := sorted(pinned - installed):
        raise UserError(
            f"the API index is built from {', '.join(missing)}: "
            "run `pip install -c constraints.txt -e '.[sdk]'`"
        )


def _part(place: tuple[str, str]) -> tuple[list[ApiSpec], dict[str, str]]:
    """The specifications and the documentation of one service."""
    provider, service = place
    methods = list({"aws": aws_methods, "azure": azure_methods}[provider](service))
    session.cache_clear()  # botocore keeps what it read: 400 MB for all services, 600 for quicksight
    gc.collect()
    return [spec for spec, _ in methods], {spec.id: page for spec, page in methods if page}
