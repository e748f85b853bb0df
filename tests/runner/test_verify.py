"""`lookuplab verify` compares the working tree's figures with git's HEAD and runs nothing."""

import csv
import gzip
import io
import json
import subprocess

import pytest

from lookuplab.models.complete import COLUMNS

HEAD = "paper,artifact,model,condition,metric,value,ci_low,ci_high,n,paper_value\n"
ROWS = ["low,valid,33.3333,20,50,267,30", "high,valid,66.6667,60,70,267,"]
SVG = '<svg><path d="M 10.25 20.5"/><text>share</text></svg>'
OLD, NEW = "x86_64, Old, avx2", "arm64, New"
ANSWER = ("mini", "task/1", "0", "aaaaaaaa", "11111111", "", "demo/table")


def write(kit, *rows: str, name: str = "table", svg: str = SVG, **record) -> None:
    """One artifact in the working tree, of another run than the one before."""
    folder = kit.root / "figures/mini/demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv").write_text(HEAD + "".join(f"demo,{name},m,{row}\n" for row in rows))
    (folder / f"{name}.svg").write_text(svg)
    (folder / f"{name}.png").write_bytes(svg.encode())
    runs = len(list((kit.root / "runs").glob("*"))) if (kit.root / "runs").is_dir() else 0
    (kit.root / f"runs/{runs}").mkdir(parents=True)
    (folder / f"{name}.json").write_text(
        json.dumps({"processor": OLD, "threads": 1, "wall_seconds": runs, **record})
    )


