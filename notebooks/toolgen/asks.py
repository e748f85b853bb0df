"""What these notebooks ask a model, for the estimate of ``--dry-run`` (``lookuplab.run.estimate``).

The repositories are not read, which would take minutes: ``limit`` says how many functions there
are, and each prompt is as long as the longest function.
"""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from lookuplab import paths
from lookuplab.benchmark import Benchmark
from lookuplab.errors import UserError
from lookuplab.models import Decoding, Prompt


class Functions(Benchmark[SimpleNamespace]):
    """So many functions, each a prompt of ``length`` tokens."""

    def __init__(self, count: int, decoding: Decoding, way: str, length: int):
        self.tasks = [SimpleNamespace(id=f"{number}") for number in range(count)]
        self.decoding = decoding
        self.way = way
        self.length = length

    def prompt(self, task: SimpleNamespace) -> Prompt:
        return Prompt(task.id, f"{self.way} {task.id}" + " x" * self.length)

    def judge(self, *_: Any) -> dict[str, Any]:
        raise NotImplementedError


def asks(notebook: str, values: Mapping[str, Any]) -> Iterator[tuple[Functions, None]]:
    """Each pass of a notebook with these parameters. Raises UserError for one that uses all
    functions of its repositories, and for one that asks its models something else.
    """
    ways = {
        "table2_similarity": ["own"],
        "table3_repository_metrics": ["own"],
        "explorer": ["own"],
        "monitor_mode": ["one way", "another", "a third"],
        "trigger_threshold": values.get("gates"),
    }[notebook]
    count = values["limit"]
    if not count:
        raise UserError("how many functions the repositories have is not known")
    if file := values.get("seen_file"):
        count += len(paths.located(file).read_text(encoding="utf-8").splitlines()[:count])
    decoding = Decoding(values["max_new_tokens"])
    for way in ways:
        yield Functions(count, decoding, str(way), values["max_model_tokens"]), None
