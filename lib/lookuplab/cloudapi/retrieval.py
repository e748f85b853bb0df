"""Which API's documentation a first attempt leads to (paper, Section 3.1 "Query Formulation & Retrieval Index").

The index holds all AWS and Azure operations "identified using keys prepared similarly as the queries": the service, the
words of the client class, the name and its words. A query is the same of the model's first call; the service and the
client are those of the prompt. The invoked name alone finds many namesakes, hence ``service=False`` as an ablation.
"""

import random
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.errors import UserError
from lookuplab.retrieval import check_k
from lookuplab.retrieval.rankers import Bm25

WORD = re.compile(r"[A-Z]+s?(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")  # put_object, BlobClient, ClientAPIs, s3


def words(name: str) -> list[str]:
    """The words of a snake_case, dashed or CamelCase name, in lower case; digits stay with the letters before them."""
    return [word.lower() for word in WORD.findall(name)]


def _place_terms(place: ApiSpec | Task) -> list[str]:
    return [place.service.lower(), *words(place.client)]


def _name_terms(name: str) -> list[str]:
    return [name.lower(), *words(name)]


def key_terms(spec: ApiSpec) -> list[str]:
    """The words by which an API is found: service, words of its client, name, words of its name."""
    return _place_terms(spec) + _name_terms(spec.name)


def query_terms(task: Task, name: str | None, service: bool = True) -> list[str]:
    """The words to search for: the prompt's service and client (unless ``service`` is False) and the invoked name.

    ``name`` is what the first pass called; None or NaN (as a pandas column says it) where it called nothing.
    """
    return (_place_terms(task) if service else []) + (_name_terms(name) if isinstance(name, str) else [])


@lru_cache(maxsize=2)
def api_ranker(index: ApiIndex) -> Bm25:
    """BM25 over the keys of all operations of the index."""
    return Bm25({spec.id: key_terms(spec) for spec in index.specs if spec.operation}, words=list)


def check_targets(tasks: Sequence[Task], index: ApiIndex) -> None:
    """Raise UserError for the first task whose API (the one asked for) is no operation of the index."""
    for task in tasks:
        spec = index.by_id.get(task.target)
        if spec is None or not spec.operation:
            raise UserError(f"task {task.id} asks for {task.target}, which is not in the API index: use the index that "
                            "the benchmark was built from, or build the benchmark again")


def retrieve(tasks: Sequence[Task], names: Mapping[str, str | None], depth: int, service: bool = True,
             index: ApiIndex | None = None) -> dict[str, list[str]]:
    """Task id -> the ids of the ``depth`` APIs nearest to its first call, best first.

    ``names`` maps task ids to the invoked names (``query_terms``). A precision-controlled miss of k documents needs a
    depth of k and the number of acceptable targets. Raises UserError for a task without a first pass, for one whose
    API is not in the index, and for a depth below 1.
    """
    index = index or load_index()
    check_targets(tasks, index)
    if lacking := [task.id for task in tasks if task.id not in names]:
        raise UserError(f"no first pass of {len(lacking)} tasks ({lacking[0]} ...): invoke the model on all of them")
    queries = {task.id: query_terms(task, names[task.id], service) for task in tasks}
    return api_ranker(index).rank(queries, depth)


def oracle(tasks: Sequence[Task], index: ApiIndex | None = None) -> dict[str, tuple[str, ...]]:
    """Task id -> the API asked for and nothing else: the control that is always right (Section 3.2, Figure 6)."""
    check_targets(tasks, index or load_index())
    return {task.id: (task.target,) for task in tasks}


def random_documents(tasks: Sequence[Task], k: int, seed: int = 0,
                     index: ApiIndex | None = None) -> dict[str, tuple[str, ...]]:
    """Task id -> k different APIs drawn from the whole index, none acceptable: the control that is always wrong.

    Each task has its own seed, so a task's documents are the same in every subset of the tasks, and those of a smaller
    k come first in those of a larger one. Raises UserError for k < 1 and an index with fewer than k other APIs.
    """
    check_k(k)
    index = index or load_index()
    check_targets(tasks, index)
    ids = sorted(spec.id for spec in index.specs if spec.operation)
    return {task.id: _drawn(ids, task, k, seed) for task in tasks}


def _drawn(ids: Sequence[str], task: Task, k: int, seed: int) -> tuple[str, ...]:
    if k + len(task.targets) > len(ids):
        raise UserError(f"the API index has {len(ids)} operations; that is too few for {k} random ones")
    generator = random.Random(f"{seed} {task.id}")
    drawn: dict[str, None] = {}  # a set that keeps the order of the draws
    while len(drawn) < k:
        api = ids[generator.randrange(len(ids))]
        if api not in task.targets:
            drawn[api] = None
    return tuple(drawn)
