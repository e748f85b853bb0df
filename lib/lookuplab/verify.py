"""Compares a fresh run's figures with the committed ones. On the same type of processor every byte must be equal.

On another one, or with another number of threads, the last bits of floating point differ. There numbers may differ by
``TOLERANCE``, and more where an answer of a model is another one: only if it was a near tie (``models.answer_log``),
and then it is named.
"""

import csv
import io
import json
import math
import re
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lookuplab import paths
from lookuplab.artifact import COLUMNS, KEY
from lookuplab.errors import UserError
from lookuplab.runner import answers

TOLERANCE = 1e-4  # relative: CSVs hold six digits, of which noise reaches the fifth; one task of 10,000 is more
_ZERO = 1e-9  # what is smaller is noise around zero
_PICTURES = ("svg", "png")
_NUMBERS = ("value", "ci_low", "ci_high", "n", "paper_value")
_FLOATS = ("value", "ci_low", "ci_high")
_COORDINATE = re.compile(r"-?\d+\.\d+")
Files = Mapping[str, bytes]  # name below figures/PROFILE -> content


@dataclass
class Verdict:
    """What came out: lines of text, and the counts of what was equal (within the tolerance)."""

    differences: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    near_ties: list[str] = field(default_factory=list)
    timed: list[str] = field(default_factory=list)
    processors: set[tuple[str, str]] = field(default_factory=set)
    numbers: int = 0
    artifacts: int = 0
    pictures: int = 0
    answers: int = 0

    def summary(self) -> str:
        """One line: what is equal, what is not, what was not judged."""
        numbers = f"{self.numbers:,} numbers in {self.artifacts} artifacts equal, {len(self.differences)} different"
        explained = f", {len(self.explained)} changed by {len(self.near_ties)} near ties" if self.near_ties else ""
        return (f"verify: {'FAILED: ' if self.differences else ''}{numbers}{explained}; {self.pictures} pictures and "
                f"{self.answers:,} answers equal; {len(self.timed)} artifacts timed, not judged")


def committed(profile: str, revision: str = "HEAD", paper: str | None = None) -> dict[str, bytes]:
    """A profile's figures (with those of a paper) as git has them. Raises UserError where there is no checkout or none.
    """
    folder = (paths.FIGURES / profile).relative_to(paths.ROOT).as_posix()
    if _git("rev-parse", "--git-dir") is None:
        raise UserError(f"{paths.ROOT} is no git checkout; verify compares with what is committed")
    if _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}") is None:
        raise UserError(f"there is no commit {revision!r}")
    archive = _git("archive", "--format=tar", revision, folder)
    if archive is None:
        raise UserError(f"no figures of profile {profile!r} in {revision}; commit what `lookuplab reproduce` writes")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {entry.name.removeprefix(f"{folder}/"): tar.extractfile(entry).read()
                 for entry in tar if entry.isfile()}
    if paper and not any(file.startswith(f"{paper}/") for file in files):
        raise UserError(f"no figures of {paper!r} in {revision}")
    return files


def fresh(folder: Path) -> dict[str, bytes]:
    """The figures below a folder. Raises UserError where there are none."""
    files = {file.relative_to(folder).as_posix(): file.read_bytes()
             for file in folder.rglob("[!.]*") if file.is_file()}
    if not files:
        raise UserError(f"no figures below {folder}; `lookuplab reproduce` makes them")
    return files


def _git(*arguments: str) -> bytes | None:
    try:
        done = subprocess.run(["git", "-C", str(paths.ROOT), *arguments], capture_output=True)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def compare(old: Files, new: Files, makers: Mapping[str, str], paper: str | None = None) -> Verdict:
    """All files of both sides (of one paper). ``makers`` says which notebook makes an artifact."""
    verdict, both = Verdict(), []
    one_side, other_side = _by_artifact(old, paper), _by_artifact(new, paper)
    for name in sorted(one_side.keys() | other_side.keys()):
        one, other = one_side.get(name), other_side.get(name)
        if one is None or other is None:
            verdict.differences.append(f"{name}: {_sides('there', one, other)}")
            continue
        both.append(_Artifact(name, one, other, *(json.loads(files.get("json", b"{}")) for files in (one, other))))
    judged = [artifact for artifact in both if not artifact.is_timed]
    verdict.timed = [artifact.name for artifact in both if artifact.is_timed]
    verdict.processors = {artifact.processors for artifact in judged}
    is_same = all(artifact.is_same for artifact in judged)
    shaken = _compare_answers(old.get(answers.FILE), new.get(answers.FILE), paper, is_same, verdict)
    for artifact in both:
        models = shaken.get(makers.get(artifact.name, ""))
        _compare_rows(artifact, models, verdict)
        if not artifact.is_timed:
            _compare_files(artifact, models is not None, verdict)
    return verdict


