"""Reads the numbers that the papers report, from the CSVs in ``data/paper``.

Values are as printed; a percentage stays a percentage. A number that a paper shows only in a
picture is left out, never guessed. The README in ``data/paper`` lists what is left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.results.artifact import ARTIFACT_COLUMNS, ROW_KEY

REPORTED_COLUMNS = [*ROW_KEY, "value", "n", "place", "note"]


def read_yaml(file: Path) -> Any:
    """Return the content of a YAML file. The loader in C takes a tenth of the time of safe_load.
    Raises UserError for a file that is not YAML.
    """
    try:
        return paths.parse(lambda text: yaml.load(text, yaml.CSafeLoader), file.read_bytes())
    except ValueError as error:
        raise UserError(f"cannot read {file}: {error}") from error


def titles() -> dict[str, str]:
    """Return {folder of a paper: the paper's title} from the references in CITATION.cff. The
    folder's name is the reference's ``abbreviation`` in lower case. Raises UserError if a field is
    missing.
    """
    file = paths.ROOT / "CITATION.cff"
    cited = read_yaml(file)
    try:
        return {one["abbreviation"].lower(): one["title"] for one in cited["references"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file} needs references with abbreviation and title: {type(error).__name__} {error}"
        ) from error


def values(paper: str, artifact: str | None = None) -> pd.DataFrame:
    """Return every number that a paper reports, or only the numbers of one artifact: a table, a
    figure, or ``stated_values``, which are the numbers in the text.

    ``n`` may be NaN. Raises UserError for an unknown paper or artifact.
    """
    table = _reported()
    table = table[(table.paper == paper) & (table.artifact == artifact if artifact else True)]
    if table.empty:
        raise UserError(f"data/paper has no numbers for {paper} {artifact or ''}".rstrip())
    return table.reset_index(drop=True)


def attach(
    frame: pd.DataFrame, roles: Mapping[str, str] | None = None, **artifact: str
) -> pd.DataFrame:
    """Return a copy of a frame of artifact rows with the column ``paper_value``: the paper's number
    for the same quantity, or NaN if the paper reports none.

    ``paper`` and ``artifact`` are columns of the frame, or are passed as keyword arguments.
    ``roles`` says which model of the paper each of our models stands for. For example,
    {"mini-small": "StarCoder2-3B"} compares our smallest model with the paper's smallest model. A
    model without a role is looked up under its own name. Raises UserError if a role is not a model
    of the paper.
    """
    if frame.empty:  # an empty frame has no columns
        frame = frame.reindex(columns=list(ARTIFACT_COLUMNS))
    frame = frame.assign(**artifact)
    roles = dict(roles or {})
    for problem in unknown_roles(roles if len(frame) else {}, frame.paper):
        raise UserError(problem)
    named = frame.assign(model=frame.model.astype(object).fillna("").replace(roles))
    keys = named[list(ROW_KEY)].itertuples(index=False, name=None)
    printed = _reported().set_index(list(ROW_KEY)).value
    return frame.assign(paper_value=printed.reindex(list(keys)).to_numpy())


def unknown_roles(roles: Mapping[str, str], papers: Iterable[str]) -> Iterator[str]:
    """Yield an error message for each of the ``roles`` (see ``attach``) whose model is in none of
    the ``papers``.
    """
    for ours, theirs in roles.items():
        models = set(_reported().loc[_reported().paper.isin(papers), "model"])
        if theirs not in models:
            names = ", ".join(sorted(filter(None, models))) or "none"
            yield f"role of {ours!r}: the paper has no model {theirs!r}; it has: {names}"


@cache
def _reported() -> pd.DataFrame:
    texts = {name: str for name in REPORTED_COLUMNS if name not in ("value", "n")}
    types = texts | {"value": float, "n": float}
    tables = []
    for file in sorted(paths.PAPER.glob("*/*.csv")):
        try:
            tables.append(pd.read_csv(file, dtype=types, usecols=REPORTED_COLUMNS))
        except (ValueError, OSError) as error:
            raise UserError(f"{file} has no numbers of a paper: {error}") from error
    return pd.concat(tables, ignore_index=True).fillna(dict.fromkeys(texts, ""))
