"""The site of the committed figures, built once and read as files."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
import website
from bs4 import BeautifulSoup
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


class Page:
    """``links`` of <a>, ``loaded`` addresses of what a browser fetches by itself, ``alts`` of
    pictures, ``text``.
    """

    def __init__(self, file: Path):
        self.file, soup = file, BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
        self.links = [link["href"] for link in soup.select("a[href]")]
        self.loaded = [
            one[key] for tag, key in LOADED.items() for one in soup.select(f"{tag}[{key}]")
        ]
        self.alts = [image.get("alt", "") for image in soup.select("img")]
        self.text = " ".join(soup.get_text(" ").split()).replace("\u2019", "'")


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
    assert pictures[5:] and named[3:]
    told = (run.told(one) or report.sentence(run.place(one)) for one in pictures)
    assert all(squeezed(one) in squeezed(page.text) for one in told)
    assert all(f"{name} {run.verdicts[name].direction}" in page.text for name in named)


def test_a_paper_s_page_has_every_artifact_with_its_picture_files_and_verdicts(pages):
    for file in paths.FIGURES.glob("mini/*/*.csv"):
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
        assert address.count("/") > 1 or all(words.split()[2:] for words in page.alts), address
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            # what Sphinx makes of a page that the site lacks, with a warning
            assert ".md" not in parts.fragment, f"{address}: {link}"
            if parts.path and not parts.scheme:
                assert (page.file.parent / unquote(parts.path)).is_file(), f"{address}: {link}"
        assert all(urlsplit(place).scheme in ("", "data") for place in page.loaded), address


def test_lessons_show_neither_solutions_nor_hidden_tests(pages):
    for lesson in notebooks.all_notebooks("course"):
        page, parts = squeezed(pages[f"notebooks/{lesson.id}.html"].text), hidden(lesson.path)
        assert len(parts) > 6 and not [part for part in parts if part in page]


def test_an_executed_copy_keeps_its_outputs_but_no_widget(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    shown = [
        {"text/plain": "it printed"},
        {website._WIDGET: {}, "text/plain": "IntSlider(value=3)"},
    ]
    outputs = [nbformat.v4.new_output("display_data", data=data) for data in shown]
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=outputs)])
    notebook, page = notebooks.find("table1_base_models"), tmp_path / "page.ipynb"
    copy = paths.made(tmp_path / "mini" / notebook.paper) / f"{notebook.name}.ipynb"
    nbformat.write(document, copy)
    website.write_notebook(notebook, notebooks.load_profile("mini"), page)
    text = page.read_text(encoding="utf-8")
    assert "it printed" in text and "IntSlider" not in text and "Not run here" not in text


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.name)
def test_a_written_page_links_to_what_is_there(file):
    for place in re.findall(r"\]\(([^)#\s]+)", file.read_text(encoding="utf-8")):
        assert place.startswith("https://") or (file.parent / place).exists(), place


# RESULTS.md: seen in five minutes


def test_readme_and_results_are_short_and_claims_has_failures_first_and_checks_last():
    readme, results, page = (
        (paths.ROOT / f"{name}.md").read_text("utf-8") for name in ("README", "RESULTS", "CLAIMS")
    )
    assert readme.count("\n") <= 100 and max(map(len, readme.splitlines())) <= 120
    assert len(re.sub("(?s)<details>.*?</details>", "", results).split()) <= 4000
    rows = [line for line in page.splitlines() if "`lookuplab run" in line]
    order = [row.count("**fails**") - row.count("(check)") for row in rows]
    assert order == sorted(order, reverse=True)


def test_a_result_is_told_in_30_words_with_two_numbers_at_most():
    run = mini()
    for folder in run.notebooks:
        for section in run.sections(folder):
            assert any(shown.told for shown in section.artifacts), section.notebook
    for said in map(run.told, run.words["sentences"]):
        assert len(said.split()) <= 30 and len(re.findall(r"(?<![@\w])\d[\d.]*", said)) <= 2, said


def test_the_words_of_the_results_fit_the_verdicts_and_have_no_number_but_those_of_tables():
    run, text = mini(), (paths.PAPER / "results.yaml").read_text("utf-8")
    keys = r"#.*|^ *((claim|rests|own):.*|[\w/-]+:)"
    assert not re.search(r"\d", re.sub(rf"(?m){keys}|\{{.*?\}}|pass@\d|BM25", "", text))
    for paper in run.words["papers"].values():
        assert {id: run.verdicts[id].direction for id in paper["rests"]} == paper["rests"]
    failing = [one for one in run.verdicts.values() if one.direction == "fails"]
    claimed = {one.claim.id for one in failing if one.claim.role == "claim"}
    assert claimed == run.words["fails"].keys() and len(run.words["table"]) <= 14
    for id, (_, verdict, _) in run.words["findings"].items():
        assert run.verdicts[id].direction == verdict
