"""Which answers are behind the figures: the log that a run keeps beside them."""

import io
from pathlib import Path

import pandas as pd

ANSWERS = "answers.csv.gz"


def read_answers(content: bytes) -> pd.DataFrame:
    """The rows of such a file: ``completions.LOG_COLUMNS`` and the notebook, all as text."""
    return texts(io.BytesIO(content), compression="gzip")


def texts(source: Path | io.BytesIO, **options: object) -> pd.DataFrame:
    """A table whose cells are all text."""
    return pd.read_csv(source, dtype=str, keep_default_na=False, **options)
