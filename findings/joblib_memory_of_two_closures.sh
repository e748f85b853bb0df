#!/usr/bin/env bash
# joblib 1.6.0: if one function makes two cached functions, the second returns the results of the first.
#
# Expected: `asker("small")` and `asker("large")` return two functions that ask two models. Memory.cache keeps their answers apart, or warns that it
# cannot, as it does for a functools.partial.
# Seen: the large model "answers" with what the small one said, without a warning. The key has the function's name, `asker.ask` for both, and the arguments
# of the call. The source text is compared, too, but it is the same. The variable `model`, which only the closure holds, is not part of the key. The same
# happens with two functions behind one decorator, unless it uses functools.wraps. A restarted program with another model gets the old answers as well.
# Why it matters: Memory is a common cache for answers of models and for embeddings. Two rows of a table are then equal, and look like a result.
# What to do: pass everything that matters as an argument of the cached function.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet joblib==1.6.0 2>/dev/null
cat >"$place/answers.py" <<'PY'
import functools
import sys

import joblib

memory = joblib.Memory(sys.argv[1], verbose=0)


def asker(model):
    def ask(prompt):
        return f"{model} answers {prompt}"

    return memory.cache(ask)


def upper(function):
    def wrapper(prompt):
        return function(prompt).upper()

    return memory.cache(wrapper)


def upper_wraps(function):
    @functools.wraps(function)
    def wrapper(prompt):
        return function(prompt).upper()

    return memory.cache(wrapper)


def first(prompt):
    return f"first {prompt}"


def second(prompt):
    return f"second {prompt}"


models = sys.argv[2:]
print("factory:", [asker(model)("2+2") for model in models])
print("decorator:", [upper(function)("2+2") for function in (first, second)])
print("decorator with wraps:", [upper_wraps(function)("2+2") for function in (first, second)])
PY
seen=$("$place/venv/bin/python" -W error "$place/answers.py" "$place/cache" small large)
again=$("$place/venv/bin/python" -W error "$place/answers.py" "$place/cache" huge | sed -n 1p)
echo "joblib $("$place/venv/bin/python" -c 'import joblib; print(joblib.__version__)')"
echo "$seen"
echo "another run, model huge: $again"
[ "$seen" = "factory: ['small answers 2+2', 'small answers 2+2']
decorator: ['FIRST 2+2', 'FIRST 2+2']
decorator with wraps: ['FIRST 2+2', 'SECOND 2+2']" ] && [ "$again" = "factory: ['small answers 2+2']" ] || { echo "the behaviour changed" >&2; exit 1; }
