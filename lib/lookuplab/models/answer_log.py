"""Which answers a notebook used, so that two runs can be compared answer by answer and not by their sums alone.

One line of CSV for each use, appended to the file that the runner names. What is told about an answer is the same on
every machine: digests of what was asked and of what was answered, not the versions and hashes of the store's keys.
"""

import csv
import os
from collections.abc import Iterable

from lookuplab.models.store import Asked, Question, digest
from lookuplab.models.types import Completion

LOG = "LOOKUPLAB_ANSWERS"  # the file; set by the runner for each notebook
COLUMNS = ("model", "prompt", "sample", "question", "answer", "margin")
# Nats, or probability of a draw: an answer with a narrower decision is a near tie and its margin is told. Between the
# vector extensions of one processor the mini models' log-probabilities differ by 2e-5 at most, their margins by 3e-5.
NEAR = 1e-4


def note(asked: Asked, answers: Iterable[tuple[Question, Completion]]) -> None:
    """Append the answers' lines. Continuations that were only scored are no answers."""
    file = os.environ.get(LOG)
    if not file or asked.decoding is None:
        return
    with open(file, "a", encoding="utf-8", newline="") as log:
        csv.writer(log, lineterminator="\n").writerows(
            (asked.name, done.id, done.sample, digest(asked.decoding + asked.prompt_json(question))[:8],
             digest(done.text)[:8], "" if done.margin is None or done.margin >= NEAR else f"{done.margin:.0e}")
            for question, done in answers)
