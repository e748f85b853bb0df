"""Draws the mutants that `make mutants` tries from a cosmic-ray session, by a seed, and marks all
other mutants as skipped.
"""

import random
import sys

from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import WorkerOutcome, WorkItem, WorkResult


def place(item: WorkItem) -> tuple[str, str, int]:
    mutation = item.mutations[0]
    return str(mutation.module_path), mutation.operator_name, mutation.occurrence


if __name__ == "__main__":
    _, session, size = sys.argv
    with use_db(session) as work_db:
        # sorted by place, because the mutants' ids are random
        items = sorted(work_db.pending_work_items, key=place)
        random.Random(0).shuffle(items)
        others = [item.job_id for item in items[int(size) :]]
        work_db.set_multiple_results(others, WorkResult(WorkerOutcome.SKIPPED))
