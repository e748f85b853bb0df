"""Dependency coverage: what Jedi traces into the repository, and what a prediction has of it."""

import math
import os
from pathlib import Path
from types import SimpleNamespace

import parso
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.toolgen.dependencies import _answer, covered, dependencies_of, expressions
from lookuplab.toolgen.insertion import locate
from lookuplab.toolgen.jedi_worker import environment

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


def keys(text: str) -> list[str]:
    return [found.key for found in expressions(text)]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("a repository")
    (root / "base.py").write_text(BASE)
    (root / "user.py").write_text(USER)
    return dependencies_of(root, "user.py", USER, locate(USER, 6))


def test_only_definitions_of_the_repository_outside_the_function_count(found):
    names = "helper self._registered_updates Base LEVEL self.grow self.size base base.helper"
    assert set(found) == set(names.split())


def test_a_nested_call_gives_both_names_and_a_comparison_is_no_assignment():
    assert keys("foo(bar(baz))") == ["foo", "bar", "baz"]
    assert keys("if a == b: pass") == ["a", "b"]


def test_keys_leave_out_arguments_and_subscripts():
    assert keys("foo(1).a[i].b") == ["foo", "foo().a", "i", "foo().a[].b"]
    assert keys("(a or b).c") == ["a", "b", "().c"]


def test_definitions_keyword_arguments_and_imports_are_no_expressions():
    assert keys("x = f(k=v)\nfrom m import n\nself.y = 1\nself.z += 1") == [
        "f",
        "v",
        "self",
        "self",
        "self.z",
    ]


def test_a_name_that_the_prediction_binds_itself_covers_nothing():
    assert covered(["helper"], "helper = 1\nreturn helper") == 0
    assert covered(["helper", "self.size"], "return helper(self.grow)") == 1


def test_a_line_does_not_go_on_in_the_next_one_and_broken_code_keeps_its_expressions():
    assert keys("n.o\n(a)") == ["n", "n.o", "a"]
    assert keys("f(self.items(\n    self.z[") == ["f", "self", "self.items", "self", "self.z"]


@given(st.text(max_size=80))
def test_any_text_has_expressions(text):
    assert all(found.line >= 1 for found in expressions(text))


def test_a_prediction_stands_for_its_file_in_no_question_about_another(tmp_path):
    """A prediction that does not parse takes what follows it with it, in its own file alone."""
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "user.py").write_text(USER)
    broken = BASE.replace("        self._registered_updates = set()\n", "        return (self.\n")
    place, other = locate(USER, 6), locate(BASE, 4)
    alone = dependencies_of(tmp_path, "user.py", USER, place)
    dependencies_of(tmp_path, "base.py", broken, other)
    assert alone and dependencies_of(tmp_path, "user.py", USER, place) == alone


def test_earlier_questions_take_no_tree_away_from_this_one(tmp_path, monkeypatch):
    """By itself, parso drops the trees of old files as soon as it has 600."""
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "user.py").write_text(USER)
    for file in tmp_path.iterdir():
        os.utime(file, (0, 0))
    earlier = {Path(f"{n}.py"): SimpleNamespace(last_used=math.inf) for n in range(600)}
    monkeypatch.setitem(parso.cache.parser_cache, environment().get_grammar()._hashed, earlier)
    place = locate(USER, 6)
    lines = [place.line, place.body_line, place.end_line]
    question = {"root": str(tmp_path), "file": "user.py", "text": USER, "lines": lines}
    assert "self.size" in _answer(question).get("found", ())


def test_a_module_s_own_attributes_are_no_dependencies(tmp_path):
    text = 'def place(x):\n    """Where."""\n    return helper(__file__, x)\n\ndef helper(a, b): return a\n'
    (tmp_path / "user.py").write_text(text)
    assert dependencies_of(tmp_path, "user.py", text, locate(text, 1)) == ["helper"]
