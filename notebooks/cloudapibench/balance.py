"""Checks whether frequency classes differ in other properties that could explain validity: `python
notebooks/cloudapibench/balance.py TASKS` prints the comparison for a file of tasks.
"""

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import click
import pandas as pd

from lookuplab import paths
from lookuplab.benchmark import evaluate
from lookuplab.cloudapi.bench import CloudApiBench
from lookuplab.cloudapi.tasks import TASKS, load_tasks
from lookuplab.models import load
from lookuplab.run.commands import HELP, Group, command

MOST = 5  # tasks with this many or more required arguments share one bin
CLASSES = ["high", "medium", "low"]
API_VERSIONS = paths.ROOT / "data" / "public" / "cloudapi" / "api_versions.csv"


def properties(tasks: pd.DataFrame) -> pd.DataFrame:
    """Return one row per task: numbers, other than frequency, that could explain why a call is
    valid.

    ``tasks`` has the fields of ``ApiTask``. The words of a name are separated by underscores; a
    comment "has them all" if each is a word of it, in any order. The year is that of the API
    version in botocore; Azure's packages state none.
    """
    words = tasks.targets.str[0].str.rpartition(".")[2].str.split("_")
    comments = tasks.comment.str.lower().str.findall(r"\w+")
    spelled = [set(name) <= {*comment} for name, comment in zip(words, comments, strict=True)]
    years = pd.read_csv(API_VERSIONS, index_col="service").api_version.str[:4].astype(int)
    bins = pd.get_dummies(tasks.n_required.clip(upper=MOST)).mul(100)
    shares = bins.rename(columns=lambda n: f"tasks with {n}{' or more' * (n == MOST)} (%)")
    numbers = {
        "required arguments": tasks.n_required,
        "words of the name": words.str.len(),
        "words of the comment": tasks.comment.str.split().str.len(),
        "comments with all words of the name (%)": 100 * pd.Series(spelled, tasks.index),
        "tasks of Azure (%)": 100 * (tasks.provider == "azure"),
        "year of the AWS service's API version": tasks.service.map(years).where(
            tasks.provider == "aws"
        ),
    }
    return pd.DataFrame(numbers).join(shares)


def balance(tasks: pd.DataFrame) -> pd.DataFrame:
    """Return (properties, classes): the mean of each property in each class, and the largest
    difference of two classes.
    """
    table = properties(tasks).groupby(tasks.frequency).mean().T
    return table.assign(difference=table.max(axis=1) - table.min(axis=1))


def standardised(judged: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return (models, classes): the percentage of valid calls if every class had the same
    distribution of required arguments as all tasks (direct standardisation).

    ``judged`` has ``model``, ``id``, ``frequency`` and ``valid`` of every task. A bin in which a
    class has no task is left out for that class.
    """
    bins = tasks.set_index("id").n_required.clip(upper=MOST)
    judged = judged.assign(bin=judged.id.map(bins))
    rates = judged.groupby(["model", "frequency", "bin"]).valid.mean()
    weights = rates.index.get_level_values("bin").map(bins.value_counts()).to_series(rates.index)
    totals = (rates * weights).groupby(["model", "frequency"]).sum()
    return (100 * totals / weights.groupby(["model", "frequency"]).sum()).unstack()


def markdown(files: Sequence[Path]) -> str:
    """Return the balance of several files of tasks side by side, as a table of Markdown."""
    tables = [balance(pd.DataFrame(load_tasks(file)))[[*CLASSES, "difference"]] for file in files]
    table = pd.concat(tables, axis=1)
    rows = [["property", *table], ["--", *["--:"] * table.shape[1]]]
    rows += [[name, *map("{:.1f}".format, row)] for name, *row in table.itertuples()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@command()
def main(files: tuple[Path, ...] = (), *, model: tuple[str, ...] = ()) -> None:
    """Print what the tasks of each class of frequency in FILES (default: the mini tasks) have on
    average, and the largest difference of two classes.

    With models, also the percentage of valid calls in each class, as it is and with the required
    arguments of all tasks in every class. Answers that are in the store are not made again.

    \b
    Examples:
      python notebooks/cloudapibench/balance.py data/public/cloudapi/tasks.jsonl
      python notebooks/cloudapibench/balance.py data/mini/cloudapi/tasks.jsonl --model mini-large

    Args:
        model: A model whose valid calls are adjusted; repeatable.
    """
    files = files or (TASKS,)
    click.echo(markdown(files))
    for file, name in product(files, model):
        tasks = load_tasks(file)
        judged = evaluate(load(name), CloudApiBench(tasks))
        rates = judged.groupby(["model", "frequency"]).valid.mean().mul(100).unstack()
        adjusted = standardised(judged, pd.DataFrame(tasks))
        for what, percents in ("as they are", rates), ("adjusted", adjusted):
            numbers = ", ".join(f"{one} {percents[one].item():.1f}" for one in CLASSES)
            click.echo(f"valid calls of {name} on {file}, {what} (%): {numbers}")


if __name__ == "__main__":
    Group(commands={"balance": main}, context_settings=HELP).main(["balance", *sys.argv[1:]])
