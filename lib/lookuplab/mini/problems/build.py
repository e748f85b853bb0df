"""``lookuplab data build problems``: the mini benchmark from the installed libraries' held-out docstring examples.

The same versions give the same bytes: everything is ordered by hashes of names, and no time is recorded.
"""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
from tqdm import tqdm

from lookuplab import paths
from lookuplab.paths import replacing
from lookuplab.mini.problems import examples
from lookuplab.mini.problems.examples import LIBRARIES

FOLDER = paths.MINI / "stackoverflow"
PROBLEMS = FOLDER / "problems.jsonl.gz"
# Of 300 problems as DS-1000's 845 of six libraries: 336 Origin, 152 Surface, 195 Semantic, 162 Difficult-Rewrite;
# and as its 732 of these four: 291 Pandas, 220 Numpy, 106 Scipy, 115 Sklearn.
NUMBERS = {"Origin": 120, "Surface": 54, "Semantic": 69, "Difficult-Rewrite": 57}
SHARES = {"Pandas": 291 / 732, "Numpy": 220 / 732, "Scipy": 106 / 732, "Sklearn": 115 / 732}


@dataclass
class Built:
    """The records of the benchmark in their order, and what the card counts."""

    records: list[dict] = field(default_factory=list)
    found: dict[str, Counter] = field(default_factory=dict)  # library -> objects, examples, usable
    left_out: dict[str, Counter] = field(default_factory=dict)  # library -> reason -> examples


def order(text: str) -> bytes:
    """A place in the selection that depends on the name alone."""
    return hashlib.sha256(text.encode()).digest()


def quota(number: int) -> dict[str, int]:
    """``number`` problems dealt to the libraries by ``SHARES`` (largest remainder)."""
    exact = {library: number * share for library, share in SHARES.items()}
    dealt = {library: int(value) for library, value in exact.items()}
    for library in sorted(exact, key=lambda name: dealt[name] - exact[name])[:number - sum(dealt.values())]:
        dealt[library] += 1
    return dealt


def build(numbers: dict[str, int] = NUMBERS, progress: bool = True) -> Built:
    """Find, run, perturb, choose and check the problems. ``numbers``: how many of each kind of perturbation."""
    built = Built()
    quotas = {kind: quota(number) for kind, number in numbers.items()}
    for library in LIBRARIES:
        drafts = usable(library, built, progress)
        wanted = {kind: dealt[library] for kind, dealt in quotas.items()}
        with tqdm(total=sum(wanted.values()), desc=f"{library}: checked", disable=not progress) as bar:
            families = chosen(drafts, wanted, built.left_out[library], bar)
        built.records += numbered(families, library, len(built.records))
    return built


def usable(library: str, built: Built, progress: bool) -> list[list]:
    """The drafts of every example that runs, one list an example (the origin first); counts the others."""
    from lookuplab.mini.problems.running import examined

    objects = examples.held_out_objects(library)
    parsed = [found for item in objects for found in examples.examples(item, library)]
    left_out = Counter(reason for reason in parsed if isinstance(reason, str))
    candidates = [found for found in parsed if not isinstance(found, str)]
    drafts, seen = [], set()
    for done in examined(candidates, progress):
        key = (done[0].cases[0][0], done[0].target) if isinstance(done, list) else None
        if key is None or key in seen:
            left_out["the same as another"] += key is not None
            left_out[done if key is None else ""] += key is None
            continue
        seen.add(key)
        drafts.append(done)
    built.left_out[library] = +left_out
    built.found[library] = Counter(objects=len(objects), examples=len(parsed), usable=len(drafts))
    return drafts


