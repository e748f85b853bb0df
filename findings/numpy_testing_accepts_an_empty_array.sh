#!/usr/bin/env bash
# numpy 2.4.6: every comparison of an empty array with a number passes in numpy.testing.
#
# Expected: an answer without any value does not equal 3.0, so the assertion fails. It fails if the expected value is [3.0].
# Seen: assert_allclose, assert_array_equal, assert_array_almost_equal and assert_almost_equal pass for np.array([]), for [] and for an array of
# shape (0, 3), whatever number is expected, also NaN. The number is spread over the empty array, so there is nothing to compare. With strict=True they fail.
# Why it matters: DS-1000 and other benchmarks judge programs with these functions. A program that filters everything away, `df[df.x > 9].x.values`, and
# forgets the sum passes every test whose result is one number.
# What to do: pass strict=True, or compare the shapes first.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet numpy==2.4.6 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import numpy as np


def passes(check, answer, expected, **options):
    try:
        check(answer, expected, **options)
    except AssertionError:
        return False
    return True


print("numpy", np.__version__)
answers = {"np.array([])": np.array([]), "[]": [], "np.empty((0, 3))": np.empty((0, 3)), "np.array([2.0])": np.array([2.0])}
checks = [np.testing.assert_allclose, np.testing.assert_array_equal, np.testing.assert_array_almost_equal, np.testing.assert_almost_equal]
for check in checks:
    seen = {name: passes(check, answer, 3.0) for name, answer in answers.items()}
    print(f"{check.__name__} of 3.0 passes for", ", ".join(name for name, passed in seen.items() if passed))
    assert list(seen.values()) == [True, True, True, False], "the behaviour changed"
    assert passes(check, np.array([]), np.nan) and not passes(check, np.array([]), [3.0]), "the behaviour changed"
assert not passes(np.testing.assert_allclose, np.array([]), 3.0, strict=True)
PY
