"""A static site of a profile's last runs: every artifact with its verdicts, every notebook, the documentation.

The pages are Markdown, written from the artifacts' files and ``docs/``; Sphinx with MyST-NB turns them into a site.
Nothing is executed and nothing is fetched.
"""

import json
import re
import shutil
from collections import defaultdict
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from lookuplab import claims, paths
from lookuplab.artifact import read_csv
from lookuplab.errors import UserError
from lookuplab.notebooks import Notebook, Profile, all_notebooks
from lookuplab.paper import titles

TITLE = "What happens when a code model may look something up?"
MARK = ".lookuplab-report"  # marks a folder as a report, which the next one may replace
_WIDGET = "application/vnd.jupyter.widget-view+json"  # works in JupyterLab only
_FOR_TEACHERS = re.compile(
    r"^( *)### BEGIN (SOLUTION|HIDDEN TESTS)\n.*?^ *### END \2(\n|$)", re.DOTALL | re.MULTILINE
)


def build(profile: Profile, output: Path) -> Path:
    """Write the site of a profile's last run to the folder ``output``; returns the page to open.

    A report that is already there is replaced once the new one is complete. Raises UserError for a folder with other
    files.
    """
    from sphinx.cmd.build import build_main

    figures = profile.figures / profile.name
    if output.exists() and not (output / MARK).exists():
        raise UserError(
            f"{output} holds other files, which a report would replace; name a new folder"
        )
    with TemporaryDirectory(prefix=f".{output.name}-", dir=paths.made(output.parent)) as folder:
        sources, site = Path(folder, "sources"), Path(folder, "site")
        shutil.copytree(paths.ROOT / "docs", sources)
        shutil.copytree(figures, sources / "figures")
        for name in ("CHANGELOG.md", "CITATION.cff"):
            shutil.copy(paths.ROOT / name, sources)
        write_pages(profile, sources)
        if build_main(["-q", "-j", "auto", "-b", "html", str(sources), str(site)]):
            raise UserError("Sphinx could not build the report, for the reason above")
        (site / MARK).touch()
        shutil.rmtree(output, ignore_errors=True)
        site.rename(output)
    return output / "index.html"


def results(profile: Profile) -> str:
    """The page RESULTS.md: of every notebook question and method, of its artifacts picture and result, and the verdicts."""
    figures, named = profile.figures / profile.name, titles()
    judged = claims.judge_run(claims.load(), figures)
    papers: dict[str, list] = {paper: [] for paper in named}
    for notebook in sorted(all_notebooks(), key=lambda one: one.order != "first"):
        found = [id for id in notebook.artifacts if (figures / f"{id}.csv").is_file()]
        if found:
            papers.setdefault(notebook.paper, []).append((notebook, found))
    page = []
    for paper, notebooks in papers.items():
        verdicts = [one for one in judged if one.claim.paper == paper]
        page += [f"## {named.get(paper, paper.capitalize())}", ""]
        page += [f"{claims.count(verdicts)}.", ""] if verdicts else []
        for notebook, found in notebooks:
            title, *introduction = _introduction(notebook)
            page += [f"### {title}", "", *introduction, ""]
            for id in found:
                place = figures / id
                if place.with_suffix(".png").is_file():
                    link = place.with_suffix(".png").relative_to(profile.figures.parent).as_posix()
                    page += [f"![Chart of the result below]({link})", ""]
                if told := sentence(place):
                    page += [f"**Result** (`{place.name}`). {told}", ""]
            made = {id.partition("/")[2] for id in found}
            page += [
                f"- {one.marked} (size: {one.size}): {one.claim.statement} (`{one.claim.id}`)"
                for one in verdicts
                if one.claim.artifact in made
            ]
            record = json.loads((figures / f"{found[0]}.json").read_text(encoding="utf-8"))
            took = f"{record['wall_seconds']:.0f} s on {record['processor']}"
            page += ["", f"`lookuplab run {notebook.id}`: {took}.", ""]
    return "\n".join(page).rstrip()


def sentence(place: Path) -> str:
    """An artifact's result in a sentence, "" where its notebook wrote none."""
    file = place.with_suffix(".txt")
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def _introduction(notebook: Notebook) -> list[str]:
    """A notebook's title and its paragraphs before the first code: what is asked, and how."""
    cells = nbformat.read(notebook.path, as_version=4).cells
    texts = takewhile(lambda cell: cell.cell_type == "markdown", cells)
    opening = [cell.source for cell in texts if not cell.source.startswith("## ")]
    title, _, rest = "\n\n".join(opening).partition("\n")
    return [title.removeprefix("# "), rest.strip()]


