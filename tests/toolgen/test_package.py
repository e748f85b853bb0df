"""The replication package's metrics: hand-computed texts and keys, and pylint's verdicts on 30
functions.

The functions are real; what was "generated" is the original, another function's body, a name that
nobody defined, a text that ends in the middle, a whole function. Nothing of the kit computes what
is expected.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lookuplab import python_sources
from lookuplab.benchmark import judged, written
from lookuplab.toolgen.dependencies import package_coverage
from lookuplab.toolgen.evaluation import Reference, ToolGen
from lookuplab.toolgen.functions import Filters, extract, locate
from lookuplab.toolgen.rules import PACKAGE_RULES

SOURCE = '''def grow(by="it's"):# more
    """Grow it. Now."""
    x = "a" + 'b'# both

    return x + by
'''


def test_texts_have_no_literals_and_the_reference_no_comments_and_its_marks_are_covered(tmp_path):
    """Only a model that writes a body has read the docstring, which is a literal, too."""
    (tmp_path / "m.py").write_text(SOURCE)
    body = "    return foo + 'it' + \"is\"  # so"
    place = tmp_path, "m.py", 1
    marked = "    <COMP>x = 1\n    return <COMP>x + <COMP>by + <COMP>foo"
    original = Reference(0, *place, marked)
    pairs = [(original, written(0, text)) for text in (body, f"def grow(by):\n{body}")]
    frame = judged(ToolGen([original], PACKAGE_RULES, store=":memory:"), pairs)
    theirs, wanted = "    return foo + '' + ''  # so", "    x = '' + ''\n    return x + by"
    head = "def grow(by=''):\n"
    documented = f"{head}    ''''''\n"
    assert list(frame.predicted) == [documented + theirs, f"def grow(by):\n{theirs}"]
    assert list(frame.wanted) == [documented + wanted, head + wanted]
    assert list(frame.dependencies) == list(frame.covered) == [1, 1]  # foo
    assert (frame.edit_similarity == frame.edit_similarity.round(2)).all(), "in whole percents"


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ("return self.<COMP>size + <COMP>len(1)", ["self.size", "len"]),
        ("foo.a.<COMP>b(c)", ["a.b"]),  # the last word before the dot
        ("return <COMP>foo(<COMP>bar(<COMP>baz))", ["foo", "baz"]),  # between two brackets
        ("return <COMP>x + self.<COMP>x", ["self.x"]),  # a parameter
        ("g(<COMP>key=1, <COMP>fold.read())", []),
        ("y = 1\n    return <COMP>y", []),
        ("if y == 1:\n        return <COMP>y", []),  # for the package an assignment
        ("for y in <COMP>ys:\n        <COMP>y(1)", ["ys"]),
        ("for <COMP>y in <COMP>ys: pass", ["y", "ys"]),  # the mark takes the blank along
        ("from z import b\n    return <COMP>z", []),
        ("with open(1) as y:\n        <COMP>y(1)", []),
        ("return 1", []),
    ],
)
def test_marked_words_that_do_not_look_local_are_dependencies(body, keys):
    found = package_coverage(f"def f(x):\n    {body}", "def f(x):", f"def f(x): {keys}")
    assert found == {"dependencies": len(keys), "covered": len(keys)}


def test_a_dependency_is_covered_by_the_whole_word():
    marked = "def f():\n    return <COMP>foo(self.<COMP>bar)"
    found = package_coverage(marked, "def f():", "def f(): return foobar(self.bar)")
    assert found == {"dependencies": 2, "covered": 1}


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """Of a copy, so that pylint's files may be put beside its own."""
    folder = tmp_path_factory.mktemp("sources") / "pluggy"
    shutil.copytree(python_sources.folder() / "pluggy", folder)
    return extract(locate(str(folder)), Filters(rules=PACKAGE_RULES)).functions[:30]


def test_lint_verdicts_within_the_window(functions):
    """pylint reads thirty files beside the originals; two lines behind a function are its own, too."""
    windows, pairs = {}, []
    for number, one in enumerate(functions):
        indent = re.match(r"\s*", one.body)[0]
        prediction = [
            one.body,
            functions[number - 1].body,
            f"{indent}return nothere(self.zzz)",
            one.body[: len(one.body) // 2] + " (",
            f"{one.signature}\n{one.body}\n{indent}x = 'it' + \"is\"",
        ][number % 5]
        original = Reference(one.id, one.root, one.file, one.line)
        pairs.append((original, written(one.id, prediction)))
        lines, place = one.lines(), one.root / Path(one.file).with_name(f"case{number}.py")
        begin = one.line if prediction.startswith("def") else one.body_line
        new = [one.indent * bool(line) + line for line in prediction.split("\n")]
        lines[begin - 1 : one.end_line] = [line + "\n" for line in new]
        place.write_text("".join(lines))
        windows[place.name] = range(one.line, begin + len(new) + 2)
    options = ["--rcfile=", "--disable=all", "--enable=E0001,E0602,E1101", "-f", "json"]
    command = [sys.executable, "-m", "pylint", *options, *windows]
    done = subprocess.run(command, cwd=functions[0].root, capture_output=True, text=True)
    failed = {
        said["path"] for said in json.loads(done.stdout) if said["line"] in windows[said["path"]]
    }
    frame = judged(ToolGen([], PACKAGE_RULES, store=":memory:"), pairs)
    assert [name not in failed for name in windows] == list(frame.passed)
    assert len(functions) == 30 and 6 <= frame.passed.sum() <= 18
    assert frame.exact_match.sum() == 5  # and one with a comment
