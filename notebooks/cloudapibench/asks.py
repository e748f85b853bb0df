"""What these notebooks ask a model, for the estimate of ``--dry-run`` (``lookuplab.run.estimate``):
so many passes over the tasks, each with so many documents above the prompt.

Which documents a retriever finds depends on what the model calls first. Here random ones stand for
them: so many prompts, of nearly that length.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lookuplab.cloudapi.bench import DESIGN, CloudApiBench, Documents
from lookuplab.cloudapi.dag import oracle
from lookuplab.cloudapi.prompts import ALL_DESIGNS
from lookuplab.cloudapi.specs import load_index, texts_of
from lookuplab.cloudapi.tasks import ApiTask, load_tasks

WITHOUT_DOCUMENTS = ("table1_base_models", "table4_failure_modes")
# a notebook's own random documents have the seed 0
WRONG, WRONG_WITHOUT_SERVICE = 1, 2


def asks(
    notebook: str, values: Mapping[str, Any]
) -> Iterator[tuple[CloudApiBench, Sequence[str] | None]]:
    """Each pass of a notebook with these parameters: the benchmark as it is put to the model, and
    the texts that are only scored (None where answers are generated).
    """
    tasks = load_tasks(values["tasks_file"], values.get("limit") or None)
    none = CloudApiBench(tasks, max_new_tokens=values.get("max_new_tokens", 256))

    def right(k: int) -> CloudApiBench:
        others = random_documents(tasks, k, WRONG)
        shown = {task.id: (*others[task.id][1:], task.target) for task in tasks}
        return replace(none, documents=shown)

    def wrong(k: int, seed: int = WRONG) -> CloudApiBench:
        return replace(none, documents=random_documents(tasks, k, seed))

    yield none, None  # of Table 4's, only the tasks of one class: at most so many
    if notebook in WITHOUT_DOCUMENTS:
        return
    if notebook.startswith("fig6"):
        for design in values.get("designs", ALL_DESIGNS):
            yield replace(none, documents=oracle(tasks), design=design), None
        for bench in more_examples(none, values.get("further_file")):
            yield bench, None
        return
    ks = values.get("retrievals", [values.get("k", 1)])
    retrieving = [bench for k in ks for bench in (right(k), wrong(k))]
    if notebook == "fig1_perplexity":
        names = [task.target.rpartition(".")[2] for task in tasks]
        for bench in (none, *retrieving):
            yield bench, names
        return
    for bench in retrieving:
        yield bench, None
    if notebook == "fig7a_retriever_precision":
        yield wrong(values["k"], WRONG_WITHOUT_SERVICE), None
        yield wrong(values["k"], values["seed"]), None
    if notebook == "constrained_invocation":
        for bench in (none, *retrieving):
            yield replace(bench, constrained=True), None


def more_examples(none: CloudApiBench, further_file: str | None) -> Iterator[CloudApiBench]:
    """What fig6_example_design asks beside the oracle's documents: wrong ones, and further tasks
    that have a documented example.
    """
    if further_file is None:
        return
    wrong = random_documents(none.tasks, 1, WRONG)
    known = texts_of("example", none.index)
    for design in ("example", DESIGN):
        yield replace(none, documents=wrong, design=design)
    more = (
        [task for task in load_tasks(further_file) if task.target in known] if further_file else []
    )
    for design in ("example", "specification", DESIGN):
        yield replace(none, tasks=more, documents=oracle(more), design=design)


def random_documents(tasks: Sequence[ApiTask], k: int, seed: int = 0) -> Documents:
    """k different APIs drawn from the whole index, none acceptable: the control that is always
    wrong.

    Each task has its own seed, so a task's documents are the same in every subset of the tasks, and
    the documents for a smaller k are the first ones for a larger k.
    """
    ids = sorted(spec.id for spec in load_index().operations)
    shown = {}
    for task in tasks:
        generator = random.Random(f"{seed} {task.id}")
        drawn: list[str] = []
        while len(drawn) < k:
            api = generator.choice(ids)
            if api not in (*task.targets, *drawn):
                drawn.append(api)
        shown[task.id] = tuple(drawn)
    return shown
