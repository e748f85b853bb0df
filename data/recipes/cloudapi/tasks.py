"""Rebuilds CloudAPIBench from an API index and API frequencies by the paper's recipe (Section 2.2,
Appendix A.2 steps 5 to 8), and makes tasks in the same style for any Python package.

For a package, each frequency class gets as many tasks as its APIs allow, up to a chosen number.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from pandas import DataFrame, Series

from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.cloudapi.tasks import (
    COMPOSITION,
    TASKS,
    ApiTask,
    frequency_class,
    interleave,
    stable_order,
)
from lookuplab.errors import UserError
from lookuplab.run.cli import command, run_module
from recipes import write_rows
from recipes.cloudapi.comments import purpose, wordings
from recipes.cloudapi.reading import COMMON

# AWS's share of the tasks in each class. The value is our choice: the paper says that each class
# has tasks of both providers (Figure 10), but does not give the shares.
AWS_SHARE = 2 / 3
PROMPTS_PER_API = 3  # the maximum (Appendix A.2, step 6)
N = 5  # groups of APIs by their number of required arguments: 0, 1, 2, 3, 4 or more
# an API is in the upper part of its frequency class if its ``count_name`` is above this number
MIDDLE = {"low": 0, "medium": 33, "high": 316}
# flags of names that do not identify one API by themselves
GENERIC = {"generic_name", "shared_name"}
# flags that a task's API may have. In a package, APIs may share a name, because the prompt names
# the class or the module.
IN_PACKAGES = {"shared_name"}
IN_CLOUDS = GENERIC | {"open_signature"}


CommentedApi = tuple[ApiSpec, str]  # an API and a comment


def obstacle(spec: ApiSpec, allowed: Container[str] = ()) -> str:
    """Return the reason why no task can ask for an operation, or "" if a task can. The reason is a
    flag of the operation that is not in ``allowed``, or says that the description is not usable.
    """
    flags = (flag for flag in spec.flags if flag not in allowed)
    return next(flags, "" if purpose(spec) else "no description of a known verb")


def candidates(index: ApiIndex, counts: DataFrame) -> dict[tuple[str, str], list[ApiSpec]]:
    """Return {(frequency class, provider): APIs that tasks can ask for}. ``counts`` are as in
    ``build``.

    If ``counts`` has a column ``class``, the class is read from it, and an empty class excludes the
    API. Otherwise the class is ``frequency_class`` of ``count_name``. An API of a package is left
    out if its signature does not say which arguments are valid. A cloud API with such a signature
    (``delete_blobs``) is kept. Cloud APIs with the same name share one count, as in the paper.
    """
    found = defaultdict(list)
    rows = counts.to_dict("index")
    for spec in index.operations:
        times = rows.get(spec.id, dict.fromkeys(counts, 0))
        frequency = times.get("class", frequency_class(times["count_name"]))
        allowed = IN_PACKAGES if spec.provider == "python" else IN_CLOUDS
        if frequency and not obstacle(spec, allowed):
            found[frequency, spec.provider].append(spec)
    return found


def acceptable_targets(spec: ApiSpec, index: ApiIndex) -> tuple[str, ...]:
    """Return the ids of the APIs that a task for ``spec`` accepts: first the API itself, then its
    equivalents on the same client. An equivalent is another version of the API
    (``list_objects_v2``), or an operation described by the same clause.

    Clauses are compared and not whole descriptions, because in some services all descriptions begin
    with the same notice ("This operation is not supported by directory buckets.").
    """

    def stem(name: str) -> str:
        # not every number is a version: read_u16 does not do what read_u32 does
        return re.sub(r"_v\d+$", "", name)

    clause = purpose(spec)
    equals = {
        other.id
        for other in index.methods(spec.provider, spec.client, spec.service).values()
        if other.operation
        and (stem(other.name) == stem(spec.name) or (clause and purpose(other) == clause))
    }
    return spec.id, *sorted(equals - {spec.id})


def sample(specs: Iterable[ApiSpec], counts: Series, seed: int) -> Iterator[CommentedApi]:
    """Yield pairs (API, comment), most preferred first, so that the first pairs cover all numbers
    of required arguments and all frequencies.

    ``counts`` maps API ids to numbers of calls. APIs are sorted into buckets by their number of
    required arguments and the octave (integer part of the base-2 logarithm) of their count, and
    then taken from the buckets in turn. Of a package's APIs with
    the same name, at most four are chosen. A hash decides the order within a bucket and whether an
    API gets one, two or three comments.
    """
    buckets = defaultdict(list)
    chosen = Counter[str]()
    for spec in sorted(specs, key=lambda s: stable_order(s.id, seed)):
        chosen[spec.name] += spec.provider == "python"
        if chosen[spec.name] <= COMMON:
            octave = int(math.log2(counts[spec.id] + 1))
            buckets[min(len(spec.required), 5), octave].append(spec)
    for spec in interleave([buckets[key] for key in sorted(buckets)]):
        prompts = 1 + int(stable_order(spec.id, seed + 1), 16) % PROMPTS_PER_API
        for comment in comments_of(spec)[:prompts]:
            yield spec, comment


@cache
def comments_of(spec: ApiSpec) -> list[str]:
    """Return the comments that tasks for an API may have. For a cloud API, these are the first half
    of its wordings, so that the mini corpus can use the second half.
    """
    comments = [*wordings(spec, 2 * PROMPTS_PER_API)]
    return comments if spec.provider == "python" else comments[: len(comments) // 2]


def quotas(total: int) -> dict[str, int]:
    """Return {provider: number of tasks} for a frequency class with ``total`` tasks."""
    n_aws = round(total * AWS_SHARE)
    return {"aws": n_aws, "azure": total - n_aws}


def build(
    index: ApiIndex, counts: DataFrame, seed: int = 0, per_class: int | None = None
) -> list[ApiTask]:
    """Return the benchmark's tasks. With ``per_class``, there are at most that many tasks of each
    frequency class and provider; without it, the classes have the sizes of COMPOSITION.

    ``counts`` has a column ``count_name`` by API id, and may have the columns ``count_bound``,
    ``class`` and ``class_stability``. An API that is missing from ``counts`` counts as never used;
    if ``counts`` has a column ``class``, such an API is left out.
    """
    members = candidates(index, counts)
    chosen = list[CommentedApi]()
    counts = counts.reindex([spec.id for spec in index.operations], fill_value=0)
    for frequency, total in COMPOSITION.items():
        numbers = quotas(total) if per_class is None else dict.fromkeys(index.providers, per_class)
        for provider, n in numbers.items():
            chosen += islice(sample(members[frequency, provider], counts.count_name, seed), n)
    return tasks_of(chosen, index, counts, Counter())


def matched(index: ApiIndex, counts: DataFrame, seed: int = 0) -> list[ApiTask]:
    """Return the benchmark's tasks. Every frequency class has the same shares of providers and of
    numbers of required arguments (Appendix A.2, step 6). A share cannot be larger than what every
    class can fill with its own APIs.

    ``counts`` are as in ``build``. A *kind* of tasks is a class, a provider and a number of
    required arguments. Half of a kind's tasks have a count in the upper part of the class
    (``MIDDLE``), if there are enough such APIs. No API gets a second prompt before all APIs of its
    kind have had their first. Raises UserError if the APIs are too few to give all classes the same
    shares.
    """
    drawn = defaultdict[Any, list[Any]](list)
    chosen = list[CommentedApi]()
    counts = counts.reindex([spec.id for spec in index.operations], fill_value=0)
    for (name, provider), specs in candidates(index, counts).items():
        for spec in specs:
            upper = counts.count_name[spec.id] > MIDDLE[name]
            part = name, provider, min(len(spec.required), N - 1), upper
            place = stable_order(spec.id, seed)
            drawn[part] += ((i, place, spec) for i in range(PROMPTS_PER_API))

    def half(*part: str | int) -> list[CommentedApi]:
        return [
            (spec, said)
            for i, _, spec in sorted(drawn[part])[: max(COMPOSITION.values())]
            for said in comments_of(spec)[i : i + 1]
        ]

    found = {
        name: [
            interleave([half(name, provider, n, upper) for upper in (0, 1)])
            for provider in ("aws", "azure")
            for n in range(N)
        ]
        for name in COMPOSITION
    }
    # ``supply`` has, for each class, the share of its tasks that each combination of provider and
    # number of arguments could fill. The minimum is a share that every class can fill.
    supply = [[len(pairs) / n for pairs in found[name]] for name, n in COMPOSITION.items()]
    aws, azure = np.min(supply, axis=0).reshape(2, N)
    rest = min(1 - AWS_SHARE, azure.sum())
    if aws.sum() < 1 - rest:
        raise UserError(
            "the classes have too few APIs with the same required arguments: count over more code"
        )
    ends = np.cumsum([aws / aws.sum() * (1 - rest), azure / (azure.sum() or 1) * rest])
    for name, total in COMPOSITION.items():
        # cumulative shares are rounded, so that the numbers add up to the class's total
        numbers = np.diff(np.round(ends * total), prepend=0).astype(int)
        taken = chain(*map(islice, found[name], numbers))
        chosen += sorted(taken, key=lambda pair: pair[0].id)
    return tasks_of(chosen, index, counts, Counter())


def tasks_of(
    pairs: Sequence[CommentedApi], index: ApiIndex, counts: DataFrame, seen: Counter[str]
) -> list[ApiTask]:
    """Return one task for each pair (API, comment). ``seen`` has the number of tasks that each API
    already has. The numbers in the ids of the new tasks (``...#3``) continue after this number.
    """
    seen = seen.copy()
    tasks = []
    rows = counts.to_dict("index")
    for spec, comment in pairs:
        seen[spec.id] += 1
        times = rows[spec.id]
        tasks.append(
            ApiTask(
                f"{spec.id}#{seen[spec.id]}",
                task_prompt(spec, comment),
                comment,
                acceptable_targets(spec, index),
                spec.provider,
                spec.service,
                spec.client,
                frequency=times.get("class") or frequency_class(times["count_name"]),
                count_name=int(times["count_name"]),
                count_bound=int(times.get("count_bound", 0)),
                n_required=len(spec.required),
                repositories=times.get("repositories_name"),
                class_stability=times.get("class_stability"),
            )
        )
    return tasks


def write_tasks(tasks: Sequence[ApiTask], path: Path) -> None:
    """Write tasks as JSON Lines, with the fields in the order of ``ApiTask`` and without fields
    that are None.
    """
    rows = ({name: v for name, v in vars(task).items() if v is not None} for task in tasks)
    write_rows(path, rows)


@command()
def main(
    *,
    frequencies: Path,
    seed: int = 0,
    output: Path | None = None,
) -> None:
    """Build the 622 CloudAPIBench tasks from the API index and a frequency table.

    Every class has the same shares of providers and of numbers of required arguments.

    \b
    Examples:
      python -m recipes.cloudapi.tasks --frequencies stack.csv -o tasks.jsonl
      python -m recipes.cloudapi.tasks -o tasks.jsonl \\
        --frequencies data/public/cloudapi/frequencies.csv.gz

    Args:
        frequencies: CSV with columns api and count_name, as `lookuplab data frequencies`
            writes it. A column `class` overrides the counts.
        seed: Random seed for choosing the APIs.
        output: JSON Lines file to write. [default: tasks.jsonl in the table's folder]
    """
    from recipes.cloudapi.frequency import read_frequencies

    index = load_index()
    output = output or frequencies.with_name(TASKS.name)
    tasks = matched(index, read_frequencies(frequencies), seed)
    write_tasks(tasks, output)
    click.echo(f"{len(tasks)} tasks -> {output}")


if __name__ == "__main__":
    run_module(main)
