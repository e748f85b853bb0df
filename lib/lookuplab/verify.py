"""Compares a fresh run's figures with the committed ones. On the same type of processor every byte must be equal.

On another one, or with another number of threads, the last bits of floating point differ. There, numbers may differ by
``TOLERANCE``, and by more only if an answer of a model differs that was a near tie (``models.complete``); it is then
named. Pictures are judged on the same type of processor alone.
"""

import io
import json
import subprocess
import tarfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.artifact import KEY
from lookuplab.errors import UserError
from lookuplab.runner import ANSWERS, read_answers

TOLERANCE = 1e-4  # relative: CSVs hold six digits, of which noise reaches the fifth; one task of 10,000 is more
_ZERO = 1e-9  # what is smaller is noise around zero
Files = Mapping[str, bytes]  # name below figures/PROFILE -> content


@dataclass
class Verdict:
    """What came out: lines of text, and counts of the numbers, artifacts, pictures and answers that are equal."""

    differences: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    near_ties: list[str] = field(default_factory=list)
    timed: list[str] = field(default_factory=list)
    processors: set[tuple[str, ...]] = field(default_factory=set)
    equal: Counter = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """What to print: every difference, which processors computed, and in the last line the counts."""
        said = [
            *self.near_ties,
            *(f"explained: {line}" for line in self.explained),
            *(f"different: {line}" for line in self.differences),
            *(f"timed, not judged: {line}" for line in self.timed),
        ]
        for one, other in sorted(self.processors):
            how = (
                "the same: no tolerance"
                if one == other
                else f"floats may differ by {TOLERANCE:.2%}"
            )
            said.append(f"processor committed: {one}; fresh: {other} ({how})")
        ties = (
            f", {len(self.explained)} changed by {len(self.near_ties)} near ties"
            if self.near_ties
            else ""
        )
        equal = self.equal
        return said + [
            f"verify: {'FAILED: ' if self.differences else ''}{equal['numbers']:,} numbers in {equal['artifacts']} "
            f"artifacts equal, {len(self.differences)} different{ties}; {equal['pictures']} pictures and "
            f"{equal['answers']:,} answers equal; {len(self.timed)} artifacts timed, not judged"
        ]


def committed(profile: str, revision: str = "HEAD", paper: str | None = None) -> dict[str, bytes]:
    """A profile's figures as git has them. Raises UserError if there is no checkout, no commit or no figures."""
    folder = (paths.FIGURES / profile).relative_to(paths.ROOT).as_posix()
    command = ["git", "-C", str(paths.ROOT), "archive", "--format=tar", revision, folder]
    archive = subprocess.run(command, capture_output=True)
    if archive.returncode:
        said = " ".join(archive.stderr.decode().split())
        raise UserError(
            f"no figures of profile {profile!r} in {revision!r}; commit what a run writes ({said})"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        files = {
            one.name.removeprefix(f"{folder}/"): tar.extractfile(one).read()
            for one in tar
            if one.isfile()
        }
    if paper and not any(file.startswith(f"{paper}/") for file in files):
        raise UserError(f"no figures of {paper!r} in {revision}")
    return files


def fresh(folder: Path) -> dict[str, bytes]:
    """The figures below a folder. Raises UserError if there are none."""
    files = (file for file in folder.rglob("[!.]*") if file.is_file())
    found = {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
    if not found:
        raise UserError(f"no figures below {folder}; `lookuplab reproduce` makes them")
    return found


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
            f"{record.get('processor')}, threads: {record.get('threads')}" for record in records
        )
        verdict.processors.add(processors)
        is_same[name] = len(set(processors)) == 1
    answers = [_answers(side[ANSWERS], paper) for side in (old, new) if ANSWERS in side]
    shaken = _compare_answers(*answers, all(is_same.values()), verdict) if len(answers) == 2 else {}
    for name in names:
        before, steady = len(verdict.differences), shaken.get(makers.get(name))
        rows = [_rows(side[f"{name}.csv"]) for side in (old, new)]
        _compare_rows(name, *rows, is_same.get(name), steady, verdict)
        if name not in is_same:
            continue
        is_equal = len(verdict.differences) == before
        verdict.equal["artifacts"] += is_equal
        if is_same[name] and is_equal and old[f"{name}.csv"] != new[f"{name}.csv"]:
            verdict.differences.append(
                f"{name}: the same rows, but another CSV (their order, or a row twice)"
            )
        if old.get(f"{name}.json") == new.get(
            f"{name}.json"
        ):  # it holds the run's seconds and memory
            verdict.differences.append(
                f"{name}: was not run again; its provenance is the committed one"
            )
        drawn = [file for file in (f"{name}.svg", f"{name}.png") if file in old and file in new]
        changed = [file for file in drawn if is_same[name] and old[file] != new[file]]
        verdict.differences += [f"{file}: another picture" for file in changed]
        verdict.equal["pictures"] += bool(drawn) and not changed
    return verdict


def _rows(content: bytes) -> pd.DataFrame:
    """The numbers as they are written, by the schema's key."""
    return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False).set_index(list(KEY))


