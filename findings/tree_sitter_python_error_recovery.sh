#!/usr/bin/env bash
# Two releases of tree-sitter's Python grammar, 0.23.6 and 0.25.0, build different trees from the same texts if the texts are not valid Python.
#
# Expected: a new release changes the trees of new Python syntax, but not how the parser recovers from errors.
# Seen: of 1,000 short lines of English words with calls among them, 295 get a different tree. All of these have an error in both releases. Of 100 lines of
# valid Python, none gets a different tree.
# Why it matters: APIBench's scripts read calls from the trees of whole answers, which include prose. So a benchmark's score depends on the grammar's
# release.
# What to do: pin the release, or parse only the code.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cat >"$place/trees.py" <<'PY'
import json
import random
import sys

import tree_sitter_python
from tree_sitter import Language, Parser

parser = Parser(Language(tree_sitter_python.language()))
words = "load the model with hub.load('x/1') and then call it on each image , for example print(model) . This is a list".split()
lines = [" ".join(random.Random(i).choices(words, k=8)) for i in range(1000)]
lines += [f"model = hub.load('x/{i}', trainable=True)\nprint(model(image)[{i}:])\n" for i in range(100)]
roots = [parser.parse(line.encode()).root_node for line in lines]
json.dump([[str(root), root.has_error] for root in roots], open(sys.argv[1], "w"))
PY
for version in 0.23.6 0.25.0; do
  python3 -m venv "$place/$version"
  "$place/$version/bin/pip" install --quiet tree-sitter==0.25.2 "tree-sitter-python==$version" 2>/dev/null
  "$place/$version/bin/python" "$place/trees.py" "$place/$version.json"
done
python3 - "$place" <<'PY'
import json
import sys

old, new = (json.load(open(f"{sys.argv[1]}/{version}.json")) for version in ("0.23.6", "0.25.0"))
apart = [at for at, (first, second) in enumerate(zip(old, new)) if first[0] != second[0]]
prose, code = [at for at in apart if at < 1000], [at for at in apart if at >= 1000]
print(f"other trees: {len(prose)} of 1000 lines of prose, {len(code)} of 100 lines of code")
assert len(prose) == 295 and not code, "the behaviour changed"
assert all(old[at][1] and new[at][1] for at in prose), "a line without an error changed"
PY
