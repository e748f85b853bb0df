#!/usr/bin/env bash
# llama-index-core 0.14.25: CodeSplitter ignores chunk_lines and chunk_lines_overlap, its first two settings.
#
# Expected: chunk_lines is "the number of lines to include in each chunk", and chunk_lines_overlap "how many lines of code each chunk overlaps with".
# Seen: with chunk_lines 1, 5, 40 and 1000, and overlaps of 1 and 15, a file of 60 classes gives the same 9 chunks of up to 89 lines, and no line is in two
# chunks. Only max_chars (1500 by default) has an effect. The chunks leave out the spaces and newlines between them.
# Why it matters: papers on retrieval for code state the size of their chunks in lines, and compare sizes and overlaps. With this class all settings of such
# a comparison are one setting, and the differences between their scores are noise.
# What to do: set max_chars, and report the lengths of the chunks that come out. For an overlap, write your own splitter.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet llama-index-core==0.14.25 tree-sitter==0.25.2 tree-sitter-python==0.25.0 2>/dev/null
cd "$place"
"$place/venv/bin/python" -W ignore - 2>"$place/err" <<'PY' || { tail -3 "$place/err" >&2; exit 1; }
from importlib.metadata import version

import tree_sitter_python
from llama_index.core.node_parser import CodeSplitter
from tree_sitter import Language, Parser

parser = Parser(Language(tree_sitter_python.language()))
source = "".join(
    f'class Shape{number}:\n    """A shape."""\n\n    def __init__(self, size):\n        self.size = size\n\n'
    f"    def area(self):\n        return self.size * {number}\n\n    def double(self):\n        return Shape{number}(2 * self.size)\n\n\n"
    for number in range(60)
)


def split(lines, overlap, characters=1500):
    return CodeSplitter("python", chunk_lines=lines, chunk_lines_overlap=overlap, max_chars=characters, parser=parser).split_text(source)


print("llama-index-core", version("llama-index-core"))
default = split(40, 15)
for lines, overlap in ((1, 1), (5, 1), (40, 15), (1000, 15)):
    chunks = split(lines, overlap)
    most = max(chunk.count("\n") + 1 for chunk in chunks)
    print(f"chunk_lines={lines}, chunk_lines_overlap={overlap}: {len(chunks)} chunks of at most {most} lines, together {sum(map(len, chunks))} characters")
    assert chunks == default, "the behaviour changed"
small = split(40, 15, characters=300)
print(f"max_chars=300: {len(small)} chunks; the source has {len(source)} characters")
assert len(small) > len(default) and sum(map(len, default)) <= len(source), "the behaviour changed"
PY
