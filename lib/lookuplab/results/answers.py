"""Which answers are behind the figures: the log that a run keeps beside them."""

import io
from pathlib import Path
from typing import Any

import pandas as pd

ANSWERS_FILE = "answers.csv.gz"


def read_answers(content: bytes) -> pd.DataFrame:
    """The rows of such a file, all as text: model, prompt, sample, question, answer and margin (as
    ``models.completions`` logs them), and the notebook.
    """
    return texts(io.BytesIO(content), compression="gzip")


def texts(source: Path | io.BytesIO, **options: Any) -> pd.DataFrame:
    """A table whose cells are all text."""
    return pd.read_csv(source, dtype=str, keep_default_na=False, **options)
