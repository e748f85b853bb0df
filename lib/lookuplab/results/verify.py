"""Compares the figures of a fresh run with the committed ones. On the same type of processor, with
the same number of threads, numbers and pictures must be equal byte for byte. Only artifacts with
times or speeds are exempt.

On another type of processor, or with another number of threads, the last bits of floating-point
numbers differ. Numbers may then differ by ``RELATIVE`` or ``ABSOLUTE``, and pictures are not
compared. A number may differ by more only if a near tie changed a model's answer: two tokens had
almost equal logits, so the last bits decided between them. Such answers are listed.
"""

import csv
import io
import subprocess
import zlib
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from math import isclose
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pandas as pd

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.results.artifact import ROW_KEY, parse_record
from lookuplab.results.provenance import relative

# the log of the answers from which the figures were made, in the folder of the figures
ANSWERS_FILE = "answers.csv.gz"
# CSVs have six digits, and floating-point noise reaches the fifth. If one task in 10,000 changed, a
# rate would change by more than RELATIVE.
RELATIVE = 1e-4
# AUROC and ECE change by less than ABSOLUTE if two confidences swap their order, and by more if one
# task in 10,000 changes.
ABSOLUTE = 5e-5
# The outcomes of a comparison. EXPLAINED stands for a number that changed because of a near tie.
# Only DIFFERENT makes the verification fail.
NEAR_TIE, EXPLAINED, DIFFERENT = "near tie", "explained", "different"
TIMED, PROCESSORS = "timed, not judged", "processor committed"
NOT_RERUN = "on demand, not run again"
OUTCOMES = NEAR_TIE, EXPLAINED, DIFFERENT, TIMED, NOT_RERUN, PROCESSORS
# These columns of the log identify a prompt of a notebook by its id (column ``prompt``). Under the
# same id, a notebook may ask several questions: texts with different documents, or the same text
# with different decodings. The column ``question``, a digest of text and decoding, tells questions
# apart.
_PROMPT_KEY = ["notebook", "model", "prompt", "sample"]
Files = Mapping[str, bytes]  # path below figures/PROFILE -> content


