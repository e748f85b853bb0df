"""CloudAPIBench, rebuilt by the paper's recipe (Section 2.2, Appendix A.2 steps 5 to 8) from an API
index and API frequencies; and tasks in the same style for any Python package.

For a package, each class has as many tasks as its APIs allow, up to a chosen number.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path

import click
from pandas import DataFrame, read_csv

from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index, readable_file
from lookuplab.cloudapi.tasks import (
    COMPOSITION,
    TASKS,
    ApiTask,
    frequency_class,
    in_turn,
    stable_order,
)
from lookuplab.errors import UserError
from lookuplab.paths import write_lines
from lookuplab.run.commands import command, run_module
from recipes.cloudapi.comments import purpose, wordings
from recipes.cloudapi.reading import COMMON

AWS_SHARE = 2 / 3  # our choice: each class has both providers (Figure 10), numbers are not given
PROMPTS_PER_API = 3  # at most (Appendix A.2, step 6)
# Flags of names that do not identify one API by themselves
GENERIC = {"generic_name", "shared_name"}
# A package's prompt names the class or the module, so that another may have the name as well.
IN_PACKAGES = {"shared_name"}


def obstacle(spec: ApiSpec, allowed: Container[str] = ()) -> str:
    """Why no task can ask for an operation: a flag that is not allowed, or no usable description;
    "" if a task can.
    """
    flags = (flag for flag in spec.flags if flag not in allowed)
    return next(flags, "" if purpose(spec) else "no description of a known verb")


def candidates(index: ApiIndex, counts: DataFrame) -> dict[tuple[str, str], list[ApiSpec]]:
    """(class, provider) -> the APIs that tasks can ask for; ``counts`` as in ``build``.

    A class stated in ``counts`` is used as it is; an empty one excludes the API. Otherwise
    ``frequency_class`` decides. A cloud API whose name is frequent but which is never bound is then
    excluded, because the name belongs to something
    else (``create_instances`` is mostly EC2's resource, not lightsail). A cloud API that shares its
    name with others (``put_object`` of s3, ``delete_message`` of sqs) must have a certain class:
    ``count_name`` is too high for it and
    ``count_bound`` too low, so both must give the same class. High then means bound more than 100
    times, low means named at most 10 times. A stated class counts as certain. A cloud API may
    accept any arguments (``delete_blobs``).
    """
    found, rows = defaultdict(list), counts.to_dict("index")
    for spec in index.operations:
        times = rows.get(spec.id, dict.fromkeys(counts, 0))
        by_name = frequency_class(times["count_name"])
        at_least = frequency_class(times["count_bound"])
        homonym = by_name != "low" and not times["count_bound"] and spec.provider != "python"
        frequency = times.get("class", "" if homonym else by_name)
        sure = GENERIC if "class" in times or by_name == at_least else set()
        allowed = {"open_signature"} | sure if spec.provider != "python" else IN_PACKAGES
        if frequency and not obstacle(spec, allowed):
            found[frequency, spec.provider].append(spec)
    return found


def acceptable_targets(spec: ApiSpec, index: ApiIndex) -> tuple[str, ...]:
    """The API itself and its equivalents on the same client: another version of it, or one
    described by the same clause.

    Whole sentences are not compared, because in some services all operations begin with the same
    notice ("This operation is not supported by directory buckets.").
    """

    def stem(name: str) -> str:
        return re.sub(r"_?v?\d+$", "", name)

    clause = purpose(spec)
    equals = {
        other.id
        for other in index.methods(spec.provider, spec.client, spec.service).values()
        if other.operation
        and (stem(other.name) == stem(spec.name) or (clause and purpose(other) == clause))
    }
    return spec.id, *sorted(equals - {spec.id})


def sample(
    specs: Iterable[ApiSpec], counts: Mapping[str, Mapping[str, float]], seed: int
) -> Iterator[tuple[ApiSpec, str]]:
    """Pairs (API, comment) in the order of their choice, spread over numbers of required arguments
    and frequencies.

    ``counts`` are the columns of the frequency table by API id. APIs are taken in turn from buckets
    with the same number of required arguments and the same octave of the count; APIs of the next
    tenth of ``class_stability`` follow when the more stable ones are used up. At most four APIs of
    a package that share a name are chosen. A hash decides the order within a bucket and whether an
    API has one, two or three prompts. At most half of the wordings for a cloud API are used, so
    that the mini corpus can use the others.
    """
    buckets = defaultdict(list)
    chosen = Counter[str]()
    for spec in sorted(specs, key=lambda s: stable_order(s.id, seed)):
        chosen[spec.name] += spec.provider == "python"
        if chosen[spec.name] <= COMMON:
            times = counts[spec.id]
            tier = -int(10 * times.get("class_stability", 0))
            octave = int(math.log2(times["count_name"] + 1))
            buckets[tier, min(len(spec.required), 5), octave].append(spec)
    for _, keys in groupby(sorted(buckets), itemgetter(0)):
        for spec in in_turn([buckets[key] for key in keys]):
            prompts = 1 + int(stable_order(spec.id, seed + 1), 16) % PROMPTS_PER_API
            comments = [*wordings(spec, 2 * PROMPTS_PER_API)]
            if spec.provider != "python":
                comments = comments[: len(comments) // 2]
            yield from ((spec, comment) for comment in comments[:prompts])


def quotas(total: int) -> dict[str, int]:
    """How many of a class's tasks come from each provider."""
    n_aws = round(total * AWS_SHARE)
    return {"aws": n_aws, "azure": total - n_aws}


def build(
    index: ApiIndex, counts: DataFrame, seed: int = 0, per_class: int | None = None
) -> list[ApiTask]:
    """The benchmark; with ``per_class`` at most that many tasks of each class and provider.

    ``counts`` has ``count_name`` and ``count_bound`` by API id, and may have ``class`` and
    ``class_stability``. An API that is missing from it counts as never used or, where there is a
    ``class``, is left out. If one provider has too few APIs of a class, the other provides the
    rest. Raises UserError if both have too few.
    """
    members, chosen = candidates(index, counts), []
    counts = counts.reindex([spec.id for spec in index.operations], fill_value=0)
    rows = counts.to_dict("index")
    for frequency, total in COMPOSITION.items():
        numbers = quotas(total)
        if per_class is not None:
            numbers = dict.fromkeys(index.providers, per_class)
        offered = {number: sample(members[frequency, number], rows, seed) for number in numbers}
        pairs = [pair for one, n in numbers.items() for pair in islice(offered[one], n)]
        if per_class is None:
            pairs += islice(chain(*offered.values()), total - len(pairs))
            if len(pairs) < total:
                raise UserError(
                    f"only {len(pairs)} of {total} {frequency}-frequency tasks can be made from "
                    "the APIs of the frequency table: count over more code"
                )
        chosen += sorted(pairs, key=lambda pair: pair[0].provider)
    return tasks_of(chosen, index, counts, Counter())


def tasks_of(
    pairs: Sequence[tuple[ApiSpec, str]],
    index: ApiIndex,
    counts: DataFrame,
    seen: Counter[str],
) -> list[ApiTask]:
    """One task per (API, comment) pair; ``seen`` counts the tasks that each API already has."""
    seen, tasks, rows = seen.copy(), [], counts.to_dict("index")
    for spec, comment in pairs:
        seen[spec.id] += 1
        times = rows[spec.id]
        tasks.append(
            ApiTask(
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


def corrected(tasks: Sequence[ApiTask], path: Path, index: ApiIndex) -> list[ApiTask]:
    """The tasks with corrections from a CSV: problems that a reader noticed, fixed by hand
    (Appendix A.2, steps 7 and 8).

    The columns are ``id``, ``comment`` and ``targets`` (empty to keep the task's own). Raises
    UserError for a row that fits no task.
    """
    known = {task.id: task for task in tasks}
    with readable_file(path, "holds no comments for these tasks ({})"):
        rows = read_csv(path, dtype=str, keep_default_na=False, index_col="id")
        for name, comment, targets in rows[["comment", "targets"]].itertuples():
            task = known[name]
            chosen = tuple(index.by_id[api].id for api in targets.split()) or task.targets
            prompt = task_prompt(index.by_id[task.target], comment)
            known[name] = replace(task, comment=comment, prompt=prompt, targets=chosen)
    return list(known.values())


def write_tasks(tasks: Sequence[ApiTask], path: Path) -> None:
    """Write one JSON object per line, with the fields in the dataclass's order and without unknown
    values.
    """
    rows = ({name: v for name, v in asdict(task).items() if v is not None} for task in tasks)
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


@command()
def main(
    *, frequencies: Path, seed: int = 0, comments: Path | None = None, output: Path | None = None
) -> None:
    """Build the 622 CloudAPIBench tasks from the API index and a frequency table.

    Where one provider has too few APIs of a class, the other provides the rest, and a message says
    so.

    \b
    Examples:
      python -m recipes.cloudapi.tasks --frequencies stack.csv -o tasks.jsonl
      python -m recipes.cloudapi.tasks -o tasks.jsonl \\
        --frequencies data/public/cloudapi/frequencies.csv.gz

    Args:
        frequencies: CSV with columns api, count_name, count_bound, as `lookuplab data frequencies`
            writes it. A column `class` overrides the counts; with a column `class_stability`, the
            most stable APIs are chosen first.
        seed: Random seed for choosing the APIs.
        comments: CSV with columns id, comment, targets: comments corrected by hand and, where
            given, new targets.
        output: JSON Lines file to write. [default: tasks.jsonl beside the table]
    """
    from recipes.cloudapi.frequency import read_frequencies

    index, output = load_index(), output or frequencies.with_name(TASKS.name)
    tasks = build(index, read_frequencies(frequencies), seed)
    if comments:
        tasks = corrected(tasks, comments, index)
    write_tasks(tasks, output)
    made = Counter((task.frequency, task.provider) for task in tasks)
    for frequency, total in COMPOSITION.items():
        for provider, quota in quotas(total).items():
            if (n := made[frequency, provider]) < quota:
                short = f"{frequency}: {provider} has APIs for {n} of its {quota} tasks"
                click.echo(f"{short}; the other provider gives {quota - n} more")
    click.echo(f"{len(tasks)} tasks of {len({task.target for task in tasks})} APIs -> {output}")


if __name__ == "__main__":
    run_module(main)
