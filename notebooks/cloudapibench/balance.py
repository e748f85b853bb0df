"""Whether classes of frequency differ in anything else that could explain validity."""

import pandas as pd

MOST = 5  # required arguments: this many or more are one bin


def properties(tasks: pd.DataFrame) -> pd.DataFrame:
    """One row a task: numbers that could explain why a call is valid, besides frequency.

    ``tasks`` has the fields of ``ApiTask``. Words of a name are those between its underscores.
    """
    names = tasks.targets.str[0].str.rpartition(".")[2]
    bins = pd.get_dummies(tasks.n_required.clip(upper=MOST)).mul(100)
    shares = bins.rename(columns=lambda n: f"tasks with {n} (%)")
    numbers = {
        "required arguments": tasks.n_required,
        "words of the name": names.str.split("_").str.len(),
        "words of the comment": tasks.comment.str.split().str.len(),
        "tasks of Azure (%)": 100 * (tasks.provider == "azure"),
    }
    return pd.DataFrame(numbers).join(shares)


def balance(tasks: pd.DataFrame) -> pd.DataFrame:
    """(properties, classes): the mean of each property in each class, and how far apart the classes
    are.
    """
    table = properties(tasks).groupby(tasks.frequency).mean().T
    return table.assign(difference=table.max(axis=1) - table.min(axis=1))


def standardised(judged: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """(models, classes): the percentage of valid calls if every class had the required arguments of
    all tasks (direct standardisation).

    ``judged`` has ``model``, ``id``, ``frequency`` and ``valid`` of every task. A class without a
    task in a bin leaves it out.
    """
    bins = tasks.set_index("id").n_required.clip(upper=MOST)
    judged = judged.assign(bin=judged.id.map(bins))
    rates = judged.groupby(["model", "frequency", "bin"]).valid.mean()
    weights = rates.index.get_level_values("bin").map(bins.value_counts()).to_series(rates.index)
    totals = (rates * weights).groupby(["model", "frequency"]).sum()
    return (100 * totals / weights.groupby(["model", "frequency"]).sum()).unstack()
