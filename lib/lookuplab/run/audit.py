"""Audits the record of answers: checks whether the models, Jedi, pylint and the executed programs
still give the answers in the record, and lists what these answers depend on.

An audit executes notebooks. They read most answers from the record, but generate a random sample of
its rows again (``AnswerStore.lookup``). The audit then compares the new rows with the recorded
ones.
"""

import json
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from lookuplab import paths, python_sources
from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.models.completions import DECODING_VERSION
from lookuplab.models.local import model_hash
from lookuplab.models.names import mini_models
from lookuplab.models.store import (
    PYTHON,
    AnswerStore,
    CompletionStore,
    key_suffix,
)
from lookuplab.results import provenance
from lookuplab.run.cli import claim
from lookuplab.run.runner import surroundings
from lookuplab.stackoverflow import grader
from lookuplab.toolgen import analysers, evaluation, jedi_tool, marking, success

STORES: tuple[type[AnswerStore], ...] = (
    CompletionStore,
    analysers.JudgementStore,
    marking.Marks,
    grader.VerdictStore,
)


def cold_folder() -> Path:
    """Return the folder with the stores of a cold run. A cold run does not use the record."""
    return paths.RUNS / "cold"


def cold_environment(is_preview: bool) -> dict[str, str]:
    """Return the environment variables of a cold run, which uses separate stores. The stores of an
    interrupted cold run are kept, so that it can be continued. The stores of a complete cold run
    are removed, unless the new run is only previewed (``is_preview``).
    """
    if (cold_folder() / "run.json").is_file() and not is_preview:  # the earlier run is complete
        shutil.rmtree(cold_folder())
    return {
        record.RECORD_VARIABLE: "off",
        paths.STORE_VARIABLE: str(cold_folder() / "completions.sqlite"),
    }


def mark_complete(is_whole: bool) -> None:
    """Write ``run.json`` to the folder of a cold run's stores. The file exists only if the run is
    complete, and says whether the run included all papers (``is_whole``).
    """
    told = {**provenance.describe(), "whole": is_whole}
    paths.write_lines(cold_folder() / "run.json", [json.dumps(told, indent=1, sort_keys=True)])


# 1. What the record depends on


def conditions() -> dict[str, dict[str, Any]]:
    """Return {store: {condition: value}}. A condition is the version of some code or package, or
    the hash of a model. The rows of a store depend on all of its conditions; rows that were made
    under other conditions are not used.
    """
    read = python_sources.identity("jedi", "parso", "pylint", "astroid")
    judging = {"version": analysers.JUDGING_VERSION, "read": read}
    marks = str(marking.MARKING_VERSIONS)
    models = {name: model_hash(folder) for name, folder in mini_models().items()}
    return {
        "completions": {"version": DECODING_VERSION, "tool": jedi_tool.TOOL_VERSION, **models},
        "judgements": {
            **judging,
            "check": success.CHECK_VERSION,
            "dependencies": evaluation.USES_VERSION,
        },
        "marks": {**judging, "tool": jedi_tool.TOOL_VERSION, "marking": marks},
        "verdicts": {"version": grader.GRADER_VERSION, "libraries": grader.own_libraries()},
    }


def about() -> dict[str, Any]:
    """Return the record's provenance, from the file that ``recipes.mini.record`` wrote; {} if there
    is no record.
    """
    file = record.folder() / "about.json"
    return json.loads(record.content(file)) if file.is_file() else {}


def changed_kinds(store: str) -> Collection[str]:
    """Return the kinds of rows that may be different now, because the store's conditions have
    changed since the record was made. For completions, the kinds are the models. A condition that
    has the name of a kind concerns only this kind. If a changed condition has another name, return
    all kinds.
    """
    told = about()
    now = conditions()[store]
    was, kinds = told["conditions"][store], told["rows"][store]
    changed = [name for name in {*was, *kinds} if was.get(name) != now.get(name)]
    return changed if kinds.keys() >= set(changed) else kinds


