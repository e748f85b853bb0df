"""Functions generated elsewhere: a line of input as a task, and the table of all judgements (Tables II, III)."""

from collections.abc import Sequence
from pathlib import Path

from lookuplab.errors import UserError
from lookuplab.scoring.rates import Rate, estimate, rate
from lookuplab.toolgen.metrics import similarity
from lookuplab.toolgen.metrics.code_bleu import COMPONENTS, code_bleu
from lookuplab.toolgen.metrics.dependencies import coverage
from lookuplab.toolgen.metrics.insertion import locate, read_source
from lookuplab.toolgen.metrics.judging import Judged, Task, row
from lookuplab.toolgen.metrics.success import success

FIELDS = {"id": (str, int), "repository": (str,), "file": (str,), "line": (int,), "prediction": (str,)}


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


def table(judged: Sequence[Judged], variant: str = "paper") -> str:
    """The summary: value, 95% interval and number of values of each metric, then what could not be measured."""
    if not judged:
        return "no functions"
    rows, clusters = [row(found) for found in judged], [str(found.task.root) for found in judged]
    predicted, wanted = [found.predicted for found in judged], [found.wanted for found in judged]
    codes = code_bleu(predicted, wanted, variant)
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
        ("identifier sequence", _mean(rows, "identifier_sequence", clusters)),
        ("prefix", _mean(rows, "prefix", clusters)))]
    parts = [(name, getattr(codes, name)) for name in ("score", *COMPONENTS, "mean_dataflow")]
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
