"""The replication package's texts and coverage: hand-computed."""

from pathlib import Path

import pytest
import yaml

from lookuplab.benchmark import judged, written
from lookuplab.toolgen.dependencies import package_2023_coverage, package_coverage
from lookuplab.toolgen.evaluation import Reference, ToolGen
from lookuplab.toolgen.rules import PACKAGE_2023_RULES, PACKAGE_RULES

DEPENDENCIES = yaml.safe_load(Path(__file__).with_name("dependencies.yaml").read_text("utf-8"))
SOURCE = '''def grow(by="it's"):# more
    """Grow it. Now."""
    x = "a" + 'b'# both

    return x + by
'''


def rows(folder, rules, body, marked):
    """The judgements of a body, and of the same behind a `def`, for SOURCE with these marks."""
    (folder / "m.py").write_text(SOURCE)
    original = Reference(0, folder, "m.py", 1, marked)
    pairs = [(original, written(0, text)) for text in (body, f"def grow(by):\n{body}")]
    return judged(ToolGen([original], rules, store=":memory:"), pairs)


def test_texts_have_no_literals_and_the_reference_no_comments_and_its_marks_are_covered(tmp_path):
    """Only a model that writes a body has read the docstring, which is a literal, too."""
    body = "    return foo + 'it' + \"is\"  # so"
    marked = "    <COMP>x = 1\n    return <COMP>x + <COMP>by + <COMP>foo"
    frame = rows(tmp_path, PACKAGE_RULES, body, marked)
    theirs = "    return foo + '' + ''  # so"
    wanted = "    x = '' + ''\n    return x + by"
    head = "def grow(by=''):\n"
    documented = f"{head}    ''''''\n"
    assert list(frame.predicted) == [documented + theirs, f"def grow(by):\n{theirs}"]
    assert list(frame.wanted) == [documented + wanted, head + wanted]
    assert list(frame.dependencies) == list(frame.covered) == [1, 1]  # foo


def test_the_package_of_2023_keeps_literals_has_no_docstring_and_loses_blanks_at_marks(tmp_path):
    body = "    return foo + 'it'  # so"
    marked = "    <COMP>x = 1\n    return <COMP>foo('by') + by"
    frame = rows(tmp_path, PACKAGE_2023_RULES, body, marked)
    head = 'def grow(by="it\'s"):\n'
    assert list(frame.predicted) == [head + body, f"def grow(by):\n{body}"]
    assert list(frame.wanted) == [f"{head}   x = 1\n    returnfoo('by') + by"] * 2
    # x counts, since `\s+x` does not see behind its mark
    assert list(frame.dependencies) == [2, 2] and list(frame.covered) == [1, 1]


def test_bare_marked_words_are_the_dependencies_of_2023():
    marked = (
        "def f(a):\n    <COMP>b = a.<COMP>a + c.<COMP>d\n    for <COMP>e in f: b = 1, '<COMP>g'"
    )
    found = package_2023_coverage(marked, "def f(a):", "def f(a): d, 'e', gg")
    assert found == {"dependencies": 3, "covered": 1}  # d, e and g; b and a look local


@pytest.mark.parametrize(("body", "keys"), DEPENDENCIES)
def test_marked_words_that_do_not_look_local_are_dependencies(body, keys):
    found = package_coverage(f"def f(x):\n    {body}", "def f(x):", f"def f(x): {keys}")
    assert found == {"dependencies": len(keys), "covered": len(keys)}


def test_a_dependency_is_covered_by_the_whole_word():
    marked = "def f():\n    return <COMP>foo(self.<COMP>bar)"
    found = package_coverage(marked, "def f():", "def f(): return foobar(self.bar)")
    assert found == {"dependencies": 2, "covered": 1}
