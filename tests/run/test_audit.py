"""Tests a cold run, the record that is written from it, a run from the record, and audits that name
each altered row.
"""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow
import pyarrow.parquet as parquet
import pytest

from lookuplab.models import record
from lookuplab.models.store import key_suffix
from lookuplab.run import audit
from recipes.mini.record import write, write_manifest

ASKS = f"""\
import sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "models")!r})
from toy_model import ask, many_prompts
exact = [{{"token_logprobs": (-0.5, -0.25)}}]  # in float32
print([one.text for one in ask(many_prompts(tasks), changes=exact)[0]])"""
JUDGES = """\
from lookuplab.sandbox.server import Program
from lookuplab.stackoverflow.grader import Grader
programs = [Program(f"assert {n} < 1", (), f"p{n}") for n in (0, 1)]
print([one.passed for one in Grader(own=True).outcomes(programs)])"""


def alter(name, row, **columns):
    """Change one row of a file of the record."""
    file = record.folder() / f"{name}.parquet"
    table = parquet.read_table(file)
    frame = table.to_pandas()
    for column, change in columns.items():
        frame.at[row, column] = change(frame.at[row, column])
    parquet.write_table(pyarrow.Table.from_pandas(frame, table.schema, preserve_index=False), file)
    write_manifest()


@pytest.fixture
def record_of(kit, monkeypatch):
    """Return a function that runs code as a cold run of notebooks and writes the record of this
    run. The kit has a notebook with the cells ASKS and JUDGES.
    """
    if key_suffix():
        pytest.skip("a record is made under its own Python")
    monkeypatch.delenv("LOOKUPLAB_STORE", raising=False)
    kit.notebook("asks", ASKS, JUDGES)

    def run(*code, is_whole=True):
        with monkeypatch.context() as cold:
            for name, value in audit.cold_environment(is_preview=False).items():
                cold.setenv(name, value)
            for one in code:
                exec(one, {"tasks": 3})
        audit.mark_complete(is_whole)
        write(audit.cold_folder())

    return run


def test_a_run_from_the_record_makes_nothing_and_an_audit_names_each_altered_row(kit, record_of):
    said = kit.said("reproduce demo --cold")
    assert "0 from the record" in said and "5 new" in said
    write(audit.cold_folder())
    assert not audit.about()["runs"][0]["whole"]
    cold = kit.output("asks")
    shutil.rmtree(kit.root / "runs" / "mini")
    said = kit.said("reproduce --audit 2%")
    assert "5 from the record, 0 found in the store, 5 new" in said
    assert "audit: 5 of 5 rows regenerated, 0 different" in said
    assert "audit: nothing was compared" in kit.said("reproduce --audit 2%"), "up to date"
    assert kit.output("asks") == cold
    written = {file: file.read_bytes() for file in record.folder().glob("*.parquet")}
    record_of(ASKS)
    made = [run["kinds"] for run in audit.about()["runs"]]
    assert made == [["program"], ["toy"]], "the run of some notebooks replaces their rows alone"
    assert {file: file.read_bytes() for file in written} == written

    keys = pd.read_parquet(record.folder() / "completions.parquet").key
    verdicts = pd.read_parquet(record.folder() / "verdicts.parquet").key
    alter("completions", 0, token_ids=lambda ids: [ids[0], 5, *ids[2:]])
    alter("completions", 2, token_logprobs=lambda values: [-0.75, *values[1:]])
    alter("verdicts", 1, answer=lambda text: text.replace('"passed": false', '"passed": true'))
    said = kit.said("reproduce asks --again --audit 100%", code=1)
    expected = [(keys[0], "token_ids 5 ->"), (keys[2], "token_logprobs -0.75 -> -0.5")]
    expected += [(verdicts[1], '"passed": true')]
    lines = [line for line in said.splitlines() if line.startswith("different: ")]
    for line, parts in zip(lines, expected, strict=True):
        assert all(part in line for part in parts)
    assert "audit: FAILED: 5 of 5 rows regenerated, 3 different" in said
    assert kit.output("asks") != cold, "numbers are the record's"


def test_rows_that_a_cold_run_of_some_papers_did_not_ask_for_stay_beside_its_own(record_of):
    record_of(ASKS, JUDGES)
    for is_whole, count in (False, 3), (True, 2):
        record_of(ASKS.replace("(tasks)", "(tasks - 1)"), JUDGES, is_whole=is_whole)
        told = audit.about()
        assert told["rows"]["completions"] == {"toy": count}
    assert [run["kinds"] for run in told["runs"]] == [["program", "toy"]]


def test_an_audit_that_compares_nothing_fails_and_says_why(kit, record_of):
    record_of(ASKS, JUDGES)
    kit.notebook("asks_nothing", "pass")
    said = kit.said("reproduce asks_nothing --again --audit 2%", code=1)
    assert "FAILED: nothing was compared: no notebook that ran uses a row" in said
    kit.notebook("breaks", JUDGES, "1 / 0")
    said = kit.said("reproduce breaks --again --audit 2%", code=1)
    assert "FAILED: 2 of 5 rows regenerated, 0 different; not all notebooks ran" in said
