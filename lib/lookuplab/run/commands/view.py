"""Implements ``lookuplab view`` and ``compare``, which show the judged answers of earlier runs. No
notebook is run.

A run keeps its judged answers and its numbers in the folder of its executed copy. `view` shows the
answers on a page. `compare` compares two runs, or two files of `lookuplab score`. The page is
static: a browser can open it from a disk or from a server. The answers are in several scripts, and
the page loads only the scripts with the answers that it shows.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.cloudapi.bench import NO_DOCUMENT, RIGHT_DOCUMENT, WRONG_DOCUMENT
from lookuplab.cloudapi.policies import POLICIES, THRESHOLD, expected, triggered
from lookuplab.errors import UserError
from lookuplab.models.store import JUDGED
from lookuplab.results.artifact import ROW_KEY, read_csv
from lookuplab.run.cli import claim, claim_file, command
from lookuplab.run.notebooks import find
from lookuplab.run.runner import kept_runs, numbers_of
from lookuplab.scoring.rates import mcnemar, paired_difference

PAGE = Path(__file__).parents[1] / "pages" / "answers.html"
CHUNK = 200  # the number of answers in one script
HEAD = 120  # the number of characters of an answer that the page's list shows
# columns of judgements that say why an answer is wrong; the first that is not empty is shown
REASONS = ("reason", "error", "messages", "lost")
SAME = ("predicted", "solution")  # columns that repeat the answer, and are not shown
# an answer is compared with the other run's answer that has the same values in these columns
PAIRED = ("model", "condition", "id", "sample")
FILTERS = ("model", "condition", "class")  # columns by which the page filters answers
# fields of an answer that the page shows unchanged
KEPT = ("cluster", "completion", "finish_reason", "tokens", "sure", "offers")
FIELDS = {*PAIRED, *KEPT, "class", "columns", "prompt", "right"}  # the fields of each answer
MEASURES = "valid", "passed"  # columns of `lookuplab score` that say whether an answer is right
MOST_ROWS = 24  # the largest number of lines of a comparison that are printed
MOST_NUMBERS = 12  # the largest number of changed numbers that are printed
# {category of a wrong call: its fault in words}
FAULTS = {
    "incorrect_existing": "calls another existing API",
    "invalid_usage": "calls the right API with wrong arguments",
    "nonexistent": "invents a name",
}
WITHOUT = (
    "its notebook keeps no answers one by one; table3_dag_plus_plus, fig3_pass_at_k and "
    "monitor_mode do"
)
Line = dict[str, Any]


def judged_answers_file(name: str) -> Path:
    """Return the file with the judged answers of a run. The ``name`` of a notebook means the
    notebook's last run, and ``NAME~1`` the run before it. ``name`` may also be the path of an
    executed copy.

    Raises UserError if there is no such file.
    """
    numbered = re.fullmatch(r"(.+)~(\d{1,9})", name)
    place, back = (numbered[1], int(numbered[2])) if numbered else (name, 0)
    copy = paths.expand_path(place).resolve()
    is_copy = copy.suffix == ".ipynb" and paths.RUNS in copy.parents
    copies = [copy] if is_copy and copy.is_file() else []
    try:
        id = copy.stem if copies else find(copy.stem if is_copy else place).id
    except UserError:
        if "/" not in place or copy.exists():
            raise
        raise UserError(f"{place} does not exist, and no notebook has this name") from None
    if not is_copy:
        copies = [*paths.RUNS.rglob(f"{id}.ipynb")]
    files = kept_runs(*copies)
    if not files[back:]:
        why = WITHOUT if copies and not files else f"type `lookuplab run {id}`"
        if files:
            why += " with other values of -p, because of equal runs only the last is kept"
        raise UserError(
            f"no judged answers of {name} here ({len(files)} of its runs are kept): {why}"
        )
    return files[back]


def read(file: Path) -> Iterator[Line]:
    """Yield the content of a file with judged answers: first a dictionary about the run (notebook,
    profile, parameters), and then the answers, as ``benchmark.append_judged`` wrote them.

    An answer that was judged twice with the same result is yielded once. If different answers have
    the same model, condition, id and sample, the condition of the second becomes ``dag (2)``, and
    so on. Raises UserError if the file has no judged answers, or if another version of the kit
    wrote it.
    """
    seen: dict[tuple[Any, ...], list[Any]] = {}
    lines = (line for _, line in paths.json_lines(file))
    about = next(lines, {})
    if "parameters" not in about:
        raise UserError(f"{file} holds no judged answers: run its notebook again")
    yield about
    for line in lines:
        if missing := FIELDS.difference(line):
            raise UserError(
                f"{file} is of another version of the kit, and its answers have no "
                f"{', '.join(sorted(missing))}: run its notebook again"
            )
        others = seen.setdefault(tuple(line[name] for name in PAIRED), [])
        answer = hash((line["prompt"], line["completion"], line["right"]))
        if answer not in others:
            others.append(answer)
            line["condition"] += f" ({len(others)})" if others[1:] else ""
            yield line


def why_wrong(columns: Line) -> str:
    """Return why an answer is wrong, according to its judgement; "" if no column says why."""
    found = next((columns[name] for name in REASONS if columns.get(name)), "")
    texts = found if isinstance(found, list) else [found]
    return "; ".join(" ".join(map(str, text)) if isinstance(text, list) else text for text in texts)


def fault(line: Line, shown: str) -> str:
    """Return in words what is wrong with a call, such as "invents a name". Return "" if the answer
    has no wrong call. ``shown`` is the text of the documents in the prompt.
    """
    category, name = (line["columns"].get(column, "") for column in ("category", "name"))
    told = FAULTS.get(category, "")
    is_shown = name and re.search(rf"\b{re.escape(name)}\b", shown)
    is_other = category in ("incorrect_existing", "nonexistent")
    return "calls the document's API" if is_shown and is_other else told


def kind(line: Line) -> str:
    """Return an answer's model and condition in one text."""
    return f"{line['model']}, {line['condition']}"


