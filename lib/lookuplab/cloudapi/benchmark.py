"""CloudAPIBench, rebuilt by the paper's recipe (Section 2.2, Appendix A.2 steps 5 to 8) from index and frequencies.

Class sizes are the only ones that the paper's tables admit: high 205, medium 150, low 267, together 622.
"""

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.paths import write_lines
from lookuplab.cloudapi.comments import distinct_comments, intent
from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec
from lookuplab.errors import UserError

TASKS = paths.MINI / "cloudapi" / "tasks.jsonl"
COMPOSITION = {"high": 205, "medium": 150, "low": 267}
AWS_SHARE = 2 / 3  # choice: the paper shows both providers in every class (Figure 10) without numbers
PROMPTS_PER_API = 3  # at most (Appendix A.2, step 6)


@dataclass(frozen=True)
class Task:
    """One task: complete ``prompt`` with a valid call of any of ``targets`` (API ids; the first is the one asked for).

    ``frequency`` is the class of ``count_name`` (calls and definitions with the API's name, the paper's count);
    ``count_bound`` counts only calls resolved to the API's own client. ``n_required`` counts required arguments.
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
        """The API asked for: the cluster that intervals are resampled by."""
        return self.targets[0]


def frequency_class(count: int) -> str:
    """Low 0-10, medium 11-100, high from 101 (Section 2.2)."""
    return "low" if count <= 10 else "medium" if count <= 100 else "high"


def stable_order(key: str, seed: int) -> str:
    """A hash to sort by: the same on every machine, unrelated to the key's spelling."""
    return hashlib.sha256(f"{seed} {key}".encode()).hexdigest()


def unambiguous(index: ApiIndex) -> list[ApiSpec]:
    """Operations that may be sampled: no flag, a name of several words in one service only, a usable description."""
    services = defaultdict(set)
    for spec in index.specs:
        services[spec.provider, spec.name].add(spec.service)
    return [
        spec for spec in index.specs
        if spec.operation and not spec.flags and "_" in spec.name
        and len(services[spec.provider, spec.name]) == 1 and intent(spec.description) is not None
    ]


def acceptable_targets(spec: ApiSpec, index: ApiIndex) -> tuple[str, ...]:
    """The API itself and its equals on the same client: another version of it, or one described by the same words.

    What counts is the clause that comments are made from: first sentences are shared notices in some services ("This
    operation is not supported by directory buckets.").
    """
    def stem(name: str) -> str:
        return re.sub(r"_?v?\d+$", "", name)

    meaning = intent(spec.description)
    client = {other.id: other for other in index.methods(spec.provider, spec.client, spec.service).values()}
    equals = [
        api for api, other in sorted(client.items())
        if other.operation and api != spec.id
        and (stem(other.name) == stem(spec.name) or (meaning and intent(other.description) == meaning))
    ]
    return (spec.id, *equals)


