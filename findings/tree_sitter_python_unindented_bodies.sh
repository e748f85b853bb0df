#!/usr/bin/env bash
# tree-sitter-python 0.25.0: code whose bodies are not indented parses without an error.
#
# Expected: `has_error` of the tree is True for code that Python rejects as "expected an indented block", since an indented body is part of the grammar.
# Seen: `has_error` is False for `if x:` with `pass` at the left margin. The `if` gets an empty block, and `pass` becomes the next statement. The same holds
# for `def`, `for`, `while`, `with` and `class`. A function that lost all its indentation, as happens when code is cut out of a chat
# answer or joined from stripped lines, passes as valid; its `return` statements belong to the module. Python 2's `print "x"` and `10L` pass, too.
# Why it matters: papers report the share of syntactically valid answers as the share of trees without errors. Broken answers count as valid, and a
# function's body seems to be empty.
# What to do: compile the code with Python, and use tree-sitter only where code may be broken.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet tree-sitter==0.26.1 tree-sitter-python==0.25.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import ast
from importlib.metadata import version

import tree_sitter_python
from tree_sitter import Language, Parser

parser = Parser(Language(tree_sitter_python.language()))
FUNCTION = '''\
def total(items):
    """Return the sum."""
    found = 0
    for item in items:
        found += item
    return found
'''
stripped = "\n".join(line.strip() for line in FUNCTION.split("\n"))
heads = ["if x:", "def f():", "for x in y:", "while x:", "with x:", "class A:"]
programs = [f"{head}\npass" for head in heads] + [stripped, 'print "x"', "x = 10L"]
print("tree-sitter-python", version("tree-sitter-python"))
for program in programs:
    has_error = parser.parse(program.encode()).root_node.has_error
    print(f"has_error is {has_error}: {program[:40]!r}")
    assert not has_error, "the behaviour changed"
    try:
        ast.parse(program)
    except SyntaxError:
        continue
    raise AssertionError("Python accepts it")
root = parser.parse(stripped.encode()).root_node
body = root.children[0].child_by_field_name("body")
kinds = [node.type for node in root.children]
print("the function's body:", [node.type for node in body.children], "the module:", kinds)
assert kinds[0] == "function_definition" and kinds[-1] == "return_statement", "the behaviour changed"
broken = parser.parse(b"def f(:\n    pass").root_node.has_error
print("has_error of `def f(:` is", broken)
assert broken and not parser.parse(FUNCTION.encode()).root_node.has_error
PY