def write_pages(profile: Profile, sources: Path) -> None:
    """Write the pages of a run into ``sources``, where those of ``docs/`` and its ``figures`` are already."""
    judged, named = claims.judge_run(claims.load(), sources / "figures"), titles()
    written = sorted(file.stem for file in sources.glob("*.md"))
    papers = defaultdict(list)
    for notebook in all_notebooks():
        papers[notebook.paper].append(notebook)
    front = [f"# {TITLE}", "", f"Profile {profile.name}: {profile.description}.", ""]
    for paper, notebooks in papers.items():
        verdicts = [one for one in judged if one.claim.paper == paper]
        title = named.get(paper, paper.capitalize())
        page = [f"# {title}", ""]
        for notebook in notebooks:
            write_notebook(notebook, profile, sources / "notebooks" / f"{notebook.id}.ipynb")
            for id in notebook.artifacts:
                if (sources / "figures" / f"{id}.csv").is_file():
                    page += artifact_lines(id, notebook, sources, verdicts)
        page += ["## Notebooks", "", *_toctree([notebook.id for notebook in notebooks])]
        (sources / "notebooks" / f"{paper}.md").write_text("\n".join(page), encoding="utf-8")
        front.append(f"- [{title}](notebooks/{paper}.md): {claims.count(verdicts) or 'no claims'}")
    front += ["", *_toctree([*(f"notebooks/{paper}" for paper in papers), *written])]
    (sources / "index.md").write_text("\n".join(front), encoding="utf-8")


def artifact_lines(
    id: str, notebook: Notebook, sources: Path, judged: list[claims.Judgement]
) -> list[str]:
    """An artifact's section: picture, claims, numbers, provenance."""
    place = sources / "figures" / id
    record = json.loads(place.with_suffix(".json").read_text(encoding="utf-8"))
    files = sorted(place.parent.glob(f"{place.name}.*"))
    links = [f"{{download}}`{file.suffix[1:]} <../figures/{id}{file.suffix}>`" for file in files]
    lines = [
        f"## {place.name}",
        "",
        f"Made by [{notebook.id}]({notebook.id}.ipynb). Files:",
        *links,
        "",
    ]
    if place.with_suffix(".svg") in files:
        words = f"Chart of {place.name}; its numbers are in the table below"
        lines += [f"![{words}](../figures/{id}.svg)", ""]
    if told := sentence(place):
        lines += [told, ""]
    for one in judged:
        if (claim := one.claim).artifact == place.name:
            said = f"{claim.statement} ({claim.place}; `{claim.id}`)"
            lines.append(
                f"- **{one.verdict}**: {said}. Ours: {one.ours}. Paper: {one.theirs}. Size: {one.size}."
            )
    commit = (record["git"]["commit"] or "none")[:12] + " and changes" * bool(
        record["git"]["dirty"]
    )
    table = read_csv(place.with_suffix(".csv")).drop(columns=["paper", "artifact"])
    shown = table.to_html(index=False, na_rep="", border=0, classes="numbers")
    made = (
        f"Commit {commit}, {record['processor']}, {record['device']}, {record['wall_seconds']} s."
    )
    numbers = f"<details><summary>{len(table)} numbers</summary><div class='scroll'>{shown}</div></details>"
    return [*lines, "", made, "", "```{raw} html", numbers, "```", ""]


def write_notebook(notebook: Notebook, profile: Profile, page: Path) -> None:
    """The executed copy of the last run, or the notebook without outputs.

    Widgets are left out, and lessons are shown without solutions and hidden tests.
    """
    executed = paths.RUNS / profile.name / f"{notebook.id}.ipynb"
    document = nbformat.read(executed if executed.is_file() else notebook.path, as_version=4)
    document.metadata.pop("widgets", None)
    for cell in document.cells:
        cell.source = _FOR_TEACHERS.sub(
            lambda part: f"{part[1]}...{part[3]}" * (part[2] == "SOLUTION"), cell.source
        )
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if _WIDGET not in one.get("data", {})]
    note = f"Not run here: `lookuplab run {notebook.id} --profile {profile.name}`"
    if executed.is_file():
        note = f"The executed copy of the last run under the profile {profile.name}"
    page.parent.mkdir(parents=True, exist_ok=True)
    document.cells.insert(1, nbformat.v4.new_markdown_cell(f"*{note}.*"))
    nbformat.write(document, page)


def _toctree(pages: list[str]) -> list[str]:
    return ["```{toctree}", ":maxdepth: 1", ":titlesonly:", "", *pages, "```", ""]
