"""The site of the committed figures in a real headless Chromium, from disk and from a server.

Screenshots go to ``screenshots/`` in the tests' output folder (pytest's --basetemp).
"""

import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install -e '.[test]')")

CHROMIUM = next(filter(None, map(shutil.which, (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None)
PAGES = ["index.html", "claims.html", "provenance.html", "gpu_memory.html", "commands.html", "kit.html",
         "fourth_paper.html", "citing.html", "changelog.html", "api/models.html",
         "artifacts/cloudapibench/fig9_confidence.html", "artifacts/toolgen/explorer.html",
         "notebooks/cloudapibench/table3_dag_plus_plus.html", "notebooks/toolgen/explorer.html", "search.html"]
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        place = CHROMIUM or playwright.chromium.executable_path
        if not os.path.exists(place):
            pytest.skip("no Chromium on PATH (chromium, google-chrome) and none that Playwright fetched")
        root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium refuses its sandbox to root
        browser = playwright.chromium.launch(executable_path=place, args=["--no-sandbox"] * root)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """Opens pages and collects what goes wrong in them; ``opened.troubles`` lists it."""
    contexts, troubles = [], []

    def open_page(**options):
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("requestfailed", lambda request: troubles.append(f"failed: {request.url}")
                if request.failure != "net::ERR_ABORTED" else None)  # a picture still on its way when the page is left
        page.on("response", lambda answer: troubles.append(f"{answer.status}: {answer.url}")
                if answer.status >= 400 else None)
        return page

    open_page.troubles = troubles
    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def shots(shared):
    folder = shared / "screenshots"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def server(site):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


def overflow(page) -> int:
    """By how many pixels the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def name(address: str) -> str:
    return address.removesuffix(".html").replace("/", "-")


def test_from_disk_no_page_has_an_error_or_asks_for_anything_elsewhere(opened, site, shots):
    page = opened(viewport=DESK)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for address in PAGES:
        page.goto((site / address).as_uri())
        assert overflow(page) <= 0, address
        page.screenshot(path=shots / f"desk-{name(address)}.png")
    assert opened.troubles == []
    assert asked and all(url.startswith(("file:", "data:")) for url in asked)


def test_from_a_server_no_page_has_an_error_or_asks_for_anything_elsewhere(opened, server):
    page = opened(viewport=DESK)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for address in PAGES[::3]:
        page.goto(f"{server}/{address}")
    assert opened.troubles == []
    assert asked and all(url.startswith((server, "data:")) for url in asked)


def test_on_a_phone_no_page_scrolls_sideways(opened, site, shots):
    page = opened(viewport=PHONE)
    for address in PAGES:
        page.goto((site / address).as_uri())
        assert overflow(page) <= 0, address
        page.screenshot(path=shots / f"phone-{name(address)}.png")


def test_a_wide_table_scrolls_in_its_box(opened, site):
    page = opened(viewport=PHONE)
    page.goto((site / "claims.html").as_uri())
    box = page.locator(".claims-box")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    box.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.claims-box').scrollLeft > 0")


def test_in_dark_mode_pages_are_dark_and_pictures_keep_their_white(opened, site, shots):
    page = opened(viewport=DESK, color_scheme="dark")
    for address in ("index.html", "claims.html", "artifacts/cloudapibench/fig9_confidence.html",
                    "notebooks/toolgen/explorer.html"):
        page.goto((site / address).as_uri())
        page.screenshot(path=shots / f"dark-{name(address)}.png")
        assert luminance(page, "body", "backgroundColor") < 0.1
        assert luminance(page, "body", "color") > 0.5
    page.goto((site / "index.html").as_uri())
    assert luminance(page, "img.figure", "backgroundColor") > 0.95


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_verdicts_can_be_read(opened, site, scheme):
    """At least 4.5 to 1 against the page (WCAG 2.2, 1.4.3)."""
    page = opened(viewport=DESK, color_scheme=scheme)
    page.goto((site / "claims.html").as_uri())
    ground = luminance(page, "body", "backgroundColor")
    for verdict in ("holds", "fails", "undecided"):
        letters = luminance(page, f".verdict.{verdict}", "color")
        assert (max(ground, letters) + 0.05) / (min(ground, letters) + 0.05) >= 4.5, verdict


def luminance(page, selector: str, style: str) -> float:
    """Relative luminance (WCAG 2.2) of a computed colour, 0 black to 1 white."""
    text = page.locator(selector).first.evaluate(f"element => getComputedStyle(element).{style}")
    parts = [int(value) / 255 for value in text[text.index("(") + 1:-1].split(",")[:3]]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_filter_works_from_disk_and_by_keyboard(opened, site, run, shots):
    page = opened(viewport=DESK)
    page.goto((site / "claims.html").as_uri())
    verdicts = [judgement.verdict for judgement in run.judgements]
    rows = page.locator("table.claims tbody tr[data-paper]:visible")
    assert rows.count() == len(verdicts)
    page.locator("select[name=verdict]").focus()
    page.keyboard.press("f")  # as a reader types it: the first option that begins so
    assert page.locator("select[name=verdict]").input_value() == "fails"
    assert rows.count() == verdicts.count("fails")
    assert page.locator("#filter output").inner_text() == f"{verdicts.count('fails')} of {len(verdicts)} claims"
    page.screenshot(path=shots / "desk-claims-filtered.png")
    page.locator("select[name=paper]").select_option("toolgen")
    both = [one for one in run.judgements if one.verdict == "fails" and one.claim.paper == "toolgen"]
    assert rows.count() == len(both)
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function(f"document.querySelectorAll('table.claims tbody tr[data-paper]:not([hidden])').length"
                           f" === {len(verdicts)}")


def test_a_count_on_the_front_page_leads_to_its_claims(opened, site, run):
    page = opened(viewport=DESK)
    page.goto((site / "index.html").as_uri())
    page.locator("table.verdicts a.count").first.click()
    page.wait_for_selector("table.claims")
    first = run.judgements[0].claim.paper
    expected = sum(one.claim.paper == first and one.verdict == "holds" for one in run.judged(first))
    assert page.locator("table.claims tbody tr[data-paper]:visible").count() == expected


def test_without_scripts_the_table_is_whole_and_the_filter_away(opened, site, run):
    page = opened(viewport=DESK, java_script_enabled=False)
    page.goto((site / "claims.html").as_uri())
    assert page.locator("table.claims tbody tr[data-paper]:visible").count() == len(run.judgements)
    assert not page.locator("#filter").is_visible()


def test_the_search_finds_a_page_from_disk(opened, site):
    page = opened(viewport=DESK)
    page.goto((site / "search.html").as_uri() + "?q=hallucination")
    page.wait_for_selector("#search-results li a")
    assert opened.troubles == []
