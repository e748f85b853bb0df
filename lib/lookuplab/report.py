"""A static site of a profile's last runs: every artifact with its verdicts, every notebook, the documentation.

The pages are Markdown, written from the artifacts' files and the templates in ``docs/_templates``; Sphinx with MyST-NB
turns them into a site. Nothing is executed and nothing is fetched.
"""

import csv
import html
import importlib
import inspect
import json
import pkgutil
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import click
import jinja2
import nbformat
import yaml
from tqdm import tqdm

import lookuplab
from lookuplab import claims, notebooks, paths
from lookuplab.errors import UserError
from lookuplab.notebooks import Notebook
from lookuplab.paths import replacing

MARK = ".lookuplab-report"  # marks a folder as a report, which the next one may replace
SLUGS = {claims.HOLDS: "holds", claims.FAILS: "fails", claims.UNDECIDED: "undecided"}  # for addresses and styles
SYMBOLS = {claims.HOLDS: "✓", claims.FAILS: "✗", claims.UNDECIDED: "?"}  # not everyone sees the colours
MOST_ROWS = 300  # of a table in a page; the CSV has them all
README = paths.ROOT / "README.md"
BEGIN, END = "<!-- artifacts: written by `make readme` -->", "<!-- end of artifacts -->"
_WIDGET = "application/vnd.jupyter.widget-view+json"  # works in JupyterLab only
_FOR_TEACHERS = re.compile(r"^( *)### BEGIN (SOLUTION|HIDDEN TESTS)\n.*?^ *### END \2(\n|$)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """One table or figure of a run: ``<name>.csv`` and ``.json`` in ``folder``; ``.svg`` and ``.png`` if drawn."""

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
        return json.loads(_text(file)) if file.is_file() else {}

    @cached_property
    def title(self) -> str:
        """The notebook's for its main artifact, else the name in words."""
        is_main = self.notebook and self.notebook.name == self.name
        return notebook_title(self.notebook.path) if is_main else self.name.replace("_", " ").capitalize()


@dataclass(frozen=True)
class LastRun:
    """A profile's name and description, its artifacts and the judgements on them."""

    profile: str
    description: str
    entries: tuple[Entry, ...]
    judgements: tuple[claims.Judgement, ...] = field(repr=False)

    def find(self, id: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.id == id), None)

    def judged(self, paper: str, artifact: str | None = None) -> list[claims.Judgement]:
        """The judgements on a paper's claims, or on those about one artifact."""
        return [one for one in self.judgements if one.claim.paper == paper and artifact in (None, one.claim.artifact)]


@dataclass(frozen=True)
class Built:
    """``front`` is the page to open; ``warnings`` are Sphinx's, one per line."""

    front: Path
    warnings: tuple[str, ...]


def last_run(profile: str, folder: Path | None = None) -> LastRun:
    """The run under ``folder``, by default where the profile writes. Raises UserError where there is none yet."""
    chosen = notebooks.load_profile(profile)
    folder = folder or chosen.figures / chosen.name
    files = sorted(folder.glob("*/*.csv"))
    if not files:
        command = f"lookuplab reproduce --profile {profile}"
        raise UserError(f"no figures of profile {chosen.name!r} yet; `{command}` makes them")
    makers: dict[str, Notebook] = {}
    for notebook in notebooks.all_notebooks():
        makers |= {notebook.id: notebook} | dict.fromkeys(notebook.artifacts, notebook)
    found = [Entry(file.parent.name, file.stem, file.parent, makers.get(f"{file.parent.name}/{file.stem}")) for file in files]
    judgements = claims.judge_run(claims.load(), folder)
    return LastRun(chosen.name, chosen.description, tuple(sorted(found, key=_place)), tuple(judgements))


def _place(entry: Entry) -> tuple:
    """Papers first; within one by notebook, tables and figures by their number, the main artifact first."""
    maker = entry.notebook.name if entry.notebook else entry.name
    number = re.match(r"(fig|table)(\d+)", maker)
    natural = (0, number[1], int(number[2]), maker) if number else (1, "", 0, maker)
    return not (paths.PAPER / entry.paper).is_dir(), entry.paper, natural, entry.name != maker, entry.name


