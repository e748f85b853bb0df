"""Measures how much documentation a model must have seen before documentation helps it
(data/documented/DESIGN.md).

Adapters on the mini code models are trained on the same calls. In a *share* of the training texts,
the call follows the documentation of its API. This module trains the adapters, gives them tasks and
judges the answers. The weights stay in the work folder. The verdicts are committed, and the
notebook ``documented/documented_share`` reads them.
"""

import json
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import click
import pandas as pd

from lookuplab import paths
from lookuplab.benchmark import evaluate
from lookuplab.cloudapi.bench import DESIGN, CloudApiBench, Documents
from lookuplab.cloudapi.dag import oracle
from lookuplab.cloudapi.prompts import DESIGNS, docstring
from lookuplab.cloudapi.specs import load_index
from lookuplab.cloudapi.tasks import ApiTask, load_tasks, stable_order
from lookuplab.errors import check_choice
from lookuplab.models import load
from lookuplab.run.commands import command, run_module
from lookuplab.run.commands.train import steady
from lookuplab.work import watched
from recipes.mini.corpus import reserved, usage, wording
from recipes.mini.designs import untested
from recipes.mini.finetuning import QuestionPair, finetuned

FOLDER = paths.DATA / "documented"
WORK = paths.RUNS / "documented"  # runs/train has the checkpoints instead
SHARES = ("0", "1", "1/2", "1/4", "1/8", "1/16")  # in the order of training
SEEDS = {"small": 3, "medium": 3, "large": 1}
SHORT = tuple(design for design in DESIGNS if design != "full")
# size -> the designs of documentation in the tests; the training texts have all designs of SHORT
ASKED = {"small": SHORT, "medium": SHORT[2:], "large": SHORT[2:]}
# number of training texts, number of tasks, and the most tokens of an answer
TEXTS, TASKS, LONGEST = 480, 311, 128
# name -> (documents, design) of what stands above a task
Conditions = dict[str, tuple[Documents | None, str]]
ABOUT = """An adapter on calls of real APIs that no task asks for, a share of which stands below the documentation of its API."""  # noqa: E501


def pairs(share: str, seed: int) -> list[QuestionPair]:
    """Return the TEXTS training texts for a share and a seed. ``share`` is a fraction as text, such
    as "1/4". Each text calls another API.

    The documentation and the first line of the code are read, and the rest is learned, so that the
    learned tokens of a seed are the same at every share. A text that has documentation at one share
    also has it at every larger share.
    """
    specs = untested(load_index())
    learned: list[QuestionPair] = []
    for spec in sorted(specs, key=lambda spec: stable_order(f"documented {spec.id}", seed)):
        rng = Random(f"documented {seed} {spec.id}")
        code = usage([(spec, wording(spec, rng))], rng)
        design = SHORT[len(learned) % len(SHORT)]
        above = docstring([spec], design)
        if not reserved(above) and len(learned) < TEXTS:
            first, _, rest = code.partition("\n")
            is_documented = len(learned) < Fraction(share) * TEXTS
            read = f"{above if is_documented else ''}{first}\n"
            learned.append(QuestionPair(f"{seed} {design} {spec.id}", read, "", rest))
    return learned


def misleading(tasks: list[ApiTask]) -> Documents:
    """Return a wrong document for each task: that of another operation of the task's client, or of
    its provider if the client has no other operation. A hash of the task and the operation chooses
    it.
    """
    index = load_index()
    shown = {}
    for task in tasks:
        own = {index.by_id[api].name for api in task.targets}
        others = [s for s in index.operations if s.provider == task.provider and s.name not in own]
        near = [s for s in others if (s.client, s.service) == (task.client, task.service)]
        ids = [spec.id for spec in near or others]
        shown[task.id] = (min(ids, key=lambda api: stable_order(f"{task.id} {api}", 0)),)
    return shown


