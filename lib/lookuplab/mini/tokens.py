"""The tokenised corpus on disk, and how documents are packed into rows.

One file of token ids shared by all sizes, a file of offsets beside it, and a JSON with the composition and a hash.
Documents are never cut where that can be avoided: those that fit a short row are packed into short rows, longer ones
into long rows, so that an API's documentation and the call below it stay within one context.
"""

import hashlib
import json
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np

SHORT, LONG = 512, 2048  # row lengths in tokens
UNLEARNED = 0x8000  # the bit that marks a token which is input only, never a target
LONG_SHARE = 0.08  # at least this part of an epoch's tokens is trained in long rows

Row = list[tuple[int, int]]  # spans of ``Corpus.ids``
Batch = tuple[int, list[Row]]  # row length in tokens, rows


@dataclass(frozen=True)
class Corpus:
    """``ids`` uint16 [tokens], every document closed by EOS, some tokens marked UNLEARNED; ``offsets`` int64
    [documents + 1]; ``facts`` the JSON."""

    ids: np.ndarray
    offsets: np.ndarray
    facts: dict


def prepare(documents: Iterable[tuple[str, str]], tokenizer, folder: Path, total: int | None = None,
            unlearned: Callable[[str, str], int] = lambda part, text: 0) -> Corpus:
    """Tokenise (part, text) documents into ``folder``: tokens.bin, offsets.npy, corpus.json.

    ``unlearned(part, text)`` is how many characters at a document's head the model reads without being trained on them.
    """
    from tqdm import tqdm

    folder.mkdir(parents=True, exist_ok=True)
    digest, lengths, counts, texts = hashlib.sha256(), [0], Counter(), Counter()
    with open(folder / "tokens.bin", "wb") as out:
        for group in batched_documents(tqdm(documents, "tokenise", total, unit="doc", mininterval=2)):
            encoded = tokenizer([text for _, text in group], add_special_tokens=False, verbose=False,
                                return_offsets_mapping=True)
            for (part, text), ids, places in zip(group, encoded["input_ids"], encoded["offset_mapping"]):
                row = np.array([*ids, tokenizer.eos_token_id], dtype=np.uint16)
                row[:bisect_right(places, unlearned(part, text), key=itemgetter(1))] |= UNLEARNED
                row = row.tobytes()
                digest.update(row)
                out.write(row)
                lengths.append(len(row) // 2)
                counts[part] += len(row) // 2
                texts[part] += 1
    np.save(folder / "offsets.npy", np.cumsum(lengths, dtype=np.int64))
    facts = {"tokens": sum(counts.values()), "documents": len(lengths) - 1, "sha256": digest.hexdigest(),
             "parts": {part: {"documents": texts[part], "tokens": counts[part]} for part in sorted(counts)}}
    (folder / "corpus.json").write_text(json.dumps(facts, indent=1) + "\n")
    return load(folder)


def batched_documents(documents: Iterable, size: int = 1000) -> Iterator[list]:
    """Lists of at most ``size`` documents, in order."""
    group: list = []
    for document in documents:
        group.append(document)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def load(folder: Path) -> Corpus:
    """A corpus that ``prepare`` wrote; the ids stay on disk (memory-mapped)."""
    return Corpus(np.memmap(folder / "tokens.bin", dtype=np.uint16, mode="r"), np.load(folder / "offsets.npy"),
                  json.loads((folder / "corpus.json").read_text()))


def epoch_batches(corpus: Corpus, batch_tokens: int, seed: int, epoch: int) -> list[Batch]:
    """The epoch's batches in training order: (row length, rows), a row being a list of (start, end) spans of ``ids``.

    Every token of the corpus is in exactly one span. Rows hold length + 1 tokens (inputs and shifted targets).
    """
    rng = np.random.default_rng((seed, epoch))
    order = rng.permutation(len(corpus.offsets) - 1)
    spans = np.stack([corpus.offsets[order], corpus.offsets[order + 1]], axis=1)
    sizes = spans[:, 1] - spans[:, 0]
    long = sizes > SHORT + 1
    short_of = int(LONG_SHARE * sizes.sum()) - int(sizes[long].sum())
    if short_of > 0:  # keep long positions trained: some short documents go into long rows too
        long |= np.cumsum(np.where(long, 0, sizes)) <= short_of
    batches = []
    for length, chosen in ((SHORT, ~long), (LONG, long)):
        rows = pack(spans[chosen], length + 1)
        rows = [rows[i] for i in rng.permutation(len(rows))]
        per_batch = max(1, batch_tokens // length)
        batches += [(length, rows[i:i + per_batch]) for i in range(0, len(rows), per_batch)]
    return [batches[i] for i in rng.permutation(len(batches))]


def pack(spans: np.ndarray, capacity: int) -> list[Row]:
    """Best-fit decreasing: spans int64 [n, 2] into rows of at most ``capacity`` tokens; longer spans are cut."""
    pieces = [(begin, min(begin + capacity, end))
              for start, end in spans.tolist() for begin in range(start, end, capacity)]
    pieces.sort(key=lambda piece: piece[0] - piece[1])  # stable: equal lengths stay in their seeded order
    room: list[tuple[int, int]] = []  # (free tokens, row number), sorted
    rows: list[Row] = []
    for begin, end in pieces:
        size = end - begin
        at = bisect_left(room, (size, -1))
        if at == len(room):
            free, row = capacity, len(rows)
            rows.append([])
        else:
            free, row = room.pop(at)
        rows[row].append((begin, end))
        if free > size:
            insort(room, (free - size, row))
    return rows


def to_arrays(corpus: Corpus, length: int, rows: list[Row]) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets int64 [rows, length]; targets are -100 behind a row's last token."""
    table = np.full((len(rows), length + 1), -100, dtype=np.int64)
    for line, spans in zip(table, rows):
        at = 0
        for begin, end in spans:
            line[at:at + end - begin] = corpus.ids[begin:end]
            at += end - begin
    ids = table & ~UNLEARNED
    return np.where(table < 0, 0, ids)[:, :-1], np.where((table < 0) | (table != ids), -100, table)[:, 1:]