def build(runs: Sequence[LastRun], output: Path) -> Built:
    """Build the site of one run, or of two side by side, into ``output``.

    A report that is already there is replaced once the new one is complete. Raises UserError for a folder with other
    files, and where ``docs/`` is missing.
    """
    docs = paths.ROOT / "docs"
    if not (docs / "conf.py").is_file():
        raise UserError(f"no {docs / 'conf.py'}: build the report in a checkout of lookuplab")
    check_output(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as folder:
        sources, site, files = (Path(folder) / name for name in ("sources", "site", "files"))
        shutil.copytree(docs, sources, ignore=shutil.ignore_patterns("_*"))
        for run in runs:
            for entry in run.entries:
                place = files / "figures" / run.profile / entry.paper
                place.mkdir(parents=True, exist_ok=True)
                for file in entry.folder.glob(f"{entry.name}.*"):
                    shutil.copyfile(file, place / file.name)
        write_pages(runs, sources)
        warnings = _sphinx(sources, docs, site, files)
        (site / MARK).touch()
        if output.exists():
            shutil.rmtree(output)
        site.rename(output)
    return Built(output / "index.html", warnings)


def check_output(output: Path) -> None:
    """A report may go to a new or empty folder, or replace a report. Raises UserError for anything else."""
    if output.exists() and not output.is_dir():
        raise UserError(f"{output} is a file; name a folder for the report")
    if output.exists() and any(output.iterdir()) and not (output / MARK).exists():
        raise UserError(f"{output} holds other files, which a report would replace; name an empty or new folder")


def _sphinx(sources: Path, docs: Path, site: Path, files: Path) -> tuple[str, ...]:
    from sphinx.application import Sphinx

    number, said = sum(file.suffix in (".md", ".ipynb") for file in sources.rglob("*")), StringIO()
    places = [sources, docs, site, site.with_name("doctrees")]
    options = {"confoverrides": {"html_extra_path": [str(files)]}, "status": None, "warning": said, "freshenv": True}
    app = Sphinx(*places, "html", **options)
    with tqdm(total=2 * number, desc="report", unit=" pages", unit_scale=0.5) as bar:  # each is read, then written
        app.connect("source-read", lambda *_: bar.update() and None)
        app.connect("html-page-context", lambda *_: bar.update() and None)
        app.build()
        bar.total = bar.n
    text = re.sub(r"\x1b\[[\d;]*m", "", said.getvalue()).replace(str(sources), "report")  # without colours
    return tuple(line for line in text.splitlines() if line.strip())


def write_pages(runs: Sequence[LastRun], sources: Path) -> None:
    """Write every page that is made from the runs into ``sources``, where the hand-written ones are already."""
    render = _renderer(runs, sources)
    entries = {entry.id: entry for run in reversed(runs) for entry in run.entries}  # the first run's where both have it
    papers = list(dict.fromkeys(entry.paper for run in runs for entry in run.entries))
    kept = notebooks.all_notebooks()
    folders = list(dict.fromkeys(notebook.paper for notebook in kept))
    render("index.md", "front.md", papers=papers, folders=folders, written=sorted(page.stem for page in sources.glob("*.md")))
    render("claims.md")
    render("provenance.md")
    for paper in papers:
        names = list(dict.fromkeys(entry.name for run in runs for entry in run.entries if entry.paper == paper))
        render(f"artifacts/{paper}/index.md", "artifacts.md", paper=paper, of_paper=names)
    for entry in entries.values():
        render(f"artifacts/{entry.id}.md", "artifact.md", entry=entry)
    for folder in folders:
        guides = sorted((paths.NOTEBOOKS / folder).glob("*.md"))
        names = [guide.stem for guide in guides] + [notebook.name for notebook in kept if notebook.paper == folder]
        render(f"notebooks/{folder}/index.md", "notebooks.md", paper=folder, names=names)
        for guide in guides:
            shutil.copyfile(guide, sources / "notebooks" / folder / guide.name)
    for notebook in kept:
        write_notebook(notebook, runs, sources / "notebooks" / f"{notebook.id}.ipynb")
    render("commands.md", commands=list(commands()))
    rooms = modules()
    render("api/index.md", "api.md", rooms=list(rooms))
    for room, names in rooms.items():
        render(f"api/{room}.md", "room.md", room=room, modules=names)
    render("changelog.md", text=_text(paths.ROOT / "CHANGELOG.md"))
    render("citing.md", papers=list(references().values()), citation=_text(paths.ROOT / "CITATION.cff"))


def _renderer(runs: Sequence[LastRun], sources: Path) -> Callable[..., None]:
    """A function that renders a template to a page; ``root`` leads from the page up to the front page's folder."""
    loader = jinja2.FileSystemLoader(paths.ROOT / "docs" / "_templates")
    options = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(loader=loader, autoescape=True, **options)
    compared = list(zip(*(run.judgements for run in runs), strict=True))  # each claim with its judgement in each run
    environment.globals |= {"runs": runs, "compared": compared, "counted": claims.counted, "number": claims.number}
    environment.globals |= {"slugs": SLUGS, "plurals": claims.PLURALS, "marks": SYMBOLS, "MOST_ROWS": MOST_ROWS}
    environment.globals |= {"title_of": title_of, "name_of": name_of, "rows": _rows}
    # code between backticks as HTML, the rest escaped
    environment.filters["inline"] = lambda text: re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))

    def render(page: str, template: str | None = None, **values: Any) -> None:
        file = sources / page
        file.parent.mkdir(parents=True, exist_ok=True)
        text = environment.get_template(template or page).render(root="../" * page.count("/"), **values)
        file.write_text(text, encoding="utf-8")

    return render


