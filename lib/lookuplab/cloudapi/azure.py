"""The methods of the Azure clients, as specifications (paper, Appendix A.2 steps 2 and 4).

The paper parses the SDK's sources. Here the installed packages are imported and inspected instead, because the sources
hold every method many times over (asynchronous twins, overloads, one copy for each service version) and only the client
knows which copy it resolves to. Nothing connects anywhere.
"""

import importlib
import inspect
import re
import typing
from collections.abc import Iterator

from lookuplab.cloudapi.prose import rst_text, sentences, shortened
from lookuplab.cloudapi.specs import ApiSpec, Parameter

# service -> (import module, name and version of the package on the index)
PACKAGES = {
    "blob": ("azure.storage.blob", "azure-storage-blob", "12.20.0"),
    "callautomation": ("azure.communication.callautomation", "azure-communication-callautomation", "1.2.0"),
    "compute": ("azure.mgmt.compute", "azure-mgmt-compute", "31.0.0"),
    "computervision": (
        "azure.cognitiveservices.vision.computervision", "azure-cognitiveservices-vision-computervision", "0.9.0"
    ),
    "cosmos": ("azure.cosmos", "azure-cosmos", "4.7.0"),
    "eventhub": ("azure.eventhub", "azure-eventhub", "5.12.0"),
    "formrecognizer": ("azure.ai.formrecognizer", "azure-ai-formrecognizer", "3.3.3"),
    "network": ("azure.mgmt.network", "azure-mgmt-network", "25.4.0"),
    "secrets": ("azure.keyvault.secrets", "azure-keyvault-secrets", "4.8.0"),
    "servicefabric": ("azure.servicefabric", "azure-servicefabric", "8.2.0.0"),
    "storage": ("azure.mgmt.storage", "azure-mgmt-storage", "21.1.0"),
    "textanalytics": ("azure.ai.textanalytics", "azure-ai-textanalytics", "5.3.0"),
}
VERSIONS = {package: version for _, package, version in PACKAGES.values()}
_CLIENT = re.compile(r"(Client|Proxy|ClientAPIs)$")
_NO_OPERATION = frozenset({"close", "models", "send_request"})  # what the client classes offer besides the service
# ":keyword str name:", ":param ~azure.core.Thing name:", ":keyword Callable[[dict[str, Any]], None] hook:"
_FIELD = re.compile(
    r"^\s*:(?:param|keyword|kwarg)\s+(?P<type>(?:(?!:\s).)*?)\s*\*{0,2}(?P<name>[A-Za-z]\w*)\s*:(?=\s|$)", re.M
)
_TYPE_FIELD = re.compile(r"^\s*:(?:type|paramtype)\s+(?P<name>\w+):\s*(?P<type>.+)$", re.M)
# First match wins: "list[str]" is a list, "Optional[str]" a string.
_TYPES = {
    "list": r"list|iterable|sequence|tuple|\[(?:str|int)\]$",
    "map": r"dict|mapping|json",
    "blob": r"bytes|io\b|stream|anystr",
    "timestamp": r"datetime|timedelta|\bdate\b",
    "boolean": r"\bbool",
    "integer": r"\bint\b|\blong\b",
    "float": r"\bfloat\b",
    "string": r"\bstr\b|string",
    "structure": r"\w",
}


def services() -> list[str]:
    """The short names of the packages, which the prompts use (``# initialize blob client``)."""
    return sorted(PACKAGES)


def specifications(service: str) -> list[ApiSpec]:
    """Every public method of the synchronous clients of one package."""
    return [_specification(service, cls, name) for cls in _clients(service) for name in _methods(cls)]


def documentation(service: str) -> dict[str, str]:
    """API id -> its complete docstring, truncated (paper, Appendix A.2 step 4 and B.1)."""
    return {
        f"azure/{service}.{cls.__name__}.{name}": shortened(docstring)
        for cls in _clients(service) for name in _methods(cls)
        if (docstring := _docstring(getattr(cls, name)))
    }


def _clients(service: str) -> list[type]:
    """The classes that a program calls: exported clients, and the ``*Operations`` groups that hang on them."""
    module = importlib.import_module(PACKAGES[service][0])
    exported = [getattr(module, name) for name in dir(module) if _CLIENT.search(name) and not name.startswith("_")]
    groups = [group for cls in exported for group in _groups(cls)]
    return sorted({*exported, *groups}, key=lambda cls: (cls.__name__, cls.__module__))


