"""From runs to a site: the sources are laid out in a folder of their own, Sphinx builds them, it goes in place."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.report import pages
from lookuplab.report.last_run import LastRun

MARK = ".lookuplab-report"  # says that a folder is a report, which another one may replace
_COPIED = ("csv", "json", "svg", "png")


@dataclass(frozen=True)
class Built:
    """``front`` is the page to open; ``warnings`` are Sphinx's, one a line."""

    front: Path
    warnings: tuple[str, ...]


def build(runs: Sequence[LastRun], output: Path) -> Built:
    """Build the site of one run, or of two beside each other, into ``output``.

    A report that stands there is replaced when the new one is complete. Raises UserError for a folder with other files,
    and where ``docs/`` is missing.
    """
    docs = paths.ROOT / "docs"
    if not (docs / "conf.py").is_file():
        raise UserError(f"no {docs / 'conf.py'}: the report is built in a checkout of lookuplab, where docs/ lies")
    check_output(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as folder:
        sources, site = Path(folder) / "sources", Path(folder) / "site"
        shutil.copytree(docs, sources, ignore=shutil.ignore_patterns("_*"))
        for run in runs:
            _copy_files(run, Path(folder) / "files" / "figures" / run.profile)
        pages.write(runs, sources)
        warnings = _sphinx(sources, docs, site, Path(folder) / "files")
        (site / MARK).touch()
        if output.exists():
            shutil.rmtree(output)
        site.rename(output)
    return Built(output / "index.html", warnings)


def check_output(output: Path) -> None:
    """A report may go to a new or empty folder, or where a report stands. Raises UserError for anything else."""
    if output.exists() and not output.is_dir():
        raise UserError(f"{output} is a file; name a folder for the report")
    if output.exists() and any(output.iterdir()) and not (output / MARK).exists():
        raise UserError(f"{output} holds other files, which a report would replace; name an empty or new folder")


def _copy_files(run: LastRun, place: Path) -> None:
    for entry in run.entries:
        (place / entry.paper).mkdir(parents=True, exist_ok=True)
        for file in map(entry.file, _COPIED):
            if file.is_file():
                shutil.copyfile(file, place / entry.paper / file.name)


def _sphinx(sources: Path, docs: Path, site: Path, files: Path) -> tuple[str, ...]:
    from sphinx.application import Sphinx

    number = sum(file.suffix in (".md", ".ipynb") for file in sources.rglob("*"))
    said = StringIO()
    app = Sphinx(sources, docs, site, site.with_name("doctrees"), "html", {"html_extra_path": [str(files)]},
                 status=None, warning=said, freshenv=True)
    with tqdm(total=2 * number, desc="report", unit=" pages", unit_scale=0.5) as bar:  # each is read, then written
        app.connect("source-read", lambda *_: bar.update() and None)
        app.connect("html-page-context", lambda *_: bar.update() and None)
        app.build()
        bar.total = bar.n
    text = re.sub(r"\x1b\[[\d;]*m", "", said.getvalue()).replace(str(sources), "report")  # without colours
    return tuple(line for line in text.splitlines() if line.strip())
