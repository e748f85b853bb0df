"""The parameters of the notebook that this kernel executes, whatever executes it: papermill puts
its values into a cell after the notebook's own, and only warns of names that the notebook lacks.
"""

import ast
import sys
from typing import Any

from lookuplab.errors import UserError, check_choice

INJECTED = "# Parameters\n"  # how papermill begins the cell that it adds


def of_kernel() -> dict[str, Any]:
    """Return the parameters by name, such as ``{"models": ["mini-small"], "limit": 0}``, those of
    the injected cell checked; {} outside a kernel and before the parameters cell has run.

    Where the notebook has a list, a single value becomes a list of one, in the notebook, too.
    Raises UserError for a name that the notebook does not declare, and a value of another type.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    declared: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for source in shell.user_ns["In"] if shell else ():
        values = _assigned(source)
        if source.startswith(INJECTED) and declared:
            if values is None:
                raise UserError("the injected parameters are not all plain values")
            for name, value in values.items():
                check_choice("the notebook's parameter", name, declared)
                found[name] = _fitted(name, declared[name], value)
                if shell.user_ns.get(name) == value:  # the notebook has not changed it since
                    shell.user_ns[name] = found[name]
        elif values and "profile" in values:
            declared, found = values, dict(values)
    return found


def _assigned(source: str) -> dict[str, Any] | None:
    """Name -> value of a cell that only assigns plain values to names; None for any other cell."""
    values = {}
    try:
        for statement in ast.parse(source).body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values[name] = ast.literal_eval(value)
                case _:
                    return None
    except (ValueError, SyntaxError):
        return None
    return values


def _fitted(name: str, declared: Any, value: Any) -> Any:
    """Return the value with the type of the declared one: an int fits a float, and a list's items
    must fit its first item.
    """
    if isinstance(declared, list):
        items = value if isinstance(value, list | tuple) else [value]
        return [_fitted(name, (declared or [None])[0], item) for item in items]
    kind = type(declared)
    if declared is None or type(value) is kind or (kind is float and type(value) is int):
        return value
    raise UserError(
        f"parameter {name!r} is of type {kind.__name__} (here {declared!r}), not {value!r}"
    )
