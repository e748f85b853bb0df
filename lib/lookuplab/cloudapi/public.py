"""Frequency classes from the numbers of public repositories that call an API, and how sure they are.

``data/public/cloudapi/README.md`` derives the bounds. ``build`` makes the columns ``repositories_client``, ``class`` and
``class_stability`` of the frequency table from the counts by repository beside it.
"""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas

from lookuplab import paths
from lookuplab.cloudapi.specs import ApiIndex, load_index
from lookuplab.paths import replacing

FREQUENCIES = paths.DATA / "public" / "cloudapi" / "frequencies.csv.gz"
BY_REPOSITORY = "per_repository.jsonl.gz"
CLASSES = ("low", "medium", "high")
MOST = {"aws": (0, 6), "azure": (1, 10)}  # repositories that call a low and a medium API, at most
CLIENT_SHARE = 3  # one in this many of them must show a client of the API's service
DRAWS = 1000
STABLE = 0.9  # class_stability of a stable API, at least


def by_repository(path: Path, index: ApiIndex) -> np.ndarray:
    """(3, repositories, operations) of booleans: the repository calls or defines a function of the operation's name; it
    does and calls something on a client of its service, too; it calls the operation on its own client.
    """
    # what a row says -> the operations that it speaks of
    operations, at = index.operations, defaultdict(list)
    for number, spec in enumerate(operations):
        for key in (spec.provider, spec.name), (spec.provider, "", spec.service), (spec.id,):
            at[key].append(number)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = list(map(json.loads, lines))
    found = np.zeros((3, len(rows), len(operations)), bool)
    for (names, clients, bound), row in zip(found.swapaxes(0, 1), rows, strict=True):
        for provider, name, _ in row["names"]:
            names[at[provider, name]] = True
        for provider, service, client, name, _ in row["bound"]:
            clients[at[provider, "", service]] = True
            bound[at[(f"{provider}/{service}.{client}.{name}",)]] = True
        clients &= names
    return found


def classes(repositories: np.ndarray, index: ApiIndex) -> np.ndarray:
    """(..., operations): the number of the class in ``CLASSES``, -1 where the counts do not say.

    ``repositories``, (3, ..., operations), are numbers of repositories in the order of ``by_repository``. The first
    gives the class. Above low the second must be a third of it, or the name is another's (a homonym), and where clients
    of one service share the name, the third not 0. For a name that is a single word or that several services have, the
    third must give the same class instead.
    """
    operations, services = index.operations, defaultdict(set)
    for spec in operations:
        services[spec.provider, spec.name].add(spec.service)
    shared = np.array(["shared_name" in spec.flags for spec in operations])
    generic = [
        "generic_name" in spec.flags or len(services[spec.provider, spec.name]) > 1
        for spec in operations
    ]
    most = np.array([MOST[spec.provider] for spec in operations]).T
    names, clients, bound = repositories
    found, at_least = (sum((n > limit).astype(int) for limit in most) for n in (names, bound))
    shown = (CLIENT_SHARE * clients >= names) & ((bound > 0) | ~shared)
    sure = np.where(generic, found == at_least, shown)
    return np.where((found == 0) | sure, found, -1)


def stability(found: np.ndarray, index: ApiIndex, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """(operations,): the share of ``draws`` in which an operation keeps its class when as many repositories are drawn
    with replacement. 1 for what no repository calls: nothing drawn again can call it.
    """
    rng, n = np.random.default_rng(seed), found.shape[1]
    kept, stated = np.zeros(found.shape[2]), classes(found.sum(axis=1), index)
    numbers = found.astype("float32")
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype("float32")
    for times in np.array_split(drawn, draws // 50 + 1):  # all at once would need gigabytes
        kept += (classes(times @ numbers, index) == stated).sum(axis=0)
    return kept / draws


def build(table: Path = FREQUENCIES) -> pandas.DataFrame:
    """Write the classes of the committed ``table``, whose other columns stay, from the counts by repository beside it."""
    index, frame = load_index(), pandas.read_csv(table).set_index("api")
    found = by_repository(table.with_name(BY_REPOSITORY), index)
    frame = frame.loc[[spec.id for spec in index.operations]]
    frame["repositories_client"] = found[1].sum(axis=0)
    frame["class"] = np.array([*CLASSES, ""])[classes(found.sum(axis=1), index)]
    frame["class_stability"] = stability(found, index)
    with replacing(table) as partial:
        text = frame.to_csv(lineterminator="\n").encode()
        partial.write_bytes(gzip.compress(text, mtime=0))
    return frame
