"""`lookuplab verify` judges each number: equal, inside the committed interval, different."""

import json

import pytest

HEAD = "paper,artifact,model,condition,metric,value,ci_low,ci_high,n,paper_value\n"


def write(folder, name: str, *rows: str, **record) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv").write_text(HEAD + "".join(f"demo,{name},m,{row}\n" for row in rows))
    (folder / f"{name}.json").write_text(json.dumps({"processor": "x86_64, Old, avx2", **record}))


@pytest.fixture
def verify(kit):
    def call(committed: list[str], fresh: list[str], **record) -> tuple[int, str]:
        write(kit.root / "figures/mini/demo", "table", *committed)
        write(kit.root / "fresh/demo", "table", *fresh, **record)
        return kit.call("verify", "--fresh", str(kit.root / "fresh"))

    return call


@pytest.mark.parametrize(("committed", "fresh", "code", "said"), [
    ("low,valid,33.3,20,50,267,", "low,valid,33.3,20,50,267,", 0, "everything should be equal"),
    ("low,valid,33.3,20,50,267,", "low,valid,34,21,51,267,", 0, "inside the interval: demo/table | m | low"),
    ("low,valid,33.3,20,50,267,", "low,valid,50.1,20,50,267,", 1, "demo/table | m | low | valid: 33.3 -> 50.1"),
    ("low,valid,33.3,,,267,", "low,valid,33.4,,,267,", 1, "different"),
    ("low,valid,33.3,,,267,", "low,valid,33.3,,,266,", 1, "different"),
    ("low,valid,33.3,,,,", "high,valid,33.3,,,,", 1, "missing"),
])
def test_each_number_is_judged(verify, committed, fresh, code, said):
    found, text = verify([committed], [fresh])
    assert (found, said in text) == (code, True), text


def test_rows_are_matched_by_name_not_by_position(verify):
    rows = ["low,valid,1,,,,", "high,valid,2,,,,"]
    assert verify(rows, rows[::-1])[0] == 0


def test_another_processor_is_said(verify):
    code, text = verify(["low,valid,1,,,,"], ["low,valid,1,,,,"], processor="arm64, New")
    assert code == 0 and "committed: x86_64, Old, avx2; fresh: arm64, New (another type" in text


def test_times_are_listed_but_not_judged(verify):
    assert verify(["low,seconds,1,,,,"], ["low,seconds,2,,,,"], timed=True)[0] == 0


def test_an_artifact_that_is_missing_differs(kit, verify):
    write(kit.root / "figures/mini/demo", "second", "low,valid,1,,,,")
    assert verify(["low,valid,1,,,,"], ["low,valid,1,,,,"])[0] == 1


def test_committed_times_that_were_not_measured_again_do_not_differ(kit, verify):
    """`verify` leaves out the notebooks that measure speed, as `reproduce` does, unless their paper is named."""
    write(kit.root / "figures/mini/demo", "speed", "low,seconds,1,,,,", timed=True)
    assert verify(["low,valid,1,,,,"], ["low,valid,1,,,,"])[0] == 0


def test_nothing_to_compare_with_is_told_before_a_notebook_runs(kit):
    kit.notebook("table", "print('ran')")
    code, text = kit.call("verify")
    assert code == 2 and text.count("\n") == 1 and "make them with `lookuplab reproduce`" in text
    assert not (kit.root / "runs").exists()


@pytest.mark.parametrize(("arguments", "message"), [
    (["nobody"], "no paper 'nobody'"),
    (["--fresh", "nowhere"], "is no folder"),
    (["--fresh", "."], "no committed numbers below"),
    (["--profile", "none"], "no profile 'none'"),
])
def test_bad_input_is_exit_code_2(kit, arguments, message):
    code, text = kit.call("verify", *arguments)
    assert code == 2 and message in text


def test_a_number_given_twice_is_bad_input(verify):
    code, text = verify(["low,valid,1,,,,", "low,valid,2,,,,"], ["low,valid,1,,,,"])
    assert code == 2 and "table.csv, line 3: a second number" in text


def test_verify_runs_the_notebooks_with_a_store_of_their_own(kit):
    cell = ("import os, pandas as pd\nfrom lookuplab.artifact import Artifact\nprint(os.environ['LOOKUPLAB_STORE'])\n"
            "row = dict(model='m', condition='low', metric='valid', value=tasks)\n"
            "_ = Artifact.begin('demo', 'table', profile).save(pd.DataFrame([row]))")
    kit.notebook("table", cell)
    write(kit.root / "figures/mini/demo", "table", "low,valid,3,,,,")
    code, text = kit.call("verify")
    assert code == 0, text
    assert (kit.root / "runs/verify/demo/table.ipynb").read_text().count("verify/completions.sqlite") == 1
    assert (kit.root / "figures/mini/demo/table.csv").read_text() == HEAD + "demo,table,m,low,valid,3,,,,\n"
