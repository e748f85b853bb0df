"""Writes the committed record (``data/mini/record``) from the stores of a cold run.
``lookuplab.models.record`` reads the record.
"""

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pyarrow
import pyarrow.parquet as parquet

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.models.store import PYTHON, key_suffix
from lookuplab.run import audit
from lookuplab.run.cli import command, run_module

GROUP_ROWS = 20_000  # rows per row group of the Parquet files


def write(stores: Path) -> None:
    """Write the record from the stores in a folder. A complete cold run of all or some papers must
    have filled these stores.

    All completions of one model are rows of one kind, and so are all judgements of one type
    (``kind_of``). If the run covered all papers, its rows of a kind replace all rows of that kind
    in the record. If the run covered only some papers, each row replaces only the row with the same
    key, because other papers may have prompts for the same model. But if the conditions of a kind
    have changed, the run's rows replace all rows of that kind. All other rows stay, and
    ``about.json`` still names the runs that made them.

    Raises UserError if this Python has another version than the record's, or if the run that filled
    the stores is incomplete.
    """
    if key_suffix():
        raise UserError(
            f"the record must be made with Python {PYTHON}, not {platform.python_version()}"
        )
    run = stores / "run.json"
    if not run.is_file():
        raise UserError(f"no complete cold run in {stores}; `lookuplab reproduce --cold` makes one")
    this = json.loads(run.read_text("utf-8"))
    runs = audit.about().get("runs", [])
    is_whole = this["whole"] or not runs
    counts = {}
    made = set()
    replaced = set()
    # the manifest is removed first, because it describes the old files
    (record.folder() / record.MANIFEST).unlink(missing_ok=True)
    for kind in audit.STORES:
        file = stores / f"{kind.name}.sqlite"
        with kind(file if file.is_file() else False) as store:
            answers = store.get(store.present())
        anew = {kind_of(kind.name, *answer) for answer in answers.items()}
        gone = anew.intersection(anew if is_whole else audit.changed_kinds(kind.name))
        old = {of: {*keys} - answers.keys() for of, keys in record.kinds(kind.name).items()}
        kept = {of: keys for of, keys in old.items() if keys and of not in gone}
        made |= anew
        replaced |= anew - kept.keys()
        answers |= record.rows(kind.name, set().union(*kept.values()))
        write_file(kind.name, answers, record.folder() / f"{kind.name}.parquet")
        counts[kind.name] = {of: len(keys) for of, keys in record.kinds(kind.name).items()}
    earlier = [{**one, "kinds": sorted({*one["kinds"]} - replaced)} for one in runs]
    told = {
        "runs": [*(one for one in earlier if one["kinds"]), {**this, "kinds": sorted(made)}],
        "rows": counts,
        "conditions": audit.conditions(),
    }
    paths.write_lines(record.folder() / "about.json", [json.dumps(told, indent=0, sort_keys=True)])
    write_manifest()


def write_manifest() -> None:
    """Write the sha256 of each file of the record, in the format of ``sha256sum -c``."""
    folder = record.folder()
    files = sorted([*folder.glob("*.parquet"), *folder.glob("*.json")])
    lines = [f"{paths.file_hash(file)}  {file.name}" for file in files]
    paths.write_lines(folder / record.MANIFEST, lines)


def write_file(name: str, answers: Mapping[str, Any], target: Path) -> None:
    """Write the answers of the store ``name`` ("completions", for example) to a Parquet file. The
    same answers give the same bytes.

    Answers made under conditions other than the record's (``store.key_suffix``) are left out.
    Raises UserError for an answer that would not be read back exactly.
    """
    order = {key: kind_of(name, key, answer) for key, answer in answers.items() if "@" not in key}
    keys = sorted(order, key=lambda key: (order[key], key))
    if name == "completions":
        table = _completion_table({key: answers[key] for key in keys})
    else:
        table = pyarrow.table(
            {
                "kind": [order[key] for key in keys],
                "about": [key.partition(" ")[2].rpartition(" ")[0] for key in keys],
                "answer": [json.dumps(answers[key], ensure_ascii=False) for key in keys],
                "key": keys,
            }
        )
    # floats become a third smaller if their first bytes, second bytes, ... are stored together
    floats = {"token_logprobs": "token_logprobs.list.element", "margin": "margin"}
    # Parquet's dictionary encoding stores a repeated value only once. Keys never repeat, so a
    # dictionary of keys would only make the file larger.
    unique = {} if name == "completions" else {"key"}
    with paths.replacing(target) as part:
        parquet.write_table(
            table,
            part,
            compression="zstd",
            compression_level=19,
            row_group_size=GROUP_ROWS,
            use_dictionary=[
                field for field in table.column_names if field not in {*floats, *unique}
            ],
            use_byte_stream_split=[
                floats[field] for field in floats if field in table.column_names
            ],
        )


def _completion_table(answers: Mapping[str, dict[str, Any]]) -> pyarrow.Table:
    text = pyarrow.string()
    small = pyarrow.uint16()
    lists = pyarrow.list_
    columns = {
        "model": text,
        "id": text,
        "sample": small,
        "text": text,
        "finish_reason": text,
        "prompt_tokens": small,
        "prompt_dropped": small,
        # the margin of a sampled answer is a difference of float64 probabilities
        "margin": pyarrow.float64(),
        "token_ids": lists(pyarrow.uint32()),
        "token_lengths": lists(small),
        "token_logprobs": lists(pyarrow.float32()),
        "record": text,
        "key": text,
    }
    rows = []
    for key, answer in answers.items():
        logprobs, log = answer["token_logprobs"], answer["record"]
        rounded = pyarrow.array(logprobs or [], pyarrow.float32()).to_pylist()
        if logprobs != rounded or "".join(answer["tokens"]) != answer["text"]:
            raise UserError(
                f"{answer['model']}, {answer['id']} ({key}): only answers of local models in "
                "float32 fit into the record"
            )
        lengths = [*map(len, answer["tokens"])]
        log = None if log is None else json.dumps(log)
        rows.append(answer | {"key": key, "token_lengths": lengths, "record": log})
    return pyarrow.Table.from_pylist(rows, pyarrow.schema(columns))


def kind_of(name: str, key: str, answer: Any) -> str:
    """Return the kind of a row: for a completion its model, for a judgement the first word of its
    key. Audits sample the same share of every kind.
    """
    return answer["model"] if name == "completions" else key.partition(" ")[0]


@command()
def main() -> None:
    """Write the record, data/mini/record, from the stores of a cold run. The record has every
    answer and judgement behind the mini figures.

    `lookuplab reproduce --cold` fills these stores. The same answers give the same bytes. If the
    cold run covered only some papers, it replaces only rows of these papers, and rows whose
    conditions have changed. Commit the record together with the figures of the same run.

    \b
    Example:
      lookuplab reproduce --cold
      python -m recipes.mini.record
    """
    write(audit.cold_folder())
    click.echo(f"written: {record.folder()}")


if __name__ == "__main__":
    run_module(main)