# 2. Auditing the record


def begin(share: str) -> record.Audit:
    """Begin an audit of a share of the record's rows, such as "2%", and return the audit. If the
    same audit was interrupted and nothing has changed since, it is continued.

    The commit is the seed of the sample, so the next commit audits other rows. Raises UserError if
    there is no record, or if ``share`` is not a percentage above 0.
    """
    percentage = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", share.strip())
    if not percentage or not 0 < float(percentage[1]) <= 100:
        raise UserError(f"a share is a percentage above 0, such as 2% or 100%, not {share!r}")
    if not any(record.kinds(kind.name) for kind in STORES):
        raise UserError(
            "there is no record to audit, or LOOKUPLAB_RECORD=off; `python -m recipes.mini.record` "
            "writes one"
        )
    claim(audit_file())
    seed = provenance.git("rev-parse", "HEAD") or provenance.library_hash()
    audit = record.Audit(float(percentage[1]) / 100, seed)
    stated = paths.canonical([audit, surroundings()])
    if not audit_file().is_file() or audit_file().read_text("utf-8").strip() != stated:
        # a new audit must not find rows that an earlier audit generated
        for kind in STORES:
            with kind() as store:
                store.forget(record.draw_sample(kind.name, audit))
        paths.write_lines(audit_file(), [stated])
    return audit


def audit_file() -> Path:
    """Return the path of the file that describes an unfinished audit. The audit's new answers are
    not in this file, but in the stores.
    """
    return paths.RUNS / "audit" / "audit.json"


def finish(audit: record.Audit, code: int, every: bool) -> int:
    """Compare an audit's new rows with the record, row by row. Print the differences and, in the
    last line, the result. Return the exit code of the audit.

    ``code`` is the exit code of the notebooks. ``every`` is True if no notebook was skipped as up
    to date. If no row was compared and ``every`` is True, the audit fails. If notebooks were
    skipped, it passes, because only those notebooks may use the rows of the sample.
    """
    rows = made = 0
    lines: dict[str, list[str]] = {"near tie": [], "different": []}
    for kind in STORES:
        sample = record.draw_sample(kind.name, audit)
        with kind() as store:
            anew = store.get(sample)
        recorded = record.rows(kind.name, anew)
        for key in sorted(anew):
            said, near = record.differences(kind.name, recorded[key], anew[key])
            if said:
                line = f"{kind.name} | {_row_name(key, recorded[key])}: {'; '.join(said)}"
                lines["near tie" if near else "different"].append(line)
        rows += sum(map(len, record.kinds(kind.name).values()))
        made += len(anew)
    share = f"{audit.share:.2%} of each kind, at least {record.LEAST_AUDITED} rows"
    print(f"audit of {share}; seed {audit.seed}")
    for outcome, found in lines.items():
        for line in found:
            print(f"{outcome}: {line}")
    if key_suffix():
        print(f"not compared: rows that depend on Python (the record's: {PYTHON})")
    ties, differing = map(len, lines.values())
    result = "nothing was compared: no notebook that ran uses a row of the sample"
    if made:
        result = f"{made:,} of {rows:,} rows regenerated, {differing} different"
        result += f", {ties} explained by near ties" if ties else ""
    result += "; not all notebooks ran" if code else ""
    failed = code or differing or (not made and every)
    print(f"audit: {'FAILED: ' if failed else ''}{result}")
    if code == 0:  # complete: the next audit starts from the beginning
        audit_file().unlink()
    return code or int(bool(failed))


def _row_name(key: str, answer: Any) -> str:
    """Return the text that stands for a row in messages: the row's key. For a model's answer, the
    text also has the model, the prompt's id and the number of the sample.
    """
    if isinstance(answer, dict) and "model" in answer:
        return f"{answer['model']} | {answer['id']} | sample {answer['sample']} | {key}"
    return key