def broken_pairs(file: Path, count: int) -> Iterator[str]:
    """Yield Markdown about tasks that a model solves without a document, but not with a document.
    For each model and condition, state how many such tasks there are. Then show ``count`` of these
    tasks with both answers, preferring APIs, models and conditions that were not shown yet.
    """
    # {(model, task): answer without a document}; in the file, this answer precedes the others
    firsts: dict[Any, Line] = {}
    asked, used = Counter[Any](), Counter[Any]()
    pairs: list[Line] = []
    for line in islice(read(file), 1, None):
        task = line["model"], line["id"]
        if line["condition"] == NO_DOCUMENT:
            firsts[task] = line
        elif line["right"] is not None and firsts.get(task, line)["right"]:
            asked[kind(line)] += 1
            if not line["right"]:
                pairs.append(line)
    yield "Right without a document, and wrong with one:" + ("\n" if pairs else " none")
    for key, count_of in Counter(map(kind, pairs)).most_common():
        yield f"- {key}: {count_of} of the {asked[key]} tasks that are right without a document"
    for _ in range(min(count, len(pairs))):
        line = min(pairs, key=lambda pair: (used[pair["cluster"]], used[kind(pair)]))
        pairs.remove(line)
        used.update([line["cluster"], kind(line)])
        first = firsts[line["model"], line["id"]]
        shown = line["prompt"].removesuffix(first["prompt"])
        yield f"\n## {line['id']}\n\n{kind(line)}: {fault(line, shown) or 'wrong'}"
        texts = {"Document": shown, "Prompt": first["prompt"], "Without it": first["completion"]}
        texts[f"With it: {why_wrong(line['columns'])}"] = line["completion"]
        for title, text in texts.items():
            yield f"\n{title}\n\n````\n{text.strip()}\n````"


