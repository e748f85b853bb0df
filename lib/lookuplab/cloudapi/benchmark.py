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
from dataclasses import asdict, dataclass, replace
from itertools import chain, zip_longest
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
# Flags of names that do not say alone which API is meant
GENERIC = {"generic_name", "shared_name"}


@dataclass(frozen=True)
class Task:
    """One task: complete ``prompt`` with a valid call of any of ``targets`` (API ids; the first is
    the one asked for).

    ``frequency`` is the class of ``count_name`` (calls and definitions with the API's name, the paper's count) or that of
    the frequency table; ``count_bound`` counts only calls resolved to the API's own client.
    ``n_required`` counts required arguments. ``class_stability``: in which share of resamples of the counted repositories
    the API keeps its class, where the table says so.
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
    class_stability: float | None = None

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


def candidates(index: ApiIndex, counts: pandas.DataFrame) -> dict[tuple[str, str], list[ApiSpec]]:
    """(class, provider) -> the APIs that tasks can ask for; ``counts`` as in ``build``.

    A class that ``counts`` states is taken as it is, an empty one leaves the API out; else ``frequency_class`` decides,
    and a cloud API that is often named and never bound is left out: the name is another's (``create_instances`` of
    EC2's resource, not of lightsail). A cloud API whose name others have (``put_object`` of s3, ``delete_message`` of
    sqs) must be sure of its class: ``count_name`` is too high for it and ``count_bound`` too low, so both must be of the
    class. High is then bound more than 100 times, low named at most 10. A stated class is sure. A cloud API may take
    any arguments (``delete_blobs``).
    """
    found, rows = defaultdict(list), counts.to_dict("index")
    for spec in index.operations:
        times = rows.get(spec.id, dict.fromkeys(counts, 0))
        by_name, at_least = (frequency_class(times[f"count_{of}"]) for of in ("name", "bound"))
        homonym = by_name != "low" and not times["count_bound"] and spec.provider != "python"
        frequency = times.get("class", "" if homonym else by_name)
        sure = GENERIC if "class" in times or by_name == at_least else set()
        allowed = {"open_signature"} | sure if spec.provider != "python" else ()
        if frequency and not obstacle(spec, allowed):
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
        for other in others
        if other.operation
        and other.id != spec.id
        and (stem(other.name) == stem(spec.name) or clause and purpose(other) == clause)
    )
    return spec.id, *sorted(equals)


def sample(
    specs: Sequence[ApiSpec],
    counts: Mapping[str, Mapping[str, float]],
    n_tasks: int,
    seed: int,
) -> list[tuple[ApiSpec, str]]:
    """At most ``n_tasks`` pairs (API, comment), spread over required arguments and frequencies; ``counts`` are the
    columns of the frequency table by API id.

    APIs are dealt in turn from buckets of equal (number of required arguments, octave of the count), those of the next
    tenth of ``class_stability`` when the stabler ones are used up; a hash decides the order in a bucket and whether an
    API gives one, two or three prompts. Of the wordings of an SDK's API at most half are used, so that the mini corpus
    has others.
    """
    tiers, chosen = defaultdict(lambda: defaultdict(list)), []
    for spec in sorted(specs, key=lambda s: stable_order(s.id, seed)):
        times = counts[spec.id]
        bucket = min(len(spec.required), 5), int(math.log2(times["count_name"] + 1))
        tiers[-int(10 * times.get("class_stability", 0))][bucket].append(spec)
    dealt = (_in_turn([tiers[n][key] for key in sorted(tiers[n])]) for n in sorted(tiers))
    for spec in chain.from_iterable(dealt):
        prompts = 1 + int(stable_order(spec.id, seed + 1), 16) % PROMPTS_PER_API
        comments = distinct_comments(spec, 2 * PROMPTS_PER_API)
        if spec.provider != "python":
            comments = comments[: len(comments) // 2]
        chosen += [(spec, comment) for comment in comments[:prompts]]
        if len(chosen) >= n_tasks:
            break
    return chosen[:n_tasks]


def _in_turn(buckets: list[list]) -> list:
    """The first of every bucket, then the second of every bucket ..."""
    return [item for row in zip_longest(*buckets) for item in row if item is not None]


def quotas(total: int, aws_share: float = AWS_SHARE) -> dict[str, int]:
    """How many of a class's tasks each provider gives."""
    n_aws = round(total * aws_share)
    return {"aws": n_aws, "azure": total - n_aws}


