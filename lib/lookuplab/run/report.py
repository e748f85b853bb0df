"""Renders the last runs as pages: RESULTS.md, CLAIMS.md, and the pages of the web site
(``docs/website.py``).

The texts of the pages are in the templates of ``run/pages``; this module prepares the values that
the templates show.
"""

import re
from collections import Counter
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lookuplab import paths
from lookuplab.results import claims
from lookuplab.results.artifact import read_csv, read_record
from lookuplab.results.claims import JudgedClaim
from lookuplab.results.paper import read_yaml, titles
from lookuplab.run.notebooks import Notebook, Profile, all_notebooks, load_profile

KEY = ["model", "condition", "metric"]
PAGES = Path(__file__).with_name("pages")
REAL = (paths.PUBLISHED, "gemma")  # profiles of models that others trained


def link(heading: str, words: str = "") -> str:
    """Return a link to a heading on the same page, with the anchor that GitHub generates."""
    anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
    return f"[{words or heading}](#{anchor})"


def page(template: str, **values: object) -> str:
    """Return the text of a template of ``run/pages``, filled in with ``values``."""
    return TEMPLATES.get_template(template).render(values).rstrip()


def claims_text(judgements: list[JudgedClaim], details: bool = False) -> str:
    """Return a text that shows, for every claim, both verdicts, the deciding number, and the
    paper's number. With ``details``, the text also shows every comparison.
    """
    return page("claims.txt.j2", judgements=judgements, details=details)


def claims_page(judgements: list[JudgedClaim], profile: Profile) -> str:
    """Return the page CLAIMS.md: every claim with both verdicts, failed claims first. Each row also
    has the command that makes the claim's artifact again, and how many seconds the command takes.
    """
    return page(
        "claims.md.j2",
        run=Run(profile),
        judgements=judgements,
        titles=titles(),
    )


def results_page(profile: Profile) -> str:
    """Return the page RESULTS.md: first all results on one screen and then, paper by paper, each
    notebook's picture and its result in a sentence.
    """
    return page("results.md.j2", run=Run(profile))


class ShownArtifact(NamedTuple):
    """An artifact of a run, as a page shows it. ``place`` is the path of the artifact's files
    without suffix. ``told`` is the artifact's result in a sentence (``Run.told``).
    """

    id: str
    place: Path
    told: str


class Section(NamedTuple):
    """The section of a page about one notebook: the notebook's artifacts, and the verdicts on the
    claims about these artifacts.
    """

    notebook: Notebook
    artifacts: list[ShownArtifact]
    judgements: list[JudgedClaim]


class Run:
    """The last run of a profile, with everything that the templates of pages show.

    ``verdicts`` is {claim's id: verdict}. ``words`` are the texts in data/paper/results.yaml. These
    texts describe the mini models only, so ``words`` is empty for any profile but mini.
    """

    def __init__(self, profile: Profile):
        self.profile = profile
        self.figures = profile.figures
        self.words = read_yaml(paths.PAPER / "results.yaml") if profile.name == "mini" else {}
        # the questions that the papers leave open, and how we decided them
        self.choices = read_yaml(paths.PAPER / "choices.yaml")
        self.claims = claims.load()

    @cached_property
    def notebooks(self) -> dict[str, list[Notebook]]:
        """Return {folder: notebooks}, with the papers' folders first. In a folder, notebooks with
        the order ``first`` precede all others, and notebooks with claims precede those without.
        """
        concerned = {claim.artifact_id for claim in self.claims}

        def position(notebook: Notebook) -> tuple[bool, bool]:
            return notebook.order != "first", concerned.isdisjoint(notebook.artifacts)

        found: dict[str, list[Notebook]] = {paper: [] for paper in titles()}
        for notebook in sorted(all_notebooks(), key=position):
            found.setdefault(notebook.paper, []).append(notebook)
        return found

    @cached_property
    def verdicts(self) -> dict[str, JudgedClaim]:
        folder = self.figures / self.profile.name
        return {one.claim.id: one for one in claims.judge_run(self.claims, folder)}

    @cached_property
    def real(self) -> dict[str, "Run"]:
        """Return {profile: run} for the committed runs on models that others trained: first the
        run on published answers, then the run of a pretrained model.
        """
        runs = {name: Run(load_profile(name)) for name in REAL if name != self.profile.name}
        return {
            name: run
            for name, run in runs.items()
            if any(judged.is_run for judged in run.verdicts.values())
        }

    def on_real(self, id: str) -> tuple["Run", JudgedClaim] | None:
        """Return the first run on real models (see ``real``) that can test a claim, and the verdict
        on the claim in this run. Return None if no such run can test the claim.
        """
        for run in self.real.values():
            judged = run.verdicts[id]
            if judged.is_run and judged.direction in (claims.HOLDS, claims.FAILS, claims.OPEN):
                return run, judged
        return None

    def place(self, id: str) -> Path:
        """Return the path of an artifact's files without suffix."""
        return self.figures / self.profile.name / id

    def told(self, id: str) -> str:
        """Return a sentence with an artifact's result, or "" if ``words`` has none for it."""
        words = self.words.get("sentences", {}).get(id)
        return page("told.md.j2", words=words, run=self, place=self.place(id)) if words else ""

    def judgements(self, folder: str) -> list[JudgedClaim]:
        """Return the verdicts on a paper's claims."""
        return [judged for judged in self.verdicts.values() if judged.claim.paper == folder]

    @cache  # noqa: B019 - a process shows few runs, and each page asks several times
    def sections(self, folder: str) -> list[Section]:
        """Return the sections about a folder's notebooks: one for each notebook whose artifacts
        exist.
        """
        sections = []
        for notebook in self.notebooks[folder]:
            artifacts = [
                ShownArtifact(id, self.place(id), self.told(id))
                for id in notebook.artifacts
                if self.place(id).with_suffix(".csv").is_file()
            ]
            if artifacts:
                judgements = [
                    one
                    for one in self.verdicts.values()
                    if one.is_run and one.claim.artifact_id in notebook.artifacts
                ]
                sections.append(Section(notebook, artifacts, judgements))
        return sections


