"""Writes the text that a model reads: the code before an invocation (Appendix A.4, Figures 12 and
13) and, above it, the documentation of APIs. The documentation has one of the paper's five designs
(Appendix B.1, Figure 15), or the design "example", which is ours and shows example code.
"""

from collections.abc import Mapping, Sequence
from random import Random

from lookuplab.cloudapi.specs import ApiSpec
from lookuplab.retrieval.rankers import identifier_words

# Base models see only the text from this module. Chat models also get the paper's Listing 1
# (``first_call.LISTING_1``).


def imports(spec: ApiSpec) -> str:
    """Return the import statements of a task's prompt."""
    place, _, name = spec.client.rpartition(".")
    if spec.provider == "aws":
        return "import boto3\n"
    if spec.module:
        return f"from {spec.module} import {name}\nfrom consts import client_args, client_kwargs\n"
    # only clients that are classes have ``spec.module``, so this client is a module of a package
    return f"from {place} import {name}\n" if place else f"import {name}\n"


def construction(spec: ApiSpec) -> str:
    """Return the line that creates the client, or "" if the client is a module."""
    if spec.provider == "aws":
        return f'client = boto3.client("{spec.client}")\n'
    return f"client = {_name(spec)}(*client_args, **client_kwargs)\n" if spec.module else ""


def task_prompt(spec: ApiSpec, comment: str) -> str:
    """Return a task's prompt: imports, the line that creates the client, a comment, and the
    beginning of the call, which ends just before the API's name (Section 2.2).
    """
    own = spec.provider == "python"
    made = construction(spec)
    made = made and f"\n# initialize {_name(spec) if own else f'{spec.service} client'}\n{made}"
    called = f"result = {'client' if made else _name(spec)}" if own else "response = client"
    return f"{imports(spec)}{made}\n# {comment}\n{called}."


def _name(spec: ApiSpec) -> str:
    """Return the client's name without the module path that clients of Python packages have."""
    return spec.client.rpartition(".")[2]


# The documentation of APIs.

DESIGNS = ("name", "description", "specification", "description_specification", "full")
ALL_DESIGNS = (*DESIGNS, "example")  # the last is not in the paper
# {type: plausible values of an argument, separated by "|"}. NAME stands for the argument's name.
# The type "" stands for strings and unknown types.
VALUES = {
    "": "'NAME'|'my-NAME'|'example-NAME'",
    "integer": "1|10|100",
    "float": "0.5|1.0",
    "boolean": "True|False",
    "list": "['NAME']|['NAME-1', 'NAME-2']",
    "map": "{'NAME': 'value'}",
    "structure": "{'NAME': 'value'}",
    "blob": "b'NAME'",
    "timestamp": "datetime(2024, 1, 31)",
}
HEADER = "Use the following API information as reference:"
RULE = "=" * 36


def invocation(name: str, arguments: Sequence[str]) -> str:
    """Return the source of a call, with one argument per line if there are several."""
    if len(arguments) < 2:
        return f"{name}({''.join(arguments)})"
    lines = "".join(f"    {one},\n" for one in arguments)
    return f"{name}(\n{lines})"


def made_example(spec: ApiSpec) -> str:
    """Return an example call that has only the required arguments. The API's id seeds the choice of
    the arguments' values, so an API always gets the same example.
    """
    rng = Random(spec.id)
    arguments = []
    for p in spec.parameters:
        if p.required:
            value = rng.choice(VALUES.get(p.type, VALUES[""]).split("|"))
            value = value.replace("NAME", "-".join(identifier_words(p.name, "apart")))
            arguments.append(value if p.kind == "POSITIONAL_ONLY" else f"{p.name}={value}")
    return invocation(spec.name, arguments)


def docstring(
    specs: Sequence[ApiSpec],
    design: str,
    documentation: Mapping[str, str],
    header: str = HEADER,
) -> str:
    """Return the documentation of the retrieved APIs as one Python docstring, in the order given.

    ``documentation`` is the result of ``specs.texts_of`` for the design: {API id: text}. If an API
    has no text, the design "full" shows its description, and the design "example" shows a generated
    example (``made_example``).
    """
    parts = []
    for spec in specs:
        lines = [f"API name: {spec.name}", f"Service/Client name: {spec.client}"]
        if "description" in design and spec.description:
            lines.append(f"Description: {spec.description}")
        for kind, names in ("Required", spec.required), ("Optional", spec.optional):
            if "specification" in design and names:
                lines.append(f"{kind} arguments: {' '.join(names)}")
        if design == "full":
            lines.append(documentation.get(spec.id, spec.description).strip())
        if design == "example":
            shown = documentation.get(spec.id) or made_example(spec)
            lines.append(f"Example:\n{task_prompt(spec, '').splitlines()[-1]}{shown}")
        parts.append("\n".join(lines))
    body = f"\n{RULE}\n".join(parts).replace('"""', "'''")
    return f'"""\n{header}\n{RULE}\n{body}\n{RULE}\n"""\n'
