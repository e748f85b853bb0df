"""Builds the API index from the installed SDKs of AWS and Azure (Appendix A.2, steps 2 and 4).

The paper reads stubs made by mypy_boto3_builder and scrapes boto3's web pages. The stubs and the
pages are both generated from the service models inside botocore, so this module reads those models
directly. For Azure the paper parses the SDK's sources, which contain every method many times
(asynchronous twins, overloads, one copy for each service version). This module imports and inspects
the Azure packages instead, because only the client knows which copy it uses. Nothing is downloaded
and no request is sent.
"""

import importlib
import inspect
import json
import keyword
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, compress
from pathlib import Path
from typing import Any

import click

from lookuplab.cloudapi.prompts import invocation
from lookuplab.cloudapi.specs import EXAMPLES, INDEX, ApiSpec, Parameter
from lookuplab.errors import needs
from lookuplab.paths import write_lines
from lookuplab.run.commands import command, run_module
from lookuplab.work import watched
from recipes.cloudapi.reading import (
    LONGEST_DOCUMENTATION,
    ApiPlace,
    Described,
    inspected,
    methods,
    signature,
    write_index,
)
from recipes.prose import first_sentence, html_text, rst_text, sentences

# AWS

EVERY_CLIENT = frozenset(
    "can_paginate close generate_presigned_url get_paginator get_waiter".split()
)
_WORDS = {"long": "integer", "double": "float"}  # type in the model -> word in the index
_OLD_NAMES = {  # botocore.handlers
    "aws/mturk.mturk.list_hits_for_qualification_type": "list_hi_ts_for_qualification_type"
}


@cache
def session() -> Any:
    with needs("sdk"):
        import boto3

    return boto3.session.Session("none", "none", region_name="us-east-1")


def aws_methods(service: str) -> Iterator[Described]:
    """Yield every public method of one boto3 client, with boto3's page as plain text for its
    documentation (slow: a page takes 10 ms).

    Methods that every client has get empty documentation.
    """
    client = session().client(service)
    # inspects the client and not the service model, because two operations of the models need
    # HTTP/2 and boto3's clients lack them
    for name, method in inspect.getmembers(client, inspect.ismethod):
        if name.startswith("_"):
            continue
        place = "aws", service, service, name
        if modelled := client.meta.method_to_api_mapping.get(name):
            spec = _operation(place, client.meta.service_model.operation_model(modelled))
        else:  # a method written by hand, such as s3.upload_file
            summary = first_sentence(inspect.getdoc(method) or "")
            spec = ApiSpec(*place, signature(method, {}), description=summary, operation=False)
        page = "" if name in EVERY_CLIENT else inspect.cleandoc(str(method.__doc__))
        yield spec, rst_text(page)[:LONGEST_DOCUMENTATION]
        if old := _OLD_NAMES.get(spec.id):
            yield replace(spec, name=old, flags=("alias",), description="", operation=False), ""


def _operation(place: ApiPlace, model: Any) -> ApiSpec:
    shape = model.input_shape
    members, required = (shape.members, shape.required_members) if shape else ({}, [])
    text = html_text(model.documentation or "")
    if "</p>" in text:  # eight models contain escaped HTML inside their HTML
        text = html_text(text)
    # The flag ``autofilled`` says that botocore accepts the call without a required member
    # (botocore.handlers fills in glacier's account). The flag ``keyword_argument`` says that a
    # member's name in the model is a reserved word of Python and cannot name an argument.
    filled = ["accountId"] if place[1] == "glacier" else model.idempotent_members
    holds = {*filled} & {*required}, any(map(keyword.iskeyword, members))
    return ApiSpec(
        *place,
        tuple(
            Parameter(
                name,
                required=int(name in required),
                type=_WORDS.get(member.type_name, member.type_name),
            )
            for name, member in members.items()
        ),
        description=" ".join(sentences(text)[:5]),  # Appendix B.1
        flags=tuple(compress(("autofilled", "keyword_argument"), holds)),
    )