def chosen(drafts: list[list], numbers: dict[str, int], left_out: Counter, bar: tqdm) -> list[list]:
    """Families (origin, then its perturbations) that pass the checks, until the numbers are reached.

    One example of each object comes before the second of any. Each kind of perturbation goes through the origins in an
    order of its own, and gives an origin a second one only when all had their first.
    """
    rounds: Counter = Counter()
    ranked = []
    for family in sorted(drafts, key=lambda family: order(family[0].example)):
        rounds[family[0].object] += 1
        ranked.append((rounds[family[0].object], order(family[0].object), family))
    waiting = [[family[0]] for _, _, family in sorted(ranked, key=lambda item: item[:2])]
    origins = filled(waiting, numbers["Origin"], left_out, bar)
    perturbed = {family[0].example: family[1:] for family in drafts}
    kept = {draft.example: [draft] for draft in origins}
    for kind in list(numbers)[1:]:
        waiting = []
        for turn, example in enumerate(sorted(kept, key=lambda example: order(kind + example))):
            waiting.append(alternating([draft for draft in perturbed[example] if draft.perturbation == kind], turn))
        for draft in filled(waiting, numbers[kind], left_out, bar):
            kept[draft.example].append(draft)
    return [kept[example] for example in sorted(kept, key=order)]


def alternating(drafts: list, turn: int) -> list:
    """The drafts with the kinds of rule in turn at the front, so that no rule crowds out the others."""
    rules = sorted({draft.rule.partition(":")[0] for draft in drafts})
    shift = {rule: (number + turn) % len(rules) for number, rule in enumerate(rules)}
    return sorted(drafts, key=lambda draft: shift[draft.rule.partition(":")[0]])


def filled(waiting: list[list], number: int, left_out: Counter, bar: tqdm) -> list:
    """``number`` drafts that hold, the first of each list before the second of any; counts those that do not hold."""
    from lookuplab.mini.problems import running, text

    kept: list = []
    left = [offered for offered in waiting if offered]
    while len(kept) < number and left:
        tried, left = left[:number - len(kept)], left[number - len(kept):]
        reasons = running.faults([(text.record(offered[0]), wrong_answers(offered[0])) for offered in tried])
        judged = list(zip(tried, reasons, strict=True))
        kept += [offered[0] for offered, reason in judged if not reason]
        left_out.update(reason for reason in reasons if reason)
        bar.update(reasons.count(""))
        again = [offered[1:] for offered, reason in judged if reason and offered[1:]]
        left = again + left + [offered[1:] for offered, reason in judged if not reason and offered[1:]]
    return kept


def wrong_answers(draft) -> list[str]:
    """Answers that must fail: nothing, None, the first case's value as a constant, and each variable as it is."""
    from lookuplab.mini.problems import text, values

    expected = draft.cases[0][1]
    imports = values.imports_of(expected.kind.rpartition(" ")[2], expected.source)
    return ["pass", "result = None", "\n".join([*imports, f"result = {expected.source}"]),
            *(f"result = {name}" for name in text.variables(draft))]


def numbered(families: list[list], library: str, first: int) -> Iterator[dict]:
    """Records with DS-1000's metadata: an origin and after it its perturbations, which name the origin's number."""
    from lookuplab.mini.problems import text

    number = 0
    for family in families:
        origin = number
        for draft in family:
            yield {**text.record(draft), "metadata": {
                "problem_id": first + number, "library_problem_id": number, "library": library,
                "test_case_cnt": len(draft.cases), "perturbation_type": draft.perturbation,
                "perturbation_origin_id": origin, "rule": draft.rule, "object": draft.object,
                "example": int(draft.example.rpartition("#")[2])}}
            number += 1


def write(records: Iterable[dict], path: Path) -> None:
    """JSON Lines, compressed; the same records give the same bytes."""
    with replacing(path) as partial, open(partial, "wb") as raw:
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
            for record in records:
                stream.write((json.dumps(record) + "\n").encode())


@click.command("problems", short_help="The mini benchmark of executable problems.", epilog="""\b
Examples:
  lookuplab data build problems
  lookuplab data build problems -o runs/problems.jsonl.gz""")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False),
              help="File to write; the table for the card goes beside it.  [default: the mini profile's]")
def command(out: Path | None) -> None:
    """Make executable problems from the held-out docstring examples of numpy, pandas, scipy and scikit-learn.

    Runs every such example in a process of its own, with limits, without writing files or opening connections.
    """
    from lookuplab.mini.problems import card

    path = out or PROBLEMS
    path.parent.mkdir(parents=True, exist_ok=True)
    built = build()
    write(built.records, path)
    card.write(built, path)
    click.echo(f"{len(built.records)} problems -> {path}")
