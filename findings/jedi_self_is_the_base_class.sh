#!/usr/bin/env bash
# jedi 0.20.1: Jedi takes `Self` for the class that defines the method. It offers no `exists` for `Path("a").parent`.
#
# Expected: a method that returns typing.Self, called on an instance of a subclass, returns the subclass. This is what the annotation is for, and Jedi
# does it for the older form, `def go(self: T) -> T`.
# Seen: Jedi offers the names of the base class. In its stubs, `parent` and `/` of PurePath return Self, so `Path("a").parent.` and `(Path("a") / "b").`
# offer no `exists`, `mkdir`, `open` or `read_text`. In `for file in Path("a").glob("*")`, where the stub of Python 3.11 says Generator[Self], the type of
# `file` is a generator: Jedi offers close, send and throw.
# Why it matters: a decoder that may write only what Jedi offers (ToolGen) cannot write `path.parent.mkdir()`. A checker based on Jedi calls it an unknown
# name, and the graph of calls lacks it. Fluent interfaces (builders, queries) lose the subclass's methods after the first call.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet jedi==0.20.1 parso==0.8.7 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import jedi

CLASSES = """
from typing import Self, TypeVar
T = TypeVar("T", bound="Base")

class Base:
    def new(self) -> Self: ...
    def old(self: T) -> T: ...

class Query(Base):
    def where(self): ...

"""
PATH = "from pathlib import Path\n"
texts = {
    "Query().old().": (CLASSES + "Query().old().", "where"),
    "Query().new().": (CLASSES + "Query().new().", "where"),
    "Path('a').": (PATH + "Path('a').", "exists"),
    "Path('a').parent.": (PATH + "Path('a').parent.", "exists"),
    "(Path('a') / 'b').": (PATH + "(Path('a') / 'b').", "mkdir"),
    "for file in Path('a').glob('*'): file.": (PATH + "for file in Path('a').glob('*'):\n    file.", "read_text"),
}
print("jedi", jedi.__version__)
seen = []
for name, (text, wanted) in texts.items():
    offered = [one.name for one in jedi.Script(text).complete()]
    seen.append(wanted in offered)
    print(f"{name} offers {len(offered)} names, {'with' if seen[-1] else 'without'} {wanted}, such as {', '.join(offered[:3])}")
assert seen == [True, False, True, False, False, False] and offered[:3] == ["close", "send", "throw"], "the behaviour changed"
PY
