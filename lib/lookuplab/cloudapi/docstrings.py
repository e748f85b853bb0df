"""What a docstring in one of the three usual styles (numpydoc, Google, Sphinx) says: purpose and arguments."""

import re

from lookuplab.cloudapi.prose import rst_text, sentences

SENTENCES = 5  # of a description (paper, Appendix B.1)
_SIGNATURE = re.compile(r"[\w.]+\(.*\)(?:\s*->.*)?", re.DOTALL)  # compiled functions begin with theirs
_NAMES = r"\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*"
_NUMPY = re.compile(r"^[ \t]*(?:Other |Keyword )?(?:Parameters|Arguments)[ \t]*\n[ \t]*-{3,}[ \t]*\n"
                    r"(?P<body>.*?)(?=^[^\n]+\n[ \t]*-{3,}[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_NUMPY_ITEM = re.compile(rf"^({_NAMES})[ \t]*(?::[^\n]*)?$", re.MULTILINE)
_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters|Other Parameters|Keyword Args|Keyword Arguments):[ \t]*\n"
                     r"(?P<body>(?:[ \t]+[^\n]*\n?|[ \t]*\n)*)", re.MULTILINE)
_GOOGLE_ITEM = re.compile(rf"^({_NAMES})[ \t]*(?:\([^\n]*?\))?:", re.MULTILINE)
_SPHINX = re.compile(r"^\s*:(?:param|parameter|arg|argument|keyword|kwarg|key)\s+(?:[^:\n]*\s)?\*{0,2}(\w+)\s*:",
                     re.MULTILINE)


def description_of(docstring: str) -> str:
    """The first paragraph that is prose, as plain text of at most five sentences; "" where there is none."""
    for paragraph in re.split(r"\n\s*\n", docstring.strip())[:2]:
        text = re.sub(r"\s+", " ", rst_text(paragraph)).strip()
        if text and not paragraph.startswith("..") and not _SIGNATURE.fullmatch(text):
            return " ".join(sentences(text)[:SENTENCES])
    return ""


def documented_names(docstring: str) -> set[str]:
    """The names of all arguments that the docstring lists, those of ``**kwargs`` among them."""
    listed = [*_items(_NUMPY, _NUMPY_ITEM, docstring), *_items(_GOOGLE, _GOOGLE_ITEM, docstring)]
    names = {name.strip().lstrip("*") for line in listed for name in line.split(",")}
    return {name for name in names | set(_SPHINX.findall(docstring)) if name.isidentifier()}


def _items(section: re.Pattern, item: re.Pattern, docstring: str) -> list[str]:
    """The items of every such section: the lines at its smallest indentation."""
    found = []
    for match in section.finditer(docstring):
        lines = [line for line in match["body"].splitlines() if line.strip()]
        margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
        found += item.findall("\n".join(line[margin:] for line in lines))
    return found
