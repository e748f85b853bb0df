"""Is the record what the models, Jedi, pylint and the programs answer? What it depends on, and
audits of it.

An audit executes notebooks, which keep the questions of a seeded sample of the record's rows
(``models.record``); makes these rows anew, in a process of its own; and compares them one by one.
"""

import json
import math
import multiprocessing
import os
import pickle
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import hypergeom

from lookuplab import paths, python_sources
from lookuplab.errors import UserError
from lookuplab.execution.progress import span
from lookuplab.models import record
from lookuplab.models.completions import (
    DECODING_VERSION,
    CompletionRequest,
    Decoding,
    Model,
    Prompt,
    find_or_generate,
)
from lookuplab.models.names import mini_models, model_hash
from lookuplab.models.store import (
    PYTHON,
    STORE_VARIABLE,
    AnswerStore,
    CompletionStore,
    canonical,
    elsewhere,
)
from lookuplab.results import provenance
from lookuplab.run.execute import end_with_the_runner
from lookuplab.run.runner import ALWAYS, default_jobs, run_module
from lookuplab.stackoverflow import grader
from lookuplab.toolgen import analysers, jedi_tool, marking, rules, success

STORES: tuple[type[AnswerStore], ...] = (
    CompletionStore,
    analysers.JudgementStore,
    marking.Marks,
    grader.VerdictStore,
)
# the share of altered rows for which a report says how surely the sample would have found one
ALTERED = 0.01
# What the answers come from; another version of one of these needs a new record.
ANSWERING_PACKAGES = "torch transformers tokenizers peft jedi parso pylint astroid".split()


def cold() -> Path:
    """The folder of the stores of a run without the record."""
    return paths.RUNS / "cold"


def cold_environment(is_preview: bool) -> dict[str, str]:
    """Variables for a run without the record, with stores of its own: empty ones unless an earlier
    run was interrupted.
    """
    if (cold() / "run.json").is_file() and not is_preview:  # that run is complete
        shutil.rmtree(cold())
    return {record.RECORD_VARIABLE: "off", STORE_VARIABLE: str(cold() / "completions.sqlite")}


def audit_environment(audit: record.Audit | None) -> dict[str, str]:
    """Variables for a run with an audit; none without one."""
    return {record.AUDIT_VARIABLE: json.dumps(audit._asdict())} if audit else {}


def complete(seconds: float) -> None:
    """Note beside the stores of a cold run that it is complete, where, and how long it took."""
    told = {**provenance.describe(), "seconds": round(seconds)}
    paths.write_lines(cold() / "run.json", [json.dumps(told, indent=1, sort_keys=True)])


# 1. What the record depends on


def conditions() -> dict[str, dict[str, Any]]:
    """What the rows of each store depend on besides what was asked; rows made under other
    conditions are not found.
    """
    read = python_sources.identity("jedi", "parso", "pylint", "astroid")
    judging = {"version": analysers.JUDGING_VERSION, "read": read}
    marks = {name: one.marking for name, one in rules.RULES.items()}
    models = {name: model_hash(folder) for name, folder in mini_models().items()}
    return {
        "completions": {"version": DECODING_VERSION, "tool": jedi_tool.TOOL_VERSION, **models},
        "judgements": {**judging, "check": success.CHECK_VERSION},
        "marks": {**judging, "tool": jedi_tool.TOOL_VERSION, "marking": str(marks)},
        "verdicts": {"version": grader.GRADER_VERSION, "libraries": grader.own_libraries()},
    }


def about() -> dict[str, Any]:
    """Where the record comes from, as ``write`` noted it; {} without a record."""
    file = record.folder() / "about.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def fit(jobs: int = 1) -> Iterator[str]:
    """Lines for the user: how much of the record still fits, and what has changed since it was
    made; ``jobs`` notebooks run at once.
    """
    told = about()
    if not told:
        yield "there is no record here: every answer is made anew"
        return
    now, lost, reasons = conditions(), 0, []
    total = sum(sum(counts.values()) for counts in told["rows"].values())
    for store, counts in told["rows"].items():
        was = told["conditions"][store]
        changed = [name for name in was if was[name] != now[store].get(name)]
        models = [name for name in changed if name in counts]
        lost += sum(counts[name] for name in models or counts if changed)
        reasons += [f"{store}: {name} has changed" for name in changed]
    if lost:
        took = span(told["seconds"] * lost / total / jobs)
        yield f"{lost:,} of {total:,} answers and judgements are not in the record: about {took}"
        yield from reasons
    else:
        yield f"the record has {total:,} answers and judgements"


# 2. Writing it


