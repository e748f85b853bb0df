"""Tests that a public parser reads whatever a user's file or text contains, or says in one line
what is wrong.

Only a few examples are tried here; `make fuzz` tries 20,000 examples for each parser.
"""

import json
import os
import shlex
import time
from unittest.mock import patch

import pytest
from doors import call
from hypothesis import given
from hypothesis import strategies as st

from lookuplab import paths
from lookuplab.cloudapi.first_call import call_extent, code_span
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab.cloudapi.validity import judge_call
from lookuplab.errors import UserError
from lookuplab.models import completions
from lookuplab.models.names import ADAPTER, base_of, split_options
from lookuplab.models.store import AnswerStore
from lookuplab.results import claims
from lookuplab.results.artifact import read_csv, read_record
from lookuplab.results.provenance import convert
from lookuplab.run import downloads, notebooks
from lookuplab.run.cli import pairs
from lookuplab.stackoverflow.corpus import load_snippets
from lookuplab.stackoverflow.ds1000 import load_problems, solution_of
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.marking import read_marks
from lookuplab.toolgen.pairs import read_pairs
from lookuplab.toolgen.similarity import expressions
from lookuplab.toolgen.source import insert, location_of, read_source
from lookuplab.work import hold_lock

OPENED = [
    *"[{(-&*!?'\"~\\",
    "- ",
    '{"a":',
    "a: ",
    "[[",
    "!!int ",
    "!!bool ",
    "!!timestamp ",
    "<<: ",
]
# only a few texts are nested deeply, because such texts take long to parse
TIMES = st.sampled_from([*range(1, 40), 3000])
DEEP = st.tuples(st.sampled_from(OPENED), TIMES).map(lambda one: one[0] * one[1])
TEXT = st.text(st.sampled_from("[]{}()-:,\"'&*!|>?#%@~\\/=. \n\t\r\0\x85\ufeff\ud800aé1e"))
TEXTS = st.lists(DEEP | TEXT | st.text(), max_size=3).map("".join)
BYTES = st.binary() | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | TEXT,
    lambda one: st.lists(one) | st.dictionaries(TEXT, one),
    max_leaves=9,
)


def snippets(file):
    return load_snippets(str(file))


def kept(file):
    for beside in file.parent.glob(f"{file.name}-*"):
        beside.unlink()
    with AnswerStore(file) as store:
        store.get(["key"])
        store.add({"key": 1})
        assert store.get(store.present())["key"] == 1


def locked(file):
    # ``hold_lock`` sleeps for a second if another process has not yet written its lock file; the
    # patch removes this sleep
    with patch("lookuplab.work.time.sleep"), hold_lock(file.with_name("x"), "writes"):
        pass


FILES = {
    ".jsonl": [
        lambda file: [*paths.json_lines(file)],
        snippets,
        lambda file: load_problems(str(file)),
        read_marks,
        read_pairs,
        load_index,
        load_tasks,
    ],
    ".csv": [read_csv],
    ".json": [read_record],
    ".lock": [locked],
    ".py": [lambda file: extract(file.parent), snippets, read_source],
    ".sqlite": [kept],
    ".toml": [lambda file: downloads._parse(file, time.monotonic_ns())],
    ".yaml": [lambda file: notebooks.load_profile(str(file)), claims.load],
    ".ipynb": [notebooks.read],
}
READERS = [(suffix, read) for suffix, readers in FILES.items() for read in readers]


def read_or_one_line(read, *given):
    try:
        return read(*given)
    except UserError as error:
        said = str(error)
    assert "\n" not in said
    return None


CONTENTS = BYTES | VALUES.map(lambda one: json.dumps(one).encode())


@pytest.mark.parametrize(("suffix", "read"), READERS)
@given(content=CONTENTS)
def test_any_file_is_read_or_refused(tmp_path, suffix, read, content):
    file = tmp_path / f"{'.x' if suffix == '.lock' else 'x'}{suffix}"
    file.write_bytes(content)
    read_or_one_line(read, file)


