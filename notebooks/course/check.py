"""Helps students: ``check`` compares a value with the expected value and shows both if they differ,
and ``keep`` stores finished functions, which the capstone uses together. If all checks in a cell
pass, a line below the cell says so.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy
from IPython import get_ipython

from lookuplab import paths
from lookuplab.results.provenance import kernel_parameters

KEPT = paths.RUNS / "course" / "kept"  # a folder with one file per function
_passed: list[str] = []  # descriptions of the checks that passed in this cell


def check(what: str, came: Any, wanted: Any, right: bool | None = None, near: float = 1e-6) -> None:
    """Check that the value ``came`` equals the value ``wanted``. Otherwise raise an AssertionError
    that shows both values after the description ``what``.

    Numbers may differ by ``near``. A tuple, a list and an array with the same values are equal. To
    check a property instead of a value, ``right`` says whether the property holds, and ``wanted``
    describes it in words.
    """
    if _same(came, wanted, near) if right is None else right:
        _passed.append(what)
        return
    hint = "   (is there a `return`?)" if came is None else ""
    asked = _short(wanted) if right is None else wanted
    error = AssertionError(f"{what}\n   got:    {_short(came)}{hint}\n   wanted: {asked}")
    # IPython shows this in place of a traceback, which would only point into this function
    error._render_traceback_ = lambda: ["Not yet right.", *str(error).split("\n")]
    raise error


def keep(*functions: Callable) -> None:
    """Write the source of functions to ``KEPT``, for the capstone. A new version of a function
    replaces the earlier version.
    """
    for function in functions:
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):  # the function has no source to read, so it is not kept
            continue
        paths.write_lines(KEPT / f"{function.__name__}.py", source.rstrip().split("\n"))


def kept() -> str:
    """Return the code of all kept functions, to paste into a cell."""
    files = sorted(KEPT.glob("*.py"))
    return "\n\n".join(file.read_text(encoding="utf-8").rstrip() for file in files)


def _say_so(cell: Any) -> None:
    if _passed and cell.success:
        print("Passed:", f"all {len(_passed)} checks." if _passed[1:] else "the check.")
    _passed.clear()


def _checked(lines: list[str]) -> list[str]:
    # this runs before each cell; an error for a wrong parameter keeps the cell from running
    kernel_parameters()
    return lines


def _same(came: Any, wanted: Any, near: float) -> bool:
    if isinstance(wanted, str | bool | set | frozenset) or wanted is None:
        return bool(numpy.all(came == wanted))
    if isinstance(wanted, Mapping):
        return (
            isinstance(came, Mapping)
            and set(came) == set(wanted)
            and all(_same(came[key], value, near) for key, value in wanted.items())
        )
    if hasattr(wanted, "__len__"):
        pairs = hasattr(came, "__len__") and not isinstance(came, str | set | Mapping)
        return (
            pairs
            and len(came) == len(wanted)
            and all(_same(one, other, near) for one, other in zip(came, wanted, strict=True))
        )
    try:
        return bool(numpy.isclose(came, wanted, rtol=0, atol=near, equal_nan=True))
    except (TypeError, ValueError):
        return False


def _short(value: Any) -> str:
    """Return a value as a text of at most about 300 characters. The numbers and arrays of numpy,
    pandas and torch look like Python's own numbers and lists.
    """
    value = value.tolist() if hasattr(value, "tolist") else value
    with numpy.printoptions(legacy="1.25"):  # 0.5 instead of np.float64(0.5)
        text = repr(value)
    return text if len(text) <= 300 else text[:300] + " ..."


if shell := get_ipython():  # None outside of a notebook
    shell.events.register("post_run_cell", _say_so)
    shell.input_transformers_post.append(_checked)
