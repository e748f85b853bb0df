#!/usr/bin/env bash
# pandas 3.1.1: assert_frame_equal says that the cells [1, 2] and (1, 2) are equal and None and NaN are not. DataFrame.equals says the opposite.
#
# Expected: both compare types and values, and assert_frame_equal, which also checks the dtype, is the stricter one, apart from its tolerance for floats.
# Seen: in columns of objects, assert_frame_equal takes a list, a tuple, an array and a range for the same cell, and applies its tolerance inside of lists
# and dictionaries. `equals` tells them apart. None and NaN, and categories in another order, differ for assert_frame_equal and are the same for `equals`.
# For both, True is the same as 1. With check_exact=True, which sounds only stricter, lists and tuples differ, but None and NaN become equal.
# check_dtype=False changes none of these verdicts.
# Why it matters: tests of data-science benchmarks (DS-1000 and its like) use one or the other. A generated program that returns tuples instead of lists,
# or None instead of NaN, passes or fails by the choice of the comparison, so pass rates of two benchmarks differ in what they accept.
# What to do: name the comparison. For cells that are containers, compare `frame.to_dict("list")` instead.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pandas==3.1.1 numpy==2.4.6 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import numpy as np
import pandas as pd


def objects(cell):
    return pd.Series([cell, "other"], dtype=object)


def asserted(left, right, **options):
    try:
        pd.testing.assert_frame_equal(left, right, **options)
    except AssertionError:
        return False
    return True


PAIRS = {
    "[1, 2] and (1, 2)": (objects([1, 2]), objects((1, 2))),
    "[1, 2] and an array": (objects([1, 2]), objects(np.array([1, 2]))),
    "[0, 1] and range(2)": (objects([0, 1]), objects(range(2))),
    "{'a': 1} and {'a': 1.0000001}": (objects({"a": 1}), objects({"a": 1.0000001})),
    "True and 1": (objects(True), objects(1)),
    "None and NaN": (objects(None), objects(np.nan)),
    "order of categories": (pd.Categorical(["a", "b"]), pd.Categorical(["a", "b"], categories=["b", "a"])),
}
print("pandas", pd.__version__)
seen = []
for name, columns in PAIRS.items():
    left, right = (pd.DataFrame({"column": column}) for column in columns)
    seen.append((asserted(left, right), asserted(left, right, check_exact=True), asserted(left, right, check_dtype=False), left.equals(right)))
    print(f"{name}: assert_frame_equal {seen[-1][0]}, check_exact {seen[-1][1]}, check_dtype=False {seen[-1][2]}, equals {seen[-1][3]}")
assert seen == [(True, False, True, False)] * 4 + [(True, True, True, True), (False, True, False, True), (False, False, False, True)], "the behaviour changed"
PY
