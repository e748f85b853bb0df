"""Trains the small and the medium mini code model with further seeds, and judges the answers of
every training on the tasks of Table 1 (data/seeds/DESIGN.md).

The weights stay in the work folder. The verdicts are committed.
"""

import json
from math import isfinite
from pathlib import Path
from typing import Any

import click
import pandas as pd

from lookuplab import paths
from lookuplab.cloudapi.bench import DESIGN
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab.errors import UserError, check_choice
from lookuplab.run.commands import command, run_module
from lookuplab.run.commands.train import steady
from lookuplab.work import watched
from recipes.mini.corpus import CODE_MODELS, train
from recipes.mini.verdicts import answered, write_tables

FOLDER = paths.DATA / "seeds"
WORK = paths.RUNS / "seeds"  # runs/train has the checkpoints instead
SIZES = ("small", "medium", "large")
FURTHER = {"small": (1, 2), "medium": (1, 2)}  # size -> seeds besides 0, in the order of training
DESIGNS = ("specification", DESIGN)
LONGEST = 256  # tokens of an answer, as in Table 1
LOGGED = (500, 1000, 1500, 2000)  # steps whose losses are reported


def weights(size: str, seed: int, work: Path) -> Path:
    """Return the folder of a trained model. Seed 0 is the committed model."""
    return (work / str(seed) if seed else CODE_MODELS) / size


def make(size: str, seed: int, work: Path) -> None:
    """Train a model, unless its folder exists. Raises UserError if its loss is not a number."""
    folder = weights(size, seed, work)
    if not folder.exists():
        [*_] = train([size], paths.made(folder.parent), seed)
    if not isfinite(facts(size, seed, work)["last_loss"]):
        raise UserError(f"{folder}: the loss is not a number; train it with half the rates")


def facts(size: str, seed: int, work: Path) -> dict[str, Any]:
    """Return the row of trainings.csv for a trained model: how it was trained, its losses in nats a
    token (the means of the last 20 steps), and the sha256 of its weights.
    """
    folder = weights(size, seed, work)
    card = json.loads((folder / "card.json").read_text("utf-8"))
    log = pd.read_csv(folder / "log.csv").set_index("step").loss
    return {
        "size": size,
        "seed": seed,
        "steps": card["steps"],
        "tokens": card["tokens"],
        **{f"loss_{step}": log[step] for step in LOGGED},
        "last_loss": log.iloc[-1],
        "seconds": card["seconds"],
        "sha256": paths.file_hash(folder / "model.safetensors"),
    }


@command()
def main(
    *,
    size: tuple[str, ...] = (),
    seed: tuple[int, ...] = (),
    work: Path = WORK,
    out: Path = FOLDER,
) -> None:
    """Train mini code models with further seeds, judge the answers of all, and write verdicts.

    A model that is in the work folder is not trained again. If a run is killed, repeat the command
    to resume it. At the end, all models in the work folder and the committed ones answer the tasks.

    \b
    Examples:
      python -m recipes.mini.seeds
      python -m recipes.mini.seeds --size small --seed 1 --out runs/other

    Args:
        size: Sizes to train [default: small and medium].
        seed: Seeds to train [default: 1 and 2].
        work: Folder of the weights, as SEED/SIZE.
        out: Folder of rows.csv.gz and trainings.csv.
    """
    steady()
    for one in size:
        check_choice("size", one, FURTHER)
    for of, seeds in FURTHER.items():
        for number in seeds:
            if of in (size or FURTHER) and number in (seed or seeds):
                make(of, number, work)
    tasks = load_tasks()
    every = [(of, number) for of in SIZES for number in (0, *FURTHER.get(of, ()))]
    whole = [one for one in every if weights(*one, work).exists()]
    parts = []
    for of, number in watched(whole, "seeds", "trainings"):
        table = answered(weights(of, number, work), tasks, DESIGNS, LONGEST)
        table.insert(0, "seed", number)
        table.insert(0, "size", of)
        parts.append(table)
    trained = pd.DataFrame([facts(*one, work) for one in whole])
    write_tables(pd.concat(parts), trained, out / "trainings.csv")
    click.echo(out)


if __name__ == "__main__":
    run_module(main)