class Differences:
    """Collects the result of a comparison: ``texts`` has the lines to print for each outcome, and
    ``equal`` counts the equal numbers, artifacts, pictures and answers.
    """

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
        self.equal: Counter[str] = Counter()

    def differs(self, line: str) -> None:
        """Add a line about a difference, which makes the verification fail."""
        self.texts[DIFFERENT].append(line)

    def compare_names(self, old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
        """Record a difference for each name that only one side has. Return the names that both
        sides have, sorted.
        """
        for name in sorted(old.keys() ^ new.keys()):
            there, here = ("there", "missing") if name in old else ("missing", "there")
            self.differs(f"{name}: {there} -> {here}")
        return sorted(old.keys() & new.keys())

    def compare_processors(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Record the processor and the number of threads of both sides, as the artifact's two JSON
        files state them. Return whether both the processor and the number of threads are the
        same on the two sides. The last bits of sums depend on processor and threads.
        """
        before, after = (
            f"{at.get('processor')}, threads: {at.get('threads')}" for at in (old, new)
        )
        tolerance = f"floats may differ by {RELATIVE:.2%} or {ABSOLUTE}"
        rule = "the same: no tolerance" if before == after else tolerance
        self.texts[PROCESSORS].append(f"{before}; fresh: {after} ({rule})")
        return before == after

    def compare_answers(self, old: pd.DataFrame, new: pd.DataFrame, is_exact: bool) -> set[str]:
        """Compare two logs of answers. Return the notebooks in which a near tie changed an answer.

        All questions with the same prompt id are judged together. Their changes count as explained
        by near ties if at least one question has different answers on the two sides, and if the
        answers to all such questions were near ties. A question that only one side has is not
        judged, because a changed answer can lead to a new question, for example with another
        document.
        """
        sides = pd.concat([old, new])
        on_one_side = sides.drop_duplicates([*_PROMPT_KEY, "question", "answer"], keep=False)
        self.equal["answers"] += (len(sides) - len(on_one_side)) // 2
        changed = set()
        for (notebook, model, prompt, sample), group in on_one_side.groupby(_PROMPT_KEY):
            by_question = group.groupby("question").margin
            margins = by_question.max()[by_question.size() == 2]  # of the questions on both sides
            line = f"{notebook} | {model} | {prompt} | sample {sample}: a different answer"
            if is_exact or margins.empty or (margins == "").any():
                self.differs(line)
            else:
                self.texts[NEAR_TIE].append(f"{line}; the margin is {max(margins, key=float)}")
                changed.add(notebook)
        return changed

    def compare_artifact(
        self, name: str, old: Files, new: Files, is_exact: bool | None, is_explained: bool
    ) -> None:
        """Compare an artifact row by row.

        If ``is_exact`` is True, no number may differ. If it is False, floats may differ a little
        (``_is_near``). If it is None, as for timed artifacts, only the names of the rows are
        compared. ``is_explained`` says that a near tie changed an answer in the artifact's
        notebook. In this case, different numbers do not make the verification fail.
        """
        before, after = (_rows(name, side) for side in (old, new))
        differing = len(self.texts[DIFFERENT])
        both = self.compare_names(before, after)
        if is_exact is None:
            return
        for line in both:
            changes = {}
            for column in {**before[line], **after[line]}:
                was, now = (side[line].get(column) or "none" for side in (before, after))
                if was != now and (is_exact or not _is_near(column, was, now)):
                    changes[column] = f"{column} {was} -> {now}"
            if changes:
                outcome = EXPLAINED if is_explained and "paper_value" not in changes else DIFFERENT
                self.texts[outcome].append(f"{line}: {', '.join(changes.values())}")
            else:
                self.equal["numbers"] += 1
        self.equal["artifacts"] += differing == len(self.texts[DIFFERENT])

    @property
    def failed(self) -> bool:
        return bool(self.texts[DIFFERENT])

    def lines(self) -> list[str]:
        """Return the lines to print: what was found, by outcome, and at last the counts."""
        count = {outcome: len(lines) for outcome, lines in self.texts.items()}
        failed = "FAILED: " if self.failed else ""
        equal = self.equal
        return [
            *(f"{name}: {line}" for name in OUTCOMES for line in dict.fromkeys(self.texts[name])),
            f"verify: {failed}{equal['numbers']:,} numbers in {equal['artifacts']} artifacts "
            f"equal, {count[DIFFERENT]} different, {count[EXPLAINED]} changed by "
            f"{count[NEAR_TIE]} near ties; {equal['svg']} pictures and "
            f"{equal['answers']:,} answers equal; {count[TIMED]} artifacts timed, not judged",
        ]


def committed_files(profile: str) -> dict[str, bytes]:
    """Return {path: content} of a profile's figures in git's HEAD. Raises UserError if there are
    none.
    """
    folder = relative(paths.FIGURES / profile)
    command = ["git", "-C", str(paths.ROOT), "archive", "--format=zip", "-0", "HEAD", folder]
    try:
        archive = subprocess.run(command, capture_output=True)
    except FileNotFoundError:
        raise UserError("git is not installed; it holds the committed figures") from None
    if archive.returncode:
        reason = " ".join(archive.stderr.decode().split())
        raise UserError(
            f"git has no figures of profile {profile!r}; commit what a run writes ({reason})"
        )
    with ZipFile(io.BytesIO(archive.stdout)) as files:
        names = [name for name in files.namelist() if not name.endswith("/")]
        return {name.removeprefix(f"{folder}/"): files.read(name) for name in names}


def fresh_files(folder: Path) -> dict[str, bytes]:
    """Return {path: content} of the figures below a folder. Raises UserError if there are none."""
    files = {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("[!.]*")
        if file.is_file()
    }
    if not files:
        raise UserError(f"no figures below {folder}; `lookuplab reproduce` makes them")
    return files


def read_answers(source: Path | io.BytesIO, **options: Any) -> pd.DataFrame:
    """Return the rows of a log of answers, with all values as text. ``store.LOG_COLUMNS`` are the
    columns. The file ANSWERS_FILE also has the column ``notebook``. Raises UserError for a damaged
    log.
    """
    try:
        return pd.read_csv(source, dtype=str, keep_default_na=False, **options)
    # EOFError and zlib.error: a compressed file was cut short, or its bytes were changed
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise UserError(f"a list of answers ({ANSWERS_FILE}) is damaged: {error}") from error


def compare(
    old: Files,
    new: Files,
    makers: Mapping[str, str],
    on_demand: Collection[str] | None = None,
) -> Differences:
    """Compare the files of both sides: ``old`` is committed, ``new`` is fresh.

    ``makers`` maps each artifact to its notebook. ``on_demand`` are the artifacts that a run of all
    notebooks does not make again; their files in ``new`` may still be the committed files. Without
    ``on_demand``, only the artifacts in ``makers`` and the log of answers are compared. If a folder
    of ``new`` has no committed files, it is taken to be the user's own and is ignored. Raises
    UserError if nothing is left to compare.
    """
    papers = {file.split("/")[0] for file in old}

    def is_chosen(file: str) -> bool:
        if on_demand is None:
            return file == ANSWERS_FILE or file.split(".")[0] in makers
        return file.split("/")[0] in papers

    old, new = ({file: side[file] for file in side if is_chosen(file)} for side in (old, new))
    if not old.keys() - {ANSWERS_FILE}:
        raise UserError("git has none of these figures; commit what a run writes")
    result = Differences()
    both = result.compare_names(old, new)
    exact = {}
    for file in both:
        if file.endswith(".json"):
            name = file.removesuffix(".json")
            records = [parse_record(file, side[file]) for side in (old, new)]
            # each JSON states the run's wall time, so two equal JSONs come from the same run
            is_old = old[file] == new[file]
            if any(record.get("timed") for record in records):
                result.texts[TIMED].append(name)
                continue
            if is_old and name in (on_demand or ()):
                result.texts[NOT_RERUN].append(name)
                continue
            exact[name] = result.compare_processors(*records)
            if is_old:
                result.differs(f"{name}: was not run again; its provenance is the committed one")
    changed: set[str] = set()
    if ANSWERS_FILE in both:
        before, after = (
            read_answers(io.BytesIO(side[ANSWERS_FILE]), compression="gzip") for side in (old, new)
        )
        if on_demand is None:
            before, after = (log[log.notebook.isin(makers.values())] for log in (before, after))
        changed = result.compare_answers(before, after, all(exact.values()))
    for file in both:
        name, _, extension = file.rpartition(".")
        if extension == "csv":
            is_explained = makers.get(name) in changed
            result.compare_artifact(name, old, new, exact.get(name), is_explained)
        if exact.get(name) and extension != "json":
            if old[file] == new[file]:
                result.equal[extension] += 1
            else:
                result.differs(f"{file}: different bytes")
    return result


def _rows(name: str, files: Files) -> dict[str, dict[str, str]]:
    """Return an artifact's rows as texts, keyed by ``artifact | model | condition | metric``.
    Raises UserError if the artifact's CSV is damaged.
    """
    try:
        rows = csv.DictReader(io.StringIO(files[f"{name}.csv"].decode()))
        return {" | ".join([name, *(row[column] for column in ROW_KEY[2:])]): row for row in rows}
    # KeyError: a column is missing; TypeError: a row is too short
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise UserError(f"{name}.csv is not an artifact's CSV: {error!r}") from error


def _is_near(column: str, old: str, new: str) -> bool:
    """Return whether two numbers of a column are equal up to the tolerance."""
    if column in ("value", "ci_low", "ci_high"):
        with suppress(ValueError):  # raised by "none"
            return isclose(float(old), float(new), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return False
