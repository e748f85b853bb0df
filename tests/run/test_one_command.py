"""Tests that ``lookuplab reproduce cloudapibench --profile paper -p models=bigcode/starcoder2-3b``
needs no other command. The model comes from a hub (on this machine, a tiny random StarCoder2 of the
same name and revision), and the tasks come from the checkout.
"""

import pytest
import tiny_architectures
import tiny_hub
from doors import python

from lookuplab import paths
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab.run import downloads, notebooks
from recipes.cloudapi.tasks import write_tasks

MODEL = "bigcode/starcoder2-3b"
# Only one of the paper's twelve notebooks runs here. It asks with and without documentation. `make
# reproduce` runs all twelve.
NOTEBOOK = "table3_dag_plus_plus"


@pytest.fixture
def checkout(tmp_path):
    """Make a checkout with the notebook NOTEBOOK and the kit's data, but with only a few public
    tasks. Nothing has run in this checkout.
    """
    tasks = tmp_path / notebooks.PUBLIC_TASKS
    tasks.parent.mkdir(parents=True)
    (tmp_path / "notebooks/cloudapibench").mkdir(parents=True)
    own = [
        f"notebooks/cloudapibench/{NOTEBOOK}.ipynb",
        "notebooks/cloudapibench/passes_compared.py",
    ]
    for name in (*own, "notebooks/order.yaml", "data/mini", "data/paper", "data/sources.toml"):
        (tmp_path / name).symlink_to(paths.ROOT / name)
    write_tasks(load_tasks(limit=3), tasks)
    return tmp_path


@pytest.fixture
def hub(tmp_path_factory):
    """Serve a StarCoder2 whose vocabulary comes from the tasks, and yield the hub's address."""
    root = tmp_path_factory.mktemp("hub")
    revision = downloads.find("starcoder2-3b").revision
    corpus = [task.prompt for task in load_tasks()[::10]]
    tokenizer = tiny_architectures.byte_tokenizer(corpus, 800)
    folder = root / MODEL / "resolve" / revision
    tiny_architectures.save(folder, "starcoder2", tokenizer, context=4096)
    with tiny_hub.serve(root, MODEL, revision) as address:
        yield address


def test_the_command_makes_every_figure_of_the_model_from_the_hub(checkout, hub):
    own = {"HF_ENDPOINT": hub, "HF_HOME": checkout / "hf", "HF_HUB_OFFLINE": 0}
    own |= {"LOOKUPLAB_HOME": checkout, "OMP_NUM_THREADS": 1}
    command = f"-m lookuplab reproduce cloudapibench --profile paper -p models={MODEL}"
    python(*command.split(), cwd=checkout, **own)
    made = checkout / "figures/paper/bigcode--starcoder2-3b"
    artifacts = set(notebooks.find(NOTEBOOK).artifacts)
    assert {f"cloudapibench/{file.stem}" for file in made.glob("*/*.csv")} == artifacts
    assert (made / "answers.csv.gz").is_file()
    assert list((checkout / "hf").rglob("model.safetensors")), "it was fetched"
    told = "".join(file.read_text() for file in made.glob("*/*.txt"))
    assert MODEL in told and f"{MODEL}@" not in told, "a sentence names the model as tables do"
