"""The site of the committed figures, built once and read as files."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
import website
from filelock import FileLock
from lessons import hidden

from lookuplab import paths
from lookuplab.results.paper import titles
from lookuplab.run import notebooks, report

LOADED = {"img": "src", "script": "src", "iframe": "src", "link": "href"}
WRITTEN = [
    *paths.ROOT.glob("*.md"),
    *(paths.ROOT / "docs").glob("*.md"),
    *paths.NOTEBOOKS.glob("*/*.md"),
]


class Page(HTMLParser):
    """``links`` of <a>, ``loaded`` addresses of what a browser fetches by itself, ``alts`` of
    pictures, ``text``.
    """

    def __init__(self, file: Path):
        super().__init__()
        self.file, self.links, self.loaded, self.alts, words = file, [], [], [], []
        self.handle_data = words.append
        self.feed(file.read_text(encoding="utf-8"))
        self.text = " ".join(" ".join(words).split()).replace("\u2019", "'")

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "img":
            self.alts.append(given.get("alt") or "")
        if given.get(LOADED.get(tag, "")):
            self.loaded.append(given[LOADED[tag]])


@pytest.fixture(scope="session")
def pages(shared) -> dict[str, Page]:
    """address -> page."""
    # a name with a space, as a user's folder may have
    folder = shared / "a report" / "mini"
    with FileLock(shared / "report.lock"):  # whichever of several test processes comes first
        if not folder.exists():
            website.build(notebooks.load_profile("mini"), folder)
    return {file.relative_to(folder).as_posix(): Page(file) for file in folder.rglob("*.html")}


@cache
def mini() -> report.Run:
    return report.Run(notebooks.load_profile("mini"))


def squeezed(text: str) -> str:
    """Without spaces: every token of a page is a word of its own."""
    return "".join(text.replace("**", "").split())


@pytest.mark.parametrize("folder", [*titles(), ""])
def test_a_story_has_a_result_below_each_picture_and_a_verdict_behind_each_claim(pages, folder):
    file = paths.NOTEBOOKS / folder / "README.md" if folder else report.PAGES / "site_index.md.j2"
    story = file.read_text(encoding="utf-8")
    page = pages[f"notebooks/{folder}/README.html" if folder else "index.html"]
    pictures, run = re.findall(r"figures/mini/(.+)\.png", story), mini()
    named = re.findall("`([a-z]+-[a-z0-9-]+)`", story)
    assert len(pictures) >= 6 and len(named) >= 4
    told = (run.told(one) or report.sentence(run.place(one)) for one in pictures)
    assert all(squeezed(one) in squeezed(page.text) for one in told)
    assert all(f"{name} {run.verdicts[name].direction}" in page.text for name in named)


def test_a_paper_s_page_has_every_artifact_with_its_picture_files_and_verdicts(pages):
    for file in (paths.FIGURES / "mini").glob("*/*.csv"):
        page = pages[f"notebooks/{file.parent.name}/README.html"]
        assert any(link.endswith(file.name) for link in page.links), "no download"
        drawn = any(place.endswith(f"/{file.stem}.svg") for place in page.loaded)
        assert drawn == file.with_suffix(".svg").exists()
        assert report.sentence(file) in page.text
        for one in mini().verdicts.values():
            if (one.claim.paper, one.claim.artifact) == (file.parent.name, file.stem):
                assert f": {one.claim.statement} ( {one.claim.id} )" in page.text


def test_every_link_leads_to_a_file_every_picture_has_words_and_nothing_is_loaded_from_elsewhere(
    pages,
):
    for address, page in pages.items():
        # what a notebook writes as HTML is its own matter
        assert address.count("/") > 1 or all(len(words.split()) >= 3 for words in page.alts), (
            address
        )
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.path and not parts.scheme:
                assert (page.file.parent / unquote(parts.path)).is_file(), f"{address}: {link}"
        assert all(urlsplit(place).scheme in ("", "data") for place in page.loaded), address


def test_lessons_show_neither_solutions_nor_hidden_tests(pages):
    for lesson in notebooks.all_notebooks("course"):
        page, parts = squeezed(pages[f"notebooks/{lesson.id}.html"].text), hidden(lesson.path)
        assert len(parts) > 6 and not [part for part in parts if part in page]


def test_an_executed_copy_keeps_its_outputs_but_no_widget(tmp_path, monkeypatch):
    notebook = notebooks.find("table1_base_models")
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    document = nbformat.read(notebook.path, as_version=4)
    cell = next(cell for cell in document.cells if cell.cell_type == "code")
    widget = {website._WIDGET: {}, "text/plain": "IntSlider(value=3)"}
    cell.outputs = [
        nbformat.v4.new_output("stream", text="what it printed"),
        nbformat.v4.new_output("display_data", data=widget),
    ]
    copy = paths.made(tmp_path / "mini" / notebook.paper) / f"{notebook.name}.ipynb"
    nbformat.write(document, copy)
    website.write_notebook(notebook, notebooks.load_profile("mini"), tmp_path / "page.ipynb")
    text = (tmp_path / "page.ipynb").read_text(encoding="utf-8")
    assert "what it printed" in text and "IntSlider" not in text and "Not run here" not in text


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.name)
def test_a_written_page_links_to_what_is_there(file):
    for place in re.findall(r"\]\(([^)#\s]+)", file.read_text(encoding="utf-8")):
        assert place.startswith("https://") or (file.parent / place).exists(), place


# RESULTS.md: seen in five minutes


def test_the_readme_fits_100_lines_and_the_unfolded_results_4000_words():
    lines = (paths.ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100 and max(map(len, lines)) <= 120
    results = (paths.ROOT / "RESULTS.md").read_text(encoding="utf-8")
    assert len(re.sub("(?s)<details>.*?</details>", "", results).split()) <= 4000
    assert len(mini().words["table"]) <= 14


def test_each_notebook_says_its_result_in_30_words_with_two_numbers_at_most():
    run = mini()
    sections = [section for folder in run.notebooks for section in run.sections(folder)]
    assert all(any(shown.told for shown in section.artifacts) for section in sections)
    for said in map(run.told, run.words["sentences"]):
        assert len(said.split()) <= 30 and len(re.findall(r"(?<![@\w])\d[\d.]*", said)) <= 2, said


def test_the_words_of_the_results_have_no_number_but_those_of_tables():
    text = (paths.PAPER / "results.yaml").read_text(encoding="utf-8")
    words = re.sub(
        r"#.*|^ *((claim|rests|own):.*|[\w/-]+:)|\{.*?\}|pass@\d|BM25", "", text, flags=re.M
    )
    assert not re.search(r"\d", words)


def test_the_words_of_the_results_fit_the_verdicts():
    run = mini()
    for paper in run.words["papers"].values():
        assert {id: run.verdicts[id].direction for id in paper["rests"]} == paper["rests"]
    failing = {id for id, one in run.verdicts.items() if one.direction == "fails"}
    assert failing == run.words["fails"].keys()


def test_claims_that_fail_come_first_checks_last_and_seconds_are_those_of_the_results():
    results, page = (
        (paths.ROOT / name).read_text(encoding="utf-8") for name in ("RESULTS.md", "CLAIMS.md")
    )
    rows = [line for line in page.splitlines() if "`lookuplab run" in line]
    order = [row.count("**fails**") - row.count("(check)") for row in rows]
    assert order == sorted(order, reverse=True)
    for name, seconds in re.findall(r"`lookuplab run (\w+)` \((\d+) s\)", page):
        assert f"`lookuplab run {notebooks.find(name).id}`: {seconds} s" in results