def build(
    index: ApiIndex,
    counts: pandas.DataFrame,
    seed: int = 0,
    per_class: int | None = None,
    aws_share: float = AWS_SHARE,
) -> list[Task]:
    """The benchmark; with ``per_class`` at most that many tasks of each class and provider.

    ``counts`` has ``count_name`` and ``count_bound`` by API id, and may have ``class`` and ``class_stability``; an API
    that is not in it occurs nowhere. Where one provider has too few APIs of a class, the other gives the rest. Raises
    UserError where both have too few.
    """
    members, chosen = candidates(index, counts), []
    counts = counts.reindex([spec.id for spec in index.operations], fill_value=0)
    rows = counts.to_dict("index")

    def dealt(frequency: str, numbers: Mapping[str, int]) -> list[tuple[ApiSpec, str]]:
        drawn = []
        for provider, n in numbers.items():
            drawn += sample(members[frequency, provider], rows, n, seed)
        return drawn

    for frequency, total in COMPOSITION.items():
        wanted = quotas(total, aws_share)
        if per_class is not None:
            wanted = dict.fromkeys(index.providers, per_class)
        pairs = dealt(frequency, wanted)
        if per_class is None and (missing := total - len(pairs)):
            pairs = dealt(frequency, {one: n + missing for one, n in wanted.items()})
            if len(pairs) < total:
                raise UserError(
                    f"only {len(pairs)} of {total} {frequency}-frequency tasks can be made from the APIs of the "
                    "frequency table: count over more code"
                )
        chosen += pairs
    return tasks_of(chosen, index, counts, Counter())


def tasks_of(
    pairs: Sequence[tuple[ApiSpec, str]],
    index: ApiIndex,
    counts: pandas.DataFrame,
    seen: Counter[str],
) -> list[Task]:
    """A task for each (API, comment); ``seen`` counts those of an API that are there already."""
    seen, tasks, rows = seen.copy(), [], counts.to_dict("index")
    for spec, comment in pairs:
        seen[spec.id] += 1
        times = rows[spec.id]
        tasks.append(
            Task(
                id=f"{spec.id}#{seen[spec.id]}",
                prompt=task_prompt(spec, comment),
                comment=comment,
                targets=acceptable_targets(spec, index),
                provider=spec.provider,
                service=spec.service,
                client=spec.client,
                frequency=times.get("class") or frequency_class(times["count_name"]),
                count_name=int(times["count_name"]),
                count_bound=int(times["count_bound"]),
                n_required=len(spec.required),
                class_stability=times.get("class_stability"),
            )
        )
    return tasks


def corrected(tasks: Sequence[Task], path: Path, index: ApiIndex) -> list[Task]:
    """The tasks with the comments of a CSV (``id``, ``comment`` and, unless they stay, ``targets``) in place of their
    own: issues that a reader noticed, fixed by hand (Appendix A.2, steps 7 and 8). Raises UserError for what fits no
    task.
    """
    try:
        rows = pandas.read_csv(path, dtype=str, keep_default_na=False).set_index("id")
        known = {task.id: task for task in tasks}
        for name, comment, targets in rows[["comment", "targets"]].itertuples():
            task = known[name]
            chosen = tuple(index.by_id[api].id for api in targets.split()) or task.targets
            prompt = task_prompt(index.by_id[task.target], comment)
            known[name] = replace(task, comment=comment, prompt=prompt, targets=chosen)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} holds no comments for these tasks ({error})") from None
    return list(known.values())


def write_tasks(tasks: Sequence[Task], path: Path) -> None:
    """One JSON object a line, in the order of the dataclass's fields, without what is not known."""
    rows = ({name: v for name, v in asdict(task).items() if v is not None} for task in tasks)
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


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
