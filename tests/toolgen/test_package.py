"""The replication package's texts and coverage: hand-computed."""

import pytest

from lookuplab.benchmark import judged, written
from lookuplab.toolgen.dependencies import package_coverage
from lookuplab.toolgen.evaluation import Reference, ToolGen
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
