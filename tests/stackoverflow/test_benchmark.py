"""Problems chosen by families, and the grader of a name."""

import sys

import pytest
import written_problems as written

from lookuplab.errors import UserError
from lookuplab.stackoverflow import benchmark


@pytest.fixture
def file(problems_file):
    """Four families of two problems each, and one of a library that the paper leaves out."""
    records = [written.record(number, origin=number - number % 2) for number in range(2, 10)]
    records.append(written.record(20, origin=20))
    records[-1]["metadata"] = records[-1]["metadata"] | {"library": "Matplotlib"}
    return problems_file(*records)


def test_without_a_limit_all_problems_of_the_papers_libraries_come_in_their_order(file):
    assert [problem.id for problem in benchmark.problems(file)] == [str(number) for number in range(2, 10)]


@pytest.mark.parametrize(("limit", "size"), [(1, 2), (3, 4), (4, 4), (100, 8)])
def test_families_are_taken_whole(file, limit, size):
    chosen = benchmark.problems(file, limit)
    assert len(chosen) == size
    assert all(sum(other.cluster == one.cluster for other in chosen) == 2 for one in chosen)


def test_a_smaller_limit_takes_a_part_of_what_a_larger_one_takes(file):
    small, large = ({problem.id for problem in benchmark.problems(file, limit)} for limit in (2, 6))
    assert small < large


def test_a_file_without_a_problem_of_these_libraries_is_refused(problems_file):
    record = written.record()
    record["metadata"] = record["metadata"] | {"library": "Matplotlib"}
    with pytest.raises(UserError, match="no problem of Pandas"):
        benchmark.problems(problems_file(record))


def test_the_grader_is_this_python_or_an_environments(monkeypatch, tmp_path):
    assert str(benchmark.grader().python) == sys.executable
    monkeypatch.setattr(benchmark, "environment", lambda name: tmp_path / name)
    monkeypatch.setattr(benchmark, "Grader", lambda python, **_: python)
    assert benchmark.grader("ds1000-grader") == tmp_path / "ds1000-grader"
