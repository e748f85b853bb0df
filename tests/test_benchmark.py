"""Tests the interface of benchmarks: a benchmark of a dozen lines is asked, judged and counted."""

import re
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from doors import refused

from lookuplab import paths
from lookuplab.benchmark import Benchmark, evaluate, load_benchmark, rate_rows
from lookuplab.models import Decoding, Prompt


@dataclass
class Doubling(Benchmark[SimpleNamespace]):
    """Asks for twice a number. Two numbers of one decade are one cluster."""

    tasks: list = field(
        default_factory=lambda: [SimpleNamespace(id=f"t{n}", n=n) for n in (1, 2, 11)]
    )
    decoding = Decoding(n=2, temperature=1.0)

    def prompt(self, task):
        return Prompt(task.id, f"2 * {task.n} = ")

    def judge(self, task, completion):
        right = completion.text == str(2 * task.n)
        long = len(completion.text) if completion.text else None
        return {"decade": task.n // 10, "right": right, "length": long}

    def cluster(self, task):
        return str(task.n // 10)


@pytest.fixture
def model(scripted):
    """Return a model that doubles the number in sample 0 and answers nothing in sample 1."""
    return scripted(lambda prompt, sample: (1 - sample) * str(2 * int(prompt.text.split()[2])))


@pytest.fixture
def frame(model):
    return evaluate(model, Doubling(), store=False)


def test_a_model_is_asked_every_task_and_each_completion_is_judged(frame):
    assert (
        list(frame)
        == "model id cluster sample completion finish_reason decade right length".split()
    )
    assert [*zip(frame.id, frame["sample"], frame.completion, frame.right, strict=True)] == [
        *(("t1", 0, "2", True), ("t1", 1, "", False), ("t2", 0, "4", True)),
        *(("t2", 1, "", False), ("t11", 0, "22", True), ("t11", 1, "", False)),
    ]


ENDS = "<|endoftext|> <\uff5cend\uff5c>x </s> <extra_id_0>1 <b>|</b> '</s>'"


def test_special_tokens_in_answers_are_said_and_judged_as_they_are(scripted, capsys):
    made = iter(ENDS.split())
    frame = evaluate(scripted(lambda *_: next(made)), Doubling(), store=False)
    assert "4 of 6 answers contain a special token" in capsys.readouterr().err
    assert {*frame.completion} == {*ENDS.split()}


NUMBERS = """
0 right_percent 50.00 4 1
0 length 1.00 2 1
1 right_percent 50.00 2 1
1 length 2.00 1 1
all right_percent 50.00 6 2
all length 1.33 3 2
"""


def test_booleans_are_shares_and_numbers_are_means_by_group_and_clustered(frame):
    rows = rate_rows(frame, ["right", "length"], by="decade")
    fields = "{condition} {metric} {value:.2f} {n} {clusters}".format_map
    assert {*map(fields, rows)} == {*NUMBERS.strip().splitlines()} and len(rows) == 6
    assert [one["metric"] for one in rate_rows(frame)] == ["right_percent"]


def test_a_benchmark_without_a_task_is_a_user_error(model):
    with refused("no task"):
        evaluate(model, Doubling(tasks=[]), store=False)


def test_the_fourth_benchmark_of_the_docs_runs_and_is_scored(score, tmp_path, monkeypatch, capsys):
    text = (paths.ROOT / "docs" / "fourth_paper.md").read_text(encoding="utf-8")
    bench, use = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2]
    (tmp_path / "shelf.py").write_text(bench)
    monkeypatch.syspath_prepend(tmp_path)
    exec(use, {"Shelf": load_benchmark("shelf:Shelf").__class__})
    assert "wish-10" in capsys.readouterr().out
    right = {"id": "wish-1", "completion": 'add_book("Emma", author="Austen")'}
    result = score("shelf:Shelf", [right, right | {"completion": "add_book()"}])
    named = {"id": "wish-1", "cluster": "add_book", "arguments": 2, "right_name": True}
    assert result.rows == [
        named | {"sample": 0, "valid": True},
        named | {"sample": 1, "valid": False},
    ]
    assert "valid_percent 50.0" in " ".join(result.stderr.split())
    assert "tasks that are not scored: 9 of 10" in result.stderr
    assert "unknown id 'wish-99'" in score("shelf:Shelf", [right | {"id": "wish-99"}]).stderr
    assert "no benchmark shelf:Case" in score("shelf:Case", [right]).stderr


def test_what_is_no_benchmark_is_refused_and_not_called():
    with refused("is not a lookuplab"):
        load_benchmark("sys:exit")


def test_a_boolean_that_is_missing_somewhere_is_still_a_share(frame):
    frame["right"] = frame.right.astype(object).where(frame.completion != "22", None)
    ((right,)) = [row for row in rate_rows(frame) if row["metric"] == "right_percent"]
    assert (right["value"], right["n"]) == (40, 5)


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (lambda *_: {"right": {1}}, "judge must return a dict"),
        (lambda *_: {"right": True, "why": b""}, "each a boolean, number, text, null or list"),
        (lambda *_: exit(), "judging task 't1': SystemExit"),
        (lambda *_: {"id": 1}, "columns other than id"),
        (lambda *_: {"model": "m"}, "columns other than .*, model, and"),
        (
            lambda *given: {"right": True} | ({"why": ""} if given[-1].text else {}),
            "the same columns for all completions, .*; for task 't1'",
        ),
        (lambda *_: 1 / 0, "judging task 't1': ZeroDivisionError"),
    ],
)
def test_a_judgement_that_cannot_be_used_names_its_task(judge, words, model, monkeypatch):
    monkeypatch.setattr(Doubling, "judge", judge)
    with refused(words):
        evaluate(model, Doubling(), store=False)


def test_booleans_of_numpy_become_those_of_python_which_json_knows(model, monkeypatch):
    right = {"2": np.bool_(True)}.get
    monkeypatch.setattr(Doubling, "judge", lambda *given: {"right": right(given[-1].text)})
    assert evaluate(model, Doubling(), store=False).right[0] is True


@pytest.mark.parametrize(
    ("columns", "by", "words"),
    [
        (["rihgt"], "", "right"),
        (None, "dekade", "decade"),
        (["completion"], "", "'completion' has values that are not booleans or numbers"),
    ],
)
def test_a_column_that_no_judgement_has_is_refused(frame, columns, by, words):
    with refused(words):
        rate_rows(frame, columns, by)