@dataclass(frozen=True)
class _Artifact:
    """Both sides of one: their files by extension, and what their JSON says."""

    name: str
    old: Files
    new: Files
    one: dict
    other: dict

    @property
    def is_timed(self) -> bool:
        return bool(self.one.get("timed") or self.other.get("timed"))

    @property
    def processors(self) -> tuple[str, str]:
        return tuple(f"{side.get('processor', 'unknown')}, threads: {side.get('threads', 'unknown')}"
                     for side in (self.one, self.other))

    @property
    def is_same(self) -> bool:
        """Whether both ran on the same type of processor, with as many threads: sums depend on that, too."""
        return len(set(self.processors)) == 1


def _by_artifact(files: Files, paper: str | None) -> dict[str, dict[str, bytes]]:
    """{"paper/artifact": {extension: content}}; what lies above the papers' folders belongs to none."""
    found: dict[str, dict[str, bytes]] = defaultdict(dict)
    for file, content in files.items():
        stem, _, extension = file.rpartition(".")
        if "/" in file and paper in (None, file.split("/")[0]):
            found[stem][extension] = content
    return found


def _sides(what: str, one: object, other: object) -> str:
    return f"{what if one is not None else 'missing'} -> {what if other is not None else 'missing'}"


def _compare_rows(artifact: _Artifact, steady: set[str] | None, verdict: Verdict) -> None:
    """Row by row; of times that there is a row.

    ``steady`` is None, or its notebook used answers that were near ties: none of these models' are among them.
    """
    old, new = (_rows(files.get("csv", b"")) for files in (artifact.old, artifact.new))
    before = len(verdict.differences)
    for key in dict.fromkeys([*old, *new]):
        one, other = old.get(key), new.get(key)
        where = " | ".join((artifact.name, *map(str, key[2:])))
        if one is None or other is None:
            verdict.differences.append(f"{where}: {_sides('there', one, other)}")
        elif artifact.is_timed:
            continue
        elif changed := [name for name in _NUMBERS if not _equal(name, one[name], other[name], artifact.is_same)]:
            numbers = ", ".join(f"{name} {one[name] or 'none'} -> {other[name] or 'none'}" for name in changed)
            is_explained = steady is not None and one["model"] not in steady and "paper_value" not in changed
            lines = verdict.explained if is_explained else verdict.differences
            lines.append(f"{where}: {numbers}")
        else:
            verdict.numbers += 1
    if artifact.is_timed:
        return
    verdict.artifacts += len(verdict.differences) == before
    if artifact.is_same and len(verdict.differences) == before and artifact.old.get("csv") != artifact.new.get("csv"):
        verdict.differences.append(f"{artifact.name}: the same rows, but another CSV (their order, or a row twice)")


def _compare_files(artifact: _Artifact, is_shaken: bool, verdict: Verdict) -> None:
    """That each file is there twice, that the run was another one, and the pictures."""
    old, new = artifact.old, artifact.new
    for extension in sorted({"csv", "json"} | old.keys() | new.keys()):
        if extension not in old or extension not in new:
            verdict.differences.append(f"{artifact.name}.{extension}: "
                                       + _sides("there", old.get(extension), new.get(extension)))
    if "json" in old and old.get("json") == new.get("json"):  # it holds the run's seconds and memory
        verdict.differences.append(f"{artifact.name}: was not run again; its provenance is the committed one")
    drawn = [extension for extension in _PICTURES if extension in old and extension in new]
    changed = [extension for extension in drawn
               if not _equal_picture(extension, old[extension], new[extension], artifact.is_same)]
    lines = verdict.explained if is_shaken else verdict.differences
    lines += [f"{artifact.name}.{extension}: another picture" for extension in changed]
    verdict.pictures += bool(drawn) and not changed


