"""Tests `lookuplab verify`, which compares the figures in the working tree with git's HEAD and runs
nothing.
"""

import gzip
import json
import subprocess
from itertools import count

import pytest

from lookuplab.models.store import LOG_COLUMNS
from lookuplab.paths import write_text

HEAD = "paper,artifact,model,condition,metric,value,ci_low,ci_high,n,paper_value\n"
ROWS = ["low,valid,33.3333,20,50,267,30", "high,valid,66.6667,60,70,267,"]
SVG = '<svg><path d="M 10.25 20.5"/><text>share</text></svg>'
OLD, NEW = "x86_64, Old, avx2", "arm64, New"
SECONDS = count()
ANSWER = ("mini", "task/1", "0", "aaaaaaaa", "11111111", "", "demo/table")


def write(kit, *rows, place="demo/table", svg=SVG, **record):
    """Write an artifact into the working tree. Each call writes another wall time."""
    file = kit.root / "figures/mini" / place
    lines = [f"{place.replace('/', ',')},m,{row}\n" for row in rows]
    about = {"processor": OLD, "threads": 1, "wall_seconds": next(SECONDS), **record}
    texts = HEAD + "".join(lines), svg, svg, json.dumps(about)
    for end, text in zip((".csv", ".svg", ".png", ".json"), texts, strict=True):
        write_text(file.with_suffix(end), text)


def write_answers(kit, *rows):
    lines = [",".join(row) + "\n" for row in ((*LOG_COLUMNS, "notebook"), *rows)]
    (kit.root / "figures/mini/answers.csv.gz").write_bytes(
        gzip.compress("".join(lines).encode(), mtime=0)
    )


@pytest.fixture
def run(kit, commit):
    """Return a kit whose figures are committed, and were then made again with the same numbers."""
    kit.notebook("other", "1")
    write(kit, *ROWS)
    write_answers(kit, ANSWER)
    commit(kit.root, "figures")
    write(kit, *ROWS)
    return kit


def verified(kit, code, *said):
    """Return what `lookuplab verify` prints. It must contain all the texts of ``said``."""
    text = kit.said("verify", code)
    assert not [one for one in said if one not in text], text
    return text


def test_an_equal_run_passes_with_the_counts_in_the_last_line(run):
    assert verified(run, 0).splitlines()[-1] == (
        "verify: 2 numbers in 1 artifacts equal, 0 different, 0 changed by 0 near ties; "
        "1 pictures and 1 answers equal; 0 artifacts timed, not judged"
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["low,valid,33.3334,20,50,267,30", ROWS[1]], "m | low | valid: value 33.3333 -> 33.3334"),
        (["low,valid,33.3333,20,50.0001,268,", ROWS[1]], "ci_high 50 -> 50.0001, n 267 -> 268"),
        ([ROWS[0]], "demo/table | m | high | valid: there -> missing"),
        (ROWS[::-1], "demo/table.csv: different bytes"),
    ],
    ids=["value", "bound", "row", "order"],
)
def test_any_number_that_differs_fails_though_it_lies_inside_the_interval(run, rows, said):
    write(run, *rows)
    verified(run, 1, said, "verify: FAILED: ")


@pytest.mark.parametrize("file", ["demo/table.json", "demo/table.csv", "answers.csv.gz"])
def test_a_damaged_file_is_one_line_with_its_name(run, file):
    (run.root / "figures/mini" / file).write_bytes(b"\x1f\x8b")  # how compressed files begin
    assert verified(run, 2, "error: ", file).count("\n") == 1


@pytest.mark.parametrize("extension", ["svg", "png"])
def test_a_byte_of_a_picture_fails_though_all_numbers_are_equal(run, extension):
    (run.root / f"figures/mini/demo/table.{extension}").write_text(SVG.replace("10.25", "10.26"))
    verified(
        run, 1, f"different: demo/table.{extension}: different bytes", "verify: FAILED: 2 numbers"
    )


def test_a_file_that_is_missing_on_either_side_fails(run):
    write(run, *ROWS, place="demo/second")
    (run.root / "figures/mini/demo/table.csv").unlink()
    verified(run, 1, "demo/table.csv: there -> missing", "demo/second.svg: missing -> there")


def test_figures_on_demand_alone_may_be_the_committed_ones_unless_they_are_named(run):
    run.notebook("table", run.saves.replace("counts", "table"))
    order = run.root / "notebooks/order.yaml"
    order.write_text("manual: [demo/table]")
    write(run, "low,valid,1,0,2,267,30", ROWS[1])
    verified(run, 1, "value 33.3333 -> 1")
    subprocess.run("git checkout -q figures".split(), cwd=run.root, check=True)
    order.rename(order.with_suffix(".later"))
    verified(run, 1, "demo/table: was not run again")
    order.with_suffix(".later").rename(order)
    verified(run, 0, "on demand, not run again: demo/table", "0 numbers in 0 artifacts equal")
    assert "was not run again" in run.said("verify table", 1)


