"""Compares a fresh run's figures with the committed ones. On the same type of processor every byte must be equal.

On another one, or with another number of threads, the last bits of floating point differ. There, numbers may differ by
``TOLERANCE`` or ``NEAR``, and by more only if an answer of a model differs that was a near tie (``models.complete``);
it is then named. Pictures are judged on the same type of processor alone.
"""

import io
import json
import subprocess
import tarfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.artifact import KEY
from lookuplab.errors import UserError
from lookuplab.models.complete import COLUMNS
from lookuplab.runner import ANSWERS, read_answers

TOLERANCE = 1e-4  # relative: CSVs hold six digits, of which noise reaches the fifth; one task of 10,000 is more
NEAR = 5e-5  # absolute: last bits that order two confidences anew move AUROC and ECE by less; one task of 10,000 is more
_USE = ["notebook", *COLUMNS[:3]]  # which answer it is; the others are what was asked and what came
Files = Mapping[str, bytes]  # name below figures/PROFILE -> content


class Verdict:
    """What came out: lines of text by their kind, and how many numbers, artifacts, pictures and answers are equal."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = defaultdict(list)
        self.equal: Counter = Counter()

    @property
    def differences(self) -> list[str]:
        return self.said["different"]

    def lines(self) -> list[str]:
        """What to print: all that differs, which processors computed, and in the last line the counts."""
        kinds = ("near tie", "explained", "different", "timed, not judged", "processor committed")
        lines = [f"{kind}: {line}" for kind in kinds for line in dict.fromkeys(self.said[kind])]
        count = {kind: len(self.said[kind]) for kind in kinds}
        return [
            *lines,
            f"verify: {'FAILED: ' if self.differences else ''}{self.equal['numbers']:,} numbers in "
            f"{self.equal['artifacts']} artifacts equal, {count['different']} different, {count['explained']} changed by "
            f"{count['near tie']} near ties; {self.equal['pictures']} pictures and {self.equal['answers']:,} answers "
            f"equal; {count['timed, not judged']} artifacts timed, not judged",
        ]


def committed(profile: str, revision: str = "HEAD", paper: str | None = None) -> dict[str, bytes]:
    """A profile's figures (of one paper) as git has them. Raises UserError if there are none."""
    folder = (paths.FIGURES / profile).relative_to(paths.ROOT).as_posix()
    command = ["git", "-C", str(paths.ROOT), "archive", "--format=tar", revision, folder]
    archive = subprocess.run(command, capture_output=True)
    if archive.returncode:
        said = " ".join(archive.stderr.decode().split())
        raise UserError(
            f"no figures of profile {profile!r} in {revision!r}; commit what a run writes ({said})"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        files = {one.name: tar.extractfile(one).read() for one in tar if one.isfile()}
    files = {name.removeprefix(f"{folder}/"): content for name, content in files.items()}
    if paper and not any(name.startswith(f"{paper}/") for name in files):
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
    differs = verdict.differences.append
    files = {file for file in {*old, *new} if paper in (None, file.split("/")[0])} - {ANSWERS}
    for file in sorted(files):
        if file not in old or file not in new:
            differs(f"{file}: {_where(file in old)}")
    both = sorted(file for file in files if file in old and file in new)
    names = [file.removesuffix(".csv") for file in both if file.endswith(".csv")]
    for name in names:
        records = [json.loads(side.get(f"{name}.json", b"{}")) for side in (old, new)]
        if any(record.get("timed") for record in records):
            verdict.said["timed, not judged"].append(name)
            continue
        # sums depend on the type of processor, and on the number of threads
        one, other = (f"{at.get('processor')}, threads: {at.get('threads')}" for at in records)
        is_same[name] = one == other
        rule = (
            "the same: no tolerance"
            if one == other
            else f"floats may differ by {TOLERANCE:.2%} or {NEAR}"
        )
        verdict.said["processor committed"].append(f"{one}; fresh: {other} ({rule})")
    shaken = {}
    if ANSWERS in old and ANSWERS in new:
        answers = [read_answers(side[ANSWERS]) for side in (old, new)]
        if paper:
            answers = [rows[rows.notebook.str.startswith(f"{paper}/")] for rows in answers]
        shaken = _compare_answers(*answers, all(is_same.values()), verdict)
    elif ANSWERS in {*old, *new}:
        differs(f"{ANSWERS}: {_where(ANSWERS in old)}")
    for name in names:
        before, steady = len(verdict.differences), shaken.get(makers.get(name))
        _compare_rows(
            name, old[f"{name}.csv"], new[f"{name}.csv"], is_same.get(name), steady, verdict
        )
        if name not in is_same:
            continue
        is_equal = len(verdict.differences) == before
        verdict.equal["artifacts"] += is_equal
        if is_same[name] and is_equal and old[f"{name}.csv"] != new[f"{name}.csv"]:
            differs(f"{name}: the same rows, but another CSV (their order, or a row twice)")
        if old.get(f"{name}.json") == new.get(f"{name}.json"):  # it holds the run's seconds
            differs(f"{name}: was not run again; its provenance is the committed one")
        drawn = [file for file in (f"{name}.svg", f"{name}.png") if file in both]
        changed = [file for file in drawn if is_same[name] and old[file] != new[file]]
        for file in changed:
            differs(f"{file}: another picture")
        verdict.equal["pictures"] += bool(drawn) and not changed
    return verdict


def _where(was_there: bool) -> str:
    return "there -> missing" if was_there else "missing -> there"


def _compare_rows(
    name: str,
    before: bytes,
    after: bytes,
    is_same: bool | None,
    steady: set[str] | None,
    verdict: Verdict,
) -> None:
    """``is_same`` is None for an artifact that is timed: its rows must be there. ``steady`` are the models whose
    answers are all the same, None if no near tie changed an answer of this notebook.
    """
    old, new = (
        pd.read_csv(io.BytesIO(csv), dtype=str, keep_default_na=False).set_index(list(KEY))
        for csv in (before, after)
    )
    if list(old) != list(new):
        verdict.differences.append(
            f"{name}: the columns are {', '.join(new)}, not {', '.join(old)}"
        )
        return
    for key in old.index.symmetric_difference(new.index):
        verdict.differences.append(f"{' | '.join((name, *key[2:]))}: {_where(key in old.index)}")
    if is_same is None:
        return
    both = old.index.intersection(new.index)
    old, new = old.loc[both], new.loc[both]
    wrong = old != new
    if not is_same:
        floats = ["value", "ci_low", "ci_high"]
        one, other = (side[floats].replace("", np.nan).astype(float) for side in (old, new))
        wrong[floats] &= ~np.isclose(one, other, rtol=TOLERANCE, atol=NEAR)
    for key in both[wrong.any(axis="columns")]:
        columns = wrong.columns[wrong.loc[key]]
        said = ", ".join(
            f"{at} {old.at[key, at] or 'none'} -> {new.at[key, at] or 'none'}" for at in columns
        )
        is_explained = steady is not None and key[2] not in steady and "paper_value" not in columns
        kind = "explained" if is_explained else "different"
        verdict.said[kind].append(f"{' | '.join((name, *key[2:]))}: {said}")
    verdict.equal["numbers"] += int((~wrong.any(axis="columns")).sum())


def _compare_answers(
    old: pd.DataFrame, new: pd.DataFrame, is_same: bool, verdict: Verdict
) -> dict[str, set[str]]:
    """Answer by answer; returns the notebooks that used another one because of a near tie, each with those of its
    models whose answers are all the same.

    A tie explains a prompt's change if every question asked on both sides whose answer changed was a near tie, and there
    is one: a question asked on one side only was made from such an answer.
    """
    sides = old.merge(new, how="outer", on=[*_USE, "question", "answer"], indicator="side")
    verdict.equal["answers"] += int((sides.side == "both").sum())
    differs = sides[sides.side != "both"]
    shaken = set()
    for key, group in differs.groupby(_USE):
        margins = group.margin_x.fillna(group.margin_y).groupby(group.question).agg(["max", "size"])
        margins = margins["max"][margins["size"] == 2]  # asked on both sides
        where = f"{' | '.join(key[:3])} | sample {key[3]}: another answer"
        if is_same or margins.empty or (margins == "").any():
            verdict.differences.append(where)
        else:
            verdict.said["near tie"].append(f"{where}; the margin is {max(margins, key=float)}")
            shaken.add(key[:2])
    used = set(zip(sides.notebook, sides.model, strict=True))
    return {name: {model for at, model in used - shaken if at == name} for name, _ in shaken}
