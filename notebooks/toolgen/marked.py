"""Computes numbers on marked functions: the paper's five numbers, the marks per repository, and the
percentage of names that the tool offers.

Rows are dictionaries like those of ``scoring.rates.row``.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from lookuplab.scoring.rates import Rows, average, rate, row
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.marking import RECEIVERS, candidates
from lookuplab.toolgen.rules import rules_of
from lookuplab.toolgen.source import Token

# the contexts in which a name can occur
CONTEXTS = ("behind self.", "behind another dot", "before =", "elsewhere")
# field of a record -> metric
MEANS = {
    "docstring_tokens": "docstring_tokens",
    "function_tokens": "function_tokens",
    "marks": "marks_per_function",
}
Record = dict[str, Any]  # a function of a marked corpus


def statistics_rows(records: Sequence[Record], condition: str) -> Rows:
    """Return the paper's five numbers (Sections IV-B and IV-C): the numbers of functions and
    repositories, and per function the mean numbers of docstring tokens, function tokens and marks.

    The paper does not say which tokens it counts. We count Python's tokens in a function and words
    in a docstring.
    """
    frame = pd.DataFrame(records, columns=["repository", *MEANS])
    counts = {"functions": len(frame), "repositories": frame.repository.nunique()}
    rows = [{"condition": condition, "metric": name, "value": n} for name, n in counts.items()]
    return rows + [
        row("", condition, name, average(frame[field], frame.repository))
        for field, name in MEANS.items()
        if records
    ]


def by_repository(records: Sequence[Record]) -> pd.DataFrame:
    """Return the mean number of marks per function in each repository. The interval treats
    functions as independent.
    """
    counts = pd.DataFrame(records).groupby("repository", sort=False).marks
    return pd.DataFrame(
        row("", f"evaluation/{name}", "marks_per_function", average(marks, range(len(marks))))
        for name, marks in counts
    )


def queries(functions: Sequence[Function], records: Sequence[Record]) -> pd.DataFrame:
    """Return one row for each name before which the tool was called: id (of the function),
    repository, line, column, name, context (one of CONTEXTS), and offered (whether the tool offered
    that name).

    Functions with a failed call are left out, because it is not known what the tool would have
    offered.
    """
    rows = []
    for function, record in zip(functions, records, strict=True):
        contexts = name_contexts(function)
        for token in candidates(function, rules_of(record["variant"])):
            if not record["failures"]:
                is_offered = [token.line, token.column] in record["positions"]
                own = function.id, function.repository, *token, contexts[token], is_offered
                rows.append(own)
    return pd.DataFrame(rows, columns="id repository line column name context offered".split())


def offered_rows(asked: pd.DataFrame) -> Rows:
    """Return the percentage of identifiers that the tool offers, overall and by context."""
    rows = []
    for name in ("all", *CONTEXTS):
        part = asked if name == "all" else asked[asked.context == name]
        if len(part):
            share = rate(part.offered, part.repository).percent()
            rows.append(row("", f"evaluation/{name}", "offered_percent", share))
    return rows


def name_contexts(function: Function) -> dict[Token, str]:
    """Return the context of each token of a function, one of CONTEXTS. A name before ``=`` is the
    target of an assignment, or the name of a keyword argument.
    """
    texts = ["", "", *(token.text for token in function.tokens), ""]
    contexts = {}
    for at, token in enumerate(function.tokens):
        owner, dot, _, behind = texts[at : at + 4]
        if dot == ".":
            contexts[token] = "behind self." if owner in RECEIVERS else "behind another dot"
        else:
            contexts[token] = "before =" if behind == "=" else "elsewhere"
    return contexts