def _groups(client: type) -> Iterator[type]:
    """Operation groups, reached through an instance: it resolves the service version of each."""
    first = next(iter(inspect.signature(client).parameters), None)
    if first == "credentials":  # azure-servicefabric, of the generation before azure-core
        from msrest.authentication import Authentication

        instance = client(Authentication())
    elif "subscription_id" in inspect.signature(client).parameters:
        instance = client(_NoCredential(), "00000000-0000-0000-0000-000000000000")
    else:
        return
    for attribute in dir(instance):
        value = getattr(instance, attribute) if not attribute.startswith("_") else None
        if type(value).__name__.endswith("Operations"):
            yield type(value)


class _NoCredential:
    def get_token(self, *scopes, **kwargs):
        raise RuntimeError("specifications are read without any request")


def _methods(cls: type) -> list[str]:
    public = (name for name in dir(cls) if not name.startswith("_"))
    return [name for name in public if inspect.isroutine(getattr(cls, name))]


def _specification(service: str, cls: type, name: str) -> ApiSpec:
    method = getattr(cls, name)
    docstring = _docstring(method)
    types = _documented_types(docstring)
    parameters = _parameters(method, types)
    overloads = tuple(_parameters(overload, types) for overload in _overloads(method))
    known = {p.name for signature in (parameters, *overloads) for p in signature}
    bound = isinstance(inspect.getattr_static(cls, name), (classmethod, staticmethod))
    kinds = {p.kind for p in parameters}
    return ApiSpec(
        "azure", service, cls.__name__, name, parameters, overloads,
        documented=tuple(sorted(set(types) - known)),
        description="".join(sentences(_first_paragraph(docstring))[:1]),
        module=_public_module(service, cls),
        operation=not (bound or name in _NO_OPERATION),
        flags=("open_signature",) if "VAR_POSITIONAL" in kinds <= {"VAR_POSITIONAL", "VAR_KEYWORD"} else (),
    )


def _docstring(method) -> str:
    """The method's docstring; where only its overloads have one (``start_recording``), the first of these."""
    return next(filter(None, map(inspect.getdoc, (method, *_overloads(method)))), "")


def _public_module(service: str, cls: type) -> str:
    """Where a program imports the class from: the package, or the module that holds an operation group."""
    package = PACKAGES[service][0]
    exported = getattr(importlib.import_module(package), cls.__name__, None) is cls
    return package if exported else cls.__module__.split("._")[0]


def _overloads(method) -> list:
    return typing.get_overloads(inspect.unwrap(getattr(method, "__func__", method)))


def _parameters(method, types: dict[str, str]) -> tuple[Parameter, ...]:
    # A plain function still shows ``self``; a class method is bound already.
    found = list(inspect.signature(method).parameters.values())
    if found and found[0].name == "self":
        found = found[1:]
    return tuple(
        Parameter(
            p.name, p.kind.name, p.default is p.empty and not p.kind.name.startswith("VAR_"),
            "" if p.kind.name.startswith("VAR_") else _word(_annotation(p) or types.get(p.name, "")),
        )
        for p in found
    )


def _annotation(parameter: inspect.Parameter) -> str:
    if parameter.annotation is parameter.empty:
        return ""
    given = parameter.annotation
    return given if isinstance(given, str) else inspect.formatannotation(given)


def _word(annotation: str) -> str:
    """One word for the value: that of the first alternative of a union, without its module path."""
    text = re.sub(r"[\w.~]+\.(?=\w)", "", annotation).replace("`", "").strip()
    while wrapped := re.fullmatch(r"(?:Optional|Union|Required)\[(.*)\]", text):
        text = wrapped[1]
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if not depth and (character in ",|" or text.startswith(" or ", place)):
            return _word(text[:place])
    return next((word for word, pattern in _TYPES.items() if re.search(pattern, text.lower())), "")


def _documented_types(docstring: str) -> dict[str, str]:
    """Argument name -> its type as the docstring words it, "" where it gives none."""
    types = {match["name"]: match["type"] for match in _FIELD.finditer(docstring)}
    for match in _TYPE_FIELD.finditer(docstring):
        types[match["name"]] = match["type"]
    return types


def _first_paragraph(docstring: str) -> str:
    text = re.split(r"\n\s*\n|^\s*:\w+[^:\n]*:", docstring.strip(), maxsplit=1, flags=re.M)[0]
    return re.sub(r"\s+", " ", rst_text(text))
