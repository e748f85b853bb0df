"""Compares a fresh run's figures with the committed ones. On the same type of processor every byte
must be equal.

On a different processor, or with a different number of threads, the last bits of floating-point
numbers differ. There, numbers may differ by ``TOLERANCE`` or ``NEAR``, and by more only where a
near tie (``models.complete``) changed a model's answer; that answer is then listed. Pictures are
compared only on the same type of processor.
"""

import csv
import io
import json
import subprocess
import tarfile
from collections import Counter
from collections.abc import Mapping
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.completions import COLUMNS
from lookuplab.results.answers import ANSWERS, read_answers
from lookuplab.results.artifact import KEY
from lookuplab.results.provenance import relative

TOLERANCE = 1e-4  # relative: CSVs hold six digits, and noise reaches the fifth; one task in 10,000 changes more
NEAR = 5e-5  # absolute: reordering two confidences by last bits moves AUROC and ECE by less; one task in 10,000 by more
FLOATS = ("value", "ci_low", "ci_high")
ENDS = {"svg": "picture", "png": "picture", "txt": "sentence"}
KINDS = ("near tie", "explained", "different", "timed, not judged", "processor committed")
_USE = ["notebook", *COLUMNS[:3]]  # identify an answer; the others are question and text
Files = Mapping[str, bytes]  # name below figures/PROFILE -> content


class Verdict:
    """The outcome: lines of text by kind, and the counts of equal numbers, artifacts, pictures and
    answers.
    """

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {kind: [] for kind in KINDS}
        self.equal: Counter = Counter()

    def differs(self, line: str) -> None:
        self.said["different"].append(line)

    def lines(self) -> list[str]:
        """What to print: all differences, the processors used, and, in the last line, the counts."""
        count, equal = {kind: len(self.said[kind]) for kind in KINDS}, self.equal
        return [
            *(f"{kind}: {line}" for kind in KINDS for line in dict.fromkeys(self.said[kind])),
            f"verify: {'FAILED: ' * bool(count['different'])}{equal['numbers']:,} numbers in "
            f"{equal['artifacts']} artifacts equal, {count['different']} different, {count['explained']} changed by "
            f"{count['near tie']} near ties; {equal['pictures']} pictures and {equal['answers']:,} answers "
            f"equal; {count['timed, not judged']} artifacts timed, not judged",
        ]


def committed(profile: str) -> dict[str, bytes]:
    """A profile's figures in git's HEAD. Raises UserError if there are none."""
    folder = relative(paths.FIGURES / profile)
    command = ["git", "-C", str(paths.ROOT), "archive", "--format=tar", "HEAD", folder]
    archive = subprocess.run(command, capture_output=True)
    if archive.returncode:
        said = " ".join(archive.stderr.decode().split())
        raise UserError(
            f"git has no figures of profile {profile!r}; commit what a run writes ({said})"
        )
    with TemporaryDirectory() as place:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(place)
        return fresh(Path(place, folder))


