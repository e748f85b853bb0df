"""Tests what a waiting user reads."""

import time

from lookuplab import work
from lookuplab.work import Progress


def test_a_line_says_what_is_done_what_was_found_and_how_long_it_may_take(monkeypatch):
    now = iter([0.0, 60.0, 75.0, 90.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    bar = Progress("mini-large", 622, "answers", found=40, quiet=True)
    assert bar.line() == "mini-large: 0 of 622 answers, 40 found"
    bar.update(4)
    assert bar.line() == "mini-large: 4 of 622 answers, 40 found"
    bar.update(116)
    assert bar.line() == "mini-large: 120 of 622 answers, 40 found, about 6 min left"


def test_lines_come_by_themselves_while_nothing_is_done_and_end_with_the_work(monkeypatch, capsys):
    monkeypatch.setattr(work, "LINE_SECONDS", 0.05)
    with Progress("site", None, parts=lambda: ["a page: begins"]):
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 4 and set(lines) == {"site: 0 s so far", "  a page: begins"}
    time.sleep(0.2)
    assert not capsys.readouterr().err
