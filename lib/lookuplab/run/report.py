"""The last runs as pages: RESULTS.md, CLAIMS.md, and those of the web site (``docs/website.py``).

What they say is in the templates of ``run/pages``; here is what the templates are given.
"""

import re
import runpy
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lookuplab import paths
from lookuplab.results import claims
from lookuplab.results.artifact import read_csv, read_record, wall_seconds
from lookuplab.results.claims import JudgedClaim
from lookuplab.results.paper import titles
from lookuplab.run.notebooks import Notebook, Profile, all_notebooks

_PICTURE = re.compile(r"^!\[(.*)\]\(((?:\.\./)*)figures/mini/(\S+)\.png\)$", re.MULTILINE)


def link(heading: str) -> str:
    """A link to a heading on the same page, with the anchor that GitHub generates."""
    anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
    return f"[{heading}](#{anchor})"


def page(template: str, **values: object) -> str:
    """One of the templates, given these values."""
    return TEMPLATES.get_template(template).render(values).rstrip()


def claims_text(judgements: list[JudgedClaim], details: bool = False) -> str:
    """Every claim with its verdicts, the deciding number and the paper's; with ``details``, every
    comparison.
    """
    return page("claims.txt.j2", judgements=judgements, details=details)


def claims_page(judgements: list[JudgedClaim], profile: Profile) -> str:
    """The page CLAIMS.md: every claim with both verdicts, paper by paper, and the command that
    makes its artifact again, with the seconds that it took.
    """
    folder = profile.figures / profile.name
    seconds = {
        artifact: wall_seconds(folder / id for id in notebook.artifacts)
        for notebook in all_notebooks()
        for artifact in notebook.artifacts
    }
    return page(
        "claims.md.j2",
        profile=profile,
        judgements=judgements,
        titles=titles(),
        artifact_seconds=seconds,
    )


def results_page(profile: Profile) -> str:
    """The page RESULTS.md: every notebook's question, method, pictures, results and verdicts, paper
    by paper.
    """
    return page("results.md.j2", run=Run(profile))


class ShownArtifact(NamedTuple):
    """An artifact of one run; ``place`` is the path of its files without suffix."""

    run: str
    id: str
    place: Path


class Section(NamedTuple):
    """What a page says of one notebook: its artifacts, and the verdicts on each claim by run."""

    notebook: Notebook
    artifacts: list[ShownArtifact]
    judgements: list[list[tuple[str, JudgedClaim]]]


class Run:
    """A profile's last run, and the other runs in the same figures folder.

    ``names`` are those of the runs, the profile's own first; ``judged`` maps each run to the
    verdicts on all claims; ``notebooks`` maps each folder, those of papers first, to its notebooks.
    """

    def __init__(self, profile: Profile):
        self.profile, self.figures = profile, profile.figures
        folders = sorted({file.parents[1] for file in self.figures.rglob("*.csv")})
        others = [folder.relative_to(self.figures).as_posix() for folder in folders]
        self.names = list(dict.fromkeys([profile.name, *others]))
        stated = claims.load()
        self.judged = {name: claims.judge_run(stated, self.figures / name) for name in self.names}
        judged = {claim.artifact_id for claim in stated}

        def position(notebook: Notebook) -> tuple[bool, bool]:
            return notebook.order != "first", judged.isdisjoint(notebook.artifacts)

        self.notebooks: dict[str, list[Notebook]] = {paper: [] for paper in titles()}
        for notebook in sorted(all_notebooks(), key=position):
            self.notebooks.setdefault(notebook.paper, []).append(notebook)

    def judgements(self, folder: str) -> list[JudgedClaim]:
        """The verdicts of the profile's own run on a paper's claims."""
        return [judged for judged in self.judged[self.profile.name] if judged.claim.paper == folder]

    def sections(self, folder: str) -> list[Section]:
        """Of each of the folder's notebooks that have an artifact in one of the runs."""
        sections = map(self._section, self.notebooks[folder])
        return [section for section in sections if section.artifacts]

    def story(self, folder: str) -> str:
        """The folder's own page; without one, a heading with its name."""
        file = paths.NOTEBOOKS / folder / "README.md"
        return self.illustrated(file) if file.is_file() else f"# {folder.capitalize()}\n"

    def _section(self, notebook: Notebook) -> Section:
        artifacts = [
            ShownArtifact(name, id, self.figures / name / id)
            for id in notebook.artifacts
            for name in self.names
            if (self.figures / name / f"{id}.csv").is_file()
        ]
        there = {(shown.run, shown.id) for shown in artifacts}
        by_claim: dict[str, list[tuple[str, JudgedClaim]]] = {}
        for name, judgements in self.judged.items():
            for judged in judgements:
                if (name, judged.claim.artifact_id) in there:
                    by_claim.setdefault(judged.claim.id, []).append((name, judged))
        return Section(notebook, artifacts, [*by_claim.values()])

    def illustrated(self, file: Path) -> str:
        """A page of the repository with this run's pictures, the result below each, and the verdict
        after each claim.
        """
        name = self.profile.name

        def picture(match: re.Match[str]) -> str:
            words, up, id = match.groups()
            if not (self.figures / name / f"{id}.svg").is_file():
                return ""
            result = sentence(self.figures / name / id)
            return f"![{words}]({up}figures/{name}/{id}.svg)\n\n{result}"

        def verdict(match: re.Match[str]) -> str:
            direction = directions.get(match[1])
            return f"{match[0]} **{direction}**" if direction else match[0]

        directions = {judged.claim.id: judged.direction for judged in self.judged[name]}
        text = _PICTURE.sub(picture, file.read_text("utf-8"))
        return re.sub("`([a-z0-9-]+)`", verdict, text)


def opening(notebook: Notebook) -> tuple[str, str]:
    """A notebook's title, and the paragraphs before its first code cell: the question and the
    method.
    """
    cells = nbformat.read(notebook.path, as_version=4).cells
    markdown = takewhile(lambda cell: cell.cell_type == "markdown", cells)
    texts = [cell.source for cell in markdown if not cell.source.startswith("## ")]
    title, _, rest = "\n\n".join(texts).partition("\n")
    return title.removeprefix("# "), rest.strip()


def sentence(place: Path) -> str:
    """An artifact's result in a sentence; "" if its notebook wrote none."""
    file = place.with_suffix(".txt")
    return file.read_text("utf-8").strip() if file.is_file() else ""


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("pages")),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {
    "link": link,
    "counts": Counter,
    "number": claims.number,
    "implications": runpy.run_path(str(paths.PAPER / "implied.py"))["implications"],
}
TEMPLATES.globals |= {
    "ROLES": claims.ROLES,
    "DIRECTIONS": claims.DIRECTIONS,
    "SIZES": claims.SIZES,
    "opening": opening,
    "sentence": sentence,
    "read_csv": read_csv,
    "read_record": read_record,
    "wall_seconds": wall_seconds,
}
