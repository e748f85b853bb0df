"""Extracts plain text and sentences from the documentation of packages and libraries.

Two rules find sentences: ``sentences`` in descriptions of APIs, and ``prose_sentences`` in the
numpydoc docstrings of the mini world. Both rules stay, because a shared rule would change the
committed tasks, texts and models. ToolGen finds the first sentence by a third rule, the paper's
(``toolgen.functions``).
"""

import re
from collections.abc import Iterable
from itertools import pairwise

# A full stop after these abbreviations does not end a sentence. A single capital is read as an
# initial ("US East (N. Virginia)").
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|vs|cf|approx|incl|eg|ie|No|Fig|St)|\b[A-Z])\.$")
_BOUNDARY = re.compile(r"[.!?][\"')\]]*(?=\s+[\"'(`\[]*[A-Z0-9])")
# matches the space between two sentences of a numpydoc docstring
_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!cf\.)\s+(?=[A-Z])")
# finds code, a directive, a formula or a heading in a paragraph
_NO_PROSE = re.compile(r">>>|^\.\. |:math:|::|^[=+-]{3}", re.M)
# (pattern, replacement) for roles, literals, citations and emphasis
_MARKUP = (
    (r":[\w:+-]+:`~?([^`<]*?)(?:\s*<[^>]*>)?`", r"\1"),
    (r"`+([^`]*)`+_*", r"\1"),
    (r"\s*\[\w+\]_", ""),
    (r"\*{1,2}([\w ]+)\*{1,2}", r"\1"),
)


def sentences(text: str) -> list[str]:
    """Return the sentences of plain text. The end of a line also ends a sentence, because headings
    have no full stop.
    """
    found = []
    for line in text.splitlines():
        ends = (match.end() for match in _BOUNDARY.finditer(line))
        cuts = [end for end in ends if not _ABBREVIATION.search(line, 0, end)]
        found += [line[start:end].strip() for start, end in pairwise([0, *cuts, len(line)])]
    return [*filter(None, found)]


def prose_sentences(text: str) -> list[str]:
    """Return the sentences in the prose of a text, without markup. Lists, tables, code, formulas
    and directives are left out.

    Only sentences in ASCII that have 4 to 40 words and begin with a letter are returned.
    """
    found = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        prose = "\n" not in paragraph or not re.search(r"^\s+\S", paragraph, re.M)
        if prose and re.match(r"[A-Za-z`:]", paragraph) and not _NO_PROSE.search(paragraph):
            found += [plain(one) for one in _SENTENCE.split(" ".join(paragraph.split()))]
    return [
        one for one in found if 4 <= len(one.split()) <= 40 and one[0].isalpha() and one.isascii()
    ]


def plain(text: str, markup: Iterable[tuple[str, str]] = _MARKUP) -> str:
    """Return a text on one line, without the reStructuredText markup of roles, literals, references
    and emphasis.
    """
    for pattern, replacement in markup:
        text = re.sub(pattern, replacement, text)
    return " ".join(text.split())


def opening_sentence(text: str) -> str:
    """Return the first sentence of a text on one line, or "" if the text begins with a signature or
    with markup.
    """
    first = re.split(r"\n\s*\n|(?<=[.])\s", text.strip(), maxsplit=1)[0]
    return plain(first) if re.match("[A-Za-z]", first) and "(" not in first.split(" ")[0] else ""


def first_paragraph(document: str) -> str:
    """Return the first paragraph of a docstring on one line, without markup. Signatures and
    directives before this paragraph are skipped. Return "" if the paragraph is not prose or is
    longer than 300 characters.
    """
    for paragraph in re.split(r"\n\s*\n", document.strip()):
        text = " ".join(paragraph.split())
        if text and not re.match(r"[\w.]+\(.*\)$", text) and not text.startswith(".. "):
            text = plain(text, _MARKUP[:2])
            no_prose = text.startswith(("Parameters", "-", "=", ">>>"))
            return "" if no_prose or len(text) > 300 else text
    return ""
