"""What a profile's last runs left: its artifacts and the claims judged on them."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lookuplab import claims, paths
from lookuplab.errors import UserError
from lookuplab.report.words import picture_title, picture_words
from lookuplab.runner import notebooks, profiles
from lookuplab.runner.notebooks import Notebook
from lookuplab.runner.sources import artifacts


@dataclass(frozen=True)
class Entry:
    """One table or figure of a run: ``<name>.csv`` and ``.json`` in ``folder``; ``.svg`` and ``.png`` where drawn."""

    paper: str
    name: str
    folder: Path
    notebook: Notebook | None

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"

    def file(self, extension: str) -> Path:
        return self.folder / f"{self.name}.{extension}"

    @property
    def is_drawn(self) -> bool:
        return self.file("svg").is_file()

    @cached_property
    def provenance(self) -> dict:
        """The JSON beside the numbers; empty where there is none."""
        file = self.file("json")
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    @cached_property
    def title(self) -> str:
        """The notebook's where it is the notebook's main artifact, else what is written above the picture."""
        if self.notebook and self.notebook.name == self.name:
            return notebook_title(self.notebook.path)
        return (self.is_drawn and picture_title(self.file("svg"))) or self.name.replace("_", " ").capitalize()

    @cached_property
    def alternative(self) -> str:
        """The picture in words: its title, what is written in it, and where its numbers stand."""
        words = picture_words(self.file("svg"))
        title = picture_title(self.file("svg")) or self.title
        drawn = ", ".join(word for word in words if word != title)
        return f"Chart: {title}. Axes and series: {drawn}. The numbers stand in the table of {self.name}."


@dataclass(frozen=True)
class LastRun:
    """A profile's name, what it is, its artifacts and the judgements on them."""

    profile: str
    description: str
    entries: tuple[Entry, ...]
    judgements: tuple[claims.Judgement, ...] = field(repr=False)

    def find(self, id: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.id == id), None)

    def judged(self, paper: str, artifact: str | None = None) -> list[claims.Judgement]:
        """The judgements on a paper's claims, or on those about one artifact."""
        return [one for one in self.judgements if one.claim.paper == paper and artifact in (None, one.claim.artifact)]


def last_run(profile: str, folder: Path | None = None) -> LastRun:
    """The run under ``folder``, by default where the profile writes. Raises UserError where there is none yet."""
    chosen = profiles.load(profile)
    folder = folder or written_by(chosen)
    files = sorted(folder.glob("*/*.csv"))
    if not files:
        command = f"lookuplab reproduce --profile {profile}"
        raise UserError(f"no figures of profile {chosen.name!r} yet; `{command}` makes them")
    makers = notebook_of_artifacts(notebooks.all_notebooks())
    entries = (Entry(file.parent.name, file.stem, file.parent, makers.get(f"{file.parent.name}/{file.stem}"))
               for file in files)
    in_order = sorted(entries, key=lambda entry: _place(entry, makers))
    return LastRun(chosen.name, chosen.description, tuple(in_order), tuple(claims.judge_run(claims.load(), folder)))


def written_by(profile: profiles.Profile) -> Path:
    """Where a profile's runs write: committed figures in the checkout, others under runs/."""
    return (paths.FIGURES if profile.committed else paths.RUNS / "figures") / profile.name


def notebook_of_artifacts(known: Iterable[Notebook]) -> dict[str, Notebook]:
    """``paper/artifact`` -> the notebook that saves it, as its code says; by name where it does not."""
    makers: dict[str, Notebook] = {}
    for notebook in known:
        makers[notebook.id] = notebook
        makers |= dict.fromkeys(artifacts(notebook), notebook)
    return makers


def notebook_title(path: Path) -> str:
    """The first heading of a notebook."""
    import nbformat

    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown" and (heading := re.search(r"^# +(.+)$", cell.source, re.MULTILINE)):
            return heading[1].strip()
    return path.stem


def _place(entry: Entry, makers: dict[str, Notebook]) -> tuple:
    """Papers by name, then the rest; within a paper by notebook, its main artifact first."""
    is_paper = (paths.PAPER / entry.paper).is_dir()
    maker = entry.notebook.name if entry.notebook else entry.name
    return not is_paper, entry.paper, _natural(maker), entry.name != maker, entry.name


def _natural(name: str) -> tuple:
    """Tables and figures by their number, fig9 before fig10; what is beyond the paper after them."""
    number = re.match(r"(fig|table)(\d+)", name)
    return (0, number[1], int(number[2]), name) if number else (1, "", 0, name)