def _rows(entry: Entry) -> list[dict[str, str]]:
    with open(entry.file("csv"), encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def title_of(folder: str) -> str:
    """A paper's title by its folder, from CITATION.cff; of another folder its name."""
    return references().get(folder, {}).get("title") or name_of(folder)


def name_of(folder: str) -> str:
    """A paper's short name by its folder: CloudAPIBench."""
    return references().get(folder, {}).get("abbreviation") or folder.capitalize()


@cache
def references() -> dict[str, dict]:
    """folder -> the entry under ``references`` in CITATION.cff whose ``abbreviation``, in small letters, it is."""
    cited = yaml.safe_load(_text(paths.ROOT / "CITATION.cff"))["references"]
    return {reference["abbreviation"].lower(): reference for reference in cited}


def write_notebook(notebook: Notebook, runs: Sequence[LastRun], page: Path) -> None:
    """Write a notebook's page: the executed copy of the last run, or the notebook without outputs.

    Pictures get alternative texts, widgets are left out, and lessons are shown without solutions and hidden tests.
    """
    profile, heading = runs[0].profile, notebook.name
    executed = paths.RUNS / profile / f"{notebook.id}.ipynb"
    document = nbformat.read(executed if executed.is_file() else notebook.path, as_version=4)
    document.metadata.pop("widgets", None)
    for cell in document.cells:
        invitation = "# YOUR CODE HERE" if cell.cell_type == "code" else "*Your answer*"
        for_students = lambda part: f"{part[1]}{invitation}{part[3]}" if part[2] == "SOLUTION" else ""  # noqa: B023, E731
        cell.source = _FOR_TEACHERS.sub(for_students, cell.source)
        if cell.cell_type == "markdown":
            headings = re.findall(r"^#+ +(.+)$", cell.source, re.MULTILINE)
            heading = re.sub(r"[`*]", "", headings[-1]).strip() if headings else heading
        elif cell.cell_type == "code":
            words = f"The picture of the section {heading}"
            cell.metadata["mystnb"] = {"image": {"alt": words}}
            cell.outputs = [output for output in cell.outputs if _WIDGET not in output.get("data", {})]
            for output in cell.outputs:
                if "text/html" in output.get("data", {}):
                    alt = f'<img alt="{html.escape(words)}"'
                    output.data["text/html"] = re.sub(r"<img(?![^>]*\balt=)", alt, output.data["text/html"])
    if executed.is_file():
        note = f"The executed copy of the last run under the profile {profile}."
    else:
        note = f"Not run here: no outputs. `lookuplab run {notebook.id} --profile {profile}` makes them."
    made = [entry for entry in runs[0].entries if entry.notebook and entry.notebook.id == notebook.id]
    if made:
        links = ", ".join(f"[{entry.name}](../../artifacts/{entry.id}.md)" for entry in made)
        note += f" Its artifacts, with numbers and verdicts: {links}."
    document.cells.insert(1, nbformat.v4.new_markdown_cell(f":::{{note}}\n{note}\n:::"))
    page.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(document, page)


def notebook_title(path: Path) -> str:
    """The first heading of a notebook."""
    cells = nbformat.read(path, as_version=4).cells
    headings = (re.search(r"^# +(.+)$", cell.source, re.MULTILINE) for cell in cells if cell.cell_type == "markdown")
    return next((found[1].strip() for found in headings if found), path.stem)


def modules() -> dict[str, list[tuple[str, bool]]]:
    """room -> its modules that a notebook imports, as (name, whether its package exports a function of that name)."""
    code = "\n".join(notebook.code for notebook in notebooks.all_notebooks())
    used = set(re.findall(r"\blookuplab(?:\.\w+)+", code))
    for names in re.findall(r"from lookuplab import ([\w, ]+)", code):
        used |= {f"lookuplab.{name.strip()}" for name in names.split(",")}
    rooms: dict[str, list[tuple[str, bool]]] = {}
    for module in pkgutil.walk_packages(lookuplab.__path__, "lookuplab."):
        if module.name in used:
            package, _, last = module.name.rpartition(".")
            hidden = not inspect.ismodule(getattr(importlib.import_module(package), last, lookuplab))
            rooms.setdefault(module.name.split(".")[1], []).append((module.name, hidden))
    return rooms


def commands() -> Iterator[tuple[str, str]]:
    """(``lookuplab data get``, the text of its --help) for every command, groups before what is in them."""
    from lookuplab.cli import cli

    def texts(command: click.Command, parent: click.Context | None, name: str) -> Iterator[tuple[str, str]]:
        width = {"max_content_width": 100, "terminal_width": 100}
        with click.Context(command, info_name=name.split()[-1], parent=parent, **width) as context:
            yield name, command.get_help(context)
            if isinstance(command, click.Group):
                for inner in command.list_commands(context):
                    yield from texts(command.get_command(context, inner), context, f"{name} {inner}")

    return texts(cli, None, "lookuplab")


def readme(text: str, run: LastRun) -> str:
    """README's text with the table of artifacts between the two marks made anew.

    One line per notebook of a paper that has artifacts or claims: its title, and the verdicts on the claims.
    """
    lines = ["| Artifact | Notebook | Claims |", "|---|---|---|"]
    for notebook in notebooks.all_notebooks():
        if not (paths.PAPER / notebook.paper).is_dir():
            continue
        made = {entry.name for entry in run.entries if entry.notebook and entry.notebook.id == notebook.id}
        judged = [one for name in sorted(made | {notebook.name}) for one in run.judged(notebook.paper, name)]
        if made or judged:
            link = f"[{notebook_title(notebook.path)}](notebooks/{notebook.id}.ipynb)"
            lines.append(f"| {link} | `{notebook.id}` | {claims.count(judged) + ' (not run)' * (not made)} |")
    papers = dict.fromkeys(judgement.claim.paper for judgement in run.judgements)
    said = "; ".join(f"{name_of(paper)} {claims.count(run.judged(paper))}" for paper in papers)
    lines += ["", f"{len(run.judgements)} claims: {said}. Not decided: not run, or the interval leaves it open."]
    before, _, rest = text.partition(BEGIN)
    return "\n".join([before + BEGIN, *lines, END + rest.partition(END)[2]])


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


if __name__ == "__main__":
    with replacing(README) as part:
        part.write_text(readme(_text(README), last_run("mini")), encoding="utf-8", newline="\n")
