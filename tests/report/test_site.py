"""The site of the committed figures, read as files."""

import html
import re
from urllib.parse import unquote, urlsplit

import nbformat
from parsed_pages import pages

from lookuplab import artifact, paths
from lookuplab.claims import counted, number
from lookuplab.models import complete
from lookuplab.report import SLUGS
from lookuplab import notebooks


def test_the_front_page_shows_every_artifact_and_links_to_its_page(site, run):
    front = pages(site)["index.html"]
    assert run.entries
    for entry in run.entries:
        assert f"artifacts/{entry.id}.html" in front.links
        drawn = any(picture["src"] == f"figures/mini/{entry.id}.svg" for picture in front.pictures)
        assert drawn == entry.is_drawn, entry.id


def test_every_artifact_with_claims_shows_how_many_hold_and_fail(site, run):
    text = (site / "index.html").read_text(encoding="utf-8")
    for entry in run.entries:
        card = text.split(f'id="{entry.paper}-{entry.name}"')[1].split("</article>")[0]
        shown = re.findall(r'class="verdict (\w+)"><span[^>]*>.</span> (\d+)', card)
        expected = counted(run.judged(entry.paper, entry.name))
        assert shown == [(SLUGS[verdict], str(count)) for verdict, count in expected], entry.id


def test_an_artifacts_page_has_its_numbers_and_the_files_as_they_are(site, run):
    for entry in run.entries:
        page = pages(site)[f"artifacts/{entry.id}.html"]
        table = artifact.read_csv(entry.file("csv"))
        assert all(metric in page.text for metric in table.metric[:300].unique()), entry.id
        for extension in ("csv", "json"):
            assert f"../../figures/mini/{entry.id}.{extension}" in page.links
            copied = site / "figures" / "mini" / entry.paper / f"{entry.name}.{extension}"
            assert copied.read_bytes() == entry.file(extension).read_bytes()


def test_the_claims_table_has_every_claim_with_the_number_that_decides_it(site, run):
    written = (site / "claims.html").read_text(encoding="utf-8")
    rows = dict(re.findall(r'<tr id="([\w-]+)" data-paper(.*?)\n</tr>', written, re.S))
    assert list(rows) == [judgement.claim.id for judgement in run.judgements]
    for judgement in run.judgements:
        shown, text = judgement.shown, html.unescape(rows[judgement.claim.id])
        assert f"</span> {judgement.verdict}</span></td>" in text
        interval = "" if shown.is_exact else f"{number(shown.low)} to {number(shown.high)}"
        assert f'<td class="interval">{interval}</td>\n<td class="n">{shown.n}</td>' in text
        assert f'<td class="theirs">{judgement.theirs}</td>' in text
        for comparison in judgement.comparisons:
            assert number(comparison.value) in text and comparison.quantity in text


def test_the_claims_table_is_complete_without_a_script(site):
    page = pages(site)["claims.html"]
    rows = [given for tag, given in page.tags if tag == "tr" and "data-paper" in given]
    assert rows and not any("hidden" in given or "style" in given for given in rows)
    [form] = [given for tag, given in page.tags if tag == "form" and given.get("id") == "filter"]
    assert "hidden" in form, "a filter that does nothing is shown"


def test_every_notebook_has_a_page(site):
    for notebook in notebooks.all_notebooks():
        assert f"notebooks/{notebook.id}.html" in pages(site)


def test_the_provenance_page_names_the_commit_of_every_artifact(site, run):
    text = pages(site)["provenance.html"].text
    for entry in run.entries:
        assert entry.id in text
        if commit := (entry.provenance.get("git") or {}).get("commit"):
            assert commit[:12] in text


def test_every_internal_link_leads_to_a_page_and_a_place_on_it(site):
    for address, page in pages(site).items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link in ("#", ""):
                continue
            target = (page.file.parent / unquote(parts.path)).resolve() if parts.path else page.file
            assert target.is_file(), f"{address}: {link}"
            if parts.fragment and target.suffix == ".html":
                there = pages(site)[target.relative_to(site.resolve()).as_posix()]
                assert unquote(parts.fragment) in there.ids, f"{address}: {link}"


def test_every_external_link_is_an_address(site):
    links = {link for page in pages(site).values() for link in page.links if urlsplit(link).scheme}
    assert links
    for link in links:
        parts = urlsplit(link)
        assert parts.scheme in ("http", "https"), link
        assert re.fullmatch(r"[\w.-]+\.\w{2,}(:\d+)?|localhost:\d+", parts.netloc), link


def test_every_picture_is_there_and_has_words_for_who_cannot_see_it(site):
    for address, page in pages(site).items():
        for picture in page.pictures:
            words, place = picture.get("alt") or "", picture["src"]
            assert len(words.split()) >= 3 and "_images" not in words, f"{address}: {place[:80]}: {words!r}"
            found = place.startswith("data:") or (page.file.parent / unquote(place)).is_file()
            assert found, f"{address}: {place[:80]}"


def test_nothing_is_loaded_from_elsewhere(site):
    for address, page in pages(site).items():
        away = [place for place in page.loaded if urlsplit(place).scheme not in ("", "data") or place.startswith("//")]
        assert away == [], address
    for file in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        called = re.findall(r"@import[^;]+|url\(\s*[\"']?(?!data:|#)([^\"')]+)", file.read_text(encoding="utf-8"))
        assert not [place for place in called if "//" in place], file


def test_the_library_page_has_the_docstrings(site):
    text = pages(site)["api/models.html"].text
    assert " ".join(complete.__doc__.split("\n")[0].replace("``", "").split())[:40] in text


def test_the_written_pages_build_without_a_warning(site, shared):
    said = (shared / "warnings.txt").read_text(encoding="utf-8").splitlines()
    written = [file.name for file in (paths.ROOT / "docs").glob("*.md")] + [
        file.name for file in (paths.ROOT / "docs" / "_templates").iterdir()]
    assert [line for line in said if any(f"report/{name}" in line for name in written)] == []


def test_lessons_show_neither_solutions_nor_hidden_tests(site):
    for lesson in notebooks.all_notebooks("course"):
        shown = "".join(pages(site)[f"notebooks/{lesson.id}.html"].text.split())  # every token is a word of its own
        cells = [cell.source for cell in nbformat.read(lesson.path, as_version=4).cells]
        hidden = [part for cell in cells for part in
                  re.findall(r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.*?)### END", cell, re.DOTALL)]
        assert len(hidden) > 6 and not [part for part in hidden if "".join(part.split()) in shown]
        assert shown.count("#YOURCODEHERE") > 3
