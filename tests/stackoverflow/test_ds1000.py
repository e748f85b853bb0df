"""DS-1000's problems: fields, post-processing, indentation, the official program."""

import gzip
import subprocess
import sys

import pytest
import written_problems as written

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.stackoverflow import ds1000
from lookuplab.stackoverflow.ds1000 import indented, load, program, solution_of

DEV = paths.ROOT.parent / "shared" / "data" / "ds1000_dev.jsonl.gz"
real = pytest.mark.skipif(not DEV.exists(), reason="needs a copy of DS-1000, which may not be part of the repository")


def test_a_file_is_read_with_all_fields_plain_or_packed(problems_file, tmp_path):
    plain = problems_file()
    packed = tmp_path / "problems.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    first, second, third = load(plain)
    assert load(packed) == [first, second, third]
    assert (first.id, first.library, first.perturbation, first.origin, first.library_id, first.test_cases) == (
        "1", "Numpy", "Origin", "1", "1", 2)
    assert (first.reference, first.context) == (written.REFERENCE, written.CONTEXT)
    assert first.cluster == second.cluster != third.cluster
    assert [problem.inside_function for problem in (first, second, third)] == [False, False, True]


@pytest.mark.parametrize(("line", "words"), [
    ("{", "line 2: not a JSON object"),
    ("[]", "line 2: the field 'metadata' is missing"),
    (written.record(2, prompt=None), "line 2: the field 'prompt' is missing or not of type str"),
    (written.record(2, code_context="def test_execution(: pass"), "line 2: the field 'code_context' is no program"),
    (written.record(2, code_context="x = 1"), "no program that defines test_execution"),
    (written.record(2, metadata=written.record()["metadata"] | {"library": "Polars"}),
     "line 2: unknown library 'Polars'; known are Pandas, Numpy"),
    (written.record(2, metadata=written.record()["metadata"] | {"perturbation_type": "odd"}),
     "unknown perturbation_type 'odd'"),
    (written.record(1), "line 2: the problem 1 occurs a second time"),
])
def test_a_bad_line_is_named(problems_file, line, words):
    with pytest.raises(UserError) as error:
        load(problems_file(written.record(), line))
    assert words in str(error.value) and "\n" not in str(error.value)


def test_files_that_are_absent_empty_or_not_packed_are_user_errors(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "torn.jsonl.gz").write_bytes(gzip.compress(b"{}" * 1000)[:20])
    (tmp_path / "plain.jsonl.gz").write_text("{}")
    for name in ("empty.jsonl", "torn.jsonl.gz", "plain.jsonl.gz", "absent.jsonl"):
        with pytest.raises(UserError, match=name):
            load(tmp_path / name)


def test_a_selection_by_library_refuses_an_unknown_one(problems_file):
    problems = load(problems_file())
    assert ds1000.select(problems) == problems and ds1000.select(problems, ["Pandas"]) == []
    with pytest.raises(UserError, match="unknown library 'numpy'; DS-1000 has Pandas, Numpy"):
        ds1000.select(problems, ["numpy"])


@pytest.mark.parametrize(("text", "official", "repaired"), [
    ("x = 1\n</code>\nmore", "x = 1\n", "x = 1\n"),
    ("```python\nx = 1\n```\nthat is it", "\nx = 1\n", "x = 1\n"),
    ("x = 1\n```\nthat is it", "x = 1\n", "x = 1\n"),
    ("x = 1\nEND SOLUTION\ny", "x = 1", "x = 1"),
    ("<code>\nx = 1\n</code>", "\nx = 1\n", "\nx = 1\n"),
    ("<code>\nx = 1\n```\nmore", "\nx = 1\n", "\nx = 1\n"),
    ("```\nx = 1\n```", "", "x = 1\n"),
    ("```py\nx = 1\n```", "", "x = 1\n"),
    ("Here it is:\n```python\nx = 1\n```\nIt sets x.", "Here it is:\n\nx = 1\n", "x = 1\n"),
    ("Here it is:\n```\nx = 1\n```", "Here it is:\n", "x = 1\n"),
    ("x = 1\n# SOLUTION END\ny = 2", "x = 1\n# SOLUTION END\ny = 2", "x = 1\n"),
    ("    return x\n```", "    return x\n", "    return x\n"),
    ("x = 1", "x = 1", "x = 1"),
])
def test_the_official_post_processing_and_the_repaired_one(text, official, repaired):
    assert (solution_of(text), solution_of(text, "repaired")) == (official, repaired)


