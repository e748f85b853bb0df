"""The committed record is what the code at HEAD makes: its conditions, its packages, and rows made
anew.
"""

import io
import re
from contextlib import redirect_stdout
from functools import cache

import pandas as pd
import pytest

from lookuplab import paths
from lookuplab.benchmark import evaluate
from lookuplab.cloudapi.bench import CloudApiBench
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab.models import Decoding, load, record
from lookuplab.models.store import STORE_VARIABLE, CompletionStore, elsewhere
from lookuplab.run import audit
from lookuplab.stackoverflow.ds1000 import select
from lookuplab.stackoverflow.grader import Grader, VerdictStore, failing_references
from lookuplab.toolgen.analysers import JudgementStore
from lookuplab.toolgen.evaluation import held_out_functions, judged_all, token_counter
from lookuplab.toolgen.functions import Filters, locate_all
from lookuplab.toolgen.generation import ToolUse, generate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.marking import Marks, marked_records

pytestmark = pytest.mark.skipif(not audit.about(), reason="this checkout has no record")


def test_the_record_was_made_under_the_conditions_and_packages_of_today():
    told = audit.about()
    assert told["conditions"] == audit.conditions(), "make a new record from a cold run"
    pins = dict(
        re.findall(r"^([\w.-]+)==([^\s;]+)", (paths.ROOT / "constraints.txt").read_text(), re.M)
    )
    for run in told["runs"]:
        for name in "torch transformers tokenizers peft jedi parso pylint astroid".split():
            assert run["packages"][name].partition("+")[0] == pins[name], name
        assert run["git"]["commit"] and not run["git"]["dirty"]


def test_its_files_have_the_rows_that_it_states_and_fit_into_fifteen_megabytes():
    files = [record.folder() / f"{name}.parquet" for name in audit.about()["rows"]]
    for file, counts in zip(files, audit.about()["rows"].values(), strict=True):
        assert pd.read_parquet(file).key.nunique() == sum(counts.values()) > 0
    assert sum(file.stat().st_size for file in files) < 15e6


def asks_for_calls():
    tasks = load_tasks(paths.MINI / "cloudapi" / "tasks.jsonl")[:4]
    evaluate(load("mini-small"), CloudApiBench(tasks))


@cache
def functions():
    """Functions of a small repository that the record has marks of."""
    marks = pd.read_parquet(record.folder() / "marks.parquet").about
    filters = Filters(max_model_tokens=128)
    tokens = token_counter("mini-gpt-toolgen")
    found = held_out_functions(locate_all(["nbclient"]), filters, count_tokens=tokens)
    return [one for one in found if one.id in set(marks)]


def asks_for_a_function():
    use = ToolUse("mark")
    decoding = Decoding(max_new_tokens=192)
    generate(load("mini-gpt-toolgen"), functions()[:1], JediTool(1), use, decoding)


def judges_a_function():
    judged_all(functions()[:2], {"control": {one.id: "pass" for one in functions()[:2]}}, workers=1)


def marks_a_function():
    marked_records(functions()[:1], workers=1)


def runs_programs():
    problems = select(paths.MINI / "stackoverflow" / "problems.jsonl.gz")[:4]
    failing_references(problems, Grader(own=True, workers=1))


@pytest.mark.skipif(elsewhere() != "", reason="judgements are the record's only under its Python")
@pytest.mark.parametrize(
    ("stores", "make"),
    [
        (CompletionStore, asks_for_calls),
        (CompletionStore, asks_for_a_function),
        (JudgementStore, judges_a_function),
        (Marks, marks_a_function),
        (VerdictStore, runs_programs),
    ],
)
def test_rows_made_anew_are_those_of_the_record(stores, make, tmp_path, monkeypatch):
    """The first questions of a notebook, asked without the record; an audit asks many more."""
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "completions.sqlite"))
    monkeypatch.setenv(record.RECORD_VARIABLE, "off")
    make()
    with stores() as made:
        anew = made.everything()
    monkeypatch.delenv(record.RECORD_VARIABLE)
    recorded = record.rows(stores.name, anew)
    assert anew and anew.keys() == recorded.keys(), "keys have changed: make a new record"
    for key, answer in anew.items():
        said, near = record.differences(stores.name, recorded[key], answer)
        assert not said or near, (key, said)


def test_the_page_about_the_record_prints_what_it_shows():
    text = (paths.ROOT / "docs" / "record.md").read_text(encoding="utf-8")
    names = {}
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    for code, shown in blocks:
        with redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        assert printed.getvalue().rstrip() == shown.rstrip()
