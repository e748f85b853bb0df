"""The last runs as pages: RESULTS.md, CLAIMS.md, and a static site with every notebook, all numbers
and the documentation.

The site has the same layout as the repository, so that links in Markdown files stay valid; Sphinx
with MyST-NB builds it. Nothing is executed or fetched.
"""

import re
import shutil
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from lookuplab import paths
from lookuplab.errors import UserError, needs
from lookuplab.results import claims
from lookuplab.results.artifact import read_csv, read_record, wall_seconds
from lookuplab.results.paper import titles
from lookuplab.run.notebooks import Notebook, Request, all_notebooks, load_profile

CLAIMS = """# The papers' claims and our verdicts

Written by `lookuplab claims --markdown --profile {0.name}`. Profile {0.name}: {0.profile.description}.{unrun}

For evaluators: run `make reproduce` (some ten minutes; `make reproduce COLD=1`, without the record of answers, takes about an hour on two
cores). It ends with the audit of the record and with `lookuplab verify`, neither of which may say `FAILED`. For one paper alone:

```sh
make .venv/.installed
.venv/bin/lookuplab reproduce cloudapibench -j 2 && .venv/bin/lookuplab verify cloudapibench
```

On the same type of processor (RESULTS.md names ours) and with the same number of threads, all numbers must be equal byte for byte;
elsewhere, last digits and answers that were near ties may differ, and `verify` names them. The command of a row reproduces that row
alone, and `lookuplab verify` with the same name checks it; the seconds are those of the committed run, which had no record, and in which a notebook
finds the answers that earlier ones have stored. *Ours* is the value to expect: the metric, whose name ends in its unit, and the comparison that decides
the verdict; `figures/{0.name}` has all comparisons and digits. Tested on Linux (x86-64) with Python 3.11; 3.12 and 3.13 install; macOS, WSL, ARM and notebooks
in the cloud are untested.

*Direction*: a claim **holds** or **fails** if our whole 95% interval, in brackets, lies on one side of what is claimed;
otherwise it is **not decided**. A claim holds if all its comparisons do, unless one is said to be enough; for one failing comparison to
decide, it must withstand Holm's correction. *Size*: whether that interval covers the number that the paper prints, or lies below (*smaller*)
or above it (*larger*). The size counts all comparisons with a printed number.
*Clusters* are the APIs, problems or repositories on which an interval rests. A *check* is true by construction, a *finding* is
ours and not the paper's. `lookuplab claims --details` lists all comparisons.
"""
RESULTS = """# Results

Written by `lookuplab results --profile {0.name}`. Profile {0.name}: {0.profile.description}.{unrun}

Numbers in brackets are 95% intervals, and *n* counts the tasks, problems or functions behind the numbers of a sentence, in the order of first mention; clusters are the
APIs, problems or repositories whose tasks succeed or fail together. Two intervals may overlap although the paired difference is clear.

A claim **holds** or **fails** if the whole interval of the deciding comparison lies on one side of what is claimed; it is **not decided** if the interval
contains the bound. It holds if all its comparisons do, unless one is said to be enough. *Size* says whether the interval covers the number that the paper
prints, or lies below (*smaller*) or above it (*larger*). A *check* is true by construction; a *finding* is ours, not the paper's. [CLAIMS.md](CLAIMS.md) has
our numbers beside the paper's, and how to check them. [The mini world](docs/second_world.md) tells what in the mini models' training decides which result;
results of the run *gemma* are those of a [small pretrained model](docs/gemma.md).
The notebooks are committed without outputs; `make reproduce` builds a site with executed copies. Seconds are those of the committed run, which made
every answer anew; a notebook finds those that earlier ones have stored.
"""
UNRUN = " Nothing has been run with the papers' own models yet."

_PICTURE = re.compile(r"^!\[(.*)\]\(((?:\.\./)*)figures/mini/(\S+)\.png\)$", re.MULTILINE)
_WIDGET = "application/vnd.jupyter.widget-view+json"  # widgets work only in JupyterLab
_FOR_TEACHERS = re.compile(
    r"^( *)### BEGIN (SOLUTION|HIDDEN TESTS)\n.*?^ *### END \2(\n|$)", re.DOTALL | re.MULTILINE
)