def test_an_unknown_post_processing_is_a_user_error():
    with pytest.raises(UserError, match="unknown post-processing 'mended'; known are official, repaired"):
        solution_of("", "mended")


@pytest.mark.parametrize(("solution", "expected"), [
    ("x = 1\nreturn x", "    x = 1\n    return x"),
    ("    return 1", "    return 1"),
    ("x = 1\n    return x", "    x = 1\n    return x"),
    ("# a note\nreturn 1", "    # a note\n    return 1"),
    ("# a note\n    return 1", "# a note\n    return 1"),
    ("for x in y:\n    return x", "    for x in y:\n        return x"),
    ("", ""),
])
def test_only_what_stands_at_the_margin_inside_a_function_is_indented(problems_file, solution, expected):
    plain, _, inside = load(problems_file())
    assert indented(inside, solution) == expected
    assert indented(plain, solution) == solution


def test_the_program_is_the_official_text(problems_file):
    plain, with_string, _ = load(problems_file())
    end = "code = 'result = \"1\"'\ntest_execution(code)\n"
    assert program(plain, 'result = "1"').text == f"{plain.context}\n{end}\n"
    assert program(with_string, 'result = "1"').text == f"{with_string.context}\n{end}test_string(code)\n"


def test_the_imports_are_those_of_packages_that_have_run_before_the_solution(problems_file):
    later = "import sklearn.tree as t\n" + written.CONTEXT.replace(
        "[insert]", "from numpy import fft as f, linalg\n[insert]\nimport scipy", 1).replace(
        "    def define", "    import pandas\n    def define", 1)
    inside = written.INSIDE.replace("import json", "import json, torch")
    problems = load(problems_file(written.record(), written.record(2, later), written.record(3, inside)))
    assert [program(problem, "").imports for problem in problems] == [
        (), ("import numpy", "import sklearn", "from numpy import fft", "from numpy import linalg",
             "import sklearn.tree"), ("import torch",)]


def test_a_program_ends_well_only_with_a_right_solution(problems_file):
    plain, with_string, inside = load(problems_file())
    loop = "for n in [1]: pass\n" + written.REFERENCE
    for problem, solution, ends_well in (
            (plain, plain.reference, True), (plain, "pass", False), (plain, loop, True), (with_string, loop, False),
            (with_string, with_string.reference, True), (inside, inside.reference, True),
            (inside, indented(inside, "return max(numbers) - min(numbers)"), True),
            (inside, "return max(numbers) - min(numbers)", False)):
        done = subprocess.run([sys.executable, "-"], input=program(problem, solution).text.encode(),
                              capture_output=True)
        assert (done.returncode == 0) is ends_well, (solution, done.stderr)


@real
def test_the_development_half_has_the_published_shape():
    problems = load(DEV)
    assert len(problems) == 500 and len(ds1000.select(problems)) == 423
    assert sum("test_string(code)" in program(problem, "").text for problem in problems) == 82
    assert sum(problem.prompt.rstrip().endswith("### BEGIN SOLUTION") for problem in problems) == 41
    origins = {problem.cluster for problem in problems if problem.perturbation == "Origin"}
    assert all(problem.cluster in origins for problem in problems if int(problem.origin) % 2 == 0
               and problem.library == "Pandas")  # whose ids are those of the library


@real
def test_no_reference_is_changed_by_post_processing_or_indentation():
    for problem in load(DEV):
        whole = problem.reference
        assert solution_of(whole) == whole and indented(problem, solution_of(whole, "repaired")) == whole, problem.id