def heading(folder: str) -> str:
    """Return the title of a folder of notebooks: the first line of its README or, if it has no
    README, the folder's name.
    """
    file = paths.NOTEBOOKS / folder / "README.md"
    return file.read_text("utf-8").split("\n")[0][2:] if file.is_file() else folder.capitalize()


def fill(text: str, place: Path, column: str = "value") -> str:
    """Return ``text`` with its fields filled in with numbers from the artifact at ``place``. A
    field ``{model|condition|metric}`` becomes the number in the row with this key, and
    ``{sum|metric}`` becomes the sum over all rows of the metric. A number gets one decimal, or the
    format after a colon: ``{sum|tasks:.0f}``. Raises KeyError for a number that does not exist.
    """
    rows = read_csv(place.with_suffix(".csv"))
    names = zip(*(rows[name].tolist() for name in KEY), strict=True)
    cells = dict(zip(names, rows[column].tolist(), strict=True))

    def number(match: re.Match[str]) -> str:
        *cell, metric = match[1].split("|")
        if cell[1:]:
            value = cells[*cell, metric]
        else:
            value = rows.set_index("metric")[column].loc[[metric]].agg(cell[0])
        return format(value, match[2] or ".1f")

    return re.sub(r"\{([^:}]+):?([^}]*)\}", number, text)


def sentence(place: Path) -> str:
    """Return the sentence that a notebook wrote about the artifact at ``place``, or "" if there is
    none.
    """
    file = place.with_suffix(".txt")
    return file.read_text("utf-8").strip() if file.is_file() else ""


def alternative(title: str, told: str) -> str:
    """Return the alternative text of a picture, for readers who cannot see the picture. The text is
    the beginning of ``told``, the notebook's result: about 200 characters (see ``split_text``),
    without intervals, sample sizes and Markdown. If ``told`` is "", return the notebook's
    ``title``.
    """
    # An interval follows a digit, "%" or "points". The sample sizes, which ``Artifact.tell``
    # appends, follow " n = ".
    values = re.sub(r"(?<=[\d%s]) \[[^]]*\]", "", told).partition(" n = ")[0]
    text = split_text(values)[0] or title
    plain = text.translate({ord("["): "(", ord("]"): ")", ord("`"): None})
    return plain.removesuffix(";").removesuffix(".") + "."


def as_list(text: str) -> str:
    """Return a text of more than 600 characters as a Markdown list, any other text unchanged."""
    return text if len(text) <= 600 else "\n".join(f"- {part}" for part in split_text(text))


def split_text(text: str) -> list[str]:
    """Split a text into parts of at most 200 characters. The text is cut only after sentences
    and semicolons, so a part with a long sentence may be longer.
    """
    found: list[str] = []
    # do not split within parentheses: the next parenthesis must not be a closing one
    for part in re.split(r"(?<=[.;]) (?![^(]*\))", text):
        if found and len(found[-1]) + len(part) < 200:
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


TEMPLATES = Environment(
    loader=FileSystemLoader(PAGES),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {
    "as_list": as_list,
    "link": link,
    "counts": Counter,
    "number": claims.number,
    "on_real": lambda id, run: run.on_real(id),
}
TEMPLATES.globals |= {
    "ROLES": claims.ROLES,
    "DIRECTIONS": claims.DIRECTIONS,
    "SIZES": claims.SIZES,
    "fill": fill,
    "heading": heading,
    "alternative": alternative,
    "sentence": sentence,
    "read_record": read_record,
}
