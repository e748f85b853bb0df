"""CloudAPIBench, rebuilt by the paper's recipe (Section 2.2, Appendix A.2 steps 5 to 8) from an
index and frequencies; and tasks in its style for any Python package.

Class sizes are the only ones that the paper's tables admit: high 205, medium 150, low 267, together
622. A package gives as many tasks of each class as it can, at most a chosen number.
"""

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

import pandas

from lookuplab import paths
from lookuplab.cloudapi.comments import distinct_comments, purpose
from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec
from lookuplab.errors import UserError
from lookuplab.paths import write_lines

TASKS = paths.MINI / "cloudapi" / "tasks.jsonl"
COMPOSITION = {"high": 205, "medium": 150, "low": 267}
AWS_SHARE = 2 / 3  # choice: both providers are in every class (Figure 10), numbers are not given
PROMPTS_PER_API = 3  # at most (Appendix A.2, step 6)
GENERIC = {"generic_name", "shared_name"}  # flags of names that do not say alone which API is meant


@dataclass(frozen=True)
class Task:
    """One task: complete ``prompt`` with a valid call of any of ``targets`` (API ids; the first is
    the one asked for).

    ``frequency`` is the class of ``count_name`` (calls and definitions with the API's name, the
    paper's count); ``count_bound`` counts only calls resolved to the API's own client.
    ``n_required`` counts required arguments.
    """

    id: str
    prompt: str
    comment: str
    targets: tuple[str, ...]
    provider: str
    service: str
    client: str
    frequency: str
    count_name: int
    count_bound: int
    n_required: int

    @property
    def target(self) -> str:
        """The API asked for: the cluster that intervals rest on."""
        return self.targets[0]


def frequency_class(count: int) -> str:
    """Low 0-10, medium 11-100, high from 101 (Section 2.2)."""
    return "low" if count <= 10 else "medium" if count <= 100 else "high"


def stable_order(key: str, seed: int) -> str:
    """A hash to sort by: the same on every machine, unrelated to the key's spelling."""
    return hashlib.sha256(f"{seed} {key}".encode()).hexdigest()


def obstacle(spec: ApiSpec, allowed: Container[str] = ()) -> str:
    """Why no task asks for an operation, "" where one can: a flag that is not allowed, or no usable description."""
    flags = (flag for flag in spec.flags if flag not in allowed)
    return next(flags, "" if purpose(spec) else "no description of a known verb")


def unambiguous(index: ApiIndex) -> list[ApiSpec]:
    """The operations that tasks can ask for by their names alone."""
    return [spec for spec in index.operations if not obstacle(spec)]


def candidates(
    index: ApiIndex, counts: pandas.DataFrame, generic_names: bool = False
) -> dict[tuple[str, str], list[ApiSpec]]:
    """(class, provider) -> the APIs that tasks can ask for; ``counts`` as in ``build``.

    With ``generic_names`` also those whose signature takes anything (``delete_blobs``), and those whose name others have
    (``put_object`` of s3, ``delete_message`` of sqs), where their class is sure: ``count_name`` is too high for them and
    ``count_bound`` too low, so both must be of the class. High is then bound more than 100 times, low named at most 10.
    """
    found, rows = defaultdict(list), counts.to_dict("index")
    for spec in index.operations:
        times = rows.get(spec.id, dict.fromkeys(counts, 0))
        frequency, at_least = (frequency_class(times[f"count_{of}"]) for of in ("name", "bound"))
        sure = GENERIC if frequency == at_least else set()
        if not obstacle(spec, {"open_signature"} | sure if generic_names else ()):
            found[frequency, spec.provider].append(spec)
    return found


def acceptable_targets(spec: ApiSpec, index: ApiIndex) -> tuple[str, ...]:
    """The API itself and its equals on the same client: another version of it, or one described by the same clause.

    Not the same sentence, which is a notice shared by all in some services ("This operation is not supported by directory
    buckets.").
    """

    def stem(name: str) -> str:
        return re.sub(r"_?v?\d+$", "", name)

    clause = purpose(spec)
    others = index.methods(spec.provider, spec.client, spec.service).values()
    equals = (
        other.id
        for other in sorted(others, key=lambda other: other.id)
        if other.operation
        and (stem(other.name) == stem(spec.name) or clause and purpose(other) == clause)
    )
    return tuple(dict.fromkeys([spec.id, *equals]))