def build(request: Request, output: Path) -> Path:
    """Write the site of a profile's last run to the folder ``output``; returns the page to open.

    An existing site is replaced once the new one is complete.
    """
    with needs("site"):
        from sphinx.cmd.build import build_main

    with TemporaryDirectory(prefix=f".{output.name}-", dir=paths.made(output.parent)) as folder:
        sources, site = Path(folder, "sources"), Path(folder, "site")
        write_sources(request, sources)
        options = [*"-q -j auto -b html".split(), "-c", f"{sources}/docs", "-d", f"{folder}/cache"]
        if build_main([*options, str(sources), str(site)]):
            raise UserError("Sphinx could not build the report, for the reason above")
        shutil.rmtree(output, ignore_errors=True)
        site.rename(output)
    return output / "index.html"


def write_sources(request: Request, sources: Path) -> None:
    """Write everything that the site shows, each file at its place in the repository."""
    run, pages = Run(request), []
    shutil.copytree(paths.ROOT / "docs", sources / "docs")
    for name in run.names:
        shutil.copytree(run.figures / name, sources / "figures" / name, dirs_exist_ok=True)
    beside = "data/mini/DESIGN data/mini/record/README data/mini/cloudapi/README".split()
    beside += ["data/public/cloudapi/README"]
    beside += ["CONTRIBUTING", "CHANGELOG"]
    for name in ("CITATION.cff", *(f"{one}.md" for one in beside)):
        shutil.copy(paths.ROOT / name, paths.made((sources / name).parent))
    summary = [headed(RESULTS, request)]
    for folder, notebooks in run.notebooks.items():
        for notebook in notebooks:
            write_notebook(notebook, request, sources / "notebooks" / f"{notebook.id}.ipynb")
        page = [run.told(_story(folder))]
        if found := run.section(folder, "../../"):
            page += ["## All results", "", *found]
        page.append(_toctree("Notebooks", [one.name for one in notebooks]))
        pages.append(f"notebooks/{folder}/README")
        (sources / f"{pages[-1]}.md").write_text("\n".join(page), encoding="utf-8")
        counts = run.verdicts(folder)
        summary.append(f"- [{run.title(folder)}]({pages[-1]}.md)" + f": {counts}" * bool(counts))
    documents = [f"docs/{file.stem}" for file in sorted((sources / "docs").glob("*.md"))]
    front = [
        run.told(paths.ROOT / "README.md"),
        _toctree("Results", ["RESULTS", *pages, "CLAIMS"]),
        _toctree("Documentation", documents + beside),
    ]
    verdicts = claims_page(run.judged[request.name], request)
    for name, page in ("index", front), ("RESULTS", summary), ("CLAIMS", [verdicts]):
        (sources / f"{name}.md").write_text("\n".join(page), encoding="utf-8")


def headed(page: str, request: Request) -> str:
    """The head of a page (CLAIMS or RESULTS), which says whether the papers' own models were run."""
    runs = {file.parents[1].name for file in (request.figures / "paper").rglob("*.csv")}
    theirs = [one.replace("/", "--") for one in load_profile("paper").parameters["roles"]]
    is_run = any(run == "paper" or any(one in run for one in theirs) for run in runs)
    return page.format(request, unrun="" if is_run else UNRUN)


def claims_page(judgements: list[claims.Judgement], request: Request) -> str:
    """The page CLAIMS.md: every claim with both verdicts, paper by paper."""
    folder, seconds = request.figures / request.name, {}
    for notebook in all_notebooks():
        took = wall_seconds(folder / id for id in notebook.artifacts)
        seconds |= dict.fromkeys(notebook.artifacts, took)
    return f"{headed(CLAIMS, request)}\n{claims.markdown(judgements, seconds)}"


