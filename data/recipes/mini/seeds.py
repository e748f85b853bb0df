"""Trains the mini code models with further seeds, and judges the answers of every trained model to
the tasks of Table 1 (data/seeds/DESIGN.md).

The weights stay in the work folder. The verdicts are committed.
"""

import json
from itertools import product
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
WORK = paths.RUNS / "seeds"  # the folder of the trained weights; runs/train has the checkpoints
SIZES = ("small", "medium", "large")
FURTHER = (1, 2, 3, 4, 5)  # the seeds in addition to 0
DESIGNS = ("specification", DESIGN)
LONGEST = 256  # the most tokens of an answer, as in Table 1
LOGGED = (500, 1000, 1500, 2000)  # steps whose losses are reported


def weights(size: str, seed: int, work: Path) -> Path:
    """Return the folder of a trained model. Seed 0 is the committed model."""
    return (work / str(seed) if seed else CODE_MODELS) / size


def make(size: str, seed: int, work: Path) -> None:
    """Train a model, unless its folder exists. Raises UserError if its last loss is infinite or
    NaN.
    """
    folder = weights(size, seed, work)
    if not folder.exists():
        [*_] = train([size], paths.make_folder(folder.parent), seed)
    if not isfinite(facts(size, seed, work)["last_loss"]):
        raise UserError(f"{folder}: the loss is not a number; train it with half the rates")


def facts(size: str, seed: int, work: Path) -> dict[str, Any]:
    """Return the row of trainings.csv for a trained model: how it was trained, its losses in nats
    per token (each the mean of 20 steps), and the sha256 of its weights.
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
        "device": card["device"].partition(" ")[0],
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
    to resume it. At the end, each model that has no row in the folder ``--out`` answers the tasks.

    \b
    Examples:
      python -m recipes.mini.seeds
      python -m recipes.mini.seeds --size small --seed 1 --out runs/other

    Args:
        size: Sizes to train [default: small, medium and large].
        seed: Seeds to train [default: 1 to 5].
        work: Folder of the weights, as SEED/SIZE.
        out: Folder of rows.csv.gz and trainings.csv.
    """
    steady()
    for one in size:
        check_choice("size", one, SIZES)
    for of, number in product(size or SIZES, seed or FURTHER):
        make(of, number, work)
    ask(work, out)
    click.echo(out)


def ask(work: Path, out: Path) -> None:
    """Let every model answer the tasks, except models that have a row in the file trainings.csv of
    the folder ``out``. Add a model's verdicts to rows.csv.gz in the same folder, and a row about
    its training to trainings.csv. Rows of models whose weights are not in ``work`` stay.
    """
    files = out / "rows.csv.gz", out / "trainings.csv"
    rows, trained = ([pd.read_csv(file)] if file.exists() else [] for file in files)
    known = {(row.size, row.seed) for table in trained for row in table.itertuples(index=False)}
    every = [one for one in product(SIZES, (0, *FURTHER)) if weights(*one, work).exists()]
    tasks = load_tasks()
    for of, number in watched([one for one in every if one not in known], "seeds", "trainings"):
        table = answered(weights(of, number, work), tasks, DESIGNS, LONGEST)
        table.insert(0, "seed", number)
        table.insert(0, "size", of)
        rows.append(table)
        trained.append(pd.DataFrame([facts(of, number, work)]))

    def ordered(tables: list[pd.DataFrame]) -> pd.DataFrame:  # small, medium, large
        return pd.concat(tables).sort_values(["size", "seed"], ascending=[False, True])

    write_tables(ordered(rows), ordered(trained), files[1])


if __name__ == "__main__":
    run_module(main)
