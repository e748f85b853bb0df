"""The record: every answer and judgement behind the committed mini figures, committed as Parquet in
``data/mini/record``.

Where a store is asked for an answer, the record is asked first; ``$LOOKUPLAB_RECORD=off`` leaves it
out (a cold run). Rows are found by the keys of the stores, so what no longer fits is not found and
is made anew. One file for each kind
of store: ``completions`` has a column for each field of an answer, the others have their answers as
JSON.

For an audit, the runner sets ``$LOOKUPLAB_AUDIT``: then stores keep the questions of a sample of
the rows, which are answered anew at the end (``lookuplab.run.audit``). ``differences`` compares the
two answers.
"""

import hashlib
import json
import math
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lookuplab import paths
from lookuplab.errors import UserError

AUDIT, RECORD = "LOOKUPLAB_AUDIT", "LOOKUPLAB_RECORD"
LEAST_AUDITED = 50  # rows of each model and kind in an audit, or all where there are fewer
# An answer whose margin is below this (in nats; in probability if sampled) is a near tie, and logs
# have its margin. Between vector extensions of processors, the mini models' log-probabilities
# differ by at most 2e-5 and their margins by 3e-5.
NEAR_TIE_MARGIN = 1e-4
GROUP_ROWS = 20_000  # of a row group, which is read as a whole
ANSWER = ("id", "sample", "text", "finish_reason", "prompt_tokens", "prompt_dropped", "margin")


def folder() -> Path:
    return paths.MINI / "record"


class _File:
    """A file of the record: its ``keys`` in its order, the rows at which its groups start, and the
    groups read so far.
    """

    def __init__(self, place: Path):
        import pyarrow.parquet as parquet

        self.reader = parquet.ParquetFile(place, memory_map=True)
        sizes = [
            self.reader.metadata.row_group(at).num_rows for at in range(self.reader.num_row_groups)
        ]
        self.starts = np.cumsum([0, *sizes])
        self.keys = self.reader.read(["key"]).column("key").combine_chunks()
        self.group = cache(lambda at: self.reader.read_row_group(at).combine_chunks())


@cache
def _opened(place: Path, _time: int) -> _File:
    return _File(place)


def _file(name: str) -> _File | None:
    """The record of the stores called ``name``; None if there is none, or it is switched off."""
    place = folder() / f"{name}.parquet"
    if os.environ.get(RECORD) == "off" or not place.is_file():
        return None
    return _opened(place, place.stat().st_mtime_ns)


def rows(name: str, keys: Iterable[str]) -> dict[str, Any]:
    """Key -> answer, exactly as it was stored, for the keys that the record has; their endings make
    no difference.
    """
    import pyarrow
    from pyarrow import compute

    file, asked = _file(name), list(keys)
    if file is None or not asked:
        return {}
    plain = pyarrow.array([key.partition("@")[0] for key in asked])
    places = compute.index_in(plain, value_set=file.keys).to_numpy(zero_copy_only=False)
    there = np.flatnonzero(~np.isnan(places.astype(float)))
    places = places[there].astype(int)
    found: dict[str, Any] = {}
    groups = np.searchsorted(file.starts, places, side="right") - 1
    for at in np.unique(groups):
        chosen = groups == at
        table = file.group(int(at)).take(places[chosen] - file.starts[at])
        read = (
            _answers(table) if name == "completions" else map(json.loads, _column(table, "answer"))
        )
        found.update(zip((asked[one] for one in there[chosen]), read, strict=True))
    return found


def _answers(table: Any) -> Iterator[dict[str, Any]]:
    """Rows of ``completions`` as a store has them: ``vars`` of a Completion and the model."""
    plain = {name: _column(table, name) for name in (*ANSWER, "record", "model")}
    lists = {name: _lists(table, name) for name in ("token_ids", "token_logprobs", "token_lengths")}
    for at, text in enumerate(plain["text"]):
        ends = np.cumsum([0, *lists["token_lengths"][at]]).tolist()
        record = plain["record"][at]
        yield {
            **{name: plain[name][at] for name in ANSWER},
            "tokens": [text[a:b] for a, b in pairwise(ends)],
            "token_ids": lists["token_ids"][at],
            "token_logprobs": lists["token_logprobs"][at],
            "record": None if record is None else json.loads(record),
            "model": plain["model"][at],
        }


def _column(table: Any, name: str) -> list[Any]:
    values: list[Any] = table.column(name).to_pylist()
    return values


def _lists(table: Any, name: str) -> list[list[Any]]:
    """A column of lists: slices of one list of all values, many times faster than Arrow's way."""
    column = table.column(name).combine_chunks()
    values = column.flatten().to_numpy().tolist()
    ends = np.cumsum([0, *column.value_lengths().to_pylist()]).tolist()
    return [values[a:b] for a, b in pairwise(ends)]


# Writing