def fresh(folder: Path) -> dict[str, bytes]:
    """The figures below a folder. Raises UserError if there are none."""
    files = (file for file in folder.rglob("[!.]*") if file.is_file())
    found = {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
    if not found:
        raise UserError(f"no figures below {folder}; `lookuplab reproduce` makes them")
    return found


def compare(old: Files, new: Files, makers: Mapping[str, str], only: str | None = None) -> Verdict:
    """Compare all files of both sides, or ``only`` those of a paper, a notebook or an artifact,
    named as for ``run``.

    A paper without committed files is taken to be the user's own and ignored; UserError if it is
    named. ``makers`` gives the notebook of each artifact.
    """
    chosen = {
        id
        for id, maker in makers.items()
        if only in (None, id, maker, *id.split("/"), *maker.split("/"))
    }
    papers = {file.split("/")[0] for file in old}

    def asked(file: str) -> bool:
        paper, name = file.split("/")[0], file.split(".")[0]
        return file == ANSWERS or paper in papers and (only in (None, paper) or name in chosen)

    old, new = ({file: side[file] for file in sorted(side) if asked(file)} for side in (old, new))
    if not old.keys() - {ANSWERS}:
        raise UserError(f"git has no figures of {only!r}")
    verdict, rules, shaken = Verdict(), {}, {}
    for file in sorted(old.keys() ^ new.keys()):
        verdict.differs(f"{file}: {_where(file in old)}")
    both = [file for file in old if file in new]
    names = [file.removesuffix(".csv") for file in both if file.endswith(".csv")]
    for name in names:
        records = [json.loads(side.get(f"{name}.json", b"{}")) for side in (old, new)]
        if any(record.get("timed") for record in records):
            verdict.said["timed, not judged"].append(name)
            continue
        # sums depend on the type of processor and on the number of threads
        one, other = (f"{at.get('processor')}, threads: {at.get('threads')}" for at in records)
        tolerance = f"floats may differ by {TOLERANCE:.2%} or {NEAR}"
        rules[name] = one == other
        rule = "the same: no tolerance" if rules[name] else tolerance
        verdict.said["processor committed"].append(f"{one}; fresh: {other} ({rule})")
    if ANSWERS in both:
        answers = [read_answers(side[ANSWERS]) for side in (old, new)]
        if only:
            asked_of = {makers[id] for id in chosen}
            answers = [rows[rows.notebook.isin(asked_of)] for rows in answers]
        shaken = _compare_answers(*answers, all(rules.values()), verdict)
    for name in names:
        is_same, before = rules.get(name), len(verdict.said["different"])
        csvs, steady = [side[f"{name}.csv"] for side in (old, new)], shaken.get(makers.get(name))
        _compare_rows(name, *csvs, is_same, steady, verdict)
        if is_same is None:
            continue
        is_equal = len(verdict.said["different"]) == before
        verdict.equal["artifacts"] += is_equal
        if is_same and is_equal and csvs[0] != csvs[1]:
            verdict.differs(f"{name}: the same rows, but another CSV (their order, or a row twice)")
        if old.get(f"{name}.json") == new.get(f"{name}.json"):  # it contains the run's wall time
            verdict.differs(f"{name}: was not run again; its provenance is the committed one")
        changed = Counter()
        for end, what in ENDS.items():
            file = f"{name}.{end}"
            if is_same and file in both and old[file] != new[file]:
                verdict.differs(f"{file}: another {what}")
                changed[what] += 1
        verdict.equal["pictures"] += f"{name}.svg" in both and not changed["picture"]
    return verdict


def _where(was_there: bool) -> str:
    return "there -> missing" if was_there else "missing -> there"


def _compare_rows(
    name: str,
    old: bytes,
    new: bytes,
    is_same: bool | None,
    steady: set[str] | None,
    verdict: Verdict,
) -> None:
    """Compare two CSVs row by row.

    ``is_same`` (same processor and threads) is None for a timed artifact, whose rows must only
    exist. ``steady`` are the models whose answers are all unchanged; None if no near tie changed an
    answer of this notebook.
    """
    before, after = (
        {
            tuple(row[part] for part in KEY): row
            for row in csv.DictReader(io.StringIO(side.decode()))
        }
        for side in (old, new)
    )
    for key in {**before, **after}:
        place, was, now = " | ".join((name, *key[2:])), before.get(key), after.get(key)
        if was is None or now is None:
            verdict.differs(f"{place}: {_where(now is None)}")
        elif is_same is not None:
            changed = [
                (at, was.get(at) or "none", now.get(at) or "none")
                for at in {**was, **now}
                if was.get(at) != now.get(at)
            ]
            changed = [one for one in changed if is_same or not _near(*one)]
            says = ", ".join(f"{at} {one} -> {other}" for at, one, other in changed)
            may = steady is not None and key[2] not in steady and "paper_value" not in says
            if changed:
                verdict.said["explained" if may else "different"].append(f"{place}: {says}")
            verdict.equal["numbers"] += not changed


def _near(column: str, one: str, other: str) -> bool:
    is_float = column in FLOATS and "none" not in (one, other)
    return is_float and isclose(float(one), float(other), rel_tol=TOLERANCE, abs_tol=NEAR)


def _compare_answers(
    old: pd.DataFrame, new: pd.DataFrame, is_same: bool, verdict: Verdict
) -> dict[str, set[str]]:
    """Compare answer by answer; return the notebooks in which a near tie changed an answer, each
    with those of its models whose answers are all unchanged.

    Near ties explain the changes of a prompt if at least one question asked on both sides has a
    changed answer and all
    such answers were near ties: a question asked on one side only was derived from one of these
    answers.
    """
    sides = old.merge(new, how="outer", on=[*_USE, "question", "answer"], indicator="side")
    verdict.equal["answers"] += int((sides.side == "both").sum())
    shaken = set()
    for key, group in sides[sides.side != "both"].groupby(_USE):
        margins = group.margin_x.fillna(group.margin_y).groupby(group.question).agg(["max", "size"])
        margins = margins["max"][margins["size"] == 2]  # the question was asked on both sides
        where = f"{' | '.join(key[:3])} | sample {key[3]}: another answer"
        if is_same or margins.empty or (margins == "").any():
            verdict.differs(where)
        else:
            verdict.said["near tie"].append(f"{where}; the margin is {max(margins, key=float)}")
            shaken.add(key[:2])
    used, found = set(zip(sides.notebook, sides.model, strict=True)), {}
    for name, _ in shaken:
        steady = {model for at, model in used - shaken if at == name}
        # ToolGen's rows name the family of several models: mini-gpt of mini-gpt-base and
        # mini-gpt-toolgen
        families = {model.rpartition("-")[0] for model in steady}
        found[name] = steady | (
            families - {one.rpartition("-")[0] for at, one in shaken if at == name}
        )
    return found