def write(stores: Path) -> dict[str, dict[str, int]]:
    """Write the record from the stores in a folder, that of a complete cold run; return the number
    of rows by store and kind.

    Raises UserError under another Python and for the stores of an incomplete run.
    """
    if elsewhere():
        raise UserError(
            f"the record is made under Python {PYTHON}, not {platform.python_version()}"
        )
    run = stores / "run.json"
    if not run.is_file():
        raise UserError(f"no complete cold run in {stores}; `lookuplab reproduce --cold` makes one")
    counts = {}
    for kind in STORES:
        file = stores / kind.default_path().name
        with kind(file if file.is_file() else False) as store:
            answers = store.everything()
        record.write(kind.name, answers, record.folder() / f"{kind.name}.parquet")
        counts[kind.name] = {of: len(keys) for of, keys in record.kinds(kind.name).items()}
    told = json.loads(run.read_text(encoding="utf-8"))
    told |= {"rows": counts, "conditions": conditions()}
    text = json.dumps(told, indent=1, sort_keys=True)
    paths.write_lines(record.folder() / "about.json", [text])
    return counts


# 3. Making a sample anew


def answer_anew(audit: record.Audit) -> int:
    """Answer the sample's questions in a process of its own; return its exit status."""
    quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    stated = {record.RECORD_VARIABLE: "off", "OMP_NUM_THREADS": "1", **ALWAYS, **quiet}
    return run_module("lookuplab.run.audit", audit._asdict(), {**os.environ, **stated})


def make(audit: record.Audit) -> None:
    """Answer the questions that the notebooks have kept, each once, into stores in the audit's
    folder: each model in a process of its own, and meanwhile the judgements, which have workers.
    """
    models: dict[object, tuple[Model, dict[Decoding | None, dict[str, CompletionRequest]]]] = {}
    judging: dict[tuple[str, bytes], tuple[Any, dict[str, Any]]] = {}
    for file in sorted(Path(audit.folder).glob("*.pickle")):
        name, by, requests = pickle.loads(file.read_bytes())
        if name == CompletionStore.name:
            model, decoding = by
            _, parts = models.setdefault(interchangeable(model), (model, {}))
            parts.setdefault(decoding, {}).update(requests)
        else:
            judging.setdefault((name, pickle.dumps(by)), (by, {}))[1].update(requests)
    stores = {kind.name: (kind, Path(audit.folder, f"{kind.name}.sqlite")) for kind in STORES}
    with ProcessPoolExecutor(default_jobs(), multiprocessing.get_context("spawn")) as processes:
        longest = sorted(models.values(), key=_characters, reverse=True)
        file = stores[CompletionStore.name][1]
        answering = [
            processes.submit(answer, *model_and_parts, file) for model_and_parts in longest
        ]
        for (name, _), (by, requests) in judging.items():
            kind, file = stores[name]
            if kind is grader.VerdictStore:
                replace(by, store=file).outcomes([*requests.values()])
            else:
                analysers.answer_all(kind(file), requests, by, strict=False)
        for answered_model in answering:
            answered_model.result()


def interchangeable(model: Model) -> object:
    """Equal for models of which one can answer the other's requests. A model with a tool cannot:
    it knows only the functions of its own notebook.
    """
    from lookuplab.models.local import LocalModel

    return canonical(model.identity) if isinstance(model, LocalModel) else pickle.dumps(model)


Parts = Mapping[
    Decoding | None, Mapping[str, CompletionRequest]
]  # prompts by key, by their decoding


def answer(model: Model, parts: Parts, store: Path) -> None:
    """Answer each part, in as few calls as possible, into the store."""
    for decoding, requests in parts.items():
        for call in rounds(requests.values()):
            find_or_generate(model, call, decoding, store)


def _characters(model_and_parts: tuple[Model, Parts]) -> int:
    parts = model_and_parts[1].values()
    return sum(len(prompt.text) for requests in parts for prompt, *_ in requests.values())


def rounds(requests: Iterable[CompletionRequest]) -> list[list[CompletionRequest]]:
    """The requests in as few lists as possible in which an id names one prompt and one
    continuation, as a call needs it.
    """
    named: dict[str, list[tuple[Prompt, str]]] = {}
    calls: dict[int, list[CompletionRequest]] = {}
    for request in requests:
        known = named.setdefault(request[0].id, [])
        if request[:2] not in known:
            known.append(request[:2])
        calls.setdefault(known.index(request[:2]), []).append(request)
    return [*calls.values()]


# 4. Auditing it


