"""Dependency coverage: what Jedi traces into the repository, and what a prediction has of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.toolgen.metrics.dependencies import KINDS, Dependency, DependencyTool, coverage, covered, expressions
from lookuplab.toolgen.metrics.insertion import locate
from lookuplab.toolgen.metrics.worker import WorkerLost

BASE = '''LEVEL = 3

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
'''
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
    with DependencyTool() as tool:
        return tool.trace(root, USER, "user.py", locate(USER, 6))


def test_only_definitions_of_the_repository_outside_the_function_count_each_with_its_kind(found):
    assert {dependency.key: dependency.kind for dependency in found} == {
        "helper": "function", "self._registered_updates": "attribute", "Base": "class", "LEVEL": "attribute",
        "self.grow": "method", "self.size": "attribute", "base": "module", "base.helper": "function"}


def test_a_nested_call_gives_both_names_and_a_comparison_is_no_assignment():
    assert keys("foo(bar(baz))") == ["foo", "bar", "baz"]
    assert keys("if a == b: pass") == ["a", "b"]


def test_keys_leave_out_arguments_and_subscripts():
    assert keys("foo(1).a[i].b") == ["foo", "foo().a", "foo().a[].b", "i"]
    assert keys("(a or b).c") == ["a", "b", "().c"]


def test_definitions_keyword_arguments_and_imports_are_no_expressions():
    assert keys("x = f(k=v)\nfrom m import n\nself.y = 1\nself.z += 1") == ["f", "v", "self", "self", "self.z"]


def test_a_name_that_the_prediction_binds_itself_covers_nothing():
    assert covered([Dependency("helper", "function")], "helper = 1\nreturn helper") == [False]


def test_a_line_does_not_go_on_in_the_next_one_and_broken_code_keeps_its_expressions():
    assert keys("n.o\n(a)") == ["n", "n.o", "a"]
    assert keys("f(self.items(\n    self.z[") == ["f", "self", "self.items", "self", "self.z"]


def test_coverage_is_pooled_and_per_function_and_functions_without_a_dependency_have_none():
    two = [Dependency("a", "function"), Dependency("b", "class")]
    table = coverage([two, [two[0]], [], None], ["a(1)", "a", "a", "a"], ["r", "s", "s", "s"])
    assert table.pooled.value == pytest.approx(2 / 3) and table.per_function.value == pytest.approx(3 / 4)
    assert (table.pooled.n, table.per_function.n, table.without, table.failed) == (3, 2, 1, 1)
    assert table.kinds["function"].value == 1 and table.kinds["class"].value == 0
    assert set(table.kinds) == set(KINDS) and table.kinds["module"].n == 0


def test_no_dependency_anywhere_is_no_division_by_zero():
    table = coverage([[], None], ["a", "b"], ["r", "r"])
    assert table.pooled.n == table.per_function.n == 0 and table.pooled.value != table.pooled.value


def test_a_function_that_takes_too_long_is_lost_and_the_next_one_is_answered(tmp_path):
    (tmp_path / "base.py").write_text(BASE)
    with DependencyTool(limit=0) as tool:
        place = locate(BASE, 11)
        with pytest.raises(WorkerLost, match="timeout"):
            tool.trace(tmp_path, BASE, "base.py", place)
        tool.limit = 60
        assert [found.key for found in tool.trace(tmp_path, BASE, "base.py", place)] == ["self.size"]


@given(st.text(max_size=80))
def test_any_text_has_expressions(text):
    assert all(found.line >= 1 for found in expressions(text))


def test_a_prediction_stands_for_its_file_in_no_question_about_another(tmp_path):
    """A prediction that does not parse takes what follows it with it, in its own file alone."""
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "user.py").write_text(USER)
    broken = BASE.replace("        self._registered_updates = set()\n", "        return (self.\n")
    with DependencyTool() as tool:
        place, other = locate(USER, 6), locate(BASE, 4)
        alone = tool.trace(tmp_path, USER, "user.py", place)
        tool.trace(tmp_path, broken, "base.py", other)
        assert alone and tool.trace(tmp_path, USER, "user.py", place) == alone
