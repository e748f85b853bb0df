"""Tests the mini benchmark: the committed file, and which examples become problems."""

import pytest

from lookuplab.paths import json_lines
from lookuplab.stackoverflow import ds1000
from recipes.mini import problems
from recipes.mini.docstrings import DocExample, examples_of
from recipes.mini.packages import example_split
from recipes.mini.problems import drafts, examined

# docstring examples use functions that the libraries themselves have deprecated
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
IMPORT = ("import numpy as np",)
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
