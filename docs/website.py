"""Builds the web site of a profile's last run: `lookuplab report`.

The site has the same layout as the repository, so that links in Markdown files stay valid. Sphinx
with MyST-NB builds it (``conf.py``). The templates of its pages are in ``lookuplab/run/pages``.
Nothing is executed or fetched.
"""

import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from lookuplab import paths
from lookuplab.errors import UserError, needs
from lookuplab.run.notebooks import Notebook, Profile, all_notebooks
from lookuplab.run.report import Run, claims_page, heading, page, results_page

_WIDGET = "application/vnd.jupyter.widget-view+json"  # widgets work only in JupyterLab
# the parts of lessons that students must not see, and their replacements
_FOR_TEACHERS = {
    r"(?ms)^( *)### BEGIN SOLUTION\n.*?^ *### END SOLUTION(\n|$)": r"\1...\2",
    r"(?ms)^ *### BEGIN HIDDEN TESTS\n.*?^ *### END HIDDEN TESTS(\n|$)": "",
}
# pages of the repository that the site shows in addition to docs/
_DOCUMENTS = [
    "data/mini/DESIGN",
    "data/mini/ASKING",
    "data/documented/DESIGN",
    "data/documented/README",
    "data/repositories/DESIGN",
    "data/repositories/README",
    "data/docstrings/DESIGN",
    "data/seeds/DESIGN",
    "data/seeds/README",
    "data/mini/record/README",
    "data/paper/README",
    "data/mini/cloudapi/README",
    "data/public/cloudapi/README",
    "data/published/apibench/README",
    "CONTRIBUTING",
    "CHANGELOG",
]
# the pages of docs/ that come first and last in the navigation
_FIRST, _LAST = ["docs/kit", "docs/own", "docs/glossary"], ["docs/citing"]


def build(profile: Profile, output: Path) -> Path:
    """Write the site of a profile's last run to the folder ``output``, and return the page to open.

    An existing site is replaced once the new one is complete.
    """
    with needs("site"):
        from sphinx.cmd.build import build_main

    with TemporaryDirectory(
        prefix=f".{output.name}-", dir=paths.make_folder(output.parent)
    ) as folder:
        sources, site = Path(folder, "sources"), Path(folder, "site")
        write_sources(profile, sources)
        options = [*"-q -j auto -b html".split(), "-c", f"{sources}/docs", "-d", f"{folder}/cache"]
        if build_main([*options, str(sources), str(site)]):
            raise UserError("Sphinx could not build the report, for the reason above")
        shutil.rmtree(output, ignore_errors=True)
        site.rename(output)
    return output / "index.html"


def write_sources(profile: Profile, sources: Path) -> None:
    """Write everything that the site shows, each file at its place in the repository."""
    run = Run(profile)
    shutil.copytree(paths.ROOT / "docs", sources / "docs")
    shutil.copytree(paths.FIGURES, sources / "figures")
    own = sources / "figures" / profile.name
    shutil.copytree(run.figures / profile.name, own, dirs_exist_ok=True)
    others = [file.stem for file in sorted(paths.ROOT.glob("RESULTS-*.md"))]
    readmes = (file.relative_to(paths.ROOT) for file in paths.NOTEBOOKS.glob("*/README.md"))
    for name in ("CITATION.cff", *(f"{name}.md" for name in [*_DOCUMENTS, *others]), *readmes):
        shutil.copy(paths.ROOT / name, paths.make_folder((sources / name).parent))
    for notebook in all_notebooks():
        write_notebook(notebook, profile, sources / "notebooks" / f"{notebook.id}.ipynb")
    sections = {}
    for folder, notebooks in run.notebooks.items():
        readme = sources / "notebooks" / folder / "README.md"
        if not readme.is_file():
            readme.write_text(f"# {heading(folder)}\n", encoding="utf-8")
        ids = [f"{folder}/README", *(notebook.id for notebook in notebooks)]
        sections[heading(folder)] = [f"notebooks/{id}" for id in ids]
    docs = {f"docs/{file.stem}" for file in (sources / "docs").glob("*.md")}
    pages = {
        "index": page(
            "site_index.md.j2",
            readme=(paths.ROOT / "README.md").read_text("utf-8"),
            results=["RESULTS", "CLAIMS", *others],
            sections=sections,
            docs=[*_FIRST, *sorted(docs.difference(_FIRST, _LAST)), *_DOCUMENTS, *_LAST],
        ),
        "RESULTS": results_page(profile),
        "CLAIMS": claims_page([*run.verdicts.values()], profile),
    }
    for name, text in pages.items():
        (sources / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")


def write_notebook(notebook: Notebook, profile: Profile, page: Path) -> None:
    """Write the executed copy of the last run to ``page``. If there is none, write the notebook
    without outputs. Widgets are left out, and lessons are shown without solutions and hidden tests.
    Raises UserError if the executed copy is damaged.
    """
    source = paths.RUNS / profile.name / f"{notebook.id}.ipynb"
    note = f"The executed copy of the last run under the profile {profile.name}"
    if not source.is_file():
        source = notebook.path
        note = f"Not run here: `lookuplab run {notebook.id} --profile {profile.name}`"
    try:
        document = nbformat.read(source, as_version=4)
    except Exception as error:  # a run that was killed may leave half a file
        raise UserError(f"{source} is damaged ({error}): run {notebook.id} again") from error
    document.metadata.pop("widgets", None)
    for cell in document.cells:
        for pattern, shown in _FOR_TEACHERS.items():
            cell.source = re.sub(pattern, shown, cell.source)
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if _WIDGET not in each.get("data", {})]
    document.cells.insert(1, nbformat.v4.new_markdown_cell(f"*{note}.*"))
    nbformat.write(document, paths.make_folder(page.parent) / page.name)
