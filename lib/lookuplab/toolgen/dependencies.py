"""Computes dependency coverage: the share of a reference function's dependencies that the
prediction also uses.

Paper, Section IV-C: the dependencies of a function are the set of expressions (calls, attribute
accesses) in the ground truth that Jedi traces to a definition inside the repository. The coverage
is the share of these expressions that the generated function also contains. Expressions are
compared by their keys, which omit arguments and the contents of subscripts. For example,
``foo(bar).a[i].b`` has the keys ``foo``, ``bar``, ``foo().a``, ``i`` and ``foo().a[].b``. A
function without dependencies has no coverage; the number of such functions is reported.

The replication packages do not use Jedi for this. Regular expressions extract the keys from the
marked words (``package_coverage``, ``package_2023_coverage``).
"""

import re
from collections.abc import Sequence
from pathlib import Path

from parso.python.tree import Name

from lookuplab.toolgen.analysers import ask_worker
from lookuplab.toolgen.jedi_worker import own_keys
from lookuplab.toolgen.pairs import MARK
from lookuplab.toolgen.source import Location, Token, is_name, leaves

BRACKETS = {")": "(", "]": "[", "}": "{"}
AUGMENTED = "+= -= *= /= //= %= @= &= |= ^= >>= <<= **=".split()


def expressions(text: str) -> list[Token]:
    """Return the name and attribute expressions of a text, in order. The text may be broken code.
    Each expression is a Token: its text is the key, and its position is where the last name begins
    (for ``a.b``, the position of ``b``).

    Names that are defined in the text, names of keyword arguments, and imports are left out.
    """
    tokens = [leaf for leaf in leaves(text) if leaf.value]
    values = ["", *(leaf.value for leaf in tokens), ""]  # the value of token n is values[n + 1]
    # index of a token (a name or a closing bracket) -> the expression that ends with this token
    keys: dict[int, str] = {}
    opening: list[int] = []
    defined: set[str] = set()
    uses: list[Token] = []
    for at, leaf in enumerate(tokens):
        before, value, behind = values[at : at + 3]
        if value in BRACKETS.values():
            opening.append(at)
        elif value in BRACKETS and opening and values[opening[-1] + 1] == BRACKETS[value]:
            start = opening.pop()
            if start - 1 in keys and value != "}":
                keys[at] = keys[start - 1] + BRACKETS[value] + value
        elif is_name(value):
            keys[at] = value if before != "." else f"{keys.get(at - 2, '()')}.{value}"
            if leaf.search_ancestor("import_name", "import_from"):
                continue
            # ``x += 1`` does not count as a definition, because it also reads x
            if isinstance(leaf, Name) and leaf.is_definition() and behind not in AUGMENTED:
                if before != ".":
                    defined.add(value)
            # any other name is a use, unless it is the name of a keyword argument
            elif not (
                behind == "="
                and before in ("(", ",")
                and leaf.search_ancestor("arglist", "argument", "trailer")
            ):
                uses.append(Token(*leaf.start_pos, keys[at]))
    return [use for use in uses if use.text.removeprefix("().") not in defined]


def count_covered(dependencies: Sequence[str], prediction: str) -> int:
    """Return how many of the reference's ``dependencies`` (keys) the predicted body also uses."""
    return len(set(dependencies) & {expression.text for expression in expressions(prediction)})


# matches a marked word and, if the word follows a dot, the name before the dot
MARKED_WORD = rf"\W(\w+\.)*{re.escape(MARK)}(\w+)\s*(?:[^\w.=]|$)"
# the pattern by which package-2024 recognises a local or imported name; {0} is the first part of
# the key, {1} the whole key
BOUND = r"\s{0}(\W+\w+)*\s*=|as\s+{0}\s*:|for\s+{0}(\W+\w+)*\s+in|from\s+{1}(\W+\w+)*\s+import"


def package_coverage(marked: str, signature: str, prediction: str) -> dict[str, int]:
    """Return the numbers ``dependencies`` and ``count_covered`` as package-2024 counts them.
    Dependencies are the marked words of a reference that do not look like local names. A dependency
    is covered if the prediction contains it.

    ``marked`` is the reference with its marks, ``prediction`` a whole function
    (``similarity.package_text``). The package's peculiarities are kept: names of libraries count; a
    marked word is missed if only one bracket separates it from the marked word before it; ``==``
    counts as an assignment; and a mark is removed together with the blank before it. If a reference
    has no dependencies, the package divides by zero; here both numbers are 0.
    """
    plain = re.sub(f" {MARK} ?", "", marked)
    keys = set()
    for match in re.finditer(MARKED_WORD, marked):
        key = (match[1] or "") + match[2]
        name = key.partition(".")[0]
        parameter = name == key and _has_word(signature, name)
        if not (parameter or re.search(BOUND.format(name, re.escape(key)), plain)):
            keys.add(key)
    return {"dependencies": len(keys), "covered": sum(_has_word(prediction, key) for key in keys)}


# the pattern by which package-2023 recognises a local name
LOCAL_2023 = r"\s+{0}\s*=|as\s+{0}\s*:|for\s+\W*{0}\W*\s+in"


def package_2023_coverage(marked: str, signature: str, prediction: str) -> dict[str, int]:
    """Return the numbers ``dependencies`` and ``count_covered`` as package-2023 counts them.
    Dependencies are the marked words of a reference that look neither like a local name nor like a
    parameter. Of ``a.b``, the dependency is only ``b``. A dependency is covered if the prediction
    contains it outside string literals.
    """
    keys = {
        key
        for key in re.findall(rf"{re.escape(MARK)}(\w+)(?:\W|$)", marked)
        if not re.search(LOCAL_2023.format(key), marked) and not _has_word(signature, key)
    }
    bare = re.sub('"(.*?)"', "", re.sub("'(.*?)'", "", prediction))
    return {"dependencies": len(keys), "covered": sum(_has_word(bare, key) for key in keys)}


def _has_word(text: str, word: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def dependencies_of(root: Path, file: str, text: str, location: Location) -> list[str]:
    """Return the dependencies of the function at ``location`` in ``text``, the content of ``file``
    below ``root``. They are keys such as ``foo().a``. A key that the body uses several times is in
    the list once.

    Raises WorkerLost if Jedi takes too long, crashes or raises an exception, and does so again in a
    new process.
    """
    first = location.body_line
    last = location.end_line
    body = "\n".join(text.split("\n")[first - 1 : last])
    uses = [use._replace(line=use.line + first - 1) for use in expressions(body)]
    return ask_worker(own_keys, root, file, text, uses, range(location.line, last + 1))
