"""From a request to a job: everything that can be wrong is found here, before any kernel starts."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.store_log import OWN, USER
from lookuplab.runner import ranges, resources
from lookuplab.runner.notebooks import Notebook
from lookuplab.runner.profiles import Profile


@dataclass(frozen=True)
class Job:
    """One notebook to execute: ``parameters`` is what is injected, ``values`` all of its parameters after that.

    ``figures`` is the root that its artifacts are written under, ``output`` the executed copy; ``missing`` says what a
    job that was planned without being started lacks on this machine.
    """

    notebook: Notebook
    profile: str
    parameters: dict[str, Any]
    output: Path
    figures: Path
    missing: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    kernel: str = "python3"

    @property
    def values(self) -> dict[str, Any]:
        return self.notebook.parameters | self.parameters


def plan(notebook: Notebook, profile: Profile, given: Mapping[str, str] | None = None, *, output: Path | None = None,
         figures: Path | None = None, environment: Mapping[str, str] | None = None, dry: bool = False) -> Job:
    """Check a notebook's parameters against what it declares, and what they name against the disk.

    ``given`` are texts from the command line. Raises UserError for an unknown name, a changed type, a number out of its
    range, a missing model or data set (a ``dry`` plan only collects what is missing, and asks no network). Models on
    the hub get the revision that is pinned for them. Figures go where the profile says; a run with parameters of its
    own never writes over committed ones.
    """
    parameters = dict(profile.overrides(notebook))
    for name, value in parameters.items():
        parameters[name] = _same_type(notebook, name, value, f"profile {profile.name!r}")
    for name, text in (given or {}).items():
        parameters[name] = parse_value(notebook, name, text)
    parameters = {name: resources.pinned(name, value) for name, value in parameters.items()}
    hints = {name: hint for name, hint in profile.hints.items() if name not in (given or {})}
    values = notebook.parameters | parameters
    resources.check_names(notebook.id, values)
    ranges.check(notebook.id, values)
    if not dry:  # may ask the hub, so it comes last
        resources.check(notebook.id, values, hints)
    committed = profile.committed and not given
    user = f"{profile.name}/{notebook.id}{OWN if given else ''}"
    return Job(
        notebook, profile.name, parameters,
        output or paths.RUNS / profile.name / notebook.paper / f"{notebook.name}.ipynb",
        figures or (paths.FIGURES if committed else paths.RUNS / "figures"),
        missing=tuple(resources.missing(values, hints)) if dry else (), environment={USER: user, **(environment or {})},
    )


def parse_value(notebook: Notebook, name: str, text: str) -> Any:
    """A value from the command line in the type that the notebook declares. Raises UserError."""
    import yaml

    declared = _declared(notebook, name, "the command line")
    if isinstance(declared, str):
        return resources.as_named_here(name, text)
    if isinstance(declared, (list, tuple)) and not text.lstrip().startswith("["):
        text = f"[{text}]"
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    if isinstance(value, str) and isinstance(declared, float):
        value = _float(value)
    value = _same_type(notebook, name, value, "the command line")
    return [resources.as_named_here(name, item) for item in value] if isinstance(value, list) else value


def _declared(notebook: Notebook, name: str, origin: str) -> Any:
    if name not in notebook.parameters:
        close = difflib.get_close_matches(name, notebook.parameters, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        known = ", ".join(notebook.parameters) or "none"
        raise UserError(f"{notebook.id} has no parameter {name!r} (from {origin}){hint}; it has: {known}")
    return notebook.parameters[name]


def _same_type(notebook: Notebook, name: str, value: Any, origin: str) -> Any:
    declared = _declared(notebook, name, origin)
    if _fits(declared, value):
        return float(value) if isinstance(declared, float) else value
    raise UserError(f"{notebook.id}: parameter {name!r} is {_kind(declared)} (here {declared!r}), "
                    f"but {origin} gives {value!r}, {_kind(value)}")


def _fits(declared: Any, value: Any) -> bool:
    """int may stand for float, no other type for another; None declares nothing; a list's items fit its first."""
    if declared is None:
        return True
    if isinstance(declared, bool) or isinstance(value, bool):
        return isinstance(declared, bool) and isinstance(value, bool)
    if isinstance(declared, float):
        return isinstance(value, (int, float))
    if isinstance(declared, (list, tuple)):
        pattern = declared[0] if declared else None
        return isinstance(value, (list, tuple)) and all(_fits(pattern, item) for item in value)
    return isinstance(value, type(declared))


def _kind(value: Any) -> str:
    names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), f"a {type(value).__name__}")


def _float(text: str) -> float | str:
    try:
        return float(text)  # YAML 1.1 reads 1e-3 as a text
    except ValueError:
        return text


def sweep_values(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """The cartesian product of ``name=a,b,c`` in the order given; commas inside brackets do not separate."""
    from itertools import product

    names = [name for name, _ in pairs]
    return [dict(zip(names, case, strict=True)) for case in product(*(_split(text) for _, text in pairs))]


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += character in "[({"
        depth -= character in "])}"
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
