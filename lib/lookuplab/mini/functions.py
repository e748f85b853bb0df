"""The functions that the ToolGen mini models are pre-trained on: all that the listed packages define.

CodeGPT and CodeT5 were pre-trained on the functions of CodeSearchNet, with and without docstrings; this is the same on a
small scale. Functions whose code stands in a held-out repository too are left out.
"""

import ast
import hashlib
import textwrap
from collections.abc import Iterator

from tqdm import tqdm

from lookuplab.mini.packages import HELD_OUT_PACKAGES, files_of, sources
from lookuplab.toolgen.functions import definitions, first_sentence, locate
from lookuplab.toolgen.pairs import Pair

MAX_CHARACTERS = 1500  # of signature and body: three quarters of all functions are shorter


def package_functions(progress: bool = True) -> Iterator[Pair]:
    """Every function of the packages, each code once, in an order given by a hash of the file."""
    seen = held_out_codes()
    listed = [(source.name, *file) for source in sources() if not source.excluded for file in files_of(source.name, 0)]
    listed.sort(key=lambda item: hashlib.sha256(f"{item[0]}/{item[1]}".encode()).digest())
    for package, path, place in tqdm(listed, "reading packages", unit=" files", disable=not progress, mininterval=1):
        for pair in file_functions(f"{package}/{path}", place):
            code = code_hash(pair.signature, pair.body)
            if code not in seen and len(pair.signature) + len(pair.body) <= MAX_CHARACTERS:
                seen.add(code)
                yield pair


def held_out_codes() -> set[bytes]:
    """Hashes of the code of every held-out function."""
    found = set()
    for name in HELD_OUT_PACKAGES:
        repository = locate(name)
        for path in sorted(repository.root.rglob("*.py")):
            found |= {code_hash(pair.signature, pair.body) for pair in file_functions(name, path)}
    return found


def file_functions(name: str, path) -> Iterator[Pair]:
    """The functions of one file, docstring "" where there is none; nothing from a file that cannot be parsed."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return
    lines = text.splitlines(keepends=True)
    for qualified, node in definitions(tree):
        docstring = ast.get_docstring(node)
        body = node.body[1:] if docstring is not None else node.body
        if not body or node.body[0].lineno == node.lineno:
            continue
        begin = node.body[0].end_lineno + 1 if docstring is not None else _first_line(body[0])
        signature = "".join(lines[node.lineno - 1:_first_line(node.body[0]) - 1])
        if not signature.rstrip().endswith(":"):
            continue  # a comment behind the colon
        whole = textwrap.dedent("".join([signature, *lines[begin - 1:node.end_lineno]]))
        at = len(textwrap.dedent(signature))
        yield Pair(f"{name}:{qualified}#{node.lineno}", first_sentence(docstring) if docstring else "",
                   whole[:at].rstrip(), whole[at:].rstrip("\n"))


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", ())
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def code_hash(signature: str, body: str) -> bytes:
    """A hash of a function's code, whatever its whitespace."""
    return hashlib.sha256("".join(f"{signature}{body}".split()).encode()).digest()
