"""Tests how DS-1000's problems are read and selected, how code is cut out of an answer, and which
program tests the code.
"""

from dataclasses import replace

import pytest
import written_problems as written
from beside import table
from doors import refused

from lookuplab.stackoverflow.ds1000 import (
    indented,
    load_problems,
    program,
    select,
    solution_of,
)

SOLUTIONS = table(__file__, "solutions.yaml")


def test_a_file_is_read_with_all_fields(problems):
    first, second, third = problems
    about = (first.id, first.library, first.perturbation, first.origin, first.library_id)
    assert about == ("1", "Numpy", "Origin", "1", "1")
    assert (first.reference, first.context) == (written.REFERENCE, written.CONTEXT)
    assert first.cluster == second.cluster != third.cluster
    assert not (first.inside_function or second.inside_function)
    # the prompt's last line shows that the solution is inside a function; the context shows it, too
    assert third.inside_function and replace(third, prompt="").inside_function
    assert first.question == "How far apart are they?"


@pytest.mark.parametrize(
    "line",
    [
        {"prompt": ""},
        written.record(2, "x = 1"),
        written.record(2, library="Polars"),
        written.record(2, perturbation_type="Depth"),
        written.record(1),
    ],
)
def test_a_bad_line_is_named(written_file, line):
    with refused("line 2"):
        load_problems(written_file(written.record(), line))


@pytest.fixture
def families(written_file):
    """Write four families of two problems each, and one problem for Matplotlib, which the paper
    leaves out.
    """
    records = [written.record(number, origin=number - number % 2) for number in range(2, 10)]
    return written_file(*records, written.record(20, library="Matplotlib"))


@pytest.mark.parametrize(("limit", "size"), [(0, 8), (1, 2), (3, 4), (4, 4)])
def test_families_of_the_papers_libraries_are_taken_whole(families, limit, size):
    chosen = select(families, limit)
    assert len(chosen) == size and set(chosen) <= set(select(families, limit and limit + 2))
    assert all(sum(other.cluster == one.cluster for other in chosen) == 2 for one in chosen)


def test_a_file_without_a_problem_of_these_libraries_is_refused(written_file):
    with refused("no problem of Pandas"):
        select(written_file(written.record(library="Matplotlib")))


@pytest.mark.parametrize(("text", "official", "repaired"), SOLUTIONS)
def test_the_official_post_processing_and_the_repaired_one(text, official, repaired):
    assert (solution_of(text), solution_of(text, "repaired")) == (official, repaired)
    with refused("^variant is 'repared'; it must be repaired, official$"):
        solution_of(text, "repared")


@pytest.mark.parametrize(
    ("solution", "expected"),
    [
        ("x = 1\nreturn x", "    x = 1\n    return x"),
        ("    return 1", "    return 1"),
        ("x = 1\n    return x", "    x = 1\n    return x"),
        ("# a note\n    return 1", "# a note\n    return 1"),
        ("for x in y:\n    return x", "    for x in y:\n        return x"),
        ("", ""),
    ],
)
def test_only_what_stands_at_the_margin_inside_a_function_is_indented(problems, solution, expected):
    plain, _, inside = problems
    assert indented(inside, solution) == expected
    assert indented(plain, solution) == solution


def test_the_program_is_the_official_text(problems):
    plain, with_string, _ = problems
    end = "code = 'result = \"1\"'\ntest_execution(code)\n"
    assert program(plain, 'result = "1"').text == f"{plain.context}\n{end}\n"
    both = program(with_string, 'result = "1"').text
    assert both == f"{with_string.context}\n{end}test_string(code)\n"


def test_the_imports_are_those_of_packages_that_have_run_before_the_solution(written_file):
    later = "import sklearn.tree as t\n" + written.CONTEXT.replace(
        "[insert]", "from numpy import fft as f, linalg\n[insert]\nimport scipy", 1
    ).replace("    def define", "    import pandas\n    def define", 1)
    inside = written.INSIDE.replace("import json", "import json, torch")
    problems = load_problems(
        written_file(written.record(), written.record(2, later), written.record(3, inside))
    )
    packages = "import numpy", "import sklearn"
    parts = "from numpy import fft", "from numpy import linalg", "import sklearn.tree"
    found = [program(problem, "").imports for problem in problems]
    assert found == [(), packages + parts, ("import torch",)]
