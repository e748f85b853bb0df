"""Plain text and sentences from what the SDKs write: HTML (botocore's models) and reStructuredText (docstrings)."""

import re
from html.parser import HTMLParser

LIMIT = 5_000  # characters of full documentation that are kept (paper, Appendix B.1)

_BLOCKS = frozenset("p li ul ol dl dt dd div note important caution h1 h2 h3 h4 h5 br pre table tr".split())
# After these a full stop ends no sentence; a single capital is an initial ("US East (N. Virginia)").
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|vs|cf|approx|incl|eg|ie|No|Fig|St)|\b[A-Z])\.$")
_BOUNDARY = re.compile(r"[.!?][\"')\]]*(?=\s+[\"'(`\[]*[A-Z0-9])")
# One pass, so that a star inside a literal is no emphasis. Emphasis needs the neighbours that docutils asks for.
_MARKUP = re.compile(
    r"""``(?P<literal>[^\n]+?)``(?!`)
    |   :(?:\w+:)?\w+:`(?P<short>~)?!?(?P<role>[^`\n]+?)(?:\s*<[^`>]*>)?`
    |   `(?P<title>[^`<]+?)\s*<[^`>]*>`_{0,2}
    |   (?<!\S)\*\*(?P<strong>\S[^\n]*?)\*\*(?=[\s'")\]}>/:.,;!?-]|$)
    |   (?:(?<=[\s'"(\[{<:/-])|(?<![^\n]))\*(?P<emphasis>[^\s*](?:[^*\n]*[^\s*])?)\*(?=[\s'")\]}>/:.,;!?-]|$)
    """,
    re.VERBOSE,
)


class _Text(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self._edge(tag)

    def handle_endtag(self, tag):
        self._edge(tag)

    def handle_data(self, data):
        self.parts.append(re.sub(r"\s+", " ", data))

    def _edge(self, tag):
        if tag in _BLOCKS:
            self.parts.append("\n")


def html_text(html: str) -> str:
    """HTML without its markup: one paragraph or list item a line, white space collapsed."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    text = re.sub(r" +(?=[,.;:)](?:\s|$))", "", re.sub(r" +", " ", "".join(parser.parts)))  # "<a>this</a> ," -> "this,"
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def sentences(text: str) -> list[str]:
    """The sentences of plain text, in order. A line end closes a sentence too: headings carry no full stop."""
    found = []
    for line in text.splitlines():
        start = 0
        for match in _BOUNDARY.finditer(line):
            if not _ABBREVIATION.search(line[start:match.end()]):
                found.append(line[start:match.end()].strip())
                start = match.end()
        found.append(line[start:].strip())
    return [sentence for sentence in found if sentence]


def rst_text(rst: str) -> str:
    """reStructuredText as a reader of the rendered page sees it: no roles, emphasis, link targets or empty runs."""
    text = _MARKUP.sub(_inner_text, rst)
    text = re.sub(r"^(\s*)\.\. (note|warning|tip|danger)::", lambda m: f"{m[1]}{m[2].capitalize()}:", text, flags=re.M)
    text = re.sub(r"^\s*::\s*$", "", text, flags=re.M)
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _inner_text(match: re.Match) -> str:
    if match["role"]:  # :class:`~azure.core.Thing` shows the last part, :class:`azure.core.Thing` the whole
        return match["role"].rpartition(".")[2] if match["short"] else match["role"]
    return match["literal"] or match["title"] or match["strong"] or match["emphasis"]


def shortened(documentation: str) -> str:
    """Full documentation, right-truncated (paper, Appendix B.1)."""
    return documentation[:LIMIT]