def test_times_are_listed_and_not_judged_but_their_rows_must_be_there(kit, commit):
    kit.notebook("other", "1")
    write(kit, *ROWS, timed=True)
    commit(kit.root, "figures")
    verified(kit, 0)  # the time was not measured again
    write(kit, "low,valid,99,,,,", ROWS[1], svg="<svg/>", timed=True)
    verified(kit, 0, "timed, not judged: demo/table", "1 artifacts timed, not judged")
    write(kit, ROWS[0], timed=True)
    verified(kit, 1)


def changed(answer, margin="1e-05"):
    """Return another answer to the same question."""
    return (*answer[:4], "22222222", margin, "demo/table")


def test_a_change_of_a_model_s_answer_fails_on_the_same_processor(run):
    write_answers(run, changed(ANSWER))
    verified(run, 1, "different: demo/table | mini | task/1 | sample 0: a different answer")


@pytest.mark.parametrize(("processor", "threads"), [(NEW, 1), (OLD, 2)])
def test_last_digits_may_differ_on_another_processor_or_with_more_threads_and_no_more(
    run, processor, threads
):
    other = {"processor": processor, "threads": threads}
    write(
        run, "low,valid,33.3334,20,50,267,30", ROWS[1], svg=SVG.replace("10.25", "10.26"), **other
    )
    fresh = f"{processor}, threads: {threads} (floats may differ by 0.01% or 5e-05)"
    verified(run, 0, f"committed: {OLD}, threads: 1; fresh: {fresh}")
    write(run, "low,valid,33.34,20,50,267,30", ROWS[1], **other)
    verified(run, 1)


EXPLAINED = "low,valid,33.7079,20.1,50.2,267,30", ROWS[1]
STEADY = ("m", *ANSWER[1:])
SECOND = (*ANSWER[:3], "bbbbbbbb", "33333333", "", "demo/table")
MADE = (*SECOND[:3], "cccccccc", *SECOND[4:])
ELSEWHERE = (*changed(ANSWER)[:-1], "demo/other")
NEAR_TIE = "near tie: demo/table | m | task/1 | sample 0: a different answer; the margin is 1e-05"
CHANGE = "demo/table | m | low | valid: value 33.3333 -> 33.7079"


@pytest.mark.parametrize(
    ("after", "rows", "said"),
    [
        ([ANSWER, changed(STEADY), SECOND], EXPLAINED, f"explained: {CHANGE}"),
        ([ANSWER, changed(STEADY), SECOND], ROWS, NEAR_TIE),
        ([changed(ANSWER, ""), STEADY, SECOND], EXPLAINED, f"different: {CHANGE}"),
        ([ANSWER, STEADY, SECOND, ELSEWHERE], EXPLAINED, f"different: {CHANGE}"),
        ([changed(ANSWER), STEADY, changed(SECOND, "")], ROWS, "different: demo/table | mini | t"),
        # MADE is a new question, because the answer of a near tie led to it
        ([changed(ANSWER), STEADY, MADE], ROWS, "0 different, 0 changed by 1 near ties"),
    ],
    ids="explained tie no-tie other-notebook one-is-no-tie made-from-it".split(),
)
def test_on_another_processor_a_near_tie_explains_numbers_of_its_notebook_alone(
    run, commit, after, rows, said
):
    run.notebook("table", 'artifact = Artifact("demo", "table", profile)')
    write_answers(run, ANSWER, STEADY, SECOND)
    commit(run.root, "figures")
    write(run, *rows, processor=NEW)
    write_answers(run, *after)
    verified(run, said.startswith("different"), said)


def test_what_git_does_not_have_is_one_line(run, monkeypatch):
    run.notebook("new", 'artifact = Artifact("demo", "new", profile)')
    assert "git has none of these figures" in run.refused("verify new")
    monkeypatch.setenv("PATH", "")
    assert "is not installed" in run.call("verify")[1]


@pytest.mark.parametrize(
    ("name", "other"),
    [("demo", "other/table"), ("table", "demo/other"), ("demo/table", "demo/other")],
)
def test_a_paper_or_a_notebook_is_compared_alone(run, name, other):
    run.notebook("table", 'artifact = Artifact("demo", "table", profile)')
    write(run, *ROWS, place=other)
    write_answers(run, ANSWER, (*ANSWER[:-1], other))
    assert [run.call("verify", *names)[0] for names in ((name,), ())] == [0, 1]
    write(run, ROWS[0])
    assert run.call("verify", name)[0] == 1