def results_page(request: Request) -> str:
    """The page RESULTS.md: every notebook's question, method, pictures, results and verdicts, paper
    by paper.
    """
    run = Run(request)
    contents, page = [], []
    for folder in run.notebooks:
        if lines := run.section(folder):
            heads = re.findall(r"^### \[(.*)\]\(", "\n".join(lines), re.MULTILINE)
            contents += [f"- {_to(run.title(folder))}", *(f"  - {_to(head)}" for head in heads)]
            page += [f"## {run.title(folder)}", "", *lines]
    return "\n".join([headed(RESULTS, request), *contents, "", *page]).rstrip()


def _to(head: str) -> str:
    """A link to a heading on the same page, with the anchor that GitHub and similar sites generate."""
    anchor = re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-")
    return f"[{head}](#{anchor})"


class Run:
    """A profile's last run, and the other runs in the same figures folder.

    ``names`` are those of the runs, the profile's own first; ``judged`` maps each run to the
    verdicts on all claims;
    ``notebooks`` maps each folder of notebooks to its notebooks, papers first.
    """

    def __init__(self, request: Request):
        self.figures, self.folder = request.figures, request.figures / request.name
        known = claims.load()
        places = sorted({file.parents[1] for file in self.figures.rglob("*.csv")})
        others = [place.relative_to(self.figures).as_posix() for place in places]
        self.names = list(dict.fromkeys([request.name, *others]))
        self.judged = {name: claims.judge_run(known, self.figures / name) for name in self.names}
        self.notebooks: dict[str, list[Notebook]] = {paper: [] for paper in titles()}
        judged = {f"{one.paper}/{one.artifact}" for one in known}
        for notebook in sorted(
            all_notebooks(),
            key=lambda one: (one.order != "first", judged.isdisjoint(one.artifacts)),
        ):
            self.notebooks.setdefault(notebook.paper, []).append(notebook)

    def title(self, folder: str) -> str:
        return self.told(_story(folder)).partition("\n")[0].removeprefix("# ")

    def verdicts(self, folder: str) -> str:
        """How many claims, checks and findings of a paper hold, fail or are not decided; "" if
        there are none.
        """
        asked = [one for one in self.judged[self.names[0]] if one.claim.paper == folder]
        return "; ".join(claims.by_role(asked))

    def told(self, file: Path) -> str:
        """A page of the repository with this run's pictures, the result below each, and the verdict
        after each claim.

        A folder of notebooks without a page gives a heading with its name.
        """
        if not file.is_file():
            return f"# {file.parent.name.capitalize()}\n"

        def pictured(found: re.Match) -> str:
            words, up, name = found.groups()
            link = f"{up}figures/{self.names[0]}/{name}.svg"
            drawn = (self.folder / f"{name}.svg").is_file()
            return f"![{words}]({link})\n\n{sentence(self.folder / name)}" if drawn else ""

        verdicts = {one.claim.id: f" **{one.verdict}**" for one in self.judged[self.names[0]]}
        text = _PICTURE.sub(pictured, file.read_text(encoding="utf-8"))
        return re.sub("`([a-z0-9-]+)`", lambda one: one[0] + verdicts.get(one[1], ""), text)

    def section(self, folder: str, up: str = "") -> list[str]:
        """The results of the notebooks of one folder. ``up`` is the path from the page to the root
        ("" for RESULTS.md).

        Pages below the root, which belong to the site, also show all numbers and their provenance.
        """
        page = [f"{found}.", ""] if (found := self.verdicts(folder)) else []
        for notebook in self.notebooks[folder]:
            made = {
                (name, id): self.figures / name / id
                for id in notebook.artifacts
                for name in self.names
                if (self.figures / name / f"{id}.csv").is_file()
            }
            if not made:
                continue
            title, *introduction = _introduction(notebook)
            page += [f"### [{title}]({up}notebooks/{notebook.id}.ipynb)", "", *introduction, ""]
            for (name, id), place in made.items():
                called = f"`{place.name}`" + f", {name}" * (len(self.names) > 1)
                if place.with_suffix(".png").is_file():
                    kind = "svg" if up else "png"
                    page += [f"![Chart of the result below]({up}figures/{name}/{id}.{kind})", ""]
                if told := sentence(place):
                    page += [f"**Result** ({called}). {told}", ""]
                page += _numbers(place, f"{up}figures/{name}/{notebook.paper}") if up else []
            for found in zip(*self.judged.values(), strict=True):
                claim = found[0].claim
                verdicts = [
                    f"{one.marked}{one.shared} (size: {one.size}{f', {name}' * (len(self.names) > 1)})"
                    for name, one in zip(self.names, found, strict=True)
                    if (name, f"{claim.paper}/{claim.artifact}") in made
                ]
                if verdicts:
                    page.append(f"- {', '.join(verdicts)}: {claim.statement} (`{claim.id}`)")
            record = read_record(next(iter(made.values())))
            took = f"{wall_seconds(made.values()):.0f} s on {record['processor']}"
            page += ["", f"`lookuplab run {notebook.id}`: {took}.", ""]
        return page


