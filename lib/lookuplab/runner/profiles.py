"""Profiles: the same notebooks with other parameters. A profile is one small YAML file; code never asks for it."""

import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookuplab.errors import UserError
from lookuplab.runner.notebooks import Notebook

FOLDER = Path(__file__).resolve().parents[1] / "profiles"
_KINDS = {"committed": bool, "description": str, "hints": dict, "needs": list, "notebooks": dict, "parameters": dict}
_WORDS = {bool: "true or false", str: "a text", dict: "a mapping", list: "a list"}


@dataclass(frozen=True)
class Profile:
    """``parameters`` apply to every notebook that declares them, ``notebooks[id]`` to one notebook, which must.

    ``needs`` are names in ``data/sources.toml`` that must have been fetched. ``committed`` says that the
    figures are kept in the repository (else they are written under ``runs/``). ``hints[parameter]`` says what to do
    when the file or folder that this profile names there does not exist.
    """

    name: str
    description: str = ""
    committed: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    notebooks: dict[str, dict[str, Any]] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)

    def overrides(self, notebook: Notebook) -> dict[str, Any]:
        """What this profile sets in one notebook; ``profile`` itself wherever it is declared."""
        general = {name: value for name, value in self.parameters.items() if name in notebook.parameters}
        named = {"profile": self.name} if "profile" in notebook.parameters else {}
        return named | general | self.notebooks.get(notebook.id, {})


def names() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def load(name: str) -> Profile:
    """An embedded profile by name, or an own one by the path of its YAML file. Raises UserError."""
    file = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if not file.is_file():
        close = difflib.get_close_matches(name, names(), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UserError(f"no profile {name!r}{hint}; there are: {', '.join(names())} (or the path of a YAML file)")
    return _parse(file)


def _parse(file: Path) -> Profile:
    import yaml

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"profile {file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or (unknown := set(content) - set(_KINDS)):
        wrong = ", ".join(sorted(map(str, unknown))) if isinstance(content, dict) else "no mapping"
        raise UserError(f"profile {file}: {wrong}; it may hold {', '.join(_KINDS)}")
    given = {key: value for key, value in content.items() if value is not None}
    for key, value in given.items():
        if not isinstance(value, _KINDS[key]):
            raise UserError(f"profile {file}: {key} is {value!r}; it must be {_WORDS[_KINDS[key]]}")
    for notebook, values in given.get("notebooks", {}).items():
        if not isinstance(values, dict):
            raise UserError(f"profile {file}: notebooks: {notebook} must hold a mapping of its parameters")
    return Profile(file.stem, **{**given, "needs": tuple(given.get("needs", ()))})
