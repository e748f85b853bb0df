"""The judged answers that runs left beside their executed copies: where they are, and as a page to
read (`lookuplab view`).

The page is static: it opens from a disk as well as from a server. Scripts hold the answers in
pieces, of which the page loads those that it shows.
"""

import gzip
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from lookuplab import paths
from lookuplab.cloudapi.bench import NO_DOCUMENT
from lookuplab.cloudapi.policies import POLICIES, triggered
from lookuplab.errors import UserError
from lookuplab.models.completions import JUDGED
from lookuplab.run.notebooks import find

PAGE = Path(__file__).with_name("pages") / "answers.html"
CHUNK = 200  # answers in one script
HEAD = 120  # characters of an answer and of a reason in the list
# columns of judgements that say why an answer is wrong, in the order in which they are looked for
REASONS = ("reason", "error", "messages", "lost")
SAME = ("predicted", "solution")  # columns that repeat the answer
FILTERS = ("model", "condition", "class")
Line = dict[str, Any]


def logs(name: str) -> list[Path]:
    """Return the files of judged answers of a notebook's runs, the last run first; ``NAME~1`` is
    the run before the last. ``name`` may also be the path of an executed copy.

    Raises UserError if there is none.
    """
    numbered = re.fullmatch(r"(.+)~(\d+)", name)
    place, back = (numbered[1], int(numbered[2])) if numbered else (name, 0)
    copy = paths.expanded(place).resolve()
    if copy.suffix == ".ipynb" and paths.RUNS in copy.parents:
        files, command = [copy.with_suffix(f".{JUDGED}")], copy.stem
    else:
        notebook = find(place)
        own = re.compile(rf"{re.escape(notebook.name)}(\.\d+)?\.{re.escape(JUDGED)}")
        files = [*paths.RUNS.rglob(f"{notebook.id}*.{JUDGED}")]
        files, command = [file for file in files if own.fullmatch(file.name)], notebook.id
    files = sorted(filter(Path.is_file, files), key=lambda file: -file.stat().st_mtime_ns)
    if not files[back:]:
        kept = f"; of its runs, {len(files)} are kept" if files else ""
        raise UserError(f"no judged answers of {name} here: `lookuplab run {command}`{kept}")
    return files[back:]


def read(file: Path) -> Iterator[Line]:
    """Yield what a run was, and then its judged answers (``benchmark.keep``). An answer that was
    judged twice in one way counts once; another answer to a question of the same name gets a number
    after its condition.
    """
    seen: dict[tuple[Any, ...], list[Any]] = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield json.loads(next(lines))
        for text in lines:
            line = json.loads(text)
            key = line["model"], line["condition"], line["id"], line["sample"]
            others = seen.setdefault(key, [])
            answer = hash((line["prompt"], line["completion"], line["right"]))
            if answer not in others:
                others.append(answer)
                line["condition"] += f" ({len(others)})" if others[1:] else ""
                yield line


def reason(columns: Line) -> str:
    """Return why an answer is wrong, from the columns of its judgement; "" if they do not say."""
    found = next((columns[name] for name in REASONS if columns.get(name)), "")
    texts = found if isinstance(found, list) else [found]
    return "; ".join(" ".join(map(str, text)) if isinstance(text, list) else text for text in texts)


class Words(dict[str, int]):
    """Texts by number, in the order of their first use."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def write_page(files: Iterable[Path], output: Path) -> int:
    """Write the page of the judged answers in ``files`` to the folder ``output``, and return the
    number of answers. If there are several files, each one's name precedes its conditions.
    """
    runs = [*files]
    names = [f"{file.name.removesuffix(f'.{JUDGED}')}: " for file in runs]
    fields = {name: Words() for name in (*FILTERS, "id", "verdict", "said", "why")}
    of: dict[str, list[Any]] = {name: [] for name in (*fields, "sample", "right")}
    abouts = []
    plain: dict[str, str] = {}  # each task's shortest prompt
    for file in runs:
        for line in islice(read(file), 1, None):
            plain[line["id"]] = min(plain.get(line["id"], line["prompt"]), line["prompt"], key=len)
    if output.is_dir() and any(output.iterdir()) and not (output / "index.js").is_file():
        raise UserError(f"{output} holds other files: name a new folder")
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
                    # what precedes the question: documents, examples
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
    if firsts and first.minimum.notna().all():  # answers after which each policy looks something up
        for policy in POLICIES[2:]:
            index["policies"][policy] = first["at"][triggered(first, policy)].tolist()
    index["words"] = {field: [*words] for field, words in fields.items()}
    paths.write_lines(output / "index.js", [f"lookuplab.index({json.dumps(index)})"])
    shutil.copyfile(PAGE, output / "index.html")
    return len(of["id"])
