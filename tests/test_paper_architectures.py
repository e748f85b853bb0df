"""Every architecture of the paper has a tiny checkpoint, on which tests/models try the engine.
A notebook tells of an endpoint what it tells of the weights behind it.
"""

from pathlib import Path

from tiny_architectures import ARCHITECTURES
from tiny_endpoint import TinyEndpoint
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

from lookuplab.models import load
from lookuplab.results.artifact import read_csv
from lookuplab.run import downloads
from lookuplab.run.notebooks import Profile, find


def test_every_architecture_of_the_paper_has_its_tiny_checkpoint():
    papers = {
        source.facts["architecture"]
        for source in downloads.load().values()
        if source.purpose.startswith("CloudAPIBench") and source.facts
    }
    assert papers <= {CAUSAL.get(name) for name in ARCHITECTURES}


def test_table_3_tells_of_an_endpoint_what_it_tells_of_its_weights(tmp_path, monkeypatch, executed):
    """DAG++ goes by the confidence, which an endpoint tells."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with TinyEndpoint(load("mini-small")) as server:
        models = ["mini-small", f"{server.url}#tiny?tokenizer=mini-small"]
        values = {"models": models, "limit": 3, "max_new_tokens": 4}
        executed(find("table3_dag_plus_plus"), Profile(Path("tiny.yaml"), parameters=values))
    file = tmp_path / "tiny" / "cloudapibench" / "table3_dag_plus_plus.csv"
    rows = read_csv(file).set_index("model")
    local, remote = (rows.loc[name].reset_index(drop=True) for name in ("mini-small", "tiny"))
    assert server.bodies and len(local) and remote.equals(local)
