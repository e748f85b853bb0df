"""Tests conversations with a scripted server: every task has a result, whatever the model does."""

from dataclasses import replace

import pandas as pd
import pytest
from beside import table
from doors import call, refused
from tiny_endpoint import TinyEndpoint

from lookuplab.cloudapi.bench import CloudApiBench
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab_notebooks.own.agent import REFUSAL, Turns, ask, conversations, lookup

BENCH = CloudApiBench(load_tasks("data/public/cloudapi/tasks.jsonl", 3))


@pytest.fixture
def endpoint():
    with TinyEndpoint(None) as server:
        yield server


def reads(body):
    """Return the message of a model that looks up documentation and then calls the API that it read
    about.
    """
    last = body["messages"][-1]["content"]
    if "API name: " in last:
        return {"content": f"`{last.split('API name: ')[1].split()[0]}(x=1)`"}
    call = {"name": "lookup", "arguments": '{"query": "put method"}'}
    calls = [{"function": call}] if body.get("tool_choice") == "auto" else []
    return {"content": "`no()`", "tool_calls": calls}


def test_precision_decides_what_is_found_and_a_second_run_asks_nothing(endpoint, tmp_path):
    endpoint.script = reads
    model = Turns(f"{endpoint.url}#tiny")
    for precision, right in ((100, 3), (0, 0), (100, 3)):
        asked = ask(model, BENCH, precision, 2, store=tmp_path / "s.sqlite", progress=False)
        assert [*asked.agent.calls, *asked.agent.turns] == [1, 1, 1, 2, 2, 2]
        named = zip(asked.agent.name, BENCH.tasks, strict=True)
        assert sum(name in task.target for name, task in named) == right
    # for each task: three single turns, the first turn of the conversation, and a second turn for
    # each of the two precisions
    assert len(endpoint.bodies) == 3 * (3 + 1 + 2)


@pytest.mark.parametrize(("message", "columns"), table(__file__, "outcomes.yaml"))
def test_whatever_the_model_does_has_an_outcome(endpoint, message, columns):
    bench = replace(BENCH, tasks=BENCH.tasks[:1])
    model = Turns(f"{endpoint.url}#tiny")
    endpoint.script = lambda _: message
    frame = conversations(model, bench, lookup(bench, 1), 2, store=False, progress=False)
    [row] = frame.rename(columns={"prompt_tokens": "read"}).to_dict("records")
    expected = dict.fromkeys(("errors", "cut", "endless", "empty"), 0) | columns
    assert {name: row[name] for name in expected} == expected
    last = endpoint.bodies[-1]
    assert last["tool_choice"] == ("none" if row["cut"] else "auto")
    answers = [one["content"] for one in last["messages"] if one["role"] == "tool"]
    assert len(answers) == row["calls"] and answers.count(REFUSAL) == row["errors"]


def test_a_server_without_tools_says_so(endpoint):
    endpoint.refused = ["tools"]
    with refused("'tools' is not supported"):
        conversations(Turns(f"{endpoint.url}#tiny"), BENCH, lookup(BENCH, 1), 1, store=False)


def test_the_notebook_s_table_has_the_agent_beside_the_policies(endpoint, tmp_path, executed):
    endpoint.script = reads
    executed("own/agent", own_models=f"{endpoint.url}#tiny", limit=3, precision=100)
    [file] = tmp_path.rglob("agent.csv")
    rows = pd.read_csv(file).set_index(["condition", "metric"]).value
    found = [rows[f"{name}/all", "triggered_percent"] for name in ("base", "agent", "dag")]
    assert found == [0, 100, 100]
    # two turns, in each of which 9 tokens are read and 2 written
    assert rows["agent/all", "tokens_per_task"] == rows["dag/all", "tokens_per_task"] == 22


@pytest.mark.parametrize("precision", ["-1", "-2"])
def test_only_minus_one_stands_for_bm25_alone(precision):
    words = "run own/agent -p own_models=http://localhost:9/v1#x --dry-run -p".split()
    done = call(*words, f"precision={precision}")
    assert (f"precision' is {precision}" in done.output) == (precision == "-2")
