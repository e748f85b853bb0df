"""Implements ``lookuplab view`` and ``compare``, which show the judged answers of earlier runs. No
notebook is run.

A run keeps its judged answers beside its executed copy. `view` shows them on a page, and `compare`
compares the answers of two runs in pairs. The page is static: it opens from a disk as well as from
a server. The answers are split over several scripts, and the page loads only the scripts with the
answers that it shows.
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import click
import pandas as pd

from lookuplab import paths
from lookuplab.cloudapi.bench import NO_DOCUMENT
from lookuplab.cloudapi.policies import POLICIES, triggered
from lookuplab.errors import UserError
from lookuplab.models.completions import JUDGED
from lookuplab.run.commands import claimed, claimed_file, command
from lookuplab.run.notebooks import find
from lookuplab.scoring.rates import mcnemar, paired_difference

PAGE = Path(__file__).parents[1] / "pages" / "answers.html"
CHUNK = 200  # answers in one script
HEAD = 120  # characters of an answer or a reason that the page's list shows
# columns of judgements that say why an answer is wrong; the first that is not empty is shown
REASONS = ("reason", "error", "messages", "lost")
SAME = ("predicted", "solution")  # columns that repeat the answer
# two answers of different runs are compared if they agree in these columns
PAIRED = ("model", "condition", "id", "sample")
FILTERS = ("model", "condition", "class")
MOST_ROWS = 12  # lines of a comparison printed to the terminal
Line = dict[str, Any]


def log(name: str) -> Path:
    """Return the file with the judged answers of a notebook's last run. ``NAME~1`` stands for the
    run before the last. ``name`` may also be the path of an executed copy.

    Raises UserError if there is no such file.
    """
    numbered = re.fullmatch(r"(.+)~(\d{1,9})", name)
    place, back = (numbered[1], int(numbered[2])) if numbered else (name, 0)
    copy = paths.expanded(place).resolve()
    if copy.suffix == ".ipynb" and paths.RUNS in copy.parents:
        files = [copy.with_suffix(f".{JUDGED}")]
    else:
        notebook = find(place)
        own = re.compile(rf"{re.escape(notebook.name)}(\.\d+)?\.{re.escape(JUDGED)}")
        kept = paths.RUNS.rglob(f"{notebook.id}*.{JUDGED}")
        files = [file for file in kept if own.fullmatch(file.name)]
    files = sorted(filter(Path.is_file, files), key=lambda file: -file.stat().st_mtime_ns)
    if not files[back:]:
        raise UserError(
            f"no judged answers of {name} here, of {len(files)} runs that are kept: `lookuplab "
            "run` makes them, if the notebook judges answers one by one"
        )
    return files[back]


def last_runs(folder: Path) -> list[Path]:
    """Return the files with judged answers below a folder, sorted. Of several runs of a notebook,
    only the last counts.
    """
    files = folder.rglob(f"*.{JUDGED}")
    return sorted(file for file in files if not re.search(rf"\.\d+\.{JUDGED}$", file.name))


def read(file: Path) -> Iterator[Line]:
    """Yield first a dictionary about the run (notebook, profile, parameters) and then the run's
    judged answers, as ``benchmark.keep`` wrote them. An answer that was judged twice with the same
    result is yielded once. If there are different answers with the same model, condition, id and
    sample, later ones get a number after the condition: ``dag (2)``.
    """
    seen: dict[tuple[Any, ...], list[Any]] = {}
    lines = (line for _, line in paths.json_lines(file))
    about = next(lines, {})
    if "parameters" not in about:
        raise UserError(f"{file} holds no judged answers: run its notebook again")
    yield about
    for line in lines:
        key = line["model"], line["condition"], line["id"], line["sample"]
        others = seen.setdefault(key, [])
        answer = hash((line["prompt"], line["completion"], line["right"]))
        if answer not in others:
            others.append(answer)
            line["condition"] += f" ({len(others)})" if others[1:] else ""
            yield line


def reason(columns: Line) -> str:
    """Return why an answer is wrong, according to the columns of its judgement; "" if no column
    says why.
    """
    found = next((columns[name] for name in REASONS if columns.get(name)), "")
    texts = found if isinstance(found, list) else [found]
    return "; ".join(" ".join(map(str, text)) if isinstance(text, list) else text for text in texts)


class Words(dict[str, int]):
    """A dictionary that numbers texts in the order of their first use."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def write_page(files: Iterable[Path], output: Path) -> int:
    """Write a page with the judged answers in ``files`` to the folder ``output``. Return the number
    of answers. If there are several files, the number of an answer's run stands before the answer's
    condition.
    """
    is_free = not output.exists() or (output.is_dir() and not any(output.iterdir()))
    if not is_free and not (output / "index.js").is_file():
        raise UserError(f"{output} is not an empty folder: name a new one")
    runs = [*files]
    names = [f"run {number}: " for number in range(1, len(runs) + 1)]
    fields = {name: Words() for name in (*FILTERS, "id", "verdict", "said", "why")}
    of: dict[str, list[Any]] = {name: [] for name in (*fields, "sample", "right")}
    abouts = []
    plain: dict[str, str] = {}  # each task's shortest prompt
    for file in runs:
        for line in islice(read(file), 1, None):
            plain[line["id"]] = min(plain.get(line["id"], line["prompt"]), line["prompt"], key=len)
    shutil.rmtree(output / "rows", ignore_errors=True)
    prompts = Words()
    rows: list[Line] = []
    firsts: list[Line] = []

    def flush() -> None:
        if rows:
            text = json.dumps([[*prompts], rows])
            number = (len(of["id"]) - 1) // CHUNK
            paths.write_lines(
                output / "rows" / f"{number}.js", [f"lookuplab.rows({number},{text})"]
            )
        prompts.clear()
        rows.clear()

    for name, file in zip(names, runs, strict=True):
        lines = read(file)
        abouts.append(next(lines))
        for line in lines:
            columns, answer, right = line["columns"], line["completion"], line["right"]
            first = next(filter(str.strip, answer.split("\n")), "").strip()
            judged = {None: "not judged", True: "right", False: "wrong"}[right]
            line |= {
                "id": str(line["id"]),
                "condition": name * (len(runs) > 1) + line["condition"],
                "verdict": str(columns.get("category", judged)),
                "said": (columns.get("call") or first)[:HEAD],
                "why": reason(columns)[:HEAD],
            }
            for field, words in fields.items():
                of[field].append(words[line[field]])
            of["sample"].append(line["sample"])
            of["right"].append(-1 if right is None else int(right))
            if line["condition"].endswith(NO_DOCUMENT) and "minimum" in columns:
                firsts.append(columns | {"at": len(of["id"]) - 1})
            base = plain[line["id"]]
            rows.append(
                {
                    "prompt": prompts[line["prompt"]],
                    # length of what precedes the plain prompt, such as documents and examples
                    "shown": len(line["prompt"]) - len(base)
                    if line["prompt"].endswith(base)
                    else 0,
                    "why": reason(columns),
                    "columns": {name: text for name, text in columns.items() if name not in SAME},
                    **{name: line[name] for name in ("cluster", "completion", "finish_reason")},
                    **{name: line[name] for name in ("tokens", "sure", "offers")},
                }
            )
            if len(rows) == CHUNK:
                flush()
    flush()
    index: Line = {"about": abouts, "chunk": CHUNK, "of": of, "policies": {}}
    first = pd.DataFrame(firsts)
    if firsts and first.minimum.notna().all():  # find after which answers each policy looks up
        for policy in POLICIES[2:]:
            index["policies"][policy] = first["at"][triggered(first, policy)].tolist()
    index["words"] = {field: [*words] for field, words in fields.items()}
    paths.write_lines(output / "index.js", [f"lookuplab.index({json.dumps(index)})"])
    shutil.copyfile(PAGE, output / "index.html")
    return len(of["id"])


