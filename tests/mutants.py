"""Draws the mutants that `make mutants` tries from a cosmic-ray session, by a seed, and marks all
other mutants as skipped.
"""

import random
import sys
from argparse import ArgumentParser, Namespace

from cosmic_ray.tools.filters.filter_app import FilterApp
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import WorkerOutcome, WorkItem, WorkResult


class Sample(FilterApp):
    def add_args(self, parser: ArgumentParser) -> None:
        parser.add_argument("--size", type=int, default=100, help="mutants to be tried")
        parser.add_argument("--seed", type=int, default=0)

    def filter(self, work_db: WorkDB, args: Namespace) -> None:
        def place(item: WorkItem) -> tuple[str, str, int]:
            mutation = item.mutations[0]
            return str(mutation.module_path), mutation.operator_name, mutation.occurrence

        # sort by place, because the mutants' ids are random
        items = sorted(work_db.pending_work_items, key=place)
        random.Random(args.seed).shuffle(items)
        skipped = WorkResult(worker_outcome=WorkerOutcome.SKIPPED)
        work_db.set_multiple_results([item.job_id for item in items[args.size :]], skipped)


if __name__ == "__main__":
    sys.exit(Sample().main())
