"""Compares a fresh run's figures with the committed ones. On the same type of processor every byte
must be equal.

On another one, or with another number of threads, the last bits of floating point differ. There,
numbers may differ by ``TOLERANCE``, and by more only if an answer of a model differs that was a
near tie (``models.answer_log``); it is then named.
"""

import csv
import io
import json
import math
import re
import subprocess
import tarfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lookuplab import paths, provenance
from lookuplab.artifact import COLUMNS, KEY
from lookuplab.errors import UserError
from lookuplab.runner import ANSWERS, read_answers

TOLERANCE = 1e-4  # relative: CSVs hold six digits, of which noise reaches the fifth; one task of 10,000 is more
_ZERO = 1e-9  # what is smaller is noise around zero
_COORDINATE = re.compile(r"-?\d+\.\d+")
Files = Mapping[str, bytes]  # name below figures/PROFILE -> content


@dataclass
class Verdict:
    """What came out: lines of text, and counts of the numbers, artifacts, pictures and answers
    that are equal.
    """

    differences: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    near_ties: list[str] = field(default_factory=list)
    timed: list[str] = field(default_factory=list)
    processors: set[tuple[str, ...]] = field(default_factory=set)
    equal: Counter = field(default_factory=Counter)

    def summary(self) -> str:
        """One line: what is equal, what is not, what was not judged."""
        equal, failed = self.equal, "FAILED: " if self.differences else ""
        ties = (
            f", {len(self.explained)} changed by {len(self.near_ties)} near ties"
            if self.near_ties
            else ""
        )
        return (
            f"verify: {failed}{equal['numbers']:,} numbers in {equal['artifacts']} artifacts equal, "
            f"{len(self.differences)} different{ties}; {equal['pictures']} pictures and {equal['answers']:,} "
            f"answers equal; {len(self.timed)} artifacts timed, not judged"
        )


