"""What these notebooks ask a model, for the estimate of ``--dry-run`` (``lookuplab.run.estimate``):
so many passes over the tasks, each with so many documents above the prompt.

Which documents a retriever finds depends on what the model calls first. Here random ones stand for
them: so many prompts, of nearly that length.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lookuplab.cloudapi.bench import CloudApiBench
from lookuplab.cloudapi.dag import oracle, random_documents
from lookuplab.cloudapi.tasks import load_tasks

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
    if notebook == "fig6_augmentation_designs":
        for design in values["designs"]:
            yield replace(none, documents=oracle(tasks), design=design), None
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