def write_answers(kit, *rows: tuple[str, ...]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([(*COLUMNS, "notebook"), *rows])
    (kit.root / "figures/mini/answers.csv.gz").write_bytes(
        gzip.compress(text.getvalue().encode(), mtime=0)
    )


def commit(kit) -> None:
    git = ["git", "-C", str(kit.root), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    for command in (["init", "-q"], ["add", "figures"], ["commit", "-qm", "figures"]):
        subprocess.run([*git, *command], check=True)


@pytest.fixture
def run(kit):
    """A kit whose figures are committed and made anew, equal."""
    write(kit, *ROWS)
    write_answers(kit, ANSWER)
    commit(kit)
    write(kit, *ROWS)
    return kit


def test_an_equal_run_passes_with_the_counts_in_the_last_line(run):
    code, text = run.call("verify")
    assert (code, text.splitlines()[-1]) == (
        0,
        "verify: 2 numbers in 1 artifacts equal, 0 different, 0 changed by 0 near ties; "
        "1 pictures and 1 answers equal; 0 artifacts timed, not judged",
    )


@pytest.mark.parametrize(
    ("number", "planted", "said"),
    [
        (
            0,
            "low,valid,33.3334,20,50,267,30",
            "demo/table | m | low | valid: value 33.3333 -> 33.3334",
        ),
        (0, "low,valid,33.3333,20.0001,50,267,30", "ci_low 20 -> 20.0001"),
        (0, "low,valid,33.3333,20,50.0001,267,30", "ci_high 50 -> 50.0001"),
        (0, "low,valid,33.3333,20,50,268,30", "n 267 -> 268"),
        (0, "low,valid,33.3333,20,50,267,", "paper_value 30 -> none"),
        (1, "higher,valid,66.6667,60,70,267,", "demo/table | m | high | valid: there -> missing"),
    ],
    ids=["value", "lower bound", "upper bound", "n", "paper's value", "row"],
)
def test_any_number_that_differs_fails_though_it_lies_inside_the_interval(
    run, number, planted, said
):
    rows = list(ROWS)
    rows[number] = planted
    write(run, *rows)
    code, text = run.call("verify")
    assert (
        code == 1 and f"{said}\n" in text and text.splitlines()[-1].startswith("verify: FAILED: ")
    )


def test_rows_in_another_order_fail(run):
    write(run, *ROWS[::-1])
    assert run.call("verify")[0] == 1


@pytest.mark.parametrize("extension", ["svg", "png"])
def test_a_byte_of_a_picture_fails_though_all_numbers_are_equal(run, extension):
    file = run.root / f"figures/mini/demo/table.{extension}"
    file.write_bytes(file.read_bytes().replace(b"10.25", b"10.26"))
    code, text = run.call("verify")
    assert (
        code == 1
        and f"different: demo/table.{extension}: another picture" in text
        and "verify: FAILED: 2 numbers" in text
    )


def test_a_file_that_is_missing_on_either_side_fails(run):
    write(run, *ROWS, name="second")
    for extension in ("csv", "json", "svg", "png"):
        (run.root / f"figures/mini/demo/table.{extension}").unlink()
        code, text = run.call("verify")
        assert code == 1 and f"demo/table.{extension}: there -> missing" in text
        assert f"demo/second.{extension}: missing -> there" in text


def test_figures_that_were_not_made_again_fail(run):
    subprocess.run(["git", "-C", str(run.root), "checkout", "-q", "figures"], check=True)
    code, text = run.call("verify")
    assert code == 1 and "demo/table: was not run again" in text


def test_times_are_listed_and_not_judged_but_their_rows_must_be_there(kit):
    write(kit, *ROWS, timed=True)
    commit(kit)
    assert kit.call("verify")[0] == 0, "not measured again"
    write(kit, "low,valid,99,,,,", ROWS[1], svg="<svg/>", timed=True)
    code, text = kit.call("verify")
    assert (
        code == 0
        and "timed, not judged: demo/table" in text
        and "1 artifacts timed, not judged" in text
    )
    write(kit, ROWS[0], timed=True)
    assert kit.call("verify")[0] == 1


def test_a_change_of_a_model_s_answer_fails_on_the_same_processor(run):
    write_answers(run, (*ANSWER[:4], "22222222", "1e-05", "demo/table"))
    code, text = run.call("verify")
    assert code == 1 and "different: demo/table | mini | task/1 | sample 0: another answer" in text


@pytest.mark.parametrize(
    "other", [{"processor": NEW, "threads": 1}, {"processor": OLD, "threads": 2}]
)
def test_last_digits_may_differ_on_another_processor_or_with_more_threads_and_no_more(run, other):
    write(
        run, "low,valid,33.3334,20,50,267,30", ROWS[1], svg=SVG.replace("10.25", "10.26"), **other
    )
    code, text = run.call("verify")
    fresh = f"{other['processor']}, threads: {other['threads']}"
    assert (
        code == 0
        and f"committed: {OLD}, threads: 1; fresh: {fresh} (floats may differ by 0.01% or 5e-05)"
        in text
    )
    write(run, "low,valid,33.34,20,50,267,30", ROWS[1], **other)
    assert run.call("verify")[0] == 1


def test_a_near_tie_explains_another_count_on_another_processor_and_is_named(run):
    run.notebook("table", "pass")
    write(run, "low,valid,33.7079,20.1,50.2,267,30", ROWS[1], processor=NEW)
    write_answers(run, (*ANSWER[:4], "22222222", "1e-05", "demo/table"))
    code, text = run.call("verify")
    assert code == 0 and "0 different, 1 changed by 1 near ties" in text.splitlines()[-1]
    assert (
        "near tie: demo/table | mini | task/1 | sample 0: another answer; the margin is 1e-05"
        in text
    )
    assert "explained: demo/table | m | low | valid: value 33.3333 -> 33.7079" in text


STEADY = ("m", *ANSWER[1:])


@pytest.mark.parametrize(
    "answers",
    [
        [(*ANSWER[:4], "22222222", "", "demo/table"), STEADY],
        [ANSWER, STEADY, (*ANSWER[:4], "22222222", "1e-05", "demo/other")],
        [(*ANSWER[:4], "22222222", "1e-05", "demo/table"), STEADY],
    ],
    ids=["no near tie", "one of another notebook", "one of another model"],
)
def test_a_number_is_explained_by_a_near_tie_of_its_own_notebook_and_model_alone(run, answers):
    run.notebook("table", "pass")
    write_answers(run, ANSWER, STEADY)
    commit(run)
    write(run, "low,valid,33.7079,20.1,50.2,267,30", ROWS[1], processor=NEW)
    write_answers(run, *answers)
    code, text = run.call("verify")
    assert code == 1 and "different: demo/table | m | low | valid" in text


def test_every_changed_answer_must_have_been_a_near_tie(run):
    first, second = ANSWER, (*ANSWER[:3], "bbbbbbbb", "33333333", "", "demo/table")
    write_answers(run, first, second)
    commit(run)
    write(run, *ROWS, processor=NEW)
    changed = (
        (*first[:4], "22222222", "1e-05", "demo/table"),
        (*second[:4], "44444444", "", "demo/table"),
    )
    write_answers(run, *changed)
    code, text = run.call("verify")
    assert code == 1 and "different: demo/table | mini | task/1 | sample 0: another answer" in text


def test_a_question_made_from_a_near_tie_s_answer_is_explained_with_it(run):
    first, second = ANSWER, (*ANSWER[:3], "bbbbbbbb", "33333333", "", "demo/table")
    write_answers(run, first, second)
    commit(run)
    write(run, *ROWS, processor=NEW)
    write_answers(
        run, (*first[:4], "22222222", "1e-05", "demo/table"), (*second[:3], "cccccccc", *second[4:])
    )
    code, text = run.call("verify")
    assert code == 0 and "changed by 1 near ties" in text


def test_a_paper_is_compared_alone(run):
    run.notebook("table", "pass")
    write_answers(run, ANSWER, (*ANSWER[:-1], "other/table"))
    assert run.call("verify", "demo")[0] == 0
    assert run.call("verify")[0] == 1


def test_another_commit_and_another_folder_can_be_compared(run):
    (run.root / "figures").rename(run.root / "elsewhere")
    write(run, ROWS[0])
    commit(run)
    assert run.call("verify", "--fresh", str(run.root / "elsewhere"))[0] == 1
    assert run.call("verify", "--fresh", str(run.root / "elsewhere"), "--commit", "HEAD~1")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "no paper 'nobody'"),
        (["empty"], "no figures of 'empty' in HEAD"),
        (["--fresh", "nowhere"], "no figures below nowhere/mini"),
        (["--profile", "none"], "no profile 'none'"),
        (["--profile", "smoke"], "no figures of profile 'smoke' in 'HEAD'"),
        (["--commit", "nothing"], "not a valid object name: nothing"),
    ],
)
def test_bad_input_is_exit_code_2(run, arguments, message):
    run.notebook("table", "pass", paper="empty")
    code, text = run.call("verify", *arguments)
    assert code == 2 and message in text and text.count("\n") == 1
