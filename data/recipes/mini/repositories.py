"""Tests ToolGen on more held-out repositories (data/repositories/DESIGN.md).

ToolGen's mini models generate functions of packages that none of them was trained on. The functions
are judged, and the numbers are written to a file. The packages are pinned beside the design.
Answers and judgements are kept in the stores of ``runs``, so that a killed run resumes where it
stopped.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from lookuplab import paths, python_sources
from lookuplab.errors import check_choice
from lookuplab.models import Decoding, load
from lookuplab.python_sources import python_files
from lookuplab.run.commands import command, run_module
from lookuplab.toolgen.evaluation import judged_all, token_counter
from lookuplab.toolgen.functions import Filters, Function, extract
from lookuplab.toolgen.generation import Generations, JediTool, ToolUse, generate
from lookuplab.toolgen.rules import PACKAGE_RULES, PAPER_RULES, Rules, rules_of
from lookuplab.toolgen.tool_use import role_of
from lookuplab.work.progress import watched
from lookuplab_notebooks.toolgen.table_rows import Corpus
from recipes.mini import order
from recipes.mini.packages import HELD_OUT_PACKAGES
from recipes.mini.toolgen import code_hash, file_functions, files_of, functions

FOLDER = paths.DATA / "repositories"
PINS = FOLDER / "sources.txt"
MODELS = tuple(
    f"mini-{family}-{kind}" for family in ("gpt", "t5", "llama") for kind in ("base", "toolgen")
)
# number of functions taken from each repository; a repository with fewer than LEAST is left out
EACH, LEAST = 14, 20
WINDOW = 10  # number of consecutive words or signs that are compared
COPIED = 0.5  # a function is a copy if more than this share of its windows is known
COPIES = 0.1  # a repository is left out if more than this share of its functions are copies
FIRST_PACKAGE = rules_of("package-2023", every_error=False)
# the numbers that claims take from the rules of the replication package of 2024
# (data/mini/DESIGN.md, 2026-11-29)
LATER = ["passed", "failures", "errors", "lost", "edit_similarity", "exact_match"]
NUMBERS = [
    "passed",
    "failures",
    "errors",
    "identifiers",
    "dependencies",
    "covered",
    "empty",
    "edit_similarity",
    "exact_match",
]


def windows(text: str) -> set[int]:
    """Return the hashes of all runs of WINDOW consecutive words or signs in a text. A shorter text
    gives an empty set.
    """
    words = re.findall(r"\w+|[^\w\s]", text)
    return {hash(tuple(words[at : at + WINDOW])) for at in range(len(words) - WINDOW + 1)}


@cache
def known() -> tuple[set[bytes], set[int]]:
    """Return two sets, the hashes (``code_hash``) and the ``windows`` of known functions. Known are
    all functions that any training of ToolGen's mini models could read, and those of the six
    repositories that were held out from the start.
    """
    found = functions()
    for name in HELD_OUT_PACKAGES:
        for file in python_files(python_sources.folder() / name):
            found = [*found, *file_functions("", file)]
    codes, seen = set(), set[int]()
    for one in watched(found, "reading what was trained on", "functions"):
        codes.add(code_hash(one))
        seen |= windows(f"{one.signature}\n{one.body}")
    return codes, seen


def is_copy(function: Function) -> bool:
    """Return whether a function is a copy of a known one: its code is known except for white space,
    or more than the share COPIED of its windows is.
    """
    codes, seen = known()
    own = windows(function.code)
    return code_hash(function) in codes or len(own & seen) > COPIED * len(own)


def usable() -> tuple[dict[str, list[Function]], pd.DataFrame]:
    """Return {repository: its functions that are not copies}, and a frame with one row per
    repository: its name, the number of its functions, and how many of them are copies.

    The dictionary lacks repositories with too many copies or too few other functions. Both results
    lack repositories with too many files (``Filters.max_files``).
    """
    sources = python_sources.get(PINS)
    count = token_counter(MODELS[1])
    found, rows = {}, []
    for place in sorted(sources.glob("*/__init__.py")):
        root = place.parent
        if len(files := files_of(str(root))) > Filters().max_files:
            continue
        every = extract(root, Filters(), None, count, files).functions
        fresh = [one for one in every if not is_copy(one)]
        copies = len(every) - len(fresh)
        rows.append({"repository": root.name, "functions": len(every), "copies": copies})
        if copies <= COPIES * len(every) and len(fresh) >= LEAST:
            found[root.name] = fresh
    return found, pd.DataFrame(rows)


def chosen(found: dict[str, list[Function]], each: int = EACH) -> list[Function]:
    """Return ``each`` functions of every repository: the first in the order of a hash."""
    return [
        one for part in found.values() for one in sorted(part, key=lambda one: order(one.id))[:each]
    ]


def frames(
    tasks: list[Function], models: tuple[str, ...]
) -> dict[tuple[str, str, str], pd.DataFrame]:
    """Return {(scoring, model, condition): frame of judged functions}. The scoring "printed" is the
    one by which the claims about Tables II and III are judged; "own" is the kit's.
    """
    tool = JediTool()
    made: dict[tuple[str, str], Generations] = {}
    tokenize = {}
    for name in models:
        model: Any = load(name)
        role, condition = role_of(model.name)
        use = ToolUse("mark" if condition == "toolgen" else None)
        made[role, condition] = generate(model, tasks, tool, use, Decoding(192))
        tokenize[role] = model.tokenizer.tokenize
    own, first, second = (
        judged_all(tasks, made, rules) for rules in (PAPER_RULES, FIRST_PACKAGE, PACKAGE_RULES)
    )
    printed = {key: frame.assign(**second[key][LATER]) for key, frame in first.items()}
    return {
        (scoring, *key): counted(parts[key], tokenize[key[0]], rules)
        for scoring, rules, parts in (
            ("printed", FIRST_PACKAGE, printed),
            ("own", PAPER_RULES, own),
        )
        for key in made
    }


def counted(frame: pd.DataFrame, split: Any, rules: Rules) -> pd.DataFrame:
    """Return a frame with the numbers of judged functions. In place of the functions' texts, it has
    the counts from which BLEU-4 (``Corpus.words``) and CodeBLEU (``Corpus.code``) are computed.
    """
    corpus = Corpus(frame, split, rules)
    counts = {
        f"{name}_{at}": column
        for name, values in (("words", corpus.words), ("code", corpus.code))
        for at, column in enumerate(np.asarray(values).T)
    }
    return frame[["id", *NUMBERS]].assign(**counts)


@command()
def main(*, model: tuple[str, ...] = (), out: Path = FOLDER) -> None:
    """Generate and judge the functions of the further repositories, and write the numbers.

    Answers and judgements that are in the stores in runs/ are not made again. If a run is killed,
    repeat the command to resume it.

    \b
    Examples:
      python -m recipes.mini.repositories
      python -m recipes.mini.repositories --model mini-gpt-base --model mini-gpt-toolgen

    Args:
        model: Which of the six models to use; a comparison needs both models of a family
            [default: all].
        out: Folder to write rows.csv.gz and repositories.csv to.
    """
    for name in model:
        check_choice("model", name, MODELS)
    found, about = usable()
    parts = [
        frame.assign(scoring=scoring, model=role, condition=condition)
        for (scoring, role, condition), frame in frames(chosen(found), model or MODELS).items()
    ]
    same_bytes: Any = {"method": "gzip", "mtime": 0, "compresslevel": 9}
    rows = pd.concat(parts)
    rows = rows[
        ["scoring", "model", "condition", *rows.columns.drop(["scoring", "model", "condition"])]
    ]
    paths.made(out)
    rows.to_csv(
        out / "rows.csv.gz",
        index=False,
        lineterminator="\n",
        float_format="%.6g",
        compression=same_bytes,
    )
    about.to_csv(out / "repositories.csv", index=False, lineterminator="\n")
    click.echo(out)


if __name__ == "__main__":
    run_module(main)