TEXT_FIELDS = "id docstring signature body marked_signature marked_body code".split()
MARKED = dict.fromkeys(TEXT_FIELDS, "f") | {"marks": [[1, 2]], "variant": "paper"}
MARKED |= {"docstring_tokens": 1, "function_tokens": 2, "positions": [[1, 2]]}


@pytest.mark.parametrize("read", [read_marks, read_pairs])
@given(name=st.sampled_from([*MARKED]), value=TEXT | VALUES | st.lists(st.lists(VALUES)))
def test_any_field_of_a_marked_corpus_is_read_or_refused(tmp_path, read, name, value):
    (file := tmp_path / "x.jsonl").write_text(json.dumps(MARKED))
    assert read(file)
    file.write_text(json.dumps(MARKED | {name: value}))
    read_or_one_line(read, file)


@given(source=TEXTS, tags=VALUES, kind=st.sampled_from(["code", "markdown"]) | VALUES)
def test_any_cell_of_a_notebook_is_read_or_refused(tmp_path, source, tags, kind):
    cell = {"cell_type": kind, "source": source, "metadata": {"tags": tags}}
    parameters = {"cell_type": "code", "source": source, "metadata": {"tags": ["parameters"]}}
    file = tmp_path / "x.ipynb"
    file.write_text(json.dumps({"cells": [cell, parameters]}))
    read_or_one_line(notebooks.read, file)


@given(entry=VALUES, name=st.sampled_from(["parameters", "notebooks", "steps", "threads"]) | TEXT)
def test_any_entry_of_a_profile_is_read_or_refused(tmp_path, entry, name):
    (file := tmp_path / "x.yaml").write_text(json.dumps({name: entry}))
    read_or_one_line(notebooks.load_profile, str(file))


@pytest.mark.parametrize("declared", ["", 1, 0.5, True, None, ["a"], [1], {"a": "b"}], ids=str)
@given(text=TEXTS)
def test_any_value_of_a_parameter_is_read_or_refused(declared, text):
    value = read_or_one_line(lambda text: convert(declared, pairs([f"x={text}"])["x"], "it"), text)
    assert value is None or declared is None or type(value) is type(declared)


@given(content=CONTENTS)
def test_any_adapter_s_configuration_is_read_or_refused(tmp_path, content):
    (tmp_path / ADAPTER).write_bytes(content)
    read_or_one_line(base_of, tmp_path)


FUNCTION = 'def f(x):\n    """Do it."""\n    return x\n'
PARTS = ["```python\n", "```", "~~~", "<think>", FUNCTION, "lambda ", "f'{", "if x:\n  ", "x."]
WRITTEN = st.lists(st.sampled_from(PARTS) | TEXT, max_size=9).map("".join)
INDEX = ApiIndex([ApiSpec("aws", "s3", "s3", "get_it", "", ())])
JUDGES = [
    code_span,
    call_extent,
    completions.visible,
    expressions,
    lambda text: solution_of(text, "repaired"),
    lambda text: insert(FUNCTION, location_of(FUNCTION, 1), text),
    lambda text: judge_call(f"get_it{text}", ["get_it"], INDEX, "aws", "s3"),
]


@pytest.mark.parametrize("judge", JUDGES)
@given(text=WRITTEN | TEXTS)
def test_any_answer_of_a_model_is_judged(judge, text):
    judge(text)


@pytest.mark.parametrize(
    "read",
    [split_options, paths.expand_path, lambda text: pairs([text])],
)
@given(text=TEXTS)
def test_any_name_is_read_or_refused(read, text):
    read_or_one_line(read, text)


@pytest.mark.parametrize(
    ("name", "said"),
    [("~nobody-here/x", "path"), ("a\0b", "YAML"), ("~\0", "YAML"), ("\ud800x", "YAML")],
)
def test_a_name_that_is_no_path_is_one_line(name, said):
    words = "run table1_base_models --profile paper --dry-run -p".split()
    result = call(*words, f"models={name}")
    assert result.exit_code == 2 and result.output.startswith("error: "), result.output
    assert f"{name!r} is not " in result.output and result.output.count("\n") == 1
    assert said in result.output