def committed(profile: str, revision: str = "HEAD", paper: str | None = None) -> dict[str, bytes]:
    """A profile's figures as git has them. Raises UserError if there is no checkout, no commit
    or no figures.
    """
    folder = (paths.FIGURES / profile).relative_to(paths.ROOT).as_posix()
    if provenance.git("rev-parse", "--git-dir") is None:
        raise UserError(f"{paths.ROOT} is no git checkout; verify compares with what is committed")
    if (
        provenance.git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )
        is None
    ):
        raise UserError(f"there is no commit {revision!r}")
    archive = subprocess.run(
        ["git", "-C", str(paths.ROOT), "archive", "--format=tar", revision, folder],
        capture_output=True,
    )
    if archive.returncode:
        raise UserError(
            f"no figures of profile {profile!r} in {revision}; commit what `lookuplab reproduce` writes"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        files = {
            entry.name.removeprefix(f"{folder}/"): tar.extractfile(entry).read()
            for entry in tar
            if entry.isfile()
        }
    if paper and not any(file.startswith(f"{paper}/") for file in files):
        raise UserError(f"no figures of {paper!r} in {revision}")
    return files


def fresh(folder: Path) -> dict[str, bytes]:
    """The figures below a folder. Raises UserError if there are none."""
    files = {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("[!.]*")
        if file.is_file()
    }
    if not files:
        raise UserError(f"no figures below {folder}; `lookuplab reproduce` makes them")
    return files


def compare(old: Files, new: Files, makers: Mapping[str, str], paper: str | None = None) -> Verdict:
    """All files of both sides (of one paper). ``makers`` names the notebook of each artifact."""
    verdict, is_same = Verdict(), {}
    old, new = (
        {
            file: content
            for file, content in side.items()
            if file == ANSWERS or paper in (None, file.split("/")[0])
        }
        for side in (old, new)
    )
    for file in sorted(old.keys() ^ new.keys()):
        verdict.differences.append(
            f"{file}: {'there -> missing' if file in old else 'missing -> there'}"
        )
    names = sorted(
        file.removesuffix(".csv") for file in old.keys() & new.keys() if file.endswith(".csv")
    )
    for name in names:
        records = [json.loads(side.get(f"{name}.json", b"{}")) for side in (old, new)]
        if any(record.get("timed") for record in records):
            verdict.timed.append(name)
            continue
        # sums depend on the type of processor, and on the number of threads
        processors = tuple(
            f"{record.get('processor', 'unknown')}, threads: {record.get('threads', 'unknown')}"
            for record in records
        )
        verdict.processors.add(processors)
        is_same[name] = len(set(processors)) == 1
    shaken = _compare_answers(
        old.get(ANSWERS), new.get(ANSWERS), paper, all(is_same.values()), verdict
    )
    for name in names:
        files = {
            extension: (old.get(f"{name}.{extension}"), new.get(f"{name}.{extension}"))
            for extension in ("csv", "json", "svg", "png")
        }
        _compare_artifact(name, files, is_same.get(name), shaken.get(makers.get(name, "")), verdict)
    return verdict


def _compare_artifact(
    name: str,
    files: Mapping[str, tuple[bytes | None, bytes | None]],
    is_same: bool | None,
    steady: set[str] | None,
    verdict: Verdict,
) -> None:
    """``is_same`` is None for an artifact that is timed: its rows must be there. ``steady`` are
    the models whose answers are all the same, None if no near tie changed an answer.
    """
    before = len(verdict.differences)
    old, new = map(_rows, files["csv"])
    for key in dict.fromkeys([*old, *new]):
        where = " | ".join((name, *key[2:]))
        if key not in old or key not in new:
            verdict.differences.append(
                f"{where}: {'there -> missing' if key in old else 'missing -> there'}"
            )
        elif is_same is not None:
            one, other = old[key], new[key]
            wrong = [
                column
                for column in COLUMNS[len(KEY) :]
                if one[column] != other[column]
                and not (
                    not is_same
                    and column in ("value", "ci_low", "ci_high")
                    and _close(one[column], other[column])
                )
            ]
            is_explained = (
                steady is not None and one["model"] not in steady and "paper_value" not in wrong
            )
            numbers = ", ".join(
                f"{column} {one[column] or 'none'} -> {other[column] or 'none'}" for column in wrong
            )
            if wrong:
                (verdict.explained if is_explained else verdict.differences).append(
                    f"{where}: {numbers}"
                )
            verdict.equal["numbers"] += not wrong
    if is_same is None:
        return
    is_equal = len(verdict.differences) == before
    verdict.equal["artifacts"] += is_equal
    if is_same and is_equal and files["csv"][0] != files["csv"][1]:
        verdict.differences.append(
            f"{name}: the same rows, but another CSV (their order, or a row twice)"
        )
    if files["json"][0] == files["json"][1]:  # it holds the run's seconds and memory
        verdict.differences.append(
            f"{name}: was not run again; its provenance is the committed one"
        )
    drawn = [extension for extension in ("svg", "png") if None not in files[extension]]
    changed = [
        extension
        for extension in drawn
        if not _equal_picture(extension, *files[extension], is_same)
    ]
    lines = verdict.differences if steady is None else verdict.explained
    lines += [f"{name}.{extension}: another picture" for extension in changed]
    verdict.equal["pictures"] += bool(drawn) and not changed


def _rows(content: bytes) -> dict[tuple[str, ...], dict[str, str]]:
    """The schema's key -> the row, its numbers as they are written."""
    rows = csv.DictReader(io.StringIO(content.decode()))
    if tuple(rows.fieldnames or ()) != COLUMNS:
        raise UserError(
            f"an artifact's CSV has the columns {', '.join(rows.fieldnames or ())}, not "
            f"{', '.join(COLUMNS)}"
        )
    return {tuple(row[name] for name in KEY): row for row in rows}


def _close(one: str, other: str) -> bool:
    return bool(one and other) and math.isclose(
        float(one), float(other), rel_tol=TOLERANCE, abs_tol=_ZERO
    )


def _equal_picture(extension: str, one: bytes, other: bytes, is_same: bool) -> bool:
    """Byte by byte; on another processor an SVG's words and shapes, and its coordinates to a
    tenth of a point. The PNG is the same drawing.
    """
    if one == other or is_same or extension == "png":
        return one == other or not is_same
    texts, numbers = (
        [read(content.decode()) for content in (one, other)]
        for read in (_COORDINATE.split, _COORDINATE.findall)
    )
    return texts[0] == texts[1] and all(
        abs(float(a) - float(b)) < 0.1 for a, b in zip(*numbers, strict=True)
    )


def _compare_answers(
    old: bytes | None, new: bytes | None, paper: str | None, is_same: bool, verdict: Verdict
) -> dict[str, set[str]]:
    """Answer by answer; returns the notebooks that used another one because of a near tie, each
    with those of its models whose answers are all the same.
    """
    if old is None or new is None:
        return {}
    one_side, other_side = _by_use(old, paper), _by_use(new, paper)
    used, shaken = defaultdict(set), defaultdict(set)
    for use in sorted(one_side.keys() | other_side.keys()):
        one, other = one_side[use], other_side[use]
        notebook, model, prompt, sample = use
        used[notebook].add(model)
        if {question: set(said) for question, said in one.items()} == {
            question: set(said) for question, said in other.items()
        }:
            verdict.equal["answers"] += sum(map(len, one.values()))
            continue
        where = f"{notebook} | {model} | {prompt} | sample {sample}: another answer"
        if is_same or (margin := _near_tie(one, other)) is None:
            verdict.differences.append(where)
        else:
            verdict.near_ties.append(f"{where}; a near tie, the margin is {margin}")
            shaken[notebook].add(model)
    return {notebook: used[notebook] - models for notebook, models in shaken.items()}


def _by_use(content: bytes, paper: str | None) -> dict[tuple[str, ...], dict[str, dict[str, str]]]:
    """(notebook, model, prompt, sample) -> {question: {answer: margin}}: a prompt's id may be
    asked in several ways.
    """
    found = defaultdict(lambda: defaultdict(dict))
    for model, prompt, sample, question, answer, margin, notebook in read_answers(content):
        if paper in (None, notebook.split("/")[0]):
            found[notebook, model, prompt, sample][question][answer] = margin
    return found


def _near_tie(
    one: Mapping[str, Mapping[str, str]], other: Mapping[str, Mapping[str, str]]
) -> str | None:
    """The margin, if every question asked on both sides whose answer changed was a near tie, and
    there is one.

    A question asked on one side only was made from such an answer.
    """
    margins = []
    for question in one.keys() & other.keys():
        changed = one[question].keys() ^ other[question].keys()
        near = [
            margin
            for said in (one[question], other[question])
            for answer, margin in said.items()
            if answer in changed and margin
        ]
        if 2 * len(near) < len(changed):
            return None
        margins += near
    return max(margins, key=float, default=None)
