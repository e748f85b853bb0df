#!/usr/bin/env bash
# griffe 2.4.1: `find_breaking_changes` does not report a function that became async or a generator, nor a constructor that a class got later.
#
# Expected: what breaks every caller is reported, as are renamed parameters, changed defaults and functions that became classes.
# Seen: no change is reported if `def fetch(url)` becomes `async def fetch(url)`, or if a function that returned a list yields its items instead. None is
# reported either if a class without `__init__` gets `__init__(self, model)`, or if a NamedTuple gets another field or another order of fields. The same
# changes to an existing `__init__`, or to a dataclass, are reported.
# Why it matters: benchmarks of API evolution take the changed APIs of a library, and the calls that a model must not write any more, from such a list. The
# list lacks a whole class of changes, such as those of libraries that became asynchronous.
# What to do: compare labels such as "async", and the constructors of classes, by yourself.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet griffe==2.4.1 2>/dev/null
"$place/venv/bin/python" - "$place" <<'PY'
import sys
from importlib.metadata import version
from pathlib import Path

import griffe


def reported(old, new):
    """Return the kinds of changes that griffe reports between two contents of a package."""
    releases = []
    for release, code in {"old": old, "new": new}.items():
        folder = Path(sys.argv[1], release)
        (folder / "pkg").mkdir(parents=True, exist_ok=True)
        (folder / "pkg" / "__init__.py").write_text(code)
        releases.append(griffe.load("pkg", search_paths=[folder]))
    return [change.kind.value for change in griffe.find_breaking_changes(*releases)]


TUPLE = "from typing import NamedTuple\nclass Pair(NamedTuple):\n"
DATA = "from dataclasses import dataclass\n@dataclass\nclass Pair:\n"
missed = {
    "a function becomes async": ("def fetch(url): return url", "async def fetch(url): return url"),
    "a method becomes async": ("class A:\n    def f(self): ...", "class A:\n    async def f(self): ..."),
    "a function becomes a generator": ("def pages(n): return [n]", "def pages(n): yield n"),
    "a class gets a constructor": ("class A: ...", "class A:\n    def __init__(self, model): ..."),
    "a NamedTuple gets a field": (TUPLE + "    a: int", TUPLE + "    a: int\n    b: int"),
    "a NamedTuple's fields change places": (TUPLE + "    a: int\n    b: int", TUPLE + "    b: int\n    a: int"),
}
found = {
    "a constructor gets a parameter": ("class A:\n    def __init__(self): ...", "class A:\n    def __init__(self, model): ..."),
    "a dataclass gets a field": (DATA + "    a: int", DATA + "    a: int\n    b: int"),
    "a function becomes a class": ("def f(x): ...", "class f:\n    def __init__(self, x): ..."),
}
print("griffe", version("griffe"))
for what, releases in (missed | found).items():
    kinds = reported(*releases)
    print(f"{what}: {', '.join(kinds) or 'nothing reported'}")
    assert bool(kinds) == (what in found), "the behaviour changed"
PY
