#!/usr/bin/env bash
# mutmut 3.8.1: a function with a decorator, such as @cache or @property, gets no mutants. Tests that hardly test anything have the score 100%.
#
# Expected: the mutation score is the share of wrong versions of the program that the tests notice. Every function that the tests reach has mutants, with
# or without a decorator. Mutmut's README names only code outside of functions as left alone.
# Seen: `price` has seven mutants, and the tests notice none, because they check no value of it: the score is 3 of 10. With `@cache` above it, the same
# function has no mutant. Only the other function's three mutants count, all of which the tests notice: the score is 3 of 3. The output does not say that
# a function was left out. Properties, routes of a web framework, commands, context managers and fixtures are left out in the same way. Of decorated
# functions, only static and class methods have mutants.
# Why it matters: papers judge generated tests by the mutation score. The score covers only functions without decorators, and its denominator
# changes if a model adds a decorator.
# What to do: count the mutants per function (`mutmut results --all true`) and report functions without any.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet mutmut==3.8.1 libcst==1.9.0 pytest==9.2.0 2>/dev/null
seen=""
for decorator in "" "@cache"; do
  folder="$place/project${decorator:+_cached}"
  mkdir -p "$folder/src" "$folder/tests"
  cd "$folder"
  printf '[tool.mutmut]\nsource_paths = ["src"]\n[tool.pytest.ini_options]\npythonpath = ["src"]\n' >pyproject.toml
  cat >src/shop.py <<PY
from functools import cache


def total(prices):
    return sum(prices) + 1


$decorator
def price(amount, member):
    if member and amount > 10:
        return amount * 9
    return amount * 10
PY
  cat >tests/test_shop.py <<'PY'
from shop import price, total


def test_total():
    assert total([1, 2]) == 4


def test_price():
    price(20, True)
    price(20, False)
PY
  "$place/venv/bin/mutmut" run >"$place/log" 2>&1 || { cat "$place/log" >&2; exit 1; }
  "$place/venv/bin/mutmut" results --all true >results.txt
  echo "mutmut 3.8.1, decorator '$decorator': total has $(grep -c total results.txt || true) mutants, price has $(grep -c price results.txt || true)"
  seen+="$(grep -c killed results.txt || true) of $(wc -l <results.txt) killed; "
done
echo "$seen"
[ "$seen" = "3 of 10 killed; 3 of 3 killed; " ] || { echo "the behaviour changed" >&2; exit 1; }