def write_page(files: Sequence[Path], output: Path) -> int:
    """Write a page with the judged answers in ``files`` to the folder ``output``, and return the
    number of answers. If there are several files, an answer's condition begins with the number of
    the file: ``run 2: dag``.
    """
    is_free = not output.exists() or (output.is_dir() and not any(output.iterdir()))
    if not is_free and not (output / "index.js").is_file():
        raise UserError(f"{output} is not an empty folder: name a new one")
    # {field: {text: number}}; texts are numbered in the order of their first use
    fields = {
        name: dict[str, int]() for name in (*FILTERS, "id", "verdict", "fault", "said", "why")
    }
    of: dict[str, list[Any]] = {name: [] for name in (*fields, "sample", "right")}
    abouts = []
    plain: dict[str, str] = {}  # each task's shortest prompt
    for file in files:
        for line in islice(read(file), 1, None):
            plain[line["id"]] = min(plain.get(line["id"], line["prompt"]), line["prompt"], key=len)
    # an interrupted page shows nothing, and the next command may replace it
    paths.write_lines(output / "index.js", [])
    shutil.rmtree(output / "rows", ignore_errors=True)
    prompts: dict[str, int] = {}
    rows: list[Line] = []
    policies: dict[str, list[int]] = {}  # policy -> answers after which the policy looks up the API

    def flush() -> None:
        """Write the collected rows to a script, with the prompts that they refer to by number."""
        if rows:
            text = json.dumps([[*prompts], rows])
            number = (len(of["id"]) - 1) // CHUNK
            paths.write_lines(
                output / "rows" / f"{number}.js", [f"lookuplab.rows({number},{text})"]
            )
        prompts.clear()
        rows.clear()

    for number, file in enumerate(files, 1):
        lines = read(file)
        abouts.append(next(lines))
        firsts = []
        for line in lines:
            columns, answer, right = line["columns"], line["completion"], line["right"]
            begin = next(filter(str.strip, answer.split("\n")), "").strip()
            judged = {None: "not judged", True: "right", False: "wrong"}[right]
            base = plain[line["id"]]
            # the text before the plain prompt, such as documents and examples
            before = line["prompt"].removesuffix(base)
            shown = "" if before == line["prompt"] else before
            line |= {
                "id": str(line["id"]),
                "condition": f"run {number}: " * (len(files) > 1) + line["condition"],
                "verdict": str(columns.get("category", judged)),
                "fault": fault(line, shown),
                "said": (columns.get("call") or begin)[:HEAD],
                "why": why_wrong(columns),
            }
            for field, words in fields.items():
                of[field].append(words.setdefault(line[field], len(words)))
            of["sample"].append(line["sample"])
            of["right"].append(right)
            # the answer without a document decides whether a policy looks up the API
            if line["condition"].endswith(NO_DOCUMENT) and "minimum" in columns:
                firsts.append(columns | {"at": len(of["id"]) - 1})
            rows.append(
                {
                    "prompt": prompts.setdefault(line["prompt"], len(prompts)),
                    "shown": len(shown),
                    "columns": {name: text for name, text in columns.items() if name not in SAME},
                    **{name: line[name] for name in KEPT},
                }
            )
            if len(rows) == CHUNK:
                flush()
        first = pd.DataFrame(firsts, columns=["at", "minimum", "exists_anywhere"])
        sure = len(first) and first.minimum.notna().all()
        threshold = abouts[-1]["parameters"].get("threshold", THRESHOLD)
        # a threshold cannot be applied if some answers have no confidence
        abouts[-1]["threshold"] = threshold if sure else None
        for policy in POLICIES[2:] if sure else ():
            asks = triggered(first, policy, threshold)
            policies.setdefault(policy, []).extend(first["at"][asks].tolist())
    flush()
    index: Line = {"about": abouts, "chunk": CHUNK, "of": of, "policies": policies}
    index["words"] = {field: [*words] for field, words in fields.items()}
    paths.write_lines(output / "index.js", [f"lookuplab.index({json.dumps(index)})"])
    shutil.copyfile(PAGE, output / "index.html")
    return len(of["id"])


class Side(NamedTuple):
    """One side of a comparison: the parameters of a run, its rows and the file with its judged
    answers. The rows have the columns PAIRED, ``class``, ``cluster`` and ``right``. Each judged
    answer has a row. Each task also has a row for each policy, in which ``right`` is the
    probability of a valid call. If the side is a file of `lookuplab score`, ``parameters`` is empty
    and ``file`` is None.
    """

    parameters: Line
    rows: pd.DataFrame
    file: Path | None = None


