"""Compares properties other than frequency, which could explain validity, between classes."""

import pandas as pd

from lookuplab import paths

MOST = 5  # tasks with this many or more required arguments share one bin
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
