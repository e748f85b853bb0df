"""Compares two releases of a package: makes tasks about the APIs that changed, and judges which
release a model's call fits.

Other benchmarks of library versions (GitChameleon) run tests in one environment per version. Here a
call is bound to the signatures of both releases, so nothing needs to be installed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from pandas import DataFrame

from lookuplab.cloudapi.policies import Rows, by_class, class_rows
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Signature
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.cloudapi.validity import judge_call
from lookuplab.errors import UserError
from recipes.cloudapi import tasks
from recipes.cloudapi.offered import offered
from recipes.cloudapi.reading import Described, write_index

CHANGES = ("removed", "added", "changed")
Shape = tuple[str, str, int]  # a parameter's name, kind, and whether it is required
FITS = ("only_old", "only_new", "both", "neither")


@dataclass(frozen=True)
class Releases:
    """The indexes of the old and the new release, the tasks, and the number of APIs for each kind
    of change (CHANGES).

    A task's field ``frequency``, which holds the frequency class in other benchmarks, holds the
    kind of change here. Tables by class are therefore tables by kind of change. An index lists
    every path by which an API can be imported.
    """

    old: ApiIndex
    new: ApiIndex
    tasks: list[ApiTask]
    changes: Counter[str]

    @cached_property
    def both(self) -> ApiIndex:
        """Return all APIs of both releases, for prompts. An API that is in both releases is
        described as in the new one.
        """
        return ApiIndex({one.id: one for one in (*self.old.specs, *self.new.specs)}.values())


def compare(old: str, new: str, folder: Path, per_change: int = 100) -> Releases:
    """Read two releases, write their indexes into ``folder``, and make tasks, at most
    ``per_change`` for each kind of change. ``old`` and ``new`` name the releases as in ``offered``,
    for example ``networkx==3.4``.

    An API is *removed* if the new release has it under no path, *added* if the old release has it
    under no path, and *changed* if an argument has another name or kind, or is required in only one
    release. A parameter that most APIs gained or lost, such as networkx's ``backend``, is ignored
    (see ``_common``). Raises UserError if no task can be made.
    """
    read = [offered(name, every_path=True)[0] for name in (old, new)]
    common = _common(*read)
    described = [[_without(common, *api) for api in apis] for apis in read]
    indexes = [
        write_index(folder / end, apis) for end, apis in zip(("old", "new"), described, strict=True)
    ]
    before, after = (index.by_id for index in indexes)
    changes = {
        "removed": [before[api] for api in before.keys() - after],
        "added": [after[api] for api in after.keys() - before],
        "changed": [
            after[api] for api in after.keys() & before if _shape(before[api]) != _shape(after[api])
        ],
    }
    made: list[ApiTask] = []
    numbers: Counter[str] = Counter()
    for change, specs in changes.items():
        index = indexes[change != "removed"]  # only the old release describes what was removed
        usable = [spec for spec in specs if spec.operation and "alias" not in spec.flags]
        numbers[change] = len(usable)
        usable = [spec for spec in usable if not tasks.obstacle(spec, tasks.IN_PACKAGES)]
        ids = [spec.id for spec in usable]
        counts = DataFrame({"count_name": 0, "class": change}, index=ids)
        chosen = [*islice(tasks.sample(usable, counts.count_name, 0), per_change)]
        made += tasks.tasks_of(chosen, index, counts, Counter())
    if not made:
        raise UserError(f"no task can be made of what changed from {old} to {new}: {dict(numbers)}")
    tasks.write_tasks(made, folder / "tasks.jsonl")
    return Releases(*indexes, made, numbers)


def _shape(spec: ApiSpec) -> list[Shape]:
    return [parameter[:3] for parameter in spec.parameters]


def _common(old: Sequence[Described], new: Sequence[Described]) -> set[Shape]:
    """Return the parameters that were added to or removed from more than half of the APIs that are
    in both releases.
    """
    before = {spec.id: {*_shape(spec)} for spec, _ in old}
    pairs = [(before[spec.id], {*_shape(spec)}) for spec, _ in new if spec.id in before]
    differences = Counter(part for first, second in pairs for part in first ^ second)
    return {part for part, times in differences.items() if times > len(pairs) / 2}


def _without(common: set[Shape], spec: ApiSpec, page: str) -> Described:
    def kept(parameters: Signature) -> Signature:
        return tuple(p for p in parameters if p[:3] not in common)

    overloads = tuple(kept(one) for one in spec.overloads)
    return replace(spec, parameters=kept(spec.parameters), overloads=overloads), page


def fits(calls: Sequence[str | None], made: Sequence[ApiTask], index: ApiIndex) -> np.ndarray:
    """Return (tasks,) booleans: whether the model's call for each task is valid in the release of
    ``index``. The model may call the task's API. It may also call another API of the same client,
    if the documentation says that the two APIs do the same.
    """
    clients = {spec.client for spec in index.specs}
    found = []
    for call, task in zip(calls, made, strict=True):
        targets = task.targets
        if spec := index.by_id.get(task.target):
            targets = tasks.acceptable_targets(spec, index)
        place = task.provider, task.client, task.service
        found.append(
            isinstance(call, str)
            and task.client in clients
            and judge_call(call, targets, index, *place).valid
        )
    return np.array(found, dtype=bool)


def fit_rows(first: DataFrame, made: Sequence[ApiTask], releases: Releases, way: str) -> Rows:
    """Return the percentage of calls that fit only the old release, only the new one, both or
    neither (FITS), as rows ``<way>: <fit>/<change>``. Also return the percentage that fits the new
    release minus the percentage that fits the old one, in points, paired by task. There is a number
    for each kind of change and for all tasks. ``way`` says which documentation was shown.
    """
    old, new = (fits(list(first.call), made, one) for one in (releases.old, releases.new))
    masks = by_class(first, CHANGES)
    shares = dict(zip(FITS, (old & ~new, new & ~old, old & new, ~old & ~new), strict=True))
    rows = []
    for fit, values in shares.items():
        rows += class_rows(first, f"{way}: {fit}", {"calls_percent": values}, masks)
    change = new.astype(float) - old
    return rows + class_rows(first, f"{way}: new - {way}: old", {"calls_points": change}, masks)
