"""A cold run, its record, a run from the record, and audits that name each altered row."""

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pyarrow
import pyarrow.parquet as parquet
import pytest

from lookuplab.models import record
from lookuplab.run import audit
from recipes.mini.record import write

ASKS = """\
from test_record import ExactModel, many_prompts
from lookuplab.models import complete
print([one.text for one in complete(ExactModel(), many_prompts(tasks), progress=False)])"""
JUDGES = """\
from lookuplab.execution.server import Program
from lookuplab.stackoverflow.grader import Grader
programs = [Program(f"assert {n} < 1", (), f"p{n}") for n in (0, 1)]
print([one.passed for one in Grader(own=True).outcomes(programs)])"""


def alter(name: str, row: int, **columns) -> None:
    """Change one row of a file of the record."""
    file = record.folder() / f"{name}.parquet"
    table = parquet.read_table(file)
    frame = table.to_pandas()
    for column, change in columns.items():
        frame.at[row, column] = change(frame.at[row, column])
    parquet.write_table(pyarrow.Table.from_pandas(frame, table.schema, preserve_index=False), file)


@pytest.fixture
def recorded(kit, monkeypatch):
    """A kit with two notebooks and the record of a cold run of them."""
    monkeypatch.delenv("LOOKUPLAB_STORE", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "models"), prepend=os.pathsep)
    kit.notebook("asks", ASKS)
    kit.notebook("judges", JUDGES)
    said = kit.said("reproduce --cold")
    assert "0 from the record" in said and "5 made anew" in said
    write(audit.cold())
    return kit


def test_a_run_from_the_record_makes_nothing_and_an_audit_names_each_altered_row(recorded):
    kit = recorded
    cold = kit.output("asks"), kit.output("judges")
    shutil.rmtree(kit.root / "runs" / "mini")
    said = kit.said("reproduce --audit 2%")
    assert "the record has 5 answers and judgements" in said
    assert "5 from the record, 0 found in the store, 0 made anew, 5 for the audit" in said
    assert "audit: 5 of 5 rows made anew, 0 different" in said
    assert "audit: nothing was compared" in kit.said("reproduce --audit 2%"), "up to date"
    assert (kit.output("asks"), kit.output("judges")) == cold
    written = {file: file.read_bytes() for file in record.folder().glob("*.parquet")}
    (kit.root / "notebooks" / "demo" / "judges.ipynb").unlink()
    kit.said("reproduce --cold")
    write(audit.cold())
    made = [run["kinds"] for run in audit.about()["runs"]]
    assert made == [["program"], ["toy"]], "the run of some notebooks replaces their rows alone"
    kit.notebook("judges", JUDGES)
    assert {file: file.read_bytes() for file in written} == written

    keys = pd.read_parquet(record.folder() / "completions.parquet").key
    verdicts = pd.read_parquet(record.folder() / "verdicts.parquet").key
    alter("completions", 0, token_ids=lambda ids: [ids[0], 5, *ids[2:]])
    alter("completions", 2, token_logprobs=lambda values: [-0.75, *values[1:]])
    alter("verdicts", 1, answer=lambda text: text.replace('"passed": false', '"passed": true'))
    said = kit.said("audit demo/asks judges --share 100%", code=1)
    expected = [(keys[0], "token_ids[1] 5 ->"), (keys[2], "token_logprobs[0] -0.75 -> -0.5")]
    expected += [(verdicts[1], '"passed": true')]
    lines = [line for line in said.splitlines() if line.startswith("different: ")]
    for line, parts in zip(lines, expected, strict=True):
        assert all(part in line for part in parts)
    assert "audit: FAILED: 5 of 5 rows made anew, 3 different" in said
    assert (kit.output("asks"), kit.output("judges")) == cold, "an audit changes no executed copy"


def test_rows_that_a_cold_run_of_some_papers_did_not_ask_for_stay_beside_its_own(recorded):
    recorded.notebook("asks", ASKS.replace("(tasks)", "(tasks - 1)"))
    for paper, count in ("demo", 3), ("", 2):
        recorded.said(f"reproduce {paper} --cold")
        write(audit.cold())
        told = audit.about()
        assert told["rows"]["completions"] == {"toy": count}
    assert [run["kinds"] for run in told["runs"]] == [["program", "toy"]]


def test_an_audit_that_compares_nothing_fails_and_says_why(recorded):
    kit = recorded
    kit.notebook("asks_nothing", "pass")
    said = kit.said("audit asks_nothing", code=1)
    assert "FAILED: nothing was compared; the notebooks asked for 0 rows of the sample" in said
    for _ in range(2):
        assert "2 of 5 rows made anew, 0 different" in kit.said("audit judges")
    kit.notebook("judges", JUDGES.replace("own=True", "own=True, store='own.sqlite'"))
    said = kit.said("audit judges", code=1)
    assert said.count("not made anew: verdicts | program p") == 2 and "FAILED" in said
    kit.notebook("judges", f"from lookuplab.models import store\nstore.PYTHON = '2.7'\n{JUDGES}")
    said = kit.said("audit judges", code=1)
    assert "not compared: 2 rows asked for depend on Python" in said
    assert "FAILED: nothing was compared; the notebooks asked for 2 rows of the sample" in said
    kit.notebook("breaks", JUDGES, "1 / 0")
    said = kit.said("audit breaks", code=1)
    assert "FAILED: 2 of 5 rows made anew, 0 different; not all notebooks ran" in said


def test_what_no_longer_fits_is_said_first_and_made_anew(recorded):
    kit = recorded
    told = audit.about()
    told["conditions"]["verdicts"]["version"] -= 1
    (record.folder() / "about.json").write_text(json.dumps(told))
    kit.notebook("asks", ASKS.replace("(tasks)", "(tasks + 1)"))
    said = kit.said("reproduce --again")
    assert "verdicts: version has changed: up to 2 rows do not fit" in said
    assert "5 from the record, 0 found in the store, 1 made anew" in said
