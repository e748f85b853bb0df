"""``lookuplab reproduce cloudapibench --profile paper -p models=bigcode/starcoder2-3b`` needs
nothing else: the model comes from a hub (on this machine, a tiny random StarCoder2 of the same name
and revision), the tasks from the checkout.
"""

import os
import subprocess
import sys

import pytest
import tiny_architectures
import tiny_hub

from lookuplab import paths
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab.run import downloads, jobs, notebooks
from recipes.cloudapi.tasks import write_tasks

MODEL = "bigcode/starcoder2-3b"
# Of the paper's twelve one that asks with and without documentation; `make reproduce` runs all.
NOTEBOOK = "table3_dag_plus_plus"


@pytest.fixture
def checkout(tmp_path):
    """The kit's own notebook and data, with a few public tasks, and nothing that has run."""
    tasks = tmp_path / jobs.PUBLIC_TASKS
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
    """Serves a StarCoder2 whose vocabulary is that of the tasks."""
    root = tmp_path_factory.mktemp("hub")
    revision = downloads.find("starcoder2-3b").revision
    corpus = [task.prompt for task in load_tasks()[::10]]
    tokenizer = tiny_architectures.byte_tokenizer(corpus, 800)
    folder = root / MODEL / "resolve" / revision
    tiny_architectures.save(folder, "starcoder2", tokenizer, context=4096)
    with tiny_hub.serve(root, MODEL, revision) as address:
        yield address


def test_the_command_makes_every_figure_of_the_model_from_the_hub(checkout, hub):
    own = {"HF_ENDPOINT": hub, "HF_HOME": str(checkout / "hf"), "OMP_NUM_THREADS": "1"}
    own |= {"LOOKUPLAB_HOME": str(checkout), "HF_HUB_OFFLINE": "0"}
    command = f"lookuplab reproduce cloudapibench --profile paper -p models={MODEL}"
    done = subprocess.run(
        [sys.executable, "-m", *command.split()],
        env={**os.environ, **own},
        cwd=checkout,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    made = checkout / "figures/paper/bigcode--starcoder2-3b"
    artifacts = set(notebooks.find(NOTEBOOK).artifacts)
    assert {f"cloudapibench/{file.stem}" for file in made.glob("*/*.csv")} == artifacts
    assert (made / "answers.csv.gz").is_file()
    assert list((checkout / "hf").rglob("model.safetensors")), "it was fetched"
    told = "".join(file.read_text() for file in made.glob("*/*.txt"))
    assert MODEL in told and f"{MODEL}@" not in told, "a sentence names the model as tables do"