class Side(NamedTuple):
    """One side of a comparison: the parameters of its runs, and its rows, one for each judged
    answer (the columns PAIRED, ``cluster`` and ``right``).
    """

    parameters: Line
    rows: pd.DataFrame


def side(name: str) -> Side:
    """Return the side of a comparison that an argument of `lookuplab compare` names: a folder of
    executed copies, or a name for ``log``. Raises UserError if no judged answers are found there.
    """
    place = paths.expanded(name)
    files = last_runs(place) if place.is_dir() else [log(name)]
    if not files:
        raise UserError(f"{name} holds no judged answers")
    about: Line = {}
    rows = []
    for file in files:
        lines = read(file)
        about |= next(lines)["parameters"]
        rows += [{name: line[name] for name in (*PAIRED, "cluster", "right")} for line in lines]
    return Side(about, pd.DataFrame(rows).dropna(subset=["right"]))


def changed(first: Side, second: Side) -> list[str]:
    """Return a line for each parameter that differs between the two sides."""
    old, new = first.parameters, second.parameters
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [f"  {name}: {old.get(name, '(none)')} -> {new.get(name, '(none)')}" for name in names]


def compared(first: Side, second: Side) -> pd.DataFrame:
    """Return the comparison of two runs, one line for each model and condition.

    The answers are paired by task and sample. The columns are n, both rates in percent, the paired
    difference in points with its clustered interval, how many answers are right only in the first
    or only in the second run, and the p value of McNemar's exact test on these two numbers. The
    test assumes that tasks are independent. If each run has a single model, the runs are compared
    even if the models differ. Raises UserError if the runs have nothing in common.
    """
    sides = [first.rows, second.rows]
    models = [rows.model.unique().tolist() for rows in sides]
    if [len(one) for one in models] == [1, 1] and models[0] != models[1]:
        sides = [rows.assign(model=" -> ".join(models[0] + models[1])) for rows in sides]
    both = sides[0].merge(sides[1], on=[*PAIRED], suffixes=("_1", "_2"))
    if both.empty:
        told = [", ".join(sorted({*rows.condition})[:3]) for rows in sides]
        raise UserError(
            f"nothing in common to compare: {', '.join(models[0])} ({told[0]}) and "
            f"{', '.join(models[1])} ({told[1]})"
        )
    groups = both.groupby(["model", "condition"], sort=False)
    return pd.DataFrame(
        [
            {"model": model, "asked with": condition, **paired(part)}
            for (model, condition), part in groups
        ]
    )


