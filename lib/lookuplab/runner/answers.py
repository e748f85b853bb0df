"""The answers that a profile's notebooks used, in one file beside its figures: ``figures/<profile>/answers.csv.gz``.

Equal runs write equal bytes. The margins are told to one digit; they are measurements, and another batch of prompts may
change it (``verify`` compares all but them).
"""

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path

from lookuplab.atomic import replacing
from lookuplab.models.answer_log import COLUMNS
from lookuplab.runner.plan import Job

FILE = "answers.csv.gz"


def log_of(job: Job) -> Path:
    """Where the notebook's kernel lists what it uses."""
    return job.output.with_suffix(".answers.csv")


def keep(jobs: Sequence[Job], whole: bool) -> None:
    """Write the file from the lists of ``jobs``, which have run; those that only run on demand do not belong to it.

    Without ``whole`` what the file says of other papers stays.
    """
    chosen = [job for job in jobs if not job.notebook.on_demand]
    if not chosen:
        return
    target = chosen[0].figures / chosen[0].profile / FILE
    papers = {job.notebook.paper for job in chosen}
    kept = [] if whole or not target.is_file() else [row for row in read(target.read_bytes())
                                                     if row[-1].split("/")[0] not in papers]
    lists = ((job.notebook.id, log_of(job)) for job in chosen)
    new = ([*row, notebook] for notebook, log in lists if log.is_file()
           for row in csv.reader(io.StringIO(log.read_text(encoding="utf-8"))))
    text = io.StringIO()
    rows = sorted({tuple(row) for row in (*kept, *new)})
    csv.writer(text, lineterminator="\n").writerows([(*COLUMNS, "notebook"), *rows])
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as part:
        part.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def read(content: bytes) -> list[list[str]]:
    """The rows of such a file: ``answer_log.COLUMNS`` and the notebook."""
    return list(csv.reader(io.StringIO(gzip.decompress(content).decode())))[1:]