# words such as NUL stand for arguments that cannot be typed or are too long to show
ODD = """\
score cloudapi aNULb
score cloudapi pipe
score cloudapi folder
score cloudapi deep.jsonl
score cloudapi empty.jsonl
score cloudapi bytes.jsonl
score cloudapi number.jsonl
score cloudapi right.jsonl -o .
score cloudapi right.jsonl -o -
score cloudapi right.jsonl --index empty.jsonl
score cloudapi targets.jsonl
score cloudapi right.jsonl -o /proc/self/mem
score toolgen ~nobody-here/x
score :X right.jsonl
data mark deep.jsonl -o marked
run table1_base_models --dry-run -p limit=nan
run table1_base_models --dry-run -p limit=LONG
run table1_base_models --dry-run -p limit=DEEP
run table1_base_models -p limit=LARGE
run table1_base_models --dry-run -p limit=0xLONG
run table1_base_models --dry-run --shard LONG/1
run table1_base_models --scheduler tcp://127.0.0.1:nan
run pipe --dry-run
run deep.ipynb
run table1_base_models --profile deep.yaml
run table1_base_models --profile bool.yaml
run table1_base_models --profile bytes.yaml
run table1_base_models --profile nul.yaml
run own/snippets -p queries_file=pipe
data frequencies pipe -o counts.csv
data mark folder -o marked -s max_files=null
data mark folder -o marked -s max_files=-1
data mark folder -o folder/module.py
claims folder
draw own/snippets
store merge bytes.jsonl
store merge pipe
store merge /dev/full
draw ''
verify --profile ''
reproduce table1_base_models --audit= --dry-run
reproduce table1_base_models --shard '' --dry-run
view table1_base_models~LONG
compare FIGURES pipe
compare deep.csv bytes.csv
run own/package -p per_class=0
run own/snippets -p questions=[]
run own/snippets -p shown=0
run own/model -p models=mini-small?batch_size=-1
run own/model -p models=mini-small?context=-1"""
WORDS = {"NUL": "\0", "LONG": "9" * 5000, "LARGE": "9" * 400, "DEEP": "[" * 9000}
WORDS["FIGURES"] = str(paths.FIGURES / "mini" / "mini")


@pytest.mark.usefixtures("own_store")
@pytest.mark.parametrize("line", ODD.splitlines())
def test_odd_input_of_any_command_is_one_line(line, tmp_path, monkeypatch):
    for word, meant in WORDS.items():
        line = line.replace(word, meant)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo("pipe")
    asked = {"id": 1, "provider": "aws", "client": "kms", "candidate": "f()", "target": "f"}
    contents = {
        "deep.jsonl": b"[" * 10_000,
        "deep.ipynb": b"[" * 100_000,
        "deep.yaml": b"parameters: " + b"[" * 5000,
        "bool.yaml": b"a: !!bool no such thing",
        "nul.yaml": b"parameters: {models: ['a\\0b']}\n\0",
        "empty.jsonl": b"",
        "bytes.jsonl": b"\xff\xfe\x00",
        "bytes.yaml": b"\xff\xfe\x00",
        "bytes.csv": b"\xff\xfe\x00",
        "deep.csv": b"[" * 10_000,
        "number.jsonl": b'{"id": ' + b"9" * 5000 + b"}",
        "right.jsonl": json.dumps(asked).encode(),
        "targets.jsonl": json.dumps(asked | {"target": [1]}).encode(),
        "folder/module.py": b"kept",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    result = call(*shlex.split(line))
    assert result.exit_code == 2 and result.stdout == "", result.output
    *_, last = result.stderr.splitlines()
    assert last.startswith("error: ") and "Traceback" not in result.output
    assert "Error: " not in last and "object has no" not in last
    assert (tmp_path / "folder" / "module.py").read_bytes() == b"kept"