def side(name: str) -> Side:
    """Return one side of a comparison. ``name`` is an argument of `lookuplab compare`: a file that
    `lookuplab score` wrote, or a run (see ``judged_answers_file``). Raises UserError if the file or
    run has no judged answers.
    """
    place = paths.expand_path(name)
    if ".jsonl" in place.suffixes:
        return Side({}, read_scored(place))
    file = judged_answers_file(name)
    lines = read(file)
    parameters = next(lines)["parameters"]
    columns = *PAIRED, "class", "cluster", "right", "columns"
    answers = pd.DataFrame([{name: line[name] for name in columns} for line in lines])
    rows = pd.concat([answers, *rows_by_policy(answers, parameters)]).dropna(subset=["right"])
    return Side(parameters, rows.drop_duplicates([*PAIRED]).drop(columns="columns"), file)


def rows_by_policy(answers: pd.DataFrame, parameters: Line) -> Iterator[pd.DataFrame]:
    """Yield the rows of each policy of CloudAPIBench. A policy needs no answers of its own, because
    it selects among a run's answers, with the run's threshold and precision. For a run without a
    precision, yield nothing.
    """
    precision = parameters.get("precision", -1)
    if precision < 0:
        return
    for _, of_model in answers[answers["sample"] == 0].groupby("model", sort=False):
        right = of_model.pivot(index="id", columns="condition", values="right")
        # conditions come in threes: without a document, with the right one, with a wrong one
        for hit in right:
            tail = hit.removeprefix(RIGHT_DOCUMENT)
            base = NO_DOCUMENT + ", constrained" * tail.endswith("constrained")
            miss = WRONG_DOCUMENT + tail
            # skip ``hit`` if it is not a condition with the right document, or if the condition
            # without a document or with a wrong one is missing
            if tail == hit or not {base, miss} <= {*right}:
                continue
            valid = right[[base, hit, miss]].dropna().astype(float)
            first = (
                of_model[of_model.condition == base].set_index("id", drop=False).loc[valid.index]
            )
            judged = pd.DataFrame([*first["columns"]], valid.index)
            is_sure = "threshold" in parameters and judged.minimum.notna().all()
            for policy in POLICIES[1 : None if is_sure else 3]:
                asks = triggered(judged, policy, parameters.get("threshold", THRESHOLD))
                shown = expected(valid[hit], valid[miss], precision)
                yield first.assign(
                    condition=policy + tail, right=np.where(asks, shown, valid[base])
                )


def read_scored(file: Path) -> pd.DataFrame:
    """Return the rows of a file that `lookuplab score` wrote. Their condition is the name of the
    column that says whether an answer is right. Raises UserError if there is no such column, if a
    line has a field of the wrong type, or if two lines have the same id and sample.
    """
    lines = [*paths.json_lines(file)]
    flags = [name for _, line in lines for name in line if isinstance(line[name], bool)]
    if not flags:
        raise UserError(
            f"{file}: none of its {len(lines)} lines has a verdict (true or false); name a file "
            "that `lookuplab score` wrote"
        )
    measure = next(name for name in (*MEASURES, *flags) if name in flags)
    rows = []
    for number, line in lines:
        id, sample = line.get("id", line.get("problem_id")), line.get("sample", 0)
        verdict = line.get(measure)
        if not all(map(isinstance, (id, sample, verdict), (str | int, int, bool | None))):
            raise UserError(
                f"{file}, line {number}: 'id' must be a text or a whole number, 'sample' (if any) "
                f"a whole number, and {measure!r} true, false or null, as `lookuplab score` writes"
            )
        cluster = str(line.get("cluster", id))
        rows.append(("", measure, str(id), sample, "", cluster, verdict))
    table = pd.DataFrame(rows, columns=[*PAIRED, "class", "cluster", "right"])
    if table.duplicated([*PAIRED]).any():
        raise UserError(f"{file}: two lines have the same id and sample")
    return table.dropna()


def parameter_changes(first: Side, second: Side) -> list[str]:
    """Return a line for each parameter whose value differs between the two sides."""
    old, new = first.parameters, second.parameters
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [f"  {name}: {old.get(name, '(none)')} -> {new.get(name, '(none)')}" for name in names]


