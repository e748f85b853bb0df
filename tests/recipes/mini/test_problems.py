"""Tests the mini benchmark: the committed file, and every step that makes it, on small cases."""

import numpy as np
import pandas as pd
import pytest

from lookuplab.paths import json_lines
from lookuplab.stackoverflow import ds1000
from recipes.mini import problems
from recipes.mini.docstrings import DocExample, examples_of
from recipes.mini.packages import example_split
from recipes.mini.problems import Candidate, drafts, examined, literal

# docstring examples use functions that the libraries themselves have deprecated
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
IMPORT = ("import numpy as np",)
TEST = """exec_context = "[insert]"


def test_execution(solution):
    known = {}
    exec(exec_context.replace("[insert]", solution), known)
    assert known["result"] == 3
"""
ARRAY = ("a = np.array([[10, 7, 4], [3, 2, 1]])",)
# Together, these examples need every rule, every comparison of values, and every form in which a
# value is written as source code.
CHOSEN = """
    numpy.polynomial.hermite_e.hermepow#1 numpy.linalg.matmul#12 pandas.MultiIndex.truncate#2
    pandas.core.groupby.GroupBy.first#4 pandas.api.typing.Expanding.rank#3
    pandas.arrays.DatetimeArray.std#2 pandas.MultiIndex.get_level_values#5
    pandas.MultiIndex.sortlevel#2 numpy.degrees#2
""".split()


@pytest.fixture(scope="module")
def committed():
    return [record for _, record in json_lines(problems.PROBLEMS)]


def test_every_problem_is_of_a_held_out_object(committed):
    assert len(ds1000.load_problems(problems.PROBLEMS)) == len(committed) == 300
    objects = {record["metadata"]["object"] for record in committed} - {""}
    assert {*map(example_split, objects)} == {"test"}


def rule(record):
    return record["metadata"]["rule"].partition(":")[0]


def test_the_committed_problems_come_out_of_the_installed_examples(committed):
    found = [one for name in ("numpy", "pandas") for one in examples_of(name)]
    tried = [one for one in found if one.id in CHOSEN]
    made = {fresh.prompt: fresh for family in examined(tried) for fresh in family}
    compared = []
    for record in committed:
        about = record["metadata"]
        if f"{about['object']}#{about['example']}" in CHOSEN:
            fresh = made[record["prompt"]]
            found = fresh.reference, fresh.context, fresh.rule, [*fresh.expressions]
            kept = record["reference_code"], record["code_context"], about["rule"]
            assert found == (*kept, about["expressions"])
            compared.append(record)
    assert {*map(rule, compared)} == {*map(rule, committed)}


@pytest.mark.parametrize(
    ("name", "source", "is_asked_for"),
    [
        ("numpy.sort", "np.sort(a, axis=1)", True),
        ("scipy.stats.kappa4", "kappa4.cdf(vals, h, k)", True),
        ("scipy.stats.kappa4", "np.allclose([0.5], kappa4.cdf(vals, h, k))", False),
        ("pandas.Series.rolling", "s.rolling(3).mean()", False),
        ("pandas.Series", "s.rolling(3).mean()", True),
    ],
)
def test_a_problem_is_about_the_object_that_is_called(name, source, is_asked_for):
    assert problems.calls(name, source) == is_asked_for


def test_families_are_drawn_one_object_after_the_other_and_only_problems_that_hold():
    def family(name, *kinds, wrong="result = 4"):
        about = {"object": name[:-2], "wrong": (wrong,)}
        return [Candidate(name, name, "result = 3", TEST, "", one, name, **about) for one in kinds]

    ways = [family(f"numpy.a#{n}", "Origin", "Surface") for n in range(3)]
    ways.append(family("numpy.b#0", "Origin"))
    ways.append(family("numpy.c#0", "Origin", wrong="result = 2 + 1"))  # this wrong answer passes
    drawn = problems.chosen(ways, {"Origin": 3, "Surface": 1})
    assert sorted(map(len, drawn)) == [1, 1, 2]
    assert sorted(one[0].object for one in drawn) == ["numpy.a", "numpy.a", "numpy.b"]


def test_a_callable_that_is_imported_by_name_is_called_by_its_module():
    lines = ("from scipy.special import comb, factorial",)
    first = DocExample("scipy.special.comb", 0, lines, (), "comb(5, 2)")
    moved = problems.unimported(first)
    assert moved.imports == ("import scipy.special", "from scipy.special import factorial")
    assert moved.target == "scipy.special.comb(5, 2)"


@pytest.mark.parametrize(
    ("setup", "target"),
    [
        (("import warnings", "warnings.warn('old')", *ARRAY), "np.sum(a)"),
        (("print('x')", *ARRAY), "np.sum(a)"),
        (ARRAY, "np.asarray(a)"),  # a variable of the set-up already has this value
        (ARRAY, "np.shape(a)"),  # no other input gives a different value
        (ARRAY, "np.pi"),
    ],
)
def test_what_is_no_problem_is_left_out(setup, target):
    with pytest.raises((ValueError, UserWarning)):
        drafts(DocExample("numpy.x", 0, IMPORT, setup, target))


def test_an_example_runs_in_a_process_that_writes_and_connects_nowhere():
    lines = "open('x', 'w')", "import socket; socket.create_connection(('127.0.0.1', 9))", ""
    tried = [DocExample("", 0, IMPORT, (line, *ARRAY), "np.sum(a)") for line in lines]
    assert [bool(found) for found in examined(tried)] == [False, False, True]


def test_every_kind_of_value_has_a_source_but_long_empty_and_strange_ones_have_none():
    """A value's source is code that evaluates to this value."""
    levels = pd.MultiIndex.from_tuples([("a", 1)])
    known = float("nan"), np.array(["2020-01-01"], "M8[D]"), pd.Series([True], levels, "boolean")
    others = None, len, np.ma.array([1]), np.broadcast_to(0, 10**9), "", pd.DataFrame()
    assert all(map(literal, known)) and not any(map(literal, others))
