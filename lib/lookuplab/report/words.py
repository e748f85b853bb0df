"""What is written in a picture: matplotlib leaves every text of an SVG as a comment before its letters' shapes."""

import re
from pathlib import Path

_TEXT = re.compile(r"<!-- (.*?) -->\s*<g [^>]*?scale\(([\d.]+) ", re.DOTALL)
_NUMBER = re.compile(r"[\s\d.,%+\-\u2212\u00d7^{}$\\mathdefault]*")
_TITLE_SCALE = 0.11  # 11 points: the size of titles in lookuplab.plots.look, above that of every other text
_MOST = 24  # texts; a picture with more of them is a table


def picture_words(svg: Path) -> list[str]:
    """Every text of the picture but the numbers on its axes, once each, in the order drawn; the first 24 of them."""
    words = dict.fromkeys(" ".join(word.split()) for word, _ in _texts(svg))
    return [word for word in words if word and not _NUMBER.fullmatch(word)][:_MOST]


def picture_title(svg: Path) -> str:
    """The text above the picture; empty where it has none."""
    return next((" ".join(word.split()) for word, scale in _texts(svg) if float(scale) == _TITLE_SCALE), "")


def _texts(svg: Path) -> list[tuple[str, str]]:
    return _TEXT.findall(svg.read_text(encoding="utf-8"))