def write(name: str, answers: Mapping[str, Any], target: Path) -> None:
    """Write the record of the stores called ``name``: the same bytes for the same answers.

    Answers made under other conditions than the record's (``store.elsewhere``) are left out. Raises
    UserError for an answer that would not come back exactly.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    order = {key: _kind(name, key, answer) for key, answer in answers.items() if "@" not in key}
    keys = sorted(order, key=lambda key: (order[key], key))
    if name == "completions":
        table = _columns(keys, answers)
    else:
        about = [key.partition(" ")[2].rpartition(" ")[0] for key in keys]
        told = [json.dumps(answers[key], ensure_ascii=False) for key in keys]
        columns = {
            "kind": [order[key] for key in keys],
            "about": about,
            "answer": told,
            "key": keys,
        }
        table = pyarrow.table(columns)
    # floats compress by a third better with their bytes apart
    floats = {"token_logprobs": "token_logprobs.list.element", "margin": "margin"}
    options = {
        "compression": "zstd",
        "compression_level": 19,
        "row_group_size": GROUP_ROWS,
        "use_dictionary": [field for field in table.column_names if field not in floats],
        "use_byte_stream_split": [
            path for field, path in floats.items() if field in table.column_names
        ],
    }
    with paths.replacing(target) as part:
        parquet.write_table(table, part, **options)


def _columns(keys: Sequence[str], answers: Mapping[str, dict[str, Any]]) -> Any:
    import pyarrow

    found = [answers[key] for key in keys]
    for key, one in zip(keys, found, strict=True):
        numbers = np.array(one["token_logprobs"] or ())
        exact = np.array_equal(numbers.astype(np.float32).astype(float), numbers)
        if not exact or one["token_logprobs"] is None or "".join(one["tokens"]) != one["text"]:
            raise UserError(
                f"{one['model']}, {one['id']} ({key}): only answers of local models in float32 "
                "fit into the record"
            )
    types = {
        "sample": pyarrow.uint16(),
        "prompt_tokens": pyarrow.uint16(),
        "prompt_dropped": pyarrow.uint16(),
        "margin": pyarrow.float64(),  # a difference of probabilities where answers are sampled
    }
    columns = {
        field: pyarrow.array([one[field] for one in found], types.get(field, pyarrow.string()))
        for field in ("model", *ANSWER)
    }
    lists = {
        "token_ids": ([one["token_ids"] for one in found], pyarrow.uint32()),
        "token_lengths": ([[*map(len, one["tokens"])] for one in found], pyarrow.uint16()),
        "token_logprobs": ([one["token_logprobs"] for one in found], pyarrow.float32()),
    }
    columns |= {
        field: pyarrow.array(part, pyarrow.list_(kind)) for field, (part, kind) in lists.items()
    }
    told = [None if one["record"] is None else json.dumps(one["record"]) for one in found]
    return pyarrow.table({**columns, "record": pyarrow.array(told, pyarrow.string()), "key": keys})


def _kind(name: str, key: str, answer: Any) -> str:
    """What audits take their shares of: the model of a completion, the kind of a judgement."""
    return answer["model"] if name == "completions" else key.partition(" ")[0]


# Auditing


class Audit(NamedTuple):
    """An audit as the runner states it: the share of each kind, the seed of the sample, the folder
    of its files.
    """

    share: float
    seed: str
    folder: str

    def keep(self, name: str, by: object, questions: Mapping[str, object]) -> int:
        """Keep the questions of the sample, and what answers them, until all notebooks have run;
        return their number.
        """
        chosen = sampled(name, self.share, self.seed)
        again = {key: questions[key] for key in questions if key in chosen}
        if again:
            content = pickle.dumps((name, by, again))
            own = Path(self.folder) / f"{hashlib.sha256(content).hexdigest()[:16]}.pickle"
            with paths.replacing(paths.made(own.parent) / own.name) as part:
                part.write_bytes(content)
        return len(again)

    @classmethod
    def stated(cls) -> "Audit | None":
        text = os.environ.get(AUDIT)
        return cls(**json.loads(text)) if text else None


def kinds(name: str) -> dict[str, list[str]]:
    """Kind -> keys of the record's rows, in its order."""
    file = _file(name)
    if file is None:
        return {}
    found: dict[str, list[str]] = {}
    column = file.reader.read(["model" if name == "completions" else "kind"]).column(0).to_pylist()
    for kind, key in zip(column, file.keys.to_pylist(), strict=True):
        found.setdefault(kind, []).append(key)
    return found


def sampled(name: str, share: float, seed: str) -> dict[str, str]:
    """Key -> kind of the rows to be made anew: those with the smallest hashes of each kind."""
    return _sampled(name, share, seed, _file(name))


@cache
def _sampled(name: str, share: float, seed: str, _: _File | None) -> dict[str, str]:
    chosen = {}
    for kind, keys in kinds(name).items():
        size = min(len(keys), max(LEAST_AUDITED, math.ceil(share * len(keys))))
        keys = sorted(keys, key=lambda key: hashlib.sha256(f"{seed} {key}".encode()).digest())
        chosen.update(dict.fromkeys(keys[:size], kind))
    return chosen


def differences(name: str, old: Any, new: Any) -> tuple[list[str], bool]:
    """How an answer made anew differs from the record's, and whether it was a near tie.

    Log-probabilities and margins may differ by ``NEAR_TIE_MARGIN``: their last digits depend on the
    processor and on the batch, and a sample is not written in the batches of the record. Everything
    else must be equal.
    """
    if name != "completions":
        return ([] if old == new else [f"{json.dumps(old)} -> {json.dumps(new)}"]), False
    said = []
    for field in (*ANSWER[1:], "tokens", "token_ids", "token_logprobs", "record"):
        was, now = old[field], new[field]
        if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
            pairs = {f"{field}[{at}]": pair for at, pair in enumerate(zip(was, now, strict=True))}
        else:
            pairs = {field: (was, now)}
        for at, (one, other) in pairs.items():
            floats = isinstance(one, float) and isinstance(other, float)
            if one != other and not (floats and abs(one - other) < NEAR_TIE_MARGIN):
                said.append(f"{at} {json.dumps(one)} -> {json.dumps(other)}")
    return said, bool(said) and old["margin"] is not None and old["margin"] < NEAR_TIE_MARGIN
