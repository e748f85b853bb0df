"""Verdicts by execution: references first, order by id, nothing run twice, equal to a fresh process a program."""

import sys
from pathlib import Path

import pytest
import written_problems as written

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.execution.server import Limits
from lookuplab.stackoverflow import ds1000
from lookuplab.stackoverflow import grader as graders
from lookuplab.stackoverflow.grader import (
    Answer,
    Grader,
    Verdict,
    VerdictStore,
    environment,
    failing_references,
    fresh_process,
    grade,
    is_made,
)

WRONG = "result = 0"


@pytest.fixture
def problems(problems_file):
    return ds1000.load(problems_file())


def grader(store=False, workers=1, **options):
    """The kit's own Python is environment enough for problems that import nothing but Python's modules."""
    return Grader(store=store, workers=workers, progress=False, **options)


def test_verdicts_come_by_id_and_sample_whatever_the_order_of_the_answers(problems_file):
    named = written.record(metadata=written.record()["metadata"] | {"problem_id": "x"})
    problems = ds1000.load(problems_file(written.record(10), named, written.record(9)))
    answers = [
        Answer("x", 0, WRONG),
        Answer("10", 1, WRONG),
        Answer("10", 0, written.REFERENCE),
        Answer("9", 0, "1 +"),
    ]
    found = grade(problems, answers, grader())
    assert [
        (one.problem_id, one.sample, one.passed, one.error.partition(":")[0]) for one in found
    ] == [
        ("9", 0, False, "SyntaxError"),
        ("10", 0, True, ""),
        ("10", 1, False, "AssertionError"),
        ("x", 0, False, "AssertionError"),
    ]
    assert grade(problems, answers[::-1], grader(workers=2)) == found


def test_a_reference_that_fails_is_named_and_nothing_is_scored_until_it_is_left_out(problems_file):
    problems = ds1000.load(
        problems_file(written.record(), written.record(2, reference=WRONG), written.record(3))
    )
    answers = [Answer(one, 0, written.REFERENCE) for one in "123"]
    with pytest.raises(UserError) as error:
        grade(problems, answers, grader())
    assert "the reference solutions of 1 of these problems fail here: 2 (AssertionError" in str(
        error.value
    )
    assert "leave out 2 (--leave-out)" in str(error.value)
    assert [one.problem_id for one in grade(problems, answers, grader(), leave_out=["2"])] == [
        "1",
        "3",
    ]
    assert grade(problems, answers[:1], grader()) == [Verdict("1", 0, True, "")], (
        "a problem not asked is not run"
    )


@pytest.mark.parametrize(
    ("answers", "left", "words"),
    [
        ([Answer("7", 0, "")], [], "unknown problem '7': not one of the 3 given"),
        ([], ["8"], "unknown problem '8'"),
        ([Answer("1", 0, ""), Answer("1", 0, "x")], [], "two answers to one problem as one sample"),
    ],
)
def test_answers_that_do_not_fit_are_user_errors(problems, answers, left, words):
    with pytest.raises(UserError, match=words):
        grade(problems, answers, grader(), left)


def test_a_second_run_takes_the_stored_verdicts_and_runs_only_what_is_new(problems, tmp_path):
    runs = grader(tmp_path / "verdicts.sqlite")
    grade(problems, [Answer("1", 0, WRONG)], runs)
    run, waited = runs._run, []
    runs._run = lambda waiting: run(waited.append(len(waiting)) or waiting)
    answers = [Answer("1", 0, WRONG), Answer("1", 1, WRONG), Answer("1", 2, WRONG + "  # new")]
    assert not any(one.passed for one in grade(problems, answers, runs))
    assert waited == [0, 1]  # references, answers


def test_a_run_that_is_stopped_keeps_what_it_had_graded(problems, tmp_path):
    runs, seen = grader(tmp_path / "verdicts.sqlite"), []
    run = runs._run

    def stopped(waiting):
        for found in run(waiting):
            if len(seen) == 2:
                raise KeyboardInterrupt
            seen.append(found)
            yield found

    runs._run = stopped
    programs = [ds1000.program(problems[0], f"result = {number}") for number in range(5)]
    with pytest.raises(KeyboardInterrupt):
        runs.outcomes(programs)
    with VerdictStore(runs.store) as store:
        keys = [runs.key(one) for one in programs]
        assert set(store.get(keys)) == {one for one, _ in seen} and len(seen) == 2


