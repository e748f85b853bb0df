"""Tests dependency coverage: which names Jedi traces to definitions in the repository, and which of
them a prediction uses. Also tests the coverage of the replication packages, against values that
were computed by hand.
"""

import os

import pytest
from beside import table
from doors import quick
from parso.python.tree import ExprStmt

from lookuplab.toolgen.evaluation import dependencies_of
from lookuplab.toolgen.similarity import (
    code_bleu_counts,
    count_covered,
    expressions,
    package_2023_coverage,
    package_coverage,
)
from lookuplab.toolgen.source import leaves, location_of, whole_tokens

BASE = """LEVEL = 3

class Base:
    def __init__(self):
        self._registered_updates = set()

    @property
    def size(self):
        return 1

    def grow(self, by):
        return self.size + by

def helper(x):
    return x
"""
USER = '''import os
from base import Base, helper, LEVEL
import base

class User(Base):
    def run(self, n, text):
        """Say it."""
        local = helper(n)
        self._registered_updates.add(local)
        other = Base()
        self.fresh = os.path.join(text, str(LEVEL))
        print(self.grow(by=self.size), base.helper(other), self.fresh)
        return n.unknown + local
'''


NAMES = "helper self._registered_updates Base LEVEL self.grow self.size base base.helper".split()


@pytest.fixture
def root(tmp_path):
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "user.py").write_text(USER)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("foo(bar(baz))", "foo bar baz"),
        ("if a == b: pass", "a b"),  # a comparison is not an assignment
        ("foo(1).a[i].b", "foo foo().a i foo().a[].b"),  # keys leave out arguments and subscripts
        ("c = (a or b).c\nd(c)", "a b ().c d"),
        ("x = f(k=v)\nfrom m import n\nself.y = 1\nself.z += 1", "f v self self self.z"),
        ("f'a{b!r}c{d.e:f}'", "b d d.e"),  # the text of an f-string has no names
        ("global a\na = a or b\na", "a a b a"),
        ("f(x := 1, x)\nwith (a as b, c as d): d", "f a c"),
        (
            "match a:\n case [b, *d, c.D] if d: b\n case {1: f(g=h), **i} as j: h, i, j",
            "a c c.D f",
        ),
        ("n.o\n(a)", "n n.o a"),  # an expression does not continue on the next line
        ("f(self.items(\n    self.z[", "f self self.items self self.z"),
    ],
)
def test_the_expressions_of_a_text_are_its_uses_of_names(text, keys):
    assert [found.text for found in expressions(text)] == keys.split()


def test_the_names_that_a_statement_binds_are_listed_once(monkeypatch):
    listed = []
    names = ExprStmt.get_defined_names
    monkeypatch.setattr(
        ExprStmt, "get_defined_names", lambda *given: listed.append(given) or names(*given)
    )
    assert [found.text for found in expressions("a = b = c = d")] == ["d"]
    assert len(listed) == 1


def test_a_name_that_the_prediction_binds_itself_covers_nothing():
    assert count_covered(["helper"], "helper = 1\nreturn helper") == 0
    assert count_covered(["helper", "self.size"], "return helper(self.grow)") == 1


@pytest.mark.parametrize("part", ["- ", "lambda: ", "f("])
def test_an_answer_that_repeats_itself_is_read_however_deep(part):
    deep = part * 1500 + "x"
    assert count_covered(["x"], f"    return {deep}") == 1
    assert whole_tokens(f"y = {deep}", 1)[-1].text == "x"
    for broken in (f"{deep} ~ )\nx", f"{deep} ~ )\n{deep} ~"):
        assert count_covered(["x"], broken) == 1


@pytest.mark.parametrize("part", ["(", "a[", "not ", "x if y else "])
def test_what_is_nested_deeper_than_any_code_is_read_up_to_a_depth(part):
    """Without a limit, the parser's time and the number of CodeBLEU's subtrees would grow with the
    square of the depth.
    """
    assert 1500 < len(leaves(part * 9000 + "x")) < 10_000
    assert code_bleu_counts(f"return {part * 9000}x", "return x")[20] > 0


def test_a_long_line_is_searched_once_for_nested_operators():
    with quick():
        assert leaves("x" * 60_000 + "lambda " * 60_000)


def test_only_definitions_of_the_repository_outside_the_function_count_whatever_was_asked(root):
    """A prediction that does not parse swallows the code after it. This must affect only the
    prediction's own file.
    """
    broken = BASE.replace("        self._registered_updates = set()\n", "        return (self.\n")
    place = location_of(BASE, 4)._replace(body="        return (self.")
    for _ in range(2):  # before and after Jedi has read ``base``
        dependencies_of(root, "base.py", broken, place)
        assert {*dependencies_of(root, "user.py", USER, location_of(USER, 6))} == {*NAMES}


EARLIER = """
import math, parso, sys
from pathlib import Path
from types import SimpleNamespace
from lookuplab.toolgen.jedi_tool import environment, install, own_keys
from lookuplab.toolgen.similarity import expressions

install()
earlier = {Path(f"{n}.py"): SimpleNamespace(last_used=math.inf) for n in range(600)}
parso.cache.parser_cache[environment().get_grammar()._hashed] = earlier
root, text = Path(sys.argv[1]), sys.argv[2]
print(own_keys(root, "user.py", text, expressions(text), range(0)))
"""


def test_earlier_questions_take_no_tree_away_from_this_one(root, run_python):
    """Without the kit's change, parso drops the trees of old files once it has 600 trees."""
    for file in root.iterdir():
        os.utime(file, (0, 0))
    assert "self.size" in run_python(EARLIER, root, USER)


@pytest.mark.parametrize("begin", ["\n    ", " ", '\n    """Say.\n    More."""; '])
def test_a_module_s_own_attributes_are_no_dependencies_wherever_the_body_begins(begin, tmp_path):
    text = f"def place(x=LEVEL):{begin}return helper(__file__, x)\n\ndef helper(a, b): return a\n"
    text += "LEVEL = 1\n"
    (tmp_path / "user.py").write_text(text)
    assert dependencies_of(tmp_path, "user.py", text, location_of(text, 1)) == ["helper"]


def test_bare_marked_words_are_the_dependencies_of_2023():
    marked = (
        "def f(a):\n    <COMP>b = a.<COMP>a + c.<COMP>d\n    for <COMP>e in f: b = 1, '<COMP>g'"
    )
    found = package_2023_coverage(marked, "def f(a):", "def f(a): d, 'e', gg")
    # ``a`` and ``b`` look like local names, so the dependencies are d, e and g
    assert found == {"dependencies": 3, "covered": 1}


@pytest.mark.parametrize(("body", "keys"), table(__file__, "dependencies.yaml"))
def test_marked_words_that_do_not_look_local_are_dependencies(body, keys):
    found = package_coverage(f"def f(x):\n    {body}", "def f(x):", f"def f(x): {keys}")
    assert found == {"dependencies": len(keys), "covered": len(keys)}


def test_a_dependency_is_covered_by_the_whole_word():
    marked = "def f():\n    return <COMP>foo(self.<COMP>bar)"
    found = package_coverage(marked, "def f():", "def f(): return foobar(self.bar)")
    assert found == {"dependencies": 2, "covered": 1}