def aws_examples() -> Iterator[tuple[str, str]]:
    """Yield (API id, call) for each operation that has examples in botocore. The call is the
    operation's first example.
    """
    from botocore import xform_name

    loader = session()._loader
    for service in loader.list_available_services("examples-1"):
        modelled = loader.load_service_model(service, "examples-1")["examples"]
        for operation, examples in modelled.items():
            name = xform_name(operation)
            for one in examples[:1]:
                arguments = [f"{key}={value!r}" for key, value in one.get("input", {}).items()]
                yield f"aws/{service}.{service}.{name}", invocation(name, arguments)


# Azure

_AZURE_MODULES = """
    ai.formrecognizer ai.textanalytics cognitiveservices.vision.computervision
    communication.callautomation cosmos eventhub keyvault.secrets mgmt.compute mgmt.network
    mgmt.storage servicefabric storage.blob
""".split()
# service, as prompts name it (``blob`` in ``# initialize blob client``) -> module of its package
AZURE = {name.rpartition(".")[2]: f"azure.{name}" for name in _AZURE_MODULES}
_NO_OPERATION = frozenset({"close", "models", "send_request"})


def azure_methods(service: str) -> Iterator[Described]:
    """Yield every public method of one service's synchronous clients, with its docstring."""
    exported = importlib.import_module(AZURE[service])
    for cls in azure_clients(service):
        own = getattr(exported, cls.__name__, None) is cls
        module = AZURE[service] if own else cls.__module__.split("._")[0]
        for name, method, bound in methods(cls):
            place = "azure", service, cls.__name__, name
            operation = not bound and name not in _NO_OPERATION
            yield inspected(place, method, not bound, module=module, operation=operation)


def azure_clients(service: str) -> set[type]:
    """Return the classes whose methods a program calls: the clients that a service's package
    exports, and the ``*Operations`` groups of these clients.
    """
    module = importlib.import_module(AZURE[service])
    clients = {
        getattr(module, name)
        for name in dir(module)
        if re.search("^[^_].*(Client|Proxy|ClientAPIs)$", name)
    }
    return clients.union(*map(_groups, clients))


def _groups(client: type) -> Iterator[type]:
    """Yield the types of a client's operation groups. They are read from an instance of the client,
    which chooses the service version of each group.
    """
    arguments = list(inspect.signature(client).parameters)
    if "subscription_id" in arguments:
        instance = client(object(), "00000000-0000-0000-0000-000000000000")
    # azure-servicefabric predates azure-core and takes ``credentials`` instead of ``credential``
    elif arguments[:1] == ["credentials"]:
        instance = client(object())
    else:
        return
    for name in dir(instance):
        group = type(None if name.startswith("_") else getattr(instance, name))
        if group.__name__.endswith("Operations"):
            yield group


# The index


def build(folder: Path = INDEX.parent) -> int:
    """Write the index, the documentation and the examples of all services into ``folder``, and
    return the number of APIs.

    The index depends on the versions of the SDKs; the committed index needs the pinned ones. Raises
    UserError if the SDKs are not installed.
    """
    services = [("aws", service) for service in session().get_available_services()]
    services += [("azure", service) for service in AZURE]
    parts = (part(*place) for place in watched(services, "API index", "services"))
    calls = ({"id": api, "documentation": call} for api, call in sorted(aws_examples()))
    write_lines(folder / EXAMPLES, map(json.dumps, calls))
    return len(write_index(folder, chain.from_iterable(parts)).specs)


def part(provider: str, service: str) -> Iterator[Described]:
    """Return an iterator over the APIs of one service, with their documentation. ``provider`` is
    "aws" or "azure".
    """
    return {"aws": aws_methods, "azure": azure_methods}[provider](service)


@command()
def main() -> None:
    """Build data/mini/cloudapi, the index of every AWS and Azure API, from the installed SDKs.

    Needs the pinned SDK packages: pip install -c constraints.txt -e ".[sdk]". Takes a few minutes.

    \b
    Example:
      python -m recipes.cloudapi.sdks
    """
    click.echo(f"{build()} APIs written to {INDEX.parent}")


if __name__ == "__main__":
    run_module(main)
