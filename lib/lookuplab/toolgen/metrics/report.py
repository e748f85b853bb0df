"""All metrics of generated functions at once: one judgement each, and the table of a file of them (Tables II, III)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from lookuplab.errors import UserError
from lookuplab.scoring.rates import Rate, estimate, rate
from lookuplab.toolgen.metrics import identifiers, similarity
from lookuplab.toolgen.metrics.dependencies import Dependency, DependencyTool, coverage, covered
from lookuplab.toolgen.metrics.insertion import Place, function_of, insert, locate, read_source
from lookuplab.toolgen.metrics.success import SuccessTool, Verdict, success

FIELDS = {"id": (str, int), "repository": (str,), "file": (str,), "line": (int,), "prediction": (str,)}


@dataclass(frozen=True)
class Task:
    """A generated function and the place that it is for; ``text`` is the file's, ``root`` the repository's folder."""

    id: str | int
    root: Path
    file: str
    text: str
    place: Place
    prediction: str


@dataclass(frozen=True)
class Judged:
    """``predicted`` and ``wanted`` are the texts that similarity is of; ``body`` is the predicted body."""

    task: Task
    predicted: str
    wanted: str
    body: str
    dependencies: list[Dependency] | None
    verdict: Verdict


def task(record: dict, where: str) -> Task:
    """One line of input; raises UserError, which begins with ``where``, for anything that is not as it must be."""
    for field, types in FIELDS.items():
        if record.get(field) is None:
            raise UserError(f"{where}: the field {field!r} is missing")
        if not isinstance(record[field], types) or isinstance(record[field], bool):
            raise UserError(f"{where}: the field {field!r} must be {' or '.join(kind.__name__ for kind in types)}")
    root = Path(record["repository"]).resolve()
    if not root.is_dir():
        raise UserError(f"{where}: the repository {record['repository']} is not a folder")
    path = (root / record["file"]).resolve()
    if not path.is_relative_to(root):
        raise UserError(f"{where}: the file {record['file']} is not inside the repository")
    try:
        text = read_source(path)
        place = locate(text, record["line"])
    except UserError as error:
        raise UserError(f"{where}: {record['file']}: {error}") from None
    return Task(record["id"], root, path.relative_to(root).as_posix(), text, place, record["prediction"])


def judge(tasks: Sequence[Task], variant: str = "paper") -> list[Judged]:
    """All judgements in the order of ``tasks``, one file after the other."""
    found: dict[int, Judged] = {}
    order = sorted(range(len(tasks)), key=lambda number: (str(tasks[number].root), tasks[number].file))
    with DependencyTool() as jedi, SuccessTool() as pylint:
        for number in tqdm(order, desc="judging", unit=" functions", delay=1):
            found[number] = _judge(tasks[number], jedi, pylint, variant)
    return [found[number] for number in range(len(tasks))]


def _judge(task: Task, jedi: DependencyTool, pylint: SuccessTool, variant: str) -> Judged:
    place = task.place
    _, body = function_of(place, task.prediction)
    dependencies = jedi.trace(task.root, task.text, task.file, place)
    verdict = pylint.judge(task.root, task.file, insert(task.text, place, task.prediction), variant)
    predicted, wanted = (similarity.scored_text(place.signature, place.docstring, text, variant)
                         for text in (body, place.body))
    return Judged(task, predicted, wanted, body, dependencies, verdict)


def row(found: Judged) -> dict:
    """One judgement as an object of the output file; similarities 0 to 1, None where there is no value."""
    flags = None if found.dependencies is None else covered(found.dependencies, found.body)
    return {
        "id": found.task.id,
        "exact_match": similarity.exact_match(found.predicted, found.wanted),
        "edit_similarity": round(similarity.edit_similarity(found.predicted, found.wanted) / 100, 6),
        "dependencies": None if flags is None else len(flags),
        "covered": None if flags is None else sum(flags),
        "passed": found.verdict.passed,
        "lost": found.verdict.lost,
        "messages": [[message.id, message.line, message.text] for message in found.verdict.messages],
        "next_identifier": identifiers.next_match(found.body, found.task.place.body),
        "identifier_sequence": identifiers.sequence_match(found.body, found.task.place.body),
    }


def table(judged: Sequence[Judged], variant: str = "paper") -> str:
    """The summary: value, 95% interval and number of values of each metric, then what could not be measured."""
    if not judged:
        return "no functions"
    rows, clusters = [row(found) for found in judged], [str(found.task.root) for found in judged]
    predicted, wanted = [found.predicted for found in judged], [found.wanted for found in judged]
    codes = similarity.code_bleu(predicted, wanted, variant)
    found = coverage([each.dependencies for each in judged], [each.body for each in judged], clusters)
    passed = success([each.verdict for each in judged], clusters)
    lines = [f"{'':20}{'value':>8}  {'95% interval':>18}{'n':>7}"]
    lines += [_line(name, value) for name, value in (
        ("exact match", rate([each["exact_match"] for each in rows], clusters)),
        ("BLEU-4", similarity.bleu4_rate(predicted, wanted, clusters)),
        ("edit similarity", _mean(rows, "edit_similarity", clusters)),
        ("DepCov, pooled", found.pooled), ("DepCov, a function", found.per_function),
        *((f"  {kind}", value) for kind, value in found.kinds.items()),
        ("SuccRate", passed.rate),
        ("next identifier", _mean(rows, "next_identifier", clusters)),
        ("identifier sequence", _mean(rows, "identifier_sequence", clusters)))]
    parts = [(name, getattr(codes, name)) for name in ("score", *similarity.COMPONENTS, "mean_dataflow")]
    words = (f"{name} {'-' if value is None else f'{value:.3f}'}" for name, value in parts)
    lines.append("CodeBLEU: " + ", ".join(words))
    lines.append(f"{codes.without_dataflow} references have no data flow, {found.without} no dependency")
    lines.append("failed by " + ", ".join(f"{name}: {count}" for name, count in passed.failures.items()))
    lost = sum(passed.lost.values())
    return "\n".join(lines + [f"without an answer: Jedi {found.failed}, pylint {lost}"] * bool(found.failed + lost))


def _mean(rows: Sequence[dict], field: str, clusters: Sequence[str]) -> Rate:
    """The mean of a field over the functions that have a value."""
    known = [(float(each[field]), name) for each, name in zip(rows, clusters, strict=True) if each[field] is not None]
    return estimate([value for value, _ in known], [name for _, name in known])


def _line(name: str, value: Rate) -> str:
    if not value.n:
        return f"{name:20}{'-':>8}  {'':>18}{0:>7}"
    return f"{name:20}{value.value:>8.3f}  {f'{value.low:.3f} to {value.high:.3f}':>18}{value.n:>7}"
