"""Reads the record, a cache that is searched before the stores. The record has every answer and
judgement behind the committed mini figures, and is committed as Parquet in ``data/mini/record``.

``$LOOKUPLAB_RECORD=off`` switches the record off (a cold run). If the variable has a value such as
``0.02 1234`` (a share and a seed), the run is an audit: a random sample of the rows is generated
again and put into the stores, while results are still computed from the record.

An answer has the same key in the record as in a store. If a model or a prompt changes, so does the
key; the old row is then no longer found, and the answer is generated again. The record has a file
for each type of store. The file of completions has a column for each field of an answer; the other
files have each answer as JSON. ``python -m recipes.mini.record`` writes the files and their
checksums, ``SHA256SUMS``. Each file is checked when it is first read.

``differences`` compares a new answer with the recorded answer, and tells whether a near tie may
explain the difference.
"""

import hashlib
import json
import math
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lookuplab import paths
from lookuplab.errors import UserError

if TYPE_CHECKING:
    import pyarrow

RECORD_VARIABLE = "LOOKUPLAB_RECORD"  # "off", or an Audit as text
# An audit has at least this many rows of each kind (see ``kinds``), or all rows if there are fewer.
# If 45% of the rows of one kind are wrong, five rows include a wrong one with a probability of 95%.
# The audit of the next commit draws other rows.
LEAST_AUDITED = 5
# An answer is a near tie if its margin (in nats; for sampled answers, in probability) is below this
# number. Only the margins of near ties are written to logs. Between processors with different
# vector extensions, the mini models' log-probabilities differ by at most 2e-5, and the margins by
# at most 3e-5.
NEAR_TIE_MARGIN = 1e-4
MANIFEST = "SHA256SUMS"  # in the format of the command sha256sum
LISTS = ("token_ids", "token_logprobs", "token_lengths")  # columns with a list in each row


def folder() -> Path:
    return paths.MINI / "record"


def _file(name: str) -> tuple[Path, int] | None:
    """Return the record's file for the stores called ``name`` (such as "completions"), and the time
    of the file's last change in ns. Return None if there is no such file, or if the record is
    switched off.
    """
    file = folder() / f"{name}.parquet"
    switch = os.environ.get(RECORD_VARIABLE, "")
    if switch not in ("", "off") and not Audit.from_environment():
        raise UserError(f"{RECORD_VARIABLE} is {switch!r}; it must be off, or a share and a seed")
    return None if switch == "off" or not file.is_file() else (file, file.stat().st_mtime_ns)


def content(file: Path) -> bytes:
    """Return the content of a file of the record. Raises UserError if the content does not match
    the manifest, ``SHA256SUMS``. A record without a manifest is not checked.
    """
    data = file.read_bytes()
    manifest = file.with_name(MANIFEST)
    told = manifest.read_bytes() if manifest.is_file() else None
    line = f"{hashlib.sha256(data).hexdigest()}  {file.name}\n"
    if told is not None and line.encode() not in told:
        raise UserError(
            f"{file} is damaged (or {MANIFEST} beside it): its sha256 does not match; restore both "
            f"(in a git checkout: git -C {shlex.quote(str(file.parent))} checkout -- .)"
        )
    return data


@cache
def _table(file: Path, _time: int) -> "pyarrow.Table":
    import pyarrow
    import pyarrow.parquet as parquet

    data = pyarrow.BufferReader(content(file))
    # with threads or with reading ahead, reading would take twice the processor time
    return parquet.read_table(data, use_threads=False, pre_buffer=False).combine_chunks()


@cache
def _row_numbers(file: Path, time: int) -> dict[str, int]:
    """Return {key: index of the key's row}. This dictionary is cached; with Arrow's own search,
    each lookup would hash all keys again.
    """
    return {key: at for at, key in enumerate(_table(file, time)["key"].to_pylist())}


def rows(name: str, keys: Iterable[str]) -> dict[str, Any]:
    """Return {key: answer} for those keys that are in the record. The suffixes that
    ``store.key_suffix`` adds to keys are ignored. Each answer is exactly as it was stored.
    """
    if not (file := _file(name)):
        return {}
    places = _row_numbers(*file)
    found = {key: at for key in keys if (at := places.get(key.partition("@")[0])) is not None}
    if not found:
        return {}
    table = _table(*file).take([*found.values()])
    is_completions = name == "completions"
    answers = (
        _completions(table) if is_completions else map(json.loads, table["answer"].to_pylist())
    )
    return dict(zip(found, answers, strict=True))