def paired(part: pd.DataFrame) -> Line:
    """Compare two runs' answers to the same tasks. ``part`` has the columns ``right_1`` and
    ``right_2`` (whether the first and the second run's answer is right) and ``cluster_1``.
    """
    old, new = (part[name].astype(float) for name in ("right_1", "right_2"))
    lost, gained, p = mcnemar(old, new)
    change = paired_difference(old, new, part.cluster_1).percent()
    interval = f" [{change.low:.1f}, {change.high:.1f}]" if change.low == change.low else ""
    return {
        "n": len(part),
        "first (%)": f"{100 * old.mean():.1f}",
        "second (%)": f"{100 * new.mean():.1f}",
        "change in points": f"{change.value:+.1f}{interval}",  # -1.5 [-3.0, 0.1]
        "right only in first": lost,
        "only in second": gained,
        "p": f"{p:.2g}",
    }


@command()
def view(notebooks: tuple[str, ...], *, output: Path | None = None) -> None:
    """Write a page that shows every answer of a run, and why it is right or wrong.

    NOTEBOOKS are named as for `lookuplab run` and stand for their last run, with or without -p.
    NAME~1 is the run before the last; the last six runs with different parameters are kept. Name an
    executed copy by its path. Several runs are shown on one page.

    The page shows prompt, documents, answer, verdict and reason, the model's confidence in each
    token, and the names that Jedi offered. You can filter answers by verdict, model, way of asking
    and class. You can also compare two models or ways of asking; answers that are "right here,
    wrong there" come first. The page opens from the disk and from any web server, and needs no
    network.

    \b
    Examples:
      lookuplab run table3_dag_plus_plus && lookuplab view table3_dag_plus_plus
      lookuplab view table1_base_models~1 table1_base_models
      lookuplab view runs/mini/toolgen/monitor_mode.ipynb --output ~/monitor
      python -m http.server -d runs/view        (on a machine without a screen; then open port 8000)

    Args:
        output: Write to this folder. [default: runs/view/NOTEBOOK]
    """
    files = [log(name) for name in notebooks]
    names = [file.name.removesuffix(f".{JUDGED}") for file in files]
    place = paths.expanded(output) if output else paths.RUNS / "view" / "+".join(names)
    claimed(place)
    count = write_page(files, place)
    click.echo(f"{count:,} answers: open {place / 'index.html'}")


@command()
def compare(first: str, second: str, *, output: Path | None = None) -> None:
    """Compare two runs task by task.

    FIRST and SECOND are notebooks, named as for `lookuplab run`. They stand for their last run,
    with or without -p; NAME~1 is the run before the last. FIRST and SECOND may also be executed
    copies, or folders of executed copies (runs/mini).

    The command first prints the parameters that changed. Answers are paired by model, way of
    asking, task and sample. For each model and way of asking, the command prints the change in
    points with its clustered 95% interval, how many answers are right in one run only, and
    McNemar's p value.

    \b
    Examples:
      lookuplab run fig7a_retriever_precision -p models=mini-small
      lookuplab run fig7a_retriever_precision -p models=mini-large
      lookuplab compare fig7a_retriever_precision~1 fig7a_retriever_precision
      lookuplab compare runs/mini/cloudapibench/table1_base_models.ipynb table1_base_models

    Args:
        output: Write the whole comparison to this CSV file.
    """
    claimed_file(output)
    sides = side(first), side(second)
    table = compared(*sides)
    differing = changed(*sides)
    click.echo(
        "\n".join(["parameters that changed:", *differing] if differing else ["same parameters"])
    )
    click.echo("\npaired by task")
    click.echo(table.head(MOST_ROWS).to_string(index=False))
    if (more := len(table) - MOST_ROWS) > 0:
        click.echo(f"... {more} more lines: --output FILE.csv keeps all")
    if output:
        paths.write_text(output, table.to_csv(index=False))
    click.echo(f"answer by answer: lookuplab view {first} {second}")
