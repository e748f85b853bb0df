"""Tests ToolGen on more held-out repositories (data/repositories/DESIGN.md), or on whole docstrings
(data/docstrings/DESIGN.md).

ToolGen's mini models generate functions of packages that none of them was trained on. The functions
are judged, and the numbers are written to a file. The packages are pinned in the folder of the
design. Answers and judgements are kept in the stores of ``runs``, so that a killed run resumes
where it stopped.
"""

import ast
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import pandas as pd

from lookuplab import paths, python_sources
from lookuplab.errors import check_choice
from lookuplab.models import Decoding, load
from lookuplab.python_sources import python_files
from lookuplab.run.commands import command, run_module
from lookuplab.toolgen.evaluation import held_out_functions, judged_all, token_counter
from lookuplab.toolgen.functions import Filters, Function, extract, locate_all
from lookuplab.toolgen.generation import Generations, JediTool, ToolUse, generate, role_of
from lookuplab.toolgen.rules import PACKAGE_RULES, PAPER_RULES, Rules, rules_of
from lookuplab.toolgen.similarity import COLUMNS
from lookuplab.work import watched
from lookuplab_notebooks.toolgen.table_rows import Corpus
from recipes.mini import DRAW, order
from recipes.mini.packages import HELD_OUT_PACKAGES
from recipes.mini.toolgen import code_hash, file_functions, files_of, functions
from recipes.mini.verdicts import write_rows

FOLDER = paths.DATA / "repositories"
PINS = FOLDER / "sources.txt"
DOCSTRINGS = paths.DATA / "docstrings"
LONGEST = 256  # number of tokens to which a whole docstring is cut
MODELS = tuple(
    f"mini-{family}-{kind}" for family in ("gpt", "t5", "llama") for kind in ("base", "toolgen")
)
# number of functions taken from each repository; a repository with fewer than LEAST is left out
EACH, LEAST = 14, 20
WINDOW = 10  # number of consecutive words or signs that are compared
COPIED = 0.5  # a function is a copy if more than this share of its windows is known
COPIES = 0.1  # a repository is left out if more than this share of its functions are copies
# the rules of package-2023, except that only the paper's three errors are failures
FIRST_PACKAGE = rules_of("package-2023", every_error=False)
# claims use these columns as computed by the rules of package-2024, and all other columns as
# computed by those of package-2023 (data/mini/DESIGN.md, 2026-11-29)
LATER = ["passed", "failures", "errors", "lost", "edit_similarity", "exact_match"]
KEY = ["scoring", "model", "condition"]
NUMBERS = [
    "passed",
    "failures",
    "errors",
    "lost",
    "identifiers",
    "dependencies",
    "covered",
    "empty",
    *COLUMNS,
]


def windows(text: str) -> set[int]:
    """Return the hashes of all runs of WINDOW consecutive words or signs in a text. A shorter text
    gives an empty set.
    """
    words = re.findall(r"\w+|[^\w\s]", text)
    return {hash(tuple(words[at : at + WINDOW])) for at in range(len(words) - WINDOW + 1)}


@cache
def known() -> tuple[set[bytes], set[int]]:
    """Return two sets, the hashes (``code_hash``) and the ``windows`` of known functions. A
    function is known if any training of ToolGen's mini models could read it, or if it belongs to
    the six repositories that were held out from the start.
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
    or more than the share COPIED of its windows is known.
    """
    codes, seen = known()
    own = windows(function.code)
    return code_hash(function) in codes or len(own & seen) > COPIED * len(own)


@cache
def sources() -> Path:
    """Return a folder with all packages that Jedi and pylint can import: the further repositories
    and the pinned sources. Its files are hard links.
    """
    parts = python_sources.get(), python_sources.get(PINS)
    place = paths.RUNS / "repositories" / "-".join(part.name for part in parts)
    if not place.is_dir():
        with TemporaryDirectory(dir=paths.make_folder(place.parent)) as temporary:
            both = Path(temporary, "both")
            for part in parts:
                shutil.copytree(part, both, copy_function=os.link, dirs_exist_ok=True)
            both.rename(place)
    return place