def _compare_rows(
    name: str,
    old: pd.DataFrame,
    new: pd.DataFrame,
    is_same: bool | None,
    steady: set[str] | None,
    verdict: Verdict,
) -> None:
    """``is_same`` is None for an artifact that is timed: its rows must be there. ``steady`` are the models whose
    answers are all the same, None if no near tie changed an answer of this notebook.
    """
    for key in old.index.symmetric_difference(new.index):
        where = "there -> missing" if key in old.index else "missing -> there"
        verdict.differences.append(f"{' | '.join((name, *key[2:]))}: {where}")
    if is_same is None:
        return
    both = old.index.intersection(new.index)
    old, new = old.loc[both], new.loc[both]
    wrong = old != new
    if not is_same:
        floats = ["value", "ci_low", "ci_high"]
        one, other = (side[floats].replace("", np.nan).astype(float) for side in (old, new))
        wrong[floats] &= ~np.isclose(one, other, rtol=TOLERANCE, atol=_ZERO)
    for key in both[wrong.any(axis="columns")]:
        columns = wrong.columns[wrong.loc[key]]
        said = ", ".join(
            f"{at} {old.at[key, at] or 'none'} -> {new.at[key, at] or 'none'}" for at in columns
        )
        is_explained = steady is not None and key[2] not in steady and "paper_value" not in columns
        lines = verdict.explained if is_explained else verdict.differences
        lines.append(f"{' | '.join((name, *key[2:]))}: {said}")
    verdict.equal["numbers"] += int((~wrong.any(axis="columns")).sum())


def _answers(content: bytes, paper: str | None) -> pd.DataFrame:
    columns = ["model", "prompt", "sample", "question", "answer", "margin", "notebook"]
    frame = pd.DataFrame(read_answers(content), columns=columns)
    return frame[[paper in (None, notebook.split("/")[0]) for notebook in frame.notebook]]


def _compare_answers(
    old: pd.DataFrame, new: pd.DataFrame, is_same: bool, verdict: Verdict
) -> dict[str, set[str]]:
    """Answer by answer; returns the notebooks that used another one because of a near tie, each with those of its
    models whose answers are all the same.

    A tie explains a prompt's change if every question asked on both sides whose answer changed was a near tie, and there
    is one: a question asked on one side only was made from such an answer.
    """
    use, shaken = ["notebook", "model", "prompt", "sample"], set()
    sides = old.merge(new, how="outer", on=[*use, "question", "answer"], indicator="side")
    verdict.equal["answers"] += int((sides.side == "both").sum())
    differs = sides[sides.side != "both"].assign(
        margin=lambda rows: rows.margin_x.fillna(rows.margin_y)
    )
    for key, group in differs.groupby(use):
        asked = group.groupby("question").agg(sides=("side", "nunique"), margin=("margin", "max"))
        margins = asked.margin[asked.sides == 2]
        where = f"{' | '.join(key[:3])} | sample {key[3]}: another answer"
        if is_same or margins.empty or (margins == "").any():
            verdict.differences.append(where)
        else:
            verdict.near_ties.append(
                f"{where}; a near tie, the margin is {max(margins, key=float)}"
            )
            shaken.add(key[:2])
    used = set(zip(sides.notebook, sides.model, strict=True))
    return {name: {model for at, model in used - shaken if at == name} for name, _ in shaken}
