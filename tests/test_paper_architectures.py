"""A tiny random checkpoint of every architecture of the paper goes through every cell of the CloudAPIBench notebooks.

One notebook for each way in which models are asked: greedily, with documentation and for the probabilities of the
answer (Table 3), for those of a given text, and constrained to names. The others ask in the same ways.

Its answers mean nothing, so most of them name no API at all: what a notebook does then is tested too.
"""

import sys
from pathlib import Path

import pytest
import torch

from lookuplab import data_sources, paths
from lookuplab.cloudapi.benchmark import load_tasks
from lookuplab.cloudapi.prompts import docstring
from lookuplab.cloudapi.specs import load_index
from lookuplab.notebooks import Profile, all_notebooks, plan
from lookuplab.runner import run_jobs

sys.path.insert(0, str(Path(__file__).parent / "models"))
import tiny_architectures

CONTEXT = (
    4096  # the full documentation of an API (5,000 characters) and an answer, in a small vocabulary
)
ARCHITECTURES = ("starcoder2", "gemma", "llama", "gpt_bigcode", "granite")
WAYS = ("table3_dag_plus_plus", "fig1_perplexity", "constrained_invocation")
CHOSEN = [notebook for notebook in all_notebooks("cloudapibench") if notebook.name in WAYS]


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory) -> list[str]:
    """One folder an architecture, and a Llama that is asked through a chat template."""
    tasks, specs = load_tasks(paths.MINI / "cloudapi" / "tasks.jsonl"), load_index().specs
    corpus = [task.prompt for task in tasks[::4]] + [
        docstring([spec], "specification") for spec in specs[::40]
    ]
    bytewise, pieces = (
        make(corpus, 1200)
        for make in (tiny_architectures.byte_tokenizer, tiny_architectures.metaspace_tokenizer)
    )
    root = tmp_path_factory.mktemp("tiny models")
    folders = [
        tiny_architectures.save(root / name, name, pieces if name == "gemma" else bytewise, CONTEXT)
        for name in ARCHITECTURES
    ]
    bytewise.chat_template = tiny_architectures.CHAT_TEMPLATE
    return [
        *map(str, folders),
        f"{tiny_architectures.save(root / 'chat', 'llama', bytewise, CONTEXT)}?chat=true",
    ]


def test_every_architecture_of_the_paper_has_its_tiny_checkpoint():
    tiny = {tiny_architectures.ARCHITECTURES[name][0].__name__ for name in ARCHITECTURES}
    sources = [
        source
        for source in data_sources.load().values()
        if source.purpose.startswith("CloudAPIBench")
    ]
    assert {source.facts["architecture"] for source in sources if source.facts} <= tiny


def test_the_real_shapes_have_as_many_parameters_as_the_models_on_the_hub():
    """So that two layers of them are two layers of the papers' models."""
    for name, (_, _, depth) in tiny_architectures.REAL.items():
        with torch.device("meta"):
            one, two = (
                sum(weight.numel() for weight in tiny_architectures.real(name, layers).parameters())
                for layers in (1, 2)
            )
        assert one + (depth - 1) * (two - one) == data_sources.find(name).facts["parameters"], name


def test_real_widths_and_vocabularies_go_through_table_1_in_bfloat16(tmp_path, warm_forks):
    """Two layers of a model of each paper; docs/gpu_memory.md has the memory that these and larger ones take."""
    corpus = [task.prompt for task in load_tasks()[::4]]
    tokenizer = tiny_architectures.byte_tokenizer(corpus, 1200)
    names = ["starcoder2-3b", "incoder-1b", "codegpt-small-py"]
    for name in names:
        tiny_architectures.save_real(tmp_path / name, name, tokenizer)
    models = [f"{tmp_path / name}?dtype=bfloat16" for name in names]
    profile = Profile(
        Path("wide.yaml"), parameters={"models": models, "limit": 3, "max_new_tokens": 4}
    )
    [notebook] = [one for one in all_notebooks("cloudapibench") if one.name == "table1_base_models"]
    job = plan(
        notebook,
        profile,
        output=tmp_path / "table1.ipynb",
        figures=tmp_path / "figures",
        store=tmp_path / "completions.sqlite",
    )
    assert run_jobs([job]) == [None]


@pytest.mark.parametrize("notebook", CHOSEN, ids=[notebook.name for notebook in CHOSEN])
def test_every_architecture_goes_through_the_notebook(notebook, tiny_models, tmp_path, warm_forks):
    base = [
        name for name in tiny_models if not name.endswith("?chat=true")
    ]  # chat is not constrained
    profile = Profile(
        Path("tiny.yaml"),
        parameters={
            "model": tiny_models[0],
            "models": base if notebook.name == "constrained_invocation" else tiny_models,
            "limit": 3,
            "max_new_tokens": 8,
        },
    )
    job = plan(
        notebook,
        profile,
        output=tmp_path / f"{notebook.name}.ipynb",
        figures=tmp_path / "figures",
        store=tmp_path / "completions.sqlite",
    )
    assert run_jobs([job]) == [None]
    assert list((tmp_path / "figures" / "tiny" / "cloudapibench").glob("*.csv"))