def sample(
    specs: Sequence[ApiSpec],
    counts: Mapping[str, int],
    n_tasks: int,
    seed: int,
    faithful: bool = False,
) -> list[tuple[ApiSpec, str]]:
    """At most ``n_tasks`` pairs (API, comment), spread over required arguments and frequencies.

    APIs are dealt in turn from buckets of equal (number of required arguments, octave of the count); a hash decides the
    order in a bucket and whether an API gives one, two or three prompts. Of the wordings of an SDK's API at most half are
    used, so that the mini corpus has others.
    """
    buckets, chosen = defaultdict(list), []
    for spec in sorted(specs, key=lambda s: stable_order(s.id, seed)):
        octave = int(math.log2(counts[spec.id] + 1))
        buckets[min(len(spec.required), 5), octave].append(spec)
    for spec in _in_turn([buckets[key] for key in sorted(buckets)]):
        prompts = 1 + int(stable_order(spec.id, seed + 1), 16) % PROMPTS_PER_API
        comments = distinct_comments(spec, 2 * PROMPTS_PER_API, faithful)
        if spec.provider != "python":
            comments = comments[: len(comments) // 2]
        chosen += [(spec, comment) for comment in comments[:prompts]]
        if len(chosen) >= n_tasks:
            break
    return chosen[:n_tasks]


def _in_turn(buckets: list[list]) -> list:
    """The first of every bucket, then the second of every bucket ..."""
    return [item for row in zip_longest(*buckets) for item in row if item is not None]


def build(
    index: ApiIndex,
    counts: pandas.DataFrame,
    seed: int = 0,
    per_class: int | None = None,
    generic_names: bool = False,
    faithful: bool = False,
) -> list[Task]:
    """The benchmark; with ``per_class`` at most that many tasks of each class and provider.

    ``counts`` has ``count_name`` and ``count_bound`` by API id; an API that is not in it occurs nowhere. ``generic_names``
    as in ``candidates``; ``faithful`` as in ``distinct_comments``. The committed tasks are built without both. Raises
    UserError where too few APIs are in a class.
    """
    count_name, count_bound = (Counter(counts[f"count_{of}"].to_dict()) for of in ("name", "bound"))
    members, tasks, seen = candidates(index, counts, generic_names), [], Counter()
    for frequency, total in COMPOSITION.items():
        n_aws = round(total * AWS_SHARE)
        quotas = {"aws": n_aws, "azure": total - n_aws}
        if per_class is not None:
            quotas = dict.fromkeys(index.providers, per_class)
        for provider, n_tasks in quotas.items():
            found = members[frequency, provider]
            pairs = sample(found, count_name, n_tasks, seed, faithful)
            if len(pairs) < n_tasks and per_class is None:
                raise UserError(
                    f"only {len(pairs)} of {n_tasks} {frequency}-frequency {provider} tasks can be "
                    f"made: the frequency table has {len(found)} such APIs; count over more code"
                )
            for spec, comment in pairs:
                seen[spec.id] += 1
                task = Task(
                    id=f"{spec.id}#{seen[spec.id]}",
                    prompt=task_prompt(spec, comment),
                    comment=comment,
                    targets=acceptable_targets(spec, index),
                    provider=provider,
                    service=spec.service,
                    client=spec.client,
                    frequency=frequency,
                    count_name=count_name[spec.id],
                    count_bound=count_bound[spec.id],
                    n_required=len(spec.required),
                )
                tasks.append(task)
    return tasks


def write_tasks(tasks: Sequence[Task], path: Path) -> None:
    """One JSON object a line, in the order of the dataclass's fields."""
    write_lines(path, (json.dumps(asdict(task), ensure_ascii=False) for task in tasks))


def load_tasks(path: Path | str = TASKS, limit: int | None = None) -> list[Task]:
    """The benchmark; with ``limit`` that many tasks, spread over the classes by a hash. Raises UserError for a file that
    holds none.
    """
    path = paths.located(path)
    try:
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        tasks = [Task(**row | {"targets": tuple(row["targets"])}) for row in rows]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path} holds no CloudAPIBench tasks ({error}): run `lookuplab data build benchmark`"
        ) from None
    if limit is None:
        return tasks
    shuffled = sorted(tasks, key=lambda task: stable_order(task.id, 0))
    dealt = _in_turn([[t for t in shuffled if t.frequency == name] for name in COMPOSITION])
    kept = {task.id for task in dealt[:limit]}
    return [task for task in tasks if task.id in kept]