def answered(
    model: str | Path, tasks: list[ApiTask], conditions: Conditions, longest: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Let a model answer the tasks under each condition, in at most ``longest`` tokens. Return two
    frames with one row per task. The first has the task's ``id`` and, for each condition, a column
    with 1 for a valid call and 0 for an invalid one. The second is the frame that
    ``evaluate`` returns for the last condition.
    """
    loaded = load(str(model))
    table = pd.DataFrame({"id": [task.id for task in tasks]})
    for name, (documents, design) in conditions.items():
        bench = CloudApiBench(tasks, documents, design, max_new_tokens=longest)
        frame = evaluate(loaded, bench, store=False)
        table[name] = frame.valid.astype(int)
    return table, frame


def asked(model: str | Path, designs: tuple[str, ...]) -> pd.DataFrame:
    """Let a model answer the tasks without documentation, with the right document in each of the
    ``designs``, and with a wrong document. Return the verdicts of ``answered`` and the column
    ``copied``, which is 1 if the model calls the wrong document's API when it reads this document.
    """
    tasks = load_tasks(limit=TASKS)
    wrong = misleading(tasks)
    shown = conditions(tasks, designs) | {"wrong": (wrong, DESIGN)}
    table, frame = answered(model, tasks, shown, LONGEST)
    by_id = load_index().by_id
    documented = [by_id[wrong[task.id][0]].name for task in tasks]
    return table.assign(copied=(frame.name == documented).astype(int))


def conditions(tasks: list[ApiTask], designs: tuple[str, ...]) -> Conditions:
    """Return the condition ``base``, without documentation, and one condition for each design, with
    the right document.
    """
    right = oracle(tasks)
    return {"base": (None, DESIGN)} | {design: (right, design) for design in designs}


def make(size: str, share: str, seed: int, work: Path) -> None:
    """Train one adapter, let it answer the tasks, and write the verdicts to SIZE-SHARE-SEED.csv
    beside its folder. If this file exists, do nothing.
    """
    name = f"{size}-{share.replace('/', '_')}-{seed}"
    file = work / f"{name}.csv"
    if not file.exists():
        learned = pairs(share, seed)
        base = f"mini-{size}"
        model = finetuned("documented", size, base, learned, work / name, ABOUT, seed=seed)
        table = asked(model, ASKED[size])
        table.insert(0, "seed", seed)
        table.insert(0, "share", share)
        table.insert(0, "size", size)
        paths.write_lines(file, [table.to_csv(index=False).removesuffix("\n")])


def place(file: Path) -> tuple[int, int, Fraction]:
    """Return a sort key for a file of verdicts that ``make`` wrote: (size, seed, share)."""
    size, share, seed = file.stem.split("-")
    return [*SEEDS].index(size), int(seed), Fraction(share.replace("_", "/"))


def facts(file: Path) -> dict[str, Any]:
    """Return the row of adapters.csv for the adapter with a file of verdicts: how it was trained,
    and the sha256 of its weights.
    """
    folder = file.with_suffix("")
    card = json.loads((folder / "card.json").read_text("utf-8"))
    size, share, seed = folder.name.split("-")
    return {
        "size": size,
        "share": share.replace("_", "/"),
        "seed": seed,
        "texts": card["pairs"],
        "steps": card["steps"],
        "learning_rate": card["recipe"]["learning_rate"],
        "last_loss": round(card["loss"], 4),
        "seconds": card["seconds"],
        "sha256": paths.file_hash(folder / "adapter_model.safetensors"),
    }


def gathered(work: Path, out: Path) -> None:
    """Write two files to ``out``. ``rows.csv.gz`` has the verdicts of all adapters in the work
    folder and of their base models, which answer the tasks now. ``adapters.csv`` has the ``facts``
    about each adapter.
    """
    files = sorted(work.glob("*-*-*.csv"), key=place)
    parts = [pd.read_csv(file, dtype=str) for file in files]
    sizes = dict.fromkeys(file.name.partition("-")[0] for file in files)
    bases = [asked(f"mini-{size}", ASKED[size]) for size in sizes]
    named = [base.assign(size=size) for size, base in zip(sizes, bases, strict=True)]
    rows = pd.concat([*parts, *named]).fillna("")
    write_tables(rows, pd.DataFrame(map(facts, files)), out / "adapters.csv")


def write_rows(rows: pd.DataFrame, file: Path, float_format: str | None = None) -> None:
    """Write rows to a compressed CSV file. The same rows give the same bytes."""
    same_bytes: Any = {"method": "gzip", "mtime": 0, "compresslevel": 9}
    rows.to_csv(
        file,
        index=False,
        lineterminator="\n",
        float_format=float_format,
        compression=same_bytes,
    )


def write_tables(rows: pd.DataFrame, trained: pd.DataFrame, file: Path) -> None:
    """Write a table about trained models to ``file``, and the rows of verdicts beside it, to
    rows.csv.gz. The same tables give the same bytes.
    """
    paths.made(file.parent)
    trained.to_csv(file, index=False, lineterminator="\n")
    write_rows(rows, file.with_name("rows.csv.gz"))


@command()
def main(
    *,
    size: tuple[str, ...] = (),
    seed: tuple[int, ...] = (),
    share: tuple[str, ...] = (),
    work: Path = WORK,
    out: Path = FOLDER,
) -> None:
    """Train adapters at six shares of documented texts, judge their answers, and write verdicts.

    An adapter whose verdicts are in the work folder is skipped. If a run is killed, repeat the
    command to resume it. At the end, the verdicts of all adapters in the work folder are written.

    \b
    Examples:
      python -m recipes.mini.documented
      python -m recipes.mini.documented --size small --seed 0 --share 1/2 --out runs/other

    Args:
        size: Sizes of the mini code models [default: small, medium and large].
        seed: Seeds [default: 0, 1, 2 for small and medium, 0 for large].
        share: Shares of documented texts [default: 0, 1, 1/2, 1/4, 1/8, 1/16].
        work: Folder of weights and of each adapter's verdicts.
        out: Folder of rows.csv.gz and adapters.csv.
    """
    steady()
    for given, choices in (size, SEEDS), (share, SHARES):
        for one in given:
            check_choice("size or share", one, choices)
    wanted = [
        (of, part, number)
        for of in size or SEEDS
        for number in seed or range(SEEDS[of])
        for part in share or SHARES
    ]
    for adapter in watched(wanted, "documented", "adapters"):
        make(*adapter, work)
    gathered(work, out)
    click.echo(out)


if __name__ == "__main__":
    run_module(main)
