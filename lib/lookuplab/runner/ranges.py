"""What the numbers among a notebook's parameters may be, by their names, which mean the same in every notebook.

The library refuses the same values, but only where it first uses them: behind the answers of all models, hours later.
"""

import math
from collections.abc import Mapping
from typing import Any

from lookuplab.errors import UserError

_PERCENT, _PROBABILITY = (0, 100), (0, 1)
_AT_LEAST_0, _AT_LEAST_1, _AT_LEAST_2 = (0, math.inf), (1, math.inf), (2, math.inf)
RANGES = {
    "precision": _PERCENT, "precisions": _PERCENT, "threshold": _PROBABILITY, "gates": _PROBABILITY,
    "limit": _AT_LEAST_0, "k": _AT_LEAST_1, "retrievals": _AT_LEAST_1, "max_new_tokens": _AT_LEAST_1,
    "n_tasks": _AT_LEAST_1, "repeats": _AT_LEAST_1, "run_on_every": _AT_LEAST_1, "bins": _AT_LEAST_1,
    "thresholds": _AT_LEAST_2, "folds": _AT_LEAST_2,
}


def check(notebook: str, values: Mapping[str, Any]) -> None:
    """Every number that has a range lies in it; a list has a first item and no item twice. Raises UserError."""
    for name, value in values.items():
        if isinstance(value, (list, tuple)):
            _check_list(notebook, name, value)
        low, high = RANGES.get(name, (-math.inf, math.inf))
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if name in RANGES and isinstance(item, (int, float)) and not low <= item <= high:  # nan neither
                allowed = f"from {low} to {high}" if high < math.inf else f"{low} or more"
                raise UserError(f"{notebook}: parameter {name!r} is {item}; it must be {allowed}")


def _check_list(notebook: str, name: str, value: list | tuple) -> None:
    if not value and not name.endswith("models"):  # those are ``resources``' to tell
        raise UserError(f"{notebook}: parameter {name!r} is empty; give at least one value")
    if twice := [item for at, item in enumerate(value) if item in value[:at]]:
        raise UserError(f"{notebook}: parameter {name!r} holds {twice[0]!r} twice; give every value once")