def usable() -> tuple[dict[str, list[Function]], pd.DataFrame]:
    """Return {repository: its functions that are not copies}, and a frame with one row per
    repository: its name, the number of its functions, and how many of them are copies.

    The dictionary lacks repositories with too many copies or too few other functions. Both results
    lack repositories with too many files (``Filters.max_files``).
    """
    count = token_counter(MODELS[1])
    found, rows = {}, []
    for place in sorted(python_sources.get(PINS).glob("*/__init__.py")):
        root = sources() / place.parent.name
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


def with_whole_docstring(function: Function, count: Callable[[str], int]) -> Function:
    """Return a function with its whole docstring, unindented, in place of the first sentence. Lines
    at the end of a docstring of more than LONGEST tokens are left out.
    """
    text = ast.get_docstring(ast.parse(function.source).body[0]) or ""  # type: ignore[arg-type]
    lines = text.splitlines()
    while len(lines) > 1 and count("\n".join(lines)) > LONGEST:
        lines.pop()
    text = "\n".join(lines).strip()
    is_same = " ".join(text.split()) == function.docstring
    return function if is_same else replace(function, docstring=text)


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
        # One repository after the other: Jedi would otherwise read the files of all 47 again and
        # again, because it keeps the syntax trees of only a few hundred files.
        for _, part in groupby(tasks, key=lambda one: one.repository):
            generate(model, [*part], tool, use, Decoding(192))
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
def main(*, model: tuple[str, ...] = (), docstrings: bool = False, out: Path | None = None) -> None:
    """Generate and judge the functions of the further repositories, and write the numbers.

    Answers and judgements that are in the stores in runs/ are not made again. If a run is killed,
    repeat the command to resume it. The rows of other models in the folder ``--out`` are kept.

    \b
    Examples:
      python -m recipes.mini.repositories
      python -m recipes.mini.repositories --model mini-gpt-base --model mini-gpt-toolgen
      python -m recipes.mini.repositories --docstrings

    Args:
        model: Which of the six models to use; a comparison needs both models of a family
            [default: all].
        docstrings: In place of the further repositories, use the 300 functions of the six held-out
            repositories, once with the first sentence of the docstring and once with all of it.
        out: Folder to write rows.csv.gz to, and repositories.csv with the further repositories
            [default: data/repositories or data/docstrings].
    """
    for name in model:
        check_choice("model", name, MODELS)
    out = paths.make_folder(out or (DOCSTRINGS if docstrings else FOLDER))
    if docstrings:
        count = token_counter(MODELS[1])
        tasks = held_out_functions(locate_all(HELD_OUT_PACKAGES), Filters(), 300, DRAW, count)
        asked = {"": tasks, "/whole": [with_whole_docstring(one, count) for one in tasks]}
    else:
        found, about = usable()
        about.to_csv(out / "repositories.csv", index=False, lineterminator="\n")
        os.environ["LOOKUPLAB_SOURCES"] = str(sources())  # from here on, workers import from it
        asked = {"": chosen(found)}
    file = out / "rows.csv.gz"
    parts = dict(tuple(pd.read_csv(file).groupby("model", sort=False))) if file.exists() else {}
    # one family after the other, so that a run that is stopped leaves the rows of complete pairs
    for role, pair in groupby(model or MODELS, key=lambda name: role_of(name)[0]):
        models = tuple(pair)
        made = {
            (scoring, role, condition + kind): frame
            for kind, tasks in asked.items()
            for (scoring, _, condition), frame in frames(tasks, models).items()
        }
        parts[role] = pd.concat(made, names=KEY).reset_index(KEY)
        write_rows(pd.concat(parts.values()), file, "%.6g")
    click.echo(out)


if __name__ == "__main__":
    run_module(main)
