"""Tests the replication package's texts and coverage against values computed by hand."""

from pathlib import Path

import pytest
import yaml

from lookuplab.toolgen.dependencies import package_2023_coverage, package_coverage

DEPENDENCIES = yaml.safe_load(Path(__file__).with_name("dependencies.yaml").read_text("utf-8"))


def test_bare_marked_words_are_the_dependencies_of_2023():
    marked = (
        "def f(a):\n    <COMP>b = a.<COMP>a + c.<COMP>d\n    for <COMP>e in f: b = 1, '<COMP>g'"
    )
    found = package_2023_coverage(marked, "def f(a):", "def f(a): d, 'e', gg")
    # the dependencies are d, e and g; b and a look local
    assert found == {"dependencies": 3, "covered": 1}


@pytest.mark.parametrize(("body", "keys"), DEPENDENCIES)
def test_marked_words_that_do_not_look_local_are_dependencies(body, keys):
    found = package_coverage(f"def f(x):\n    {body}", "def f(x):", f"def f(x): {keys}")
    assert found == {"dependencies": len(keys), "covered": len(keys)}


def test_a_dependency_is_covered_by_the_whole_word():
    marked = "def f():\n    return <COMP>foo(self.<COMP>bar)"
    found = package_coverage(marked, "def f():", "def f(): return foobar(self.bar)")
    assert found == {"dependencies": 2, "covered": 1}
