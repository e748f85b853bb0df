"""The pages of a site as the standard library's parser sees them."""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path

LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "embed": "src", "object": "data",
          "video": "src"}


class Page(HTMLParser):
    """``ids``; ``links`` of <a>; ``loaded`` addresses of what a browser fetches by itself; ``pictures``; ``text``."""

    def __init__(self, file: Path):
        super().__init__()
        self.file, self.ids, self.links, self.loaded, self.pictures = file, set(), [], [], []
        self.tags: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "img":
            self.pictures.append(given)
        if tag == "link" and {"stylesheet", "icon", "preload"} & set((given.get("rel") or "").split()):
            self.loaded.append(given["href"])
        if given.get(LOADED.get(tag, "")):
            self.loaded.append(given[LOADED[tag]])

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@cache
def pages(site: Path) -> dict[str, Page]:
    """address below the site -> page."""
    return {file.relative_to(site).as_posix(): Page(file) for file in sorted(site.rglob("*.html"))}
