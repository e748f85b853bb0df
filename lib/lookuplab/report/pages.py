"""The sources of the site: Markdown from the templates in ``docs/_templates``, and the notebooks."""

import csv
import html
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import yaml

from lookuplab import claims, paths
from lookuplab.report import notebook_pages, reference
from lookuplab.report.last_run import Entry, LastRun
from lookuplab.report.paper_profile import needs
from lookuplab.runner import notebooks

SLUGS = {claims.HOLDS: "holds", claims.FAILS: "fails", claims.UNDECIDED: "undecided"}  # for addresses and styles
MARKS = {claims.HOLDS: "✓", claims.FAILS: "✗", claims.UNDECIDED: "?"}  # not everyone sees the colours
MOST_ROWS = 300  # of a table in a page; the CSV has them all


def write(runs: Sequence[LastRun], sources: Path) -> None:
    """Every page that is made from the runs, beside the written ones that lie in ``sources`` already."""
    render = _renderer(runs, sources)
    entries = {entry.id: entry for run in reversed(runs) for entry in run.entries}  # the first run's where both have it
    papers = list(dict.fromkeys(entry.paper for run in runs for entry in run.entries))
    kept = notebooks.all_notebooks()
    folders = list(dict.fromkeys(notebook.paper for notebook in kept))
    modules = reference.modules(kept)
    written = sorted(page.stem for page in (paths.ROOT / "docs").glob("*.md"))
    render("index.md", "front.md", papers=papers, folders=folders, written=written)
    render("claims.md", "claims.md")
    render("provenance.md", "provenance.md")
    for paper in papers:
        render(f"artifacts/{paper}/index.md", "artifacts.md", paper=paper, of_paper=_of(paper, runs))
    for entry in entries.values():
        render(f"artifacts/{entry.id}.md", "artifact.md", entry=entry)
    for folder in folders:
        guides = sorted((paths.NOTEBOOKS / folder).glob("*.md"))
        names = [guide.stem for guide in guides] + [notebook.name for notebook in kept if notebook.paper == folder]
        render(f"notebooks/{folder}/index.md", "notebooks.md", paper=folder, names=names)
        for guide in guides:
            (sources / "notebooks" / folder / guide.name).write_text(_text(guide), encoding="utf-8")
    for notebook in kept:
        notebook_pages.write(notebook, runs, sources / "notebooks" / f"{notebook.id}.ipynb")
    render("gpu_memory.md", "gpu_memory.md", needs=needs("paper"))
    render("commands.md", "commands.md", commands=list(reference.commands()))
    render("api/index.md", "api.md", rooms=list(modules))
    for room, names in modules.items():
        render(f"api/{room}.md", "room.md", room=room, modules=names)
    render("changelog.md", "changelog.md", text=_text(paths.ROOT / "CHANGELOG.md"))
    render("citing.md", "citing.md", papers=list(references().values()), citation=_text(paths.ROOT / "CITATION.cff"))


def _renderer(runs: Sequence[LastRun], sources: Path) -> Callable[..., None]:
    """A function that renders a template to a page; ``root`` is the way from the page up to the front page's folder."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(paths.ROOT / "docs" / "_templates"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.globals |= {
        "runs": runs, "compared": _compared(runs), "counted": claims.counted, "number": claims.number, "rows": rows,
        "title_of": title_of, "name_of": name_of, "slugs": SLUGS, "plurals": claims.PLURALS, "marks": MARKS,
        "MOST_ROWS": MOST_ROWS}
    environment.filters["inline"] = inline

    def render(page: str, template: str, **values: Any) -> None:
        file = sources / page
        file.parent.mkdir(parents=True, exist_ok=True)
        text = environment.get_template(template).render(root="../" * page.count("/"), **values)
        file.write_text(text, encoding="utf-8")

    return render


def rows(entry: Entry) -> list[dict[str, str]]:
    """The rows of an artifact's CSV as they are written."""
    with open(entry.file("csv"), encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def title_of(folder: str) -> str:
    """A paper's title by its folder, as CITATION.cff has it; of another folder its name."""
    return references().get(folder, {}).get("title") or name_of(folder)


def name_of(folder: str) -> str:
    """A paper's short name by its folder: CloudAPIBench."""
    return references().get(folder, {}).get("abbreviation") or folder.capitalize()


@cache
def references() -> dict[str, dict]:
    """folder -> the entry under ``references`` in CITATION.cff whose ``abbreviation`` it is in small letters."""
    cited = yaml.safe_load(_text(paths.ROOT / "CITATION.cff"))["references"]
    return {reference["abbreviation"].lower(): reference for reference in cited}


def inline(text: str) -> str:
    """Code between backticks as HTML, the rest escaped."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _compared(runs: Sequence[LastRun]) -> list[tuple]:
    """Every claim with its judgement in each run."""
    return list(zip(*(run.judgements for run in runs), strict=True))


def _of(paper: str, runs: Sequence[LastRun]) -> list[str]:
    return list(dict.fromkeys(entry.name for run in runs for entry in run.entries if entry.paper == paper))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
