"""A computed value as Python source, and the test that says whether a result is that value.

Floats are written with ten significant digits, so that the last bits of another processor change no file; the tests
allow 1e-6. A value without such a form (an estimator, a masked or sparse array, a file) makes no problem.
"""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

LONGEST = 2000  # characters of an expression
IMPORTS = {"array": "import numpy as np", "number": "import numpy as np", "sequence": "import numpy as np",
           "frame": "import pandas as pd", "series": "import pandas as pd", "index": "import pandas as pd", "exact": ""}
SCALARS = (("nan", "from math import nan"), ("inf", "from math import inf"), *(
    (name, f"from pandas import {name}") for name in ("Interval", "NA", "NaT", "Period", "Timedelta", "Timestamp")))

_ARRAY = '''
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.shape == expected.shape
    assert (result.dtype.kind in "biufc") == (expected.dtype.kind in "biufc")
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-9)
    else:
        np.testing.assert_array_equal(result, expected)
'''
_PANDAS = '''
    assert isinstance(result, pd.{type})
    pd.testing.assert_{kind}_equal(result, expected, {loose}, rtol=1e-6, atol=1e-9)
'''
SAME = {  # kind -> body of `def same(result, expected)`, which raises where the two are not one value
    "exact": "\n    assert type(result) is type(expected) and result == expected\n",
    "number": '''
    assert np.ndim(result) == 0 and np.asarray(result).dtype.kind in "biufc"
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-9)
''',
    "array": _ARRAY,
    "sequence": '''
    if isinstance(expected, (list, tuple)):
        assert isinstance(result, (list, tuple)) and len(result) == len(expected)
        for part, other in zip(result, expected):
            same(part, other)
        return''' + _ARRAY,
    "frame": _PANDAS.format(type="DataFrame", kind="frame", loose="check_dtype=False, check_freq=False"),
    "series": _PANDAS.format(type="Series", kind="series", loose="check_dtype=False, check_freq=False"),
    "index": _PANDAS.format(type="Index", kind="index", loose='exact="equiv"'),
}
SEVERAL = '''
    assert isinstance(result, (list, tuple)) and len(result) == len(expected)
    for part, other in zip(result, expected):
        same_part(part, other)
'''
_INEXACT = (np.ndarray, np.generic, float, tuple, list)  # makes a sequence one to compare part by part
_PLAIN = (bool, int, str, bytes, pd.Timestamp, pd.Timedelta, pd.Period, pd.Interval, type(pd.NaT))


class Literal(NamedTuple):
    """Source of an expression that gives the value again, and its kind (a key of ``SAME``)."""

    kind: str
    source: str


def literal(value: object) -> Literal | None:
    """The value's source; None where it has none that gives it back, or a longer one than ``LONGEST``."""
    try:
        found = _literal(value)
        if found is None or len(found.source) > LONGEST:
            return None
        same(found.kind, eval(found.source, namespace()), value)
    except (ValueError, TypeError, AssertionError, SyntaxError, NameError, OverflowError):
        return None
    return found


def imports_of(kind: str, sources: str) -> list[str]:
    """Import lines that the expected values and the test need."""
    lines = [line for name, line in SCALARS if re.search(rf"(?<![\w.'\"]){name}\b", sources)]
    lines += ["import numpy as np"] * ("np." in sources) + ["import pandas as pd"] * ("pd." in sources)
    return sorted({*lines, IMPORTS[kind]} - {""})


def namespace() -> dict:
    """Names that the sources of values use."""
    names = {"np": np, "pd": pd}
    for _, line in SCALARS:
        exec(line, names)
    return names


def same(kind: str, result: object, expected: object) -> None:
    """The test of a kind, as the problems carry it. Raises AssertionError (or what the comparison raises)."""
    names = {"np": np, "pd": pd}
    exec(f"def same(result, expected):{SAME[kind]}", names)
    names["same"](result, expected)