def _story(folder: str) -> Path:
    return paths.NOTEBOOKS / folder / "README.md"


def _numbers(place: Path, folder: str) -> list[str]:
    """An artifact's provenance, links to its files (``folder`` is relative to the page), and its
    table.
    """
    record = read_record(place)
    commit, is_dirty = record["git"]["commit"] or "none", bool(record["git"]["dirty"])
    table = read_csv(place.with_suffix(".csv")).drop(columns=["paper", "artifact"])
    shown = table.to_html(index=False, na_rep="", border=0, classes="numbers")
    files = sorted(place.parent.glob(f"{place.name}.*"))
    links = [f"{{download}}`{file.suffix[1:]} <{folder}/{file.name}>`" for file in files]
    commit = commit[:12] + " and changes" * is_dirty
    made = f"Commit {commit}, {record['processor']}, {record['device']}. Files:"
    numbers = f"<details><summary>{len(table)} numbers</summary><div class='scroll'>{shown}</div></details>"
    return [" ".join([made, *links]), "", "```{raw} html", numbers, "```", ""]


def sentence(place: Path) -> str:
    """An artifact's result in a sentence; "" if its notebook wrote none."""
    file = place.with_suffix(".txt")
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def _introduction(notebook: Notebook) -> list[str]:
    """A notebook's title and the paragraphs before its first code cell: the question and the
    method.
    """
    cells = nbformat.read(notebook.path, as_version=4).cells
    texts = takewhile(lambda cell: cell.cell_type == "markdown", cells)
    opening = [cell.source for cell in texts if not cell.source.startswith("## ")]
    title, _, rest = "\n\n".join(opening).partition("\n")
    return [title.removeprefix("# "), rest.strip()]


def write_notebook(notebook: Notebook, request: Request, page: Path) -> None:
    """The executed copy of the last run, or the notebook without outputs.

    Widgets are left out; lessons are shown without solutions and hidden tests.
    """
    copy, note = (
        notebook.path,
        f"Not run here: `lookuplab run {notebook.id} --profile {request.name}`",
    )
    executed = paths.RUNS / request.name / f"{notebook.id}.ipynb"
    if executed.is_file():
        copy, note = executed, f"The executed copy of the last run under the profile {request.name}"
    document = nbformat.read(copy, as_version=4)
    document.metadata.pop("widgets", None)
    for cell in document.cells:
        cell.source = _FOR_TEACHERS.sub(
            lambda part: f"{part[1]}...{part[3]}" * (part[2] == "SOLUTION"), cell.source
        )
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if _WIDGET not in one.get("data", {})]
    document.cells.insert(1, nbformat.v4.new_markdown_cell(f"*{note}.*"))
    nbformat.write(document, paths.made(page.parent) / page.name)


def _toctree(caption: str, pages: list[str]) -> str:
    head = ["```{toctree}", ":hidden:", f":caption: {caption}", ":titlesonly:", ""]
    return "\n".join(["", *head, *pages, "```", ""])