def _rows(content: bytes) -> dict[tuple, dict[str, str]]:
    """The schema's key -> the row, its numbers as they are written."""
    rows = csv.DictReader(io.StringIO(content.decode()))
    if content and tuple(rows.fieldnames or ()) != COLUMNS:
        found = ", ".join(rows.fieldnames or ())
        raise UserError(f"an artifact's CSV has the columns {found}, not {', '.join(COLUMNS)}")
    return {tuple(row[name] for name in KEY): row for row in rows}


def _equal(name: str, one: str, other: str, is_same: bool) -> bool:
    return one == other or (not is_same and name in _FLOATS and _close(one, other))


def _close(one: str, other: str) -> bool:
    return bool(one and other) and math.isclose(float(one), float(other), rel_tol=TOLERANCE, abs_tol=_ZERO)


def _equal_picture(extension: str, one: bytes, other: bytes, is_same: bool) -> bool:
    """Byte by byte; on another processor its words and shapes, and coordinates to a tenth of a point: of the SVG, the
    PNG being the same drawing."""
    if one == other or is_same:
        return one == other
    if extension == "png":
        return True
    (texts, numbers), (other_texts, other_numbers) = (
        (_COORDINATE.split(content.decode()), _COORDINATE.findall(content.decode())) for content in (one, other))
    return texts == other_texts and all(abs(float(a) - float(b)) < 0.1
                                        for a, b in zip(numbers, other_numbers, strict=True))


def _compare_answers(old: bytes | None, new: bytes | None, paper: str | None, is_same: bool, verdict: Verdict
                     ) -> dict[str, set[str]]:
    """Answer by answer; returns the notebooks that used another one because of a near tie, with those of their models
    whose answers are all the same."""
    if (old is None) != (new is None):
        verdict.differences.append(f"{answers.FILE}: {_sides('there', old, new)}")
    if old is None or new is None:
        return {}
    one_side, other_side = _by_use(old, paper), _by_use(new, paper)
    used, shaken = defaultdict(set), defaultdict(set)
    for use in sorted(one_side.keys() | other_side.keys()):
        one, other = one_side[use], other_side[use]
        notebook, model, prompt, sample = use
        used[notebook].add(model)
        if {question: set(said) for question, said in one.items()} == {
                question: set(said) for question, said in other.items()}:
            verdict.answers += sum(map(len, one.values()))
            continue
        where = f"{notebook} | {model} | {prompt} | sample {sample}"
        margin = None if is_same else _near_tie(one, other)
        if margin is None:
            verdict.differences.append(f"{where}: another answer")
        else:
            verdict.near_ties.append(f"{where}: another answer; a near tie, the margin is {margin}")
            shaken[notebook].add(model)
    return {notebook: used[notebook] - models for notebook, models in shaken.items()}


def _by_use(content: bytes, paper: str | None) -> dict[tuple[str, ...], dict[str, dict[str, str]]]:
    """(notebook, model, prompt, sample) -> {question: {answer: margin}}: a prompt's id may be asked in several ways."""
    found = defaultdict(lambda: defaultdict(dict))
    for model, prompt, sample, question, answer, margin, notebook in answers.read(content):
        if paper in (None, notebook.split("/")[0]):
            found[notebook, model, prompt, sample][question][answer] = margin
    return found


def _near_tie(one: Mapping[str, Mapping[str, str]], other: Mapping[str, Mapping[str, str]]) -> str | None:
    """The margin, if each question asked on both sides whose answer changed was a near tie, and there is one.

    A question asked on one side only was made from such an answer.
    """
    margins = []
    for question in one.keys() & other.keys():
        changed = one[question].keys() ^ other[question].keys()
        near = [margin for said in (one[question], other[question]) for answer, margin in said.items()
                if answer in changed and margin]
        if 2 * len(near) < len(changed):
            return None
        margins += near
    return max(margins, key=float, default=None)