def match_rows(first: Side, second: Side) -> pd.DataFrame:
    """Return the rows that both sides have, paired by model, condition, task and sample. The
    columns ``right_1`` and ``right_2`` have the outcomes of the two sides, from 0 to 1.

    If each side has only one model, rows are paired even if the two models differ. Raises UserError
    if the sides have no row in common.
    """
    sides = [side.rows.assign(right=side.rows.right.astype(float)) for side in (first, second)]
    models = [rows.model.unique().tolist() for rows in sides]
    if [len(one) for one in models] == [1, 1] and models[0] != models[1]:
        sides = [rows.assign(model=" -> ".join(models[0] + models[1])) for rows in sides]
    both = sides[0].merge(sides[1], on=[*PAIRED], suffixes=("_1", "_2"))
    if both.empty:
        told = [", ".join(sorted({*(rows.model + " " + rows.condition)})[:3]) for rows in sides]
        raise UserError(f"nothing in common to compare: {told[0]}; and {told[1]}")
    return both


def comparison_table(both: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison of two sides as a table with a line for each model, condition and class
    of tasks. ``both`` has the rows of ``match_rows``.

    The columns are n, both rates in percent, the paired difference in points with its clustered
    interval, how many answers are better in the first run, how many are better in the second, and
    the p value of McNemar's exact test on these two counts. The test assumes that tasks are
    independent.
    """
    parts = pd.concat([both.assign(class_1="all"), both[both.class_1 != ""]])
    keys = ["model", "condition", "class_1"]
    return pd.DataFrame(
        [
            dict(zip(["model", "asked with", "class"], key, strict=True)) | change_numbers(part)
            for key, part in parts.groupby(keys, sort=False)
        ]
    )


def change_numbers(part: pd.DataFrame) -> Line:
    """Return the numbers of a line of ``comparison_table``. ``part`` has the line's rows of
    ``match_rows``.
    """
    old, new = part.right_1, part.right_2
    lost, gained, p = mcnemar(old > new, new > old)
    change = paired_difference(old, new, part.cluster_1).percent()
    return {
        "n": len(part),
        "first_percent": 100 * old.mean(),
        "second_percent": 100 * new.mean(),
        "change": change.value,
        "ci_low": change.low,
        "ci_high": change.high,
        "better_in_first": lost,
        "better_in_second": gained,
        "p": p,
    }


def table_lines(table: pd.DataFrame) -> Iterator[str]:
    """Yield the lines that show the table of ``comparison_table`` on a terminal: the rows in which
    something changed, or all rows if nothing did.
    """
    moved = table[table.better_in_first + table.better_in_second > 0]
    part = (table if moved.empty else moved).head(MOST_ROWS)
    yield part.to_string(index=False, float_format="{:.3g}".format)
    if more := len(table) - len(part):
        still = len(table) - len(moved)
        yield f"... {more} more lines, {still} without a change: --output FILE.csv keeps all"


def differing_numbers(first: Path, second: Path) -> Iterator[str]:
    """Yield a table of the artifacts' numbers that differ between two runs, and a line that names
    the files with all numbers. Percentages and points come before other numbers, and larger changes
    before smaller ones. ``first`` and ``second`` are the files with the runs' judged answers.
    """
    files = [*map(numbers_of, (first, second))]
    if not all(map(Path.is_file, files)):
        return
    old, new = (read_csv(file).set_index([*ROW_KEY]).value for file in files)
    both = pd.DataFrame({"old": old, "new": new}).dropna(how="all").reset_index()
    both["other"] = ~both.metric.str.endswith(("percent", "points"))
    both["size"] = -(both.new - both.old).abs()
    both = both[both["size"] != 0].sort_values(["other", "size"])
    yield f"\nnumbers that changed: {len(both)}"
    yield both[[*ROW_KEY[1:], "old", "new"]].head(MOST_NUMBERS).to_string(index=False, na_rep="-")
    yield f"all numbers: {files[0]} {files[1]}"


@command()
def view(notebooks: tuple[str, ...], *, output: Path | None = None, broken: int = 0) -> None:
    """Show every answer of a run on a page.

    NOTEBOOKS are named as for `lookuplab run`. A name means the notebook's last run, with or
    without -p, and NAME~1 means the run before it. The last six runs with different parameters are
    kept. The path of an executed copy also names a run. Several runs are shown on one page.

    The page shows prompt, documents, answer, verdict and reason, the model's confidence in each
    token, and the names that Jedi offered. You can filter answers by verdict, model, condition (how
    the model was asked) and class. You can also compare two models, conditions or policies; answers
    that are right only on the left come first. A policy uses the threshold of its run. The page can
    be opened from a disk or a web server, and needs no network.

    \b
    Examples:
      lookuplab run table3_dag_plus_plus && lookuplab view table3_dag_plus_plus
      lookuplab view table1_base_models~1 table1_base_models
      lookuplab view runs/mini/toolgen/monitor_mode.ipynb --output ~/monitor
      lookuplab view table3_dag_plus_plus --broken 5
      python -m http.server -d runs/view        (on a machine without a screen; then open port 8000)

    Args:
        output: Write to this folder. [default: runs/view/NOTEBOOK]
        broken: Write no page. Instead, print this many answers that are right without a document
            and wrong with one, as Markdown: prompt, document, both answers and the reason.
    """
    files = [judged_answers_file(name) for name in notebooks]
    if broken:
        for file in files:
            click.echo("\n".join(broken_pairs(file, broken)))
        return
    names = [file.name.removesuffix(f".{JUDGED}").rpartition(".")[0] for file in files]
    place = output or paths.RUNS / "view" / "+".join(names)
    claim(place)
    count = write_page(files, place)
    click.echo(f"{count:,} answers: open {place / 'index.html'}")


@command()
def compare(first: str, second: str, *, output: Path | None = None) -> None:
    """Compare two runs task by task.

    FIRST and SECOND are notebooks, named as for `lookuplab run`. A name means the notebook's last
    run, with or without -p, and NAME~1 means the run before it. FIRST and SECOND may also be
    executed copies, or files that `lookuplab score` wrote (.jsonl).

    The command first prints the parameters that changed. Answers are paired by model, condition
    (how the model was asked), task and sample. For each model and condition, over all tasks and by
    class, the command prints the change in points with its clustered 95% interval, how many answers
    are better in FIRST, how many are better in SECOND, and McNemar's p value. Lines without a
    change are left out. If nothing changed, all lines are shown. Even then, the intervals are wider
    than 0: they say how large a change is still possible on other tasks.

    A run with a precision also has the conditions dag, dag_index_lookup, dag_confidence and
    dag_plus_plus. These are policies, which only select among the run's answers, with the run's own
    threshold. Their rates are expected values at the run's precision.

    At the end, the command prints the numbers that changed in the notebook's tables. For two files,
    it prints the ids of the answers that are right in only one file.

    \b
    Examples:
      lookuplab run table3_dag_plus_plus
      lookuplab run table3_dag_plus_plus -p threshold=0.5
      lookuplab compare table3_dag_plus_plus~1 table3_dag_plus_plus
      lookuplab compare runs/mini/cloudapibench/table1_base_models.ipynb table1_base_models
      lookuplab compare old.judged.jsonl new.judged.jsonl

    Args:
        output: Write the whole comparison to this CSV file.
    """
    claim_file(output)
    sides = side(first), side(second)
    both = match_rows(*sides)
    table = comparison_table(both)
    if output:
        paths.write_text(output, table.to_csv(index=False, float_format="%.6g"))
    differing = parameter_changes(*sides)
    files = [side.file for side in sides if side.file]
    if files:
        told = ["parameters that changed:", *differing] if differing else ["same parameters"]
        click.echo("\n".join(told))
    click.echo("\npaired by task")
    click.echo("\n".join(table_lines(table)))
    if files:
        if files[1:]:
            click.echo("\n".join(differing_numbers(*files)))
        click.echo(f"answer by answer: lookuplab view {first} {second}")
        return
    for name, better in (
        (first, both.right_1 > both.right_2),
        (second, both.right_2 > both.right_1),
    ):
        click.echo(f"right only in {name} ({better.sum()}): {', '.join(both.id[better])}")