def _completions(table: "pyarrow.Table") -> Iterator[dict[str, Any]]:
    """Yield each row of the table in the form that CompletionStore stores: a dictionary with the
    fields of a Completion and ``model``.
    """
    # NumPy converts these columns, because Arrow's own conversion to lists is many times slower
    lists = [[part.tolist() for part in table[field].to_numpy()] for field in LISTS]
    plain = table.drop_columns(["key", *LISTS]).to_pylist()
    for fields, token_ids, logprobs, lengths in zip(plain, *lists, strict=True):
        text, log = fields["text"], fields["record"]
        yield fields | {
            "tokens": [text[a:b] for a, b in pairwise(accumulate(lengths, initial=0))],
            "token_ids": token_ids,
            "token_logprobs": logprobs,
            "record": None if log is None else json.loads(log),
        }


# Auditing


class Audit(NamedTuple):
    """Determines which rows of the record are generated again. Of each kind of rows (see
    ``kinds``), the share ``share`` is drawn, and ``seed`` determines which rows these are.
    """

    share: float
    seed: str

    def __str__(self) -> str:
        """Return the value that states this audit in ``$LOOKUPLAB_RECORD``."""
        return f"{self.share} {self.seed}"

    @classmethod
    def sample(cls, name: str) -> Collection[str]:
        """Return the keys of those answers in the stores called ``name`` that the current audit
        generates again. There are none if there is no audit.
        """
        return draw_sample(name, stated) if (stated := cls.from_environment()) else ()

    @classmethod
    def from_environment(cls) -> "Audit | None":
        """Return the audit that ``$LOOKUPLAB_RECORD`` states, or None if it states no audit."""
        stated = re.fullmatch(r"(\d*\.?\d+(?:e-\d+)?) (\S+)", os.environ.get(RECORD_VARIABLE, ""))
        return cls(float(stated[1]), stated[2]) if stated else None


def kinds(name: str) -> dict[str, list[str]]:
    """Return {kind: keys of the rows} for the record's file ``name`` (such as "completions"), in
    the order of the file. The kind of a completion is its model. The rows of other files have a
    column ``kind``.
    """
    found: dict[str, list[str]] = {}
    if file := _file(name):
        columns = _table(*file).select(["model" if name == "completions" else "kind", "key"])
        for kind, key in zip(*columns.to_pydict().values(), strict=True):
            found.setdefault(kind, []).append(key)
    return found


@cache
def draw_sample(name: str, audit: Audit) -> dict[str, str]:
    """Return {key: kind} for the rows that an audit generates again. Each row has a hash of the
    audit's seed and of the row's prompt, function or key. In each kind, the audit draws the rows
    with the smallest hashes.

    All answers to a prompt (all samples, of all models) have the same hash, and so do all
    judgements of one function. Different kinds thus draw mostly the same prompts and functions, so
    an audit needs only a few of them.
    """

    @cache
    def turn(unit: str) -> str:
        return paths.hashed(f"{audit.seed} {unit}")

    def place(key: str) -> tuple[str, str]:
        if name == "completions":  # the key is MODEL-AND-DECODING/PROMPT/SAMPLE
            return turn(key.partition("/")[2].partition("/")[0]), key
        return turn(key.rpartition(" ")[0] if name == "judgements" else key), key

    chosen = {}
    for kind, keys in kinds(name).items():
        size = max(LEAST_AUDITED, math.ceil(audit.share * len(keys)))
        chosen.update(dict.fromkeys(sorted(keys, key=place)[:size], kind))
    return chosen


def _comparable(text: str) -> str:
    """Return the text without details that may differ between two runs. Numbers with nine or more
    decimals are rounded to nine significant digits, and names of temporary files become ``tmp``.
    """
    text = re.sub(r"\d+\.\d{9,}", lambda number: f"{float(number[0]):.9g}", text)
    return re.sub(r"\btmp\w{8}\b", "tmp", text)


def differences(name: str, old: Any, new: Any) -> tuple[list[str], bool]:
    """Compare the recorded answer ``old`` with the answer ``new``. Return a text for each
    difference, and whether a near tie may explain the differences. This second value is True if
    there are differences and ``old`` is a near tie.

    Log-probabilities and margins may differ by less than ``NEAR_TIE_MARGIN``. Their last digits
    depend on the processor and on the batch, and an audit forms other batches than the run that
    made the record. A program's error message may quote names of temporary files, which are not
    compared because they are random. It may also quote long numbers, of which only nine digits are
    compared. Everything else must be equal.
    """
    if name != "completions":
        was, now = json.dumps(old), json.dumps(new)
        return ([] if _comparable(was) == _comparable(now) else [f"{was} -> {now}"]), False
    texts = []
    for field in old:
        was, now = old[field], new[field]
        is_lists = isinstance(was, list) and isinstance(now, list) and len(was) == len(now)
        for one, other in zip(was, now, strict=True) if is_lists else [(was, now)]:
            is_close = type(one) is type(other) is float and abs(one - other) < NEAR_TIE_MARGIN
            if one != other and not is_close and field not in ("id", "model"):
                texts.append(f"{field} {json.dumps(one)} -> {json.dumps(other)}")
    return texts, bool(texts) and old["margin"] is not None and old["margin"] < NEAR_TIE_MARGIN
