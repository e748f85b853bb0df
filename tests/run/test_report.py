"""Tests the web site of the committed figures, which is built once and read as files."""

import re
from functools import cache
from html import unescape
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
import website
from doors import refused
from filelock import FileLock
from lessons import hidden

from lookuplab import paths
from lookuplab.run import notebooks, report

WRITTEN = [
    *paths.ROOT.glob("*.md"),
    *(paths.ROOT / "docs").glob("*.md"),
    *paths.NOTEBOOKS.glob("*/*.md"),
]


@pytest.fixture(scope="session")
def site(shared):
    # the name has a space, because a user's folder may have one
    folder = shared / "a report" / "mini"
    with FileLock(shared / "report.lock"):  # the first of several test processes builds the site
        if not folder.exists():
            website.build(notebooks.load_profile("mini"), folder)
    return folder


@cache
def shown(page):
    """Return the text of a page."""
    tags = r"(?s)<(script|style)\b.*?</\1>|<!--.*?-->|<[^>]*>"
    text = unescape(re.sub(tags, " ", page.read_text(encoding="utf-8")))
    return " ".join(text.split()).replace("\u2019", "'")


@cache
def mini():
    return report.Run(notebooks.load_profile("mini"))


def squeezed(text):
    """Return a text without spaces, because every token of code on a page is
    separated by spaces.
    """
    return "".join(text.replace("**", "").split())


def test_the_site_shows_the_results_the_claims_and_every_notebook(site):
    assert '"notebooks/cloudapibench/README.html"' in (site / "index.html").read_text("utf-8")
    results, claims = (shown(site / f"{name}.html") for name in ("RESULTS", "CLAIMS"))
    for one in mini().verdicts.values():
        assert f"( {one.claim.id} )" in results or f"; {one.claim.id} )" in claims
    for notebook in notebooks.all_notebooks():
        assert (site / f"notebooks/{notebook.id}.html").is_file()
        assert all(report.sentence(mini().place(id)) in results for id in notebook.artifacts)


def test_every_link_leads_to_a_file_every_picture_has_words_and_nothing_is_loaded_from_elsewhere(
    site,
):
    links = re.compile(r'<(\w+)\b[^>]*?\s(?:href|src)="([^"]*)"')
    pictures = re.compile(r'<img\b(?![^>]*\salt="[^"]+ [^"]+ )[^>]*>')
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if page.parent.parent.name != "notebooks" or page.name == "README.html":
            # pictures in a notebook's own HTML need no description
            assert not pictures.findall(text), page
        for tag, link in links.findall(text):
            parts = urlsplit(unescape(link))
            # Sphinx makes such a link for a page that the site lacks, and only warns
            assert ".md" not in parts.fragment, f"{page}: {link}"
            if parts.path and not parts.scheme:
                assert (page.parent / unquote(parts.path)).is_file(), f"{page}: {link}"
            assert tag == "a" or parts.scheme in ("", "data"), f"{page}: {link}"


def test_lessons_show_neither_solutions_nor_hidden_tests(site):
    for lesson in notebooks.select(["course"]):
        page = squeezed(shown(site / f"notebooks/{lesson.id}.html"))
        parts = hidden(lesson.path)
        assert len(parts) > 6 and not [part for part in parts if part in page]


def test_an_executed_copy_keeps_its_outputs_but_no_widget(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    data = {"text/plain": "it printed"}, {website._WIDGET: {}, "text/plain": "IntSlider(value=3)"}
    document = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(
                outputs=[nbformat.v4.new_output("display_data", data=one) for one in data]
            )
        ]
    )
    notebook, mini = notebooks.find("table1_base_models"), notebooks.load_profile("mini")
    nbformat.write(
        document, paths.make_folder(tmp_path / "mini" / notebook.paper) / notebook.path.name
    )
    website.write_notebook(notebook, mini, page := tmp_path / "page.ipynb")
    text = page.read_text(encoding="utf-8")
    assert "it printed" in text and "IntSlider" not in text and "Not run here" not in text
    (tmp_path / "mini" / f"{notebook.id}.ipynb").write_text("{")
    with refused("is damaged .*: run cloudapibench/table1_base_models again"):
        website.write_notebook(notebook, mini, page)


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.name)
def test_a_written_page_links_to_what_is_there(file):
    for place in re.findall(r"\]\(([^)#\s]+)", file.read_text(encoding="utf-8")):
        assert place.startswith("https://") or (file.parent / place).exists(), place


# RESULTS.md can be read in five minutes


def test_readme_and_results_are_short():
    readme, results = ((paths.ROOT / f"{name}.md").read_text() for name in ("README", "RESULTS"))
    assert readme.count("\n") <= 100 and max(map(len, readme.splitlines())) <= 120
    assert len(re.sub("(?s)<details>.*?</details>", "", results).split()) <= 4000


def test_the_words_of_the_results_fit_the_verdicts_and_have_no_number_but_those_of_tables():
    run = mini()
    text = (paths.PAPER / "results.yaml").read_text("utf-8")
    keys = r"#.*|^ *((claim|rests|own):.*|[\w/-]+:)"
    assert not re.search(r"\d", re.sub(rf"(?m){keys}|\{{.*?\}}|pass@\d|BM25", "", text))
    for paper in run.words["papers"].values():
        assert {id: run.verdicts[id].direction for id in paper["rests"]} == paper["rests"]
    failing = [one for one in run.verdicts.values() if one.direction == "fails"]
    assert {one.claim.id for one in failing if one.claim.role == "claim"} == run.words[
        "fails"
    ].keys() and len(run.words["table"]) <= 14
    for id, (_, verdict, _) in run.words["hypotheses"].items():
        assert run.verdicts[id].direction == verdict


def test_a_result_is_told_in_30_words_with_two_numbers_at_most():
    run = mini()
    for folder in run.notebooks:
        for section in run.sections(folder):
            assert any(shown.told for shown in section.artifacts), section.notebook
    for said in map(run.told, run.words["sentences"]):
        assert len(said.split()) <= 30 and len(re.findall(r"(?<![@\w])\d[\d.]*", said)) <= 2, said
