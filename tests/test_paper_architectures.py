"""A tiny random checkpoint of every architecture of the paper goes through every cell of
CloudAPIBench's Table 1.

Some also go through a notebook for each other way in which models are asked: with documentation and
for the probabilities of the answer (Table 3, also of an endpoint), for those of a given text, and
constrained to names.

Their answers mean nothing, so most of them name no API at all: what a notebook does then is tested
too.
"""

import sys
from pathlib import Path

import pytest
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

from lookuplab import paths
from lookuplab.cloudapi.prompts import docstring
from lookuplab.cloudapi.specs import load_index
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab.models import load
from lookuplab.results.artifact import read_csv
from lookuplab.run import downloads
from lookuplab.run.notebooks import Profile, find

sys.path.insert(0, str(Path(__file__).parent / "models"))
import tiny_architectures as tiny
from tiny_endpoint import TinyEndpoint

# the full documentation of an API (5,000 characters) and an answer, in a small vocabulary
CONTEXT = 4096
ARCHITECTURES = ("starcoder2", "gemma", "llama", "gpt_bigcode", "granite")


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory) -> dict[str, str]:
    """A folder for each architecture, and a Llama that is asked through a chat template."""
    corpus = [task.prompt for task in load_tasks(paths.MINI / "cloudapi" / "tasks.jsonl")[::4]]
    corpus += [docstring([spec], "specification") for spec in load_index().specs[::40]]
    bytewise, pieces = tiny.byte_tokenizer(corpus, 1200), tiny.metaspace_tokenizer(corpus, 1200)
    root = tmp_path_factory.mktemp("tiny models")
    for name in ARCHITECTURES:
        tiny.save(root / name, name, pieces if name == "gemma" else bytewise, CONTEXT)
    bytewise.chat_template = tiny.CHAT_TEMPLATE
    chat = tiny.save(root / "chat", "llama", bytewise, CONTEXT)
    return {name: str(root / name) for name in ARCHITECTURES} | {"chat": f"{chat}?chat=true"}


def test_every_architecture_of_the_paper_has_its_tiny_checkpoint():
    papers = {
        source.facts["architecture"]
        for source in downloads.load().values()
        if source.purpose.startswith("CloudAPIBench") and source.facts
    }
    assert papers <= {CAUSAL[name] for name in ARCHITECTURES}


@pytest.fixture
def run(tmp_path, executed):
    """Runs a notebook with these models on three tasks; returns the tables that it writes."""

    def call(name: str, models: list[str]) -> list[Path]:
        values = {"model": models[0], "models": models, "limit": 3, "max_new_tokens": 4}
        executed(find(name), Profile(Path("tiny.yaml"), parameters=values))
        tables = [*(tmp_path / "tiny" / "cloudapibench").glob("*.csv")]
        assert tables
        return tables

    return call


def test_every_architecture_goes_through_table_1_one_of_them_in_bfloat16(tiny_models, run):
    models = [*tiny_models.values(), f"{tiny_models['starcoder2']}?dtype=bfloat16"]
    run("table1_base_models", models)


@pytest.mark.parametrize(
    ("notebook", "chosen"),
    [
        ("fig1_perplexity", ["gemma", "chat"]),
        ("constrained_invocation", ["gemma", "granite"]),  # chat is not constrained
    ],
)
def test_other_ways_of_asking_go_through(notebook, chosen, tiny_models, run):
    run(notebook, [tiny_models[name] for name in chosen])


def test_table_3_tells_of_an_endpoint_what_it_tells_of_its_weights(tiny_models, run, monkeypatch):
    """DAG++ goes by the confidence, which an endpoint tells."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with TinyEndpoint(load("mini-small")) as server:
        served = f"{server.url}#tiny?tokenizer=mini-small"
        models = [tiny_models["chat"], tiny_models["gemma"], "mini-small", served]
        tables = run("table3_dag_plus_plus", models)
    [rows] = [read_csv(table) for table in tables if table.stem == "table3_dag_plus_plus"]
    local, remote = (
        rows[rows.model == name].drop(columns="model").reset_index(drop=True)
        for name in ("mini-small", "tiny")
    )
    assert server.bodies and len(local) and remote.equals(local)