def share_of(text: str) -> float:
    """``2%`` -> 0.02. Raises UserError for anything that is no percentage above 0."""
    percentage = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    if not percentage or not 0 < float(percentage[1]) <= 100:
        raise UserError(f"a share is a percentage above 0, such as 2% or 100%, not {text!r}")
    return float(percentage[1]) / 100


def begin(share: str) -> record.Audit:
    """An audit with its own empty folder, or the one of the same audit if that was interrupted.

    The commit is the seed, so that over time other rows are tried.
    """
    if not about():
        raise UserError("there is no record to audit; `lookuplab record` writes one")
    seed = provenance.git("rev-parse", "HEAD") or provenance.library_hash()
    audit = record.Audit(share_of(share), seed, str(paths.RUNS / "audit" / "stores"))
    statement, place = paths.RUNS / "audit" / "audit.json", Path(audit.folder)
    if not statement.is_file() or json.loads(statement.read_text()) != [*audit]:
        for file in place.glob("*"):
            file.unlink()
        paths.write_lines(statement, [json.dumps(audit)])
    return audit


def finish(audit: record.Audit, code: int) -> int:
    """Make the sample anew, print the report, and return the exit code; ``code`` is that of the
    notebooks.
    """
    code = answer_anew(audit) or code
    lines, failed = report(audit)
    print("\n".join(lines))
    if code == 0:  # complete: the next one begins anew
        (paths.RUNS / "audit" / "audit.json").unlink(missing_ok=True)
    return code or int(failed)


def surely(rows: int, made: int, altered: float = ALTERED) -> str:
    """The probability that a random sample of ``made`` of ``rows`` has at least one of the altered
    ones, in percent.
    """
    missed = hypergeom.pmf(0, rows, math.ceil(altered * rows), made)
    if 0 < missed < 1e-3:
        return "more than 99.9%"
    return f"{math.floor(1000 * (1 - missed) + 1e-6) / 10:g}%"


def report(audit: record.Audit) -> tuple[list[str], bool]:
    """Compare what an audit has made anew with the record, row by row: what to print, the result in
    its last line, and whether something differs.
    """
    counts: list[dict[str, Any]] = []
    lines: dict[str, list[str]] = {"near tie": [], "different": []}
    for kind in STORES:
        sample = record.sampled(kind.name, audit.share, audit.seed)
        file = Path(audit.folder) / f"{kind.name}.sqlite"
        with kind(file if file.is_file() else False) as store:
            anew = store.get(sample)
        recorded, equal = record.rows(kind.name, anew), set()
        for key in sorted(anew):
            said, near = record.differences(kind.name, recorded[key], anew[key])
            if said:
                line = f"{kind.name} | {_named(key, recorded[key])}: {'; '.join(said)}"
                lines["near tie" if near else "different"].append(line)
            else:
                equal.add(key)
        for of, keys in record.kinds(kind.name).items():
            sizes = {"rows": keys, "sample": sample, "made anew": anew, "equal": equal}
            numbers = {name: len({*keys}.intersection(part)) for name, part in sizes.items()}
            counts.append({"store": kind.name, "kind": of, **numbers})
    table = pd.DataFrame(counts)
    rows, sampled, made, _ = map(int, table.sum(numeric_only=True))
    if not made:
        said = ["audit: no notebook asked for a row of the sample; `lookuplab audit` runs all"]
        return said, False
    share = f"{audit.share:.3%}".rstrip("0%").rstrip(".")
    said = [
        f"audit of {share}% of each kind, at least {record.LEAST_AUDITED} rows; seed {audit.seed}",
        table.to_string(index=False),
    ]
    if missing := sampled - made:
        where = "notebooks that did not run now"
        if elsewhere():
            here = platform.python_version()
            where += f", or judgements, which are compared only under Python {PYTHON} (here {here})"
        said.append(f"{missing:,} rows of the sample were not made anew: they belong to {where}")
    said += [f"{outcome}: {line}" for outcome, found in lines.items() for line in found]
    ties, differing = map(len, lines.values())
    return [
        *said,
        f"audit: {'FAILED: ' if differing else ''}{made:,} of {rows:,} rows made anew, {differing} "
        f"different{f', {ties} explained by near ties' if ties else ''}; had {ALTERED:.0%} of the "
        f"rows been altered, this would have found one with {surely(rows, made)}",
    ], differing > 0


def _named(key: str, answer: Any) -> str:
    """What a reader recognises a row by."""
    if isinstance(answer, dict) and "model" in answer:
        return f"{answer['model']} | {answer['id']} | sample {answer['sample']} | {key}"
    return key


if __name__ == "__main__":
    make(record.Audit(**json.loads(end_with_the_runner())))