def test_another_environment_sandbox_or_limit_is_another_question(problems):
    programs = [ds1000.program(problems[0], text) for text in (WRONG, "")]
    runs, others = grader(), [grader(sandbox="none"), grader(limits=Limits(seconds=1)), grader()]
    others[2].identity = "other"
    assert len({runs.key(one) for one in programs} | {one.key(programs[0]) for one in others}) == 5


def test_a_failed_reference_is_tried_again(problems_file, tmp_path):
    (problem,) = ds1000.load(problems_file(written.record(reference=WRONG)))
    runs = grader(tmp_path / "verdicts.sqlite")
    assert list(failing_references([problem], runs)) == ["1"]
    with VerdictStore(runs.store) as store:
        assert store.db.execute("SELECT count(*) FROM verdicts").fetchone() == (0,)


def test_a_program_that_was_stopped_is_not_stored(problems, tmp_path):
    runs = grader(tmp_path / "verdicts.sqlite", limits=Limits(seconds=0.5))
    programs = [
        ds1000.program(problems[0], text)
        for text in ("import time\ntime.sleep(60)", "raise SystemExit", WRONG)
    ]
    assert [one.stopped for one in runs.outcomes(programs)] == [True, False, False]
    with VerdictStore(runs.store) as store:
        keys = [runs.key(one) for one in programs]
        assert set(store.get(keys)) == set(keys[1:])


def test_verdicts_are_those_of_a_fresh_process_a_program(problems):
    solutions = (
        written.REFERENCE,
        WRONG,
        "1 +",
        "raise SystemExit(3)",
        "import no_such_module",
        "",
        written.REFERENCE + "for n in [1]: pass",
        "    " + written.REFERENCE,
    )
    programs = [ds1000.program(problem, solution) for problem in problems for solution in solutions]
    runs = grader(workers=2)
    fresh = [fresh_process(one, runs.python) for one in programs]
    assert [one.passed for one in runs.outcomes(programs)] == [one.passed for one in fresh]
    assert {one.passed for one in fresh} == {True, False}


DEV = paths.ROOT.parent / "shared" / "data" / "ds1000_dev.jsonl.gz"


@pytest.mark.skipif(
    not is_made() or not DEV.exists(), reason="needs the grader's environment and DS-1000"
)
def test_references_of_ds1000_pass_and_fail_without_their_last_line():
    problems = [problem for problem in ds1000.load(DEV) if problem.library == "Scipy"][:5]
    runs = Grader(environment(), store=False, progress=False)
    assert failing_references(problems, runs) == {}
    broken = [ds1000.program(problem, broken_reference(problem)) for problem in problems]
    assert not any(one.passed for one in runs.outcomes(broken))


def broken_reference(problem):
    """The reference with a last line that raises: whatever it computed, the test must not pass."""
    lines = problem.reference.rstrip().split("\n")
    indent = lines[-1][: len(lines[-1]) - len(lines[-1].lstrip())]
    return "\n".join([*lines[:-1], f"{indent}raise ValueError"])


def test_an_environment_is_made_of_its_pins_and_made_again_when_they_change(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    monkeypatch.setattr(paths, "DOWNLOADS", tmp_path / "with space")
    (tmp_path / "tiny.txt").write_text("# no pin\n")
    with pytest.raises(UserError, match="tiny is incomplete: run `lookuplab data get tiny`"):
        environment("tiny")
    python = graders.make("tiny")
    assert (
        environment("tiny") == python
        and Grader(python, progress=False).identity != grader().identity
    )
    (tmp_path / "tiny.txt").write_text("no-such-package==9\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(UserError, match="tiny: .*the same command goes on from there"):
        graders.make("tiny")
    assert not is_made("tiny")
    assert environment(str(python)) == python and environment("") == Path(sys.executable)
    with pytest.raises(UserError, match="no grader environment 'absent'"):
        environment("absent")
