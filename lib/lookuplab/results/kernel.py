"""Finds out which notebook this kernel executes, whatever started the kernel: the notebook's
parameters and, if possible, its file.
"""

import ast
import os
import re
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError, check_choice
from lookuplab.results import provenance

INJECTED = "# Parameters\n"  # the first line of the cell that papermill adds
_ARTIFACT = re.compile(r"""\w+ = Artifact\(["']([^"']+)["'], ["']([^"']+)["'], profile\)""")


def of_kernel() -> dict[str, Any]:
    """Return the notebook's parameters, such as ``{"models": ["mini-small"], "limit": 0}``, after
    checking the values that papermill injected. Outside a kernel, and before the parameters cell
    has run, return {}.

    Papermill puts its values into a cell after the notebook's parameters cell, and only warns of
    names that the notebook does not declare. If the notebook declares a list, a single value
    becomes a list with one item; the notebook's variable is changed, too. Raises UserError for a
    name that the notebook does not declare, and for a value of another type.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    declared: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for source in shell.user_ns["In"] if shell else ():
        values = assigned(source)
        if source.startswith(INJECTED) and declared:
            if values is None:
                raise UserError("the injected parameters are not all plain values")
            for name, value in values.items():
                check_choice("the notebook's parameter", name, declared)
                found[name] = fitted(declared[name], value, f"parameter {name!r}")
                # keep a value that the notebook has assigned to the name since
                if shell.user_ns.get(name) == value:
                    shell.user_ns[name] = found[name]
        elif values and "profile" in values:
            declared, found = values, dict(values)
    return found


def assigned(source: str) -> dict[str, Any] | None:
    """Return {name: value} for a cell that only assigns plain values to names, and None for any
    other cell.
    """
    values = {}
    try:
        for statement in paths.parsed(ast.parse, source).body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values[name] = paths.parsed(ast.literal_eval, value)
                case _:
                    return None
    except ValueError:
        return None
    return values


def fitted(declared: Any, value: Any, what: str) -> Any:
    """Return ``value`` with the type of the ``declared`` value. If ``declared`` is a list, a single
    value becomes a list with one item, and each item must fit the first item of ``declared``. If it
    is a float, a whole number and a text such as 1e-4 are converted. If it is None, any value fits.
    Raises UserError, whose message begins with ``what``, for another type.
    """
    if isinstance(declared, list):
        items = value if isinstance(value, list | tuple) else [value]
        return [fitted((declared or [None])[0], item, what) for item in items]
    kind = type(declared)
    if kind is float and type(value) in (int, str):
        with suppress(ValueError, OverflowError):
            return float(value)
    if declared is None or type(value) is kind:
        return value
    raise UserError(f"{what} is of type {kind.__name__} (here {declared!r}), not {value!r}")


def figures_of(artifact: str) -> Path:
    """Return the folder below which this kernel writes an artifact, ``paper/name``.

    It is ``$LOOKUPLAB_FIGURES`` if the runner has set this variable, else ``runs/figures``. For a
    copy of the notebook, such as ``out.ipynb``, it is ``runs/copies/NAME``. The notebook is a copy
    if the command or session that started the kernel names notebooks, but not the original.
    """
    if folder := os.environ.get("LOOKUPLAB_FIGURES"):
        return Path(folder)
    if named := _notebooks():
        saving = [
            file
            for file in paths.NOTEBOOKS.glob("*/[!.]*.ipynb")
            if artifact in saved_in(file.read_text("utf-8").replace("\\", ""))
        ]
        if saving and original(artifact, saving).resolve() not in named:
            return paths.RUNS / "copies" / named[0].stem
    return paths.RUNS / "figures"


def saved_in(code: str) -> dict[str, str]:
    """Return {id of an artifact: the statement that creates it} for a notebook's code, such as
    ``{"paper/name": 'artifact = Artifact("paper", "name", profile)'}``.
    """
    return {f"{found[1]}/{found[2]}": found[0] for found in _ARTIFACT.finditer(code)}


def original(artifact: str, files: Collection[Path]) -> Path:
    """Return the original among notebooks that save the same artifact. Files in the kit's folder
    come first, then files tracked by git, then files named after the artifact, then short names.
    """
    known = provenance.git("ls-files", "--", "notebooks") if len(files) > 1 else ""

    def rank(file: Path) -> tuple[bool, bool, bool, int, Path]:
        is_unknown = provenance.relative(file) not in (known or "")
        is_other = f"{file.parent.name}/{file.stem}" != artifact
        return paths.NOTEBOOKS not in file.parents, is_unknown, is_other, len(file.stem), file

    return min(files, key=rank)


def _notebooks() -> list[Path]:
    """Return the notebook files named by the papermill or Jupyter command, and by JupyterLab's
    session.
    """
    if "ipykernel" not in sys.modules:
        return []
    import psutil

    try:
        starter = psutil.Process().parent()
        named, folder = (starter.cmdline(), starter.cwd()) if starter else ([], "")
    except psutil.Error:  # the starting process has ended, or belongs to another user
        named, folder = [], ""
    named.append(os.environ.get("JPY_SESSION_NAME", ""))
    files = (Path(folder, name) for name in named if name.endswith(".ipynb"))
    return [file.resolve() for file in files if file.is_file()]