def api_comments(spec: ApiSpec) -> list[str]:
    """The wordings kept for the benchmark: at most three, and at most half of all, so that the corpus has others."""
    wordings = distinct_comments(spec.description, spec.name, 2 * PROMPTS_PER_API, spec.id)
    return wordings[: len(wordings) // 2]


def sample(specs: Sequence[ApiSpec], counts: Mapping[str, int], n_tasks: int, seed: int,
           wordings: Mapping[str, Sequence[str]]) -> list[tuple[ApiSpec, str]]:
    """``n_tasks`` pairs (API, comment), spread evenly over required arguments and, within the class, over frequencies.

    APIs are dealt in turn from buckets of equal (number of required arguments, octave of the count); a hash decides
    the order in a bucket and whether an API gives one, two or three prompts.
    """
    buckets = defaultdict(list)
    for spec in sorted(specs, key=lambda s: stable_order(s.id, seed)):
        buckets[min(len(spec.required), 5), int(math.log2(counts.get(spec.id, 0) + 1))].append(spec)
    chosen: list[tuple[ApiSpec, str]] = []
    for spec in _in_turn([buckets[key] for key in sorted(buckets)]):
        prompts = 1 + int(stable_order(spec.id, seed + 1), 16) % PROMPTS_PER_API
        chosen += [(spec, comment) for comment in wordings[spec.id][:prompts]]
        if len(chosen) >= n_tasks:
            return chosen[:n_tasks]
    return chosen


def _in_turn(buckets: list[list]) -> Iterator:
    """The first of every bucket, then the second of every bucket ..."""
    for row in range(max(map(len, buckets), default=0)):
        yield from (bucket[row] for bucket in buckets if row < len(bucket))


def build(index: ApiIndex, count_name: Mapping[str, int], count_bound: Mapping[str, int] | None = None, seed: int = 0,
          composition: Mapping[str, int] = COMPOSITION,
          wordings: Mapping[str, Sequence[str]] | None = None) -> list[Task]:
    """The benchmark; ``wordings`` maps API ids to comments made elsewhere (by a model), else they are rewritten.

    Raises UserError where a class has too few APIs in the frequency table.
    """
    if wordings is None:
        wordings = ApiComments(index)
    by_class = defaultdict(list)
    for spec in unambiguous(index):
        by_class[spec.provider, frequency_class(count_name.get(spec.id, 0))].append(spec)
    tasks = []
    for frequency, total in composition.items():
        n_aws = round(total * AWS_SHARE)
        for provider, n_tasks in (("aws", n_aws), ("azure", total - n_aws)):
            members = by_class[provider, frequency]
            pairs = sample(members, count_name, n_tasks, seed, wordings)
            if len(pairs) < n_tasks:
                raise UserError(f"only {len(pairs)} of {n_tasks} {frequency}-frequency {provider} tasks can be made: "
                                f"the frequency table has {len(members)} such APIs; count frequencies over more code")
            shown = tqdm(pairs, f"{frequency}, {provider}", unit=" tasks", delay=1)
            tasks += [make_task(*pair, frequency, index, count_name, count_bound or count_name) for pair in shown]
    return numbered(tasks)


class ApiComments(dict):
    """API id -> its wordings by rewriting, made when asked for: most APIs are never dealt."""

    def __init__(self, index: ApiIndex):
        self.index = index

    def __missing__(self, api: str) -> list[str]:
        self[api] = api_comments(self.index.by_id[api])
        return self[api]


def make_task(spec: ApiSpec, comment: str, frequency: str, index: ApiIndex, names: Mapping[str, int],
              bound: Mapping[str, int]) -> Task:
    """The task that asks for ``spec`` by ``comment``; ``names`` and ``bound`` count by API id."""
    return Task(id=spec.id, prompt=task_prompt(spec, comment), comment=comment, targets=acceptable_targets(spec, index),
                provider=spec.provider, service=spec.service, client=spec.client, frequency=frequency,
                count_name=names.get(spec.id, 0), count_bound=bound.get(spec.id, 0), n_required=len(spec.required))


def numbered(tasks: list[Task]) -> list[Task]:
    """Ids that name the API and the prompt: ``aws/s3.s3.put_object#2``."""
    seen: Counter[str] = Counter()
    numbered = []
    for task in tasks:
        seen[task.id] += 1
        numbered.append(Task(**{**asdict(task), "id": f"{task.id}#{seen[task.id]}", "targets": task.targets}))
    return numbered


def write_tasks(tasks: Sequence[Task], path: Path) -> None:
    """One JSON object a line, in the order of the dataclass's fields."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, (json.dumps(asdict(task), ensure_ascii=False) for task in tasks))


def load_tasks(path: Path | str = TASKS, limit: int | None = None) -> list[Task]:
    """The benchmark; with ``limit`` that many tasks, spread over the classes (a hash chooses them)."""
    if limit is not None and limit < 0:
        raise UserError(f"limit is {limit}; it must be a number of tasks, 0 for all of them")
    path = paths.located(path)
    if not path.exists():
        raise UserError(f"no benchmark at {path}: run `lookuplab data build benchmark`")
    tasks = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            tasks.append(Task(**{**row, "targets": tuple(row["targets"])}))
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(f"{path}, line {number}: not a CloudAPIBench task ({error})") from None
    if limit is None or limit >= len(tasks):
        return tasks
    shuffled = sorted(tasks, key=lambda task: stable_order(task.id, 0))
    classes = [[task for task in shuffled if task.frequency == name] for name in COMPOSITION]
    kept = {task.id for task in list(_in_turn(classes))[:limit]}
    return [task for task in tasks if task.id in kept]