def _literal(value: object) -> Literal | None:
    """The kind is that of DS-1000's tests: allclose for numbers, pandas' own tests, equality for the rest."""
    if isinstance(value, pd.DataFrame):
        return Literal("frame", _frame(value)) if value.size else None
    if isinstance(value, pd.Series):
        return Literal("series", _series(value)) if value.size else None
    if isinstance(value, pd.Index):
        return Literal("index", _index(value)) if value.size else None
    if type(value) is np.ndarray:
        return Literal("array", _array(value)) if value.size else None
    if isinstance(value, bool | int | float | complex | np.bool_ | np.number):
        return Literal("number", plain(value.item() if isinstance(value, np.generic) else value))
    if isinstance(value, tuple | list) and any(isinstance(part, _INEXACT) for part in value):
        return Literal("sequence", _sequence(value))
    if isinstance(value, str | bytes | tuple | list | dict | set | pd.Timestamp | pd.Timedelta | pd.Period):
        return Literal("exact", plain(value)) if value not in ("", [], {}, ()) else None
    return None


def plain(value: object) -> str:
    """Source of scalars and of plain containers of them. Raises ValueError for anything else."""
    if isinstance(value, float):
        return repr(float(f"{value:.10g}"))
    if isinstance(value, complex):
        return f"complex({plain(value.real)}, {plain(value.imag)})"
    if isinstance(value, np.bool_ | np.number | np.str_) and not isinstance(value.item(), np.generic):
        return plain(value.item())
    if type(value) in (tuple, list):
        inner = ", ".join(plain(part) for part in value) + ("," if type(value) is tuple and len(value) == 1 else "")
        return f"({inner})" if type(value) is tuple else f"[{inner}]"
    if type(value) is dict:
        return "{" + ", ".join(f"{plain(key)}: {plain(part)}" for key, part in value.items()) + "}"
    if type(value) is set:
        return "{" + ", ".join(sorted(map(plain, value))) + "}"
    if value is pd.NA:
        return "NA"
    if value is None or isinstance(value, _PLAIN):
        return repr(value)
    raise ValueError(f"no plain form: {type(value)}")


def _sequence(value: tuple | list) -> str:
    """Lists and tuples of numbers and arrays; named tuples as plain ones."""
    parts = [_sequence(part) if isinstance(part, tuple | list) else
             _array(part) if isinstance(part, np.ndarray) else plain(part) for part in value]
    inner = ", ".join(parts) + ("," if isinstance(value, tuple) and len(parts) == 1 else "")
    return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"


def _array(value: np.ndarray) -> str:
    if value.dtype.kind in "biufcUS":
        dtype = value.dtype.str[1:] if value.dtype.kind in "US" else str(value.dtype)
        return f"np.array({plain(value.tolist())}, dtype={dtype!r})"
    if value.dtype.kind in "mM":
        return f"np.array({plain(value.astype('int64').tolist())}, dtype={str(value.dtype)!r})"
    raise ValueError("array of objects")


def _series(value: pd.Series) -> str:
    name = "" if value.name is None else f", name={plain(value.name)}"
    return f"pd.Series({plain(value.tolist())}, index={_index(value.index)}, dtype={str(value.dtype)!r}{name})"


def _frame(value: pd.DataFrame) -> str:
    """Columns by position, then both indexes: holds for any labels, also for equal ones."""
    columns = [f"{number}: pd.Series({plain(value.iloc[:, number].tolist())}, dtype={str(value.dtypes.iloc[number])!r})"
               for number in range(value.shape[1])]
    filled = f"pd.DataFrame({{{', '.join(columns)}}})"
    return f"{filled}.set_axis({_index(value.index)}).set_axis({_index(value.columns)}, axis=1)"


def _index(value: pd.Index) -> str:
    if isinstance(value, pd.MultiIndex):
        return f"pd.MultiIndex.from_tuples({plain(value.tolist())}, names={plain(list(value.names))})"
    name = "" if value.name is None else f", name={plain(value.name)}"
    if type(value) is pd.RangeIndex:
        return f"pd.RangeIndex({value.start}, {value.stop}, {value.step}{name})"
    return f"pd.Index({plain(value.tolist())}, dtype={str(value.dtype)!r}{name})"
