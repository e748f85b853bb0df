"""The five augmentation designs: what of an API's documentation stands before the prompt (Appendix B.1, Figure 15)."""

from collections.abc import Mapping, Sequence

from lookuplab.cloudapi.prose import shortened
from lookuplab.cloudapi.specs import ApiSpec
from lookuplab.errors import UserError

DESIGNS = ("name", "description", "specification", "description_specification", "full")
RULE = "=" * 36


def api_information(
    spec: ApiSpec, design: str, documentation: Mapping[str, str] | None = None
) -> str:
    """The lines about one API in one design. ``documentation`` maps API ids to full texts; only ``full`` reads it."""
    if design not in DESIGNS:
        raise UserError(
            f"unknown augmentation design {design!r}; choose one of {', '.join(DESIGNS)}"
        )
    lines = [f"API name: {spec.name}", f"Service/Client name: {spec.client}"]
    if design in ("description", "description_specification") and spec.description:
        lines.append(f"Description: {spec.description}")
    if design in ("specification", "description_specification"):
        if spec.required:
            lines.append("Required arguments: " + " ".join(spec.required))
        if spec.optional:
            lines.append("Optional arguments: " + " ".join(spec.optional))
    if design == "full":
        lines.append(shortened((documentation or {}).get(spec.id, spec.description)).strip())
    return "\n".join(lines)


def docstring(
    specs: Sequence[ApiSpec], design: str, documentation: Mapping[str, str] | None = None
) -> str:
    """The retrieved APIs as one Python docstring, in the order given."""
    parts = [api_information(spec, design, documentation).replace('"""', "'''") for spec in specs]
    body = f"\n{RULE}\n".join(parts)
    return f'"""\nUse the following API information as reference:\n{RULE}\n{body}\n{RULE}\n"""\n'


def augment(
    prompt: str,
    specs: Sequence[ApiSpec],
    design: str,
    documentation: Mapping[str, str] | None = None,
) -> str:
    """The prompt with its documentation in front; without documentation the prompt as it was."""
    return docstring(specs, design, documentation) + prompt if specs else prompt
