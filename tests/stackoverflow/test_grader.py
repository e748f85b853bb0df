"""Tests verdicts by execution. The references run first, nothing runs twice, and a program's
verdict does not depend on the programs that ran before it.
"""

import sys
from pathlib import Path

import pytest
import written_problems as written
from doors import refused

from lookuplab import paths, python_sources
from lookuplab.sandbox import server
from lookuplab.sandbox.server import Limits
from lookuplab.stackoverflow import ds1000
from lookuplab.stackoverflow.grader import (
    Grader,
    VerdictStore,
    environment,
    failing_references,
    verdicts,
)
from lookuplab_notebooks.stackoverflow.trial import gradable

WRONG = "result = 0"


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "verdicts.sqlite"


def grader(store=False, workers=1, **options):
    """Return a grader that uses the kit's Python. The problems need only the standard library."""
    return Grader(store=store, workers=workers, **options)


@pytest.mark.usefixtures("own_store")
def test_problems_that_cannot_be_judged_are_left_out_before_any_is_asked_with_every_reason(
    written_file, capsys
):
    broken = {2: "0()", 3: "0()", 4: "0()", 10: "+"}
    records = [written.record(number, reference=code) for number, code in broken.items()]
    problems = ds1000.load_problems(written_file(written.record(), written.record(11), *records))
    left, runs = gradable(problems, leave_out="11, 4", sandbox="none")
    assert [one.id for one in left] == ["1"] and runs.sandbox == "none"
    said = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert said[0].startswith("left out, the reference fails here: 2, 3: TypeError")
    assert said[1].startswith("left out, the reference fails here: 10: SyntaxError")
    assert said[2:] == ["left out, by name: 11, 4"]
    with refused(r"no problem is left: .*: 10: SyntaxError"):
        gradable(problems[-1:], sandbox="none")


LOADS = """
import os
place = os.environ["SEABORN_DATA"] + "/rows.csv"
if not os.path.exists(place):
    open(place, "w").write("1")
"""


@pytest.mark.usefixtures("own_store")
def test_data_that_references_loaded_outside_the_sandbox_are_read_in_it(
    written_file, monkeypatch, tmp_path
):
    for name in server.CACHES:
        monkeypatch.setitem(server.CACHES, name, tmp_path / "fetched")
    problems = ds1000.load_problems(written_file(written.record(1, LOADS + written.CONTEXT)))
    assert failing_references(problems, grader(None))
    (tmp_path / "fetched").mkdir()
    assert failing_references(problems, grader(None))
    assert not failing_references(problems, grader(None, sandbox="none"))
    assert not failing_references(problems, grader(None))
    overwrites = "import os\nopen(os.environ['SEABORN_DATA'] + '/rows.csv', 'w')"
    (tried,) = verdicts([(problems[0], overwrites)], grader())
    assert not tried.passed and (tmp_path / "fetched" / "rows.csv").read_text() == "1"


def test_a_stopped_run_keeps_what_it_had_graded_and_the_next_runs_only_what_is_new(problems, kept):
    runs = grader(kept)
    waited = []
    run = runs._run

    def stopped(waiting, store):
        waited.append(len(waiting))
        for number, found in enumerate(run(waiting, store)):
            if len(waited) == 2 and number == 2:
                raise KeyboardInterrupt
            yield found

    runs._run = stopped
    answers = [(problems[0], f"result = {number}") for number in range(5)] * 2
    with pytest.raises(KeyboardInterrupt):
        verdicts(answers, runs)
    assert not any(one.passed for one in verdicts(answers, runs))
    # Each run tries the reference (1 program), and then every different answer once (5). When the
    # first run was stopped, the reference and two answers were finished, so the second run repeats
    # no reference (0) and three answers (3).
    assert waited == [1, 5, 0, 3]


def test_a_program_that_was_stopped_is_not_stored(problems, kept):
    runs = grader(kept, limits=Limits(seconds=0.5))
    codes = "import time\ntime.sleep(60)", "raise SystemExit", WRONG
    three = [ds1000.program(problems[0], code) for code in codes]
    assert [one.stopped for one in runs.outcomes(three)] == [True, False, False]
    with VerdictStore(kept) as store:
        assert [bool(store.get([runs.key(one)])) for one in three] == [False, True, True]


def test_an_environment_is_made_of_its_pins_and_made_again_when_they_change(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    monkeypatch.setattr(paths, "DOWNLOADS", tmp_path / "with space")
    (tmp_path / "tiny.txt").write_text("# no pin\n")
    with refused("/bin/false is not a Python that runs"):
        Grader(Path("/bin/false"))
    with refused("no grader environment 'tiny': run `lookuplab data get "):
        environment("tiny")
    python = python_sources.environment("tiny")
    assert environment("tiny") == python and Grader(python).identity != grader().identity
    (tmp_path / "tiny.txt").write_text("no-such-package==9\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with refused(r"tiny: .*repeat the command to continue"):
        python_sources.environment("tiny")
    assert not python_sources.has_environment("tiny")
    assert environment(str(python)) == python and environment("") == Path(sys.executable)
