"""From the name of a package to its index, frequencies and benchmark: what ``lookuplab data build api`` writes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from lookuplab.cloudapi import frequency, package_benchmark, packages, specs
from lookuplab.cloudapi.benchmark import COMPOSITION, Task, write_tasks
from lookuplab.cloudapi.code_sources import source_files
from lookuplab.cloudapi.frequency_table import read_frequencies
from lookuplab.cloudapi.packages import Package
from lookuplab.cloudapi.specs import ApiIndex

FREQUENCIES, TASKS = "frequencies.csv", "tasks.jsonl"


@dataclass(frozen=True)
class OwnApi:
    """An own package's material. ``counting`` says in words over which files was counted; ``obstacles`` why how many
    operations are not asked for."""

    packages: list[Package]
    index: ApiIndex
    tasks: list[Task]
    counting: str
    obstacles: Counter

    def classes(self) -> dict[str, int]:
        """Tasks of each frequency class."""
        found = Counter(task.frequency for task in self.tasks)
        return {name: found[name] for name in COMPOSITION}


def build(names: Sequence[str], folder: Path, corpus: str | None = None, per_class: int = package_benchmark.PER_CLASS,
          seed: int = 0, jobs: int = 1, comments_model: str | None = None, progress: bool = True) -> OwnApi:
    """Read the packages, count, deal tasks, and write it all into ``folder``.

    ``corpus``: as ``code_sources.source_files`` takes it; None counts over the packages' own sources. Raises UserError
    as ``packages.inspected``, ``code_sources.source_files`` and ``package_benchmark.build``.
    """
    found = [packages.inspected(name, progress) for name in dict.fromkeys(names)]
    index = packages.save(found, folder)
    files = package_benchmark.own_sources(found) if corpus is None else source_files(corpus)
    counts = frequency.count(tqdm(files, desc="counting", unit=" files", delay=1, disable=not progress), index, jobs)
    frequency.write_table(counts, index, folder / FREQUENCIES)
    named, bound = read_frequencies(folder / FREQUENCIES)
    wordings = package_benchmark.PackageComments(index)
    if comments_model:
        wordings.update(_model_wordings(comments_model, index, named, bound, per_class, seed))
    tasks = package_benchmark.build(index, named, bound, per_class, seed, wordings)
    write_tasks(tasks, folder / TASKS)
    left_out = package_benchmark.obstacles(index, wordings)
    del left_out[""]
    return OwnApi(found, specs.load_index(folder / specs.INDEX.name), tasks, frequency.report(counts, index), left_out)


def _model_wordings(model: str, index: ApiIndex, named: dict, bound: dict, per_class: int, seed: int) -> dict:
    """The model words the APIs that the plain benchmark deals; where it fails, rewriting stands."""
    from lookuplab.cloudapi.comment_writer import model_comments
    from lookuplab.models import load

    dealt = sorted({task.target for task in package_benchmark.build(index, named, bound, per_class, seed)})
    written = model_comments(load(model), (index.by_id[api] for api in dealt))
    return {api: comments for api, comments in written.items() if comments}
