"""What a waiting user reads, in a terminal and elsewhere."""

import io
import sys
import time

from lookuplab.execution import progress
from lookuplab.execution.progress import Progress


def test_a_line_says_what_is_done_what_was_found_and_how_long_it_may_take(monkeypatch):
    now = iter([0.0, 60.0, 90.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    bar = Progress("mini-large", 622, "answers", found=40, note=lambda: "a note", quiet=True)
    assert bar.line() == "mini-large: 0 of 622 answers, 40 found, a note"
    bar.update(120)
    assert bar.line() == "mini-large: 120 of 622 answers, 40 found, about 6 min left, a note"


def test_lines_come_by_themselves_while_nothing_is_done_and_end_with_the_work(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    with Progress("site", None):
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2 and set(lines) == {"site: 0 s so far"}
    time.sleep(0.2)
    assert not capsys.readouterr().err


def test_in_a_terminal_one_line_changes_in_its_place_and_goes_with_the_work(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "12")
    monkeypatch.setattr(progress, "BAR_SECONDS", 0.05)
    with Progress("notebooks", 3):
        time.sleep(0.3)
        progress.say("done table1")
    shown = terminal.getvalue().split(progress.CLEAR)
    assert shown[0] == shown[-1] == "" and shown.count("done table1\n") == 1
    assert {*shown[1:-1]} == {"notebooks: ", "done table1\n"}
