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
from lookuplab.results import claims
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
def judged() -> list[claims.JudgedClaim]:
    return claims.judge_run(claims.load(), paths.FIGURES / "mini")


def test_a_paper_s_story_has_a_result_below_each_picture_and_a_verdict_behind_each_claim(pages):
    verdicts = {one.claim.id: one.direction for one in judged()}
    for paper in titles():
        story = (paths.NOTEBOOKS / paper / "README.md").read_text(encoding="utf-8")
        text = pages[f"notebooks/{paper}/README.html"].text
        pictures = re.findall(r"figures/(mini/.+)\.png", story)
        named = re.findall("`([a-z]+-[a-z0-9-]+)`", story)
        assert len(pictures) >= 6 and len(named) >= 4
        assert all(text.count(report.sentence(paths.FIGURES / one)) >= 2 for one in pictures)
        assert all(f"{name} {verdicts[name]}" in text for name in named)


def test_a_paper_s_page_has_every_artifact_with_its_picture_files_and_verdicts(pages):
    for file in (paths.FIGURES / "mini").glob("*/*.csv"):
        page = pages[f"notebooks/{file.parent.name}/README.html"]
        assert any(link.endswith(file.name) for link in page.links), "no download"
        drawn = any(place.endswith(f"/{file.stem}.svg") for place in page.loaded)
        assert drawn == file.with_suffix(".svg").exists()
        assert report.sentence(file) in page.text
        for one in judged():
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
        # every token is a word of its own
        page, parts = (
            "".join(pages[f"notebooks/{lesson.id}.html"].text.split()),
            hidden(lesson.path),
        )
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
