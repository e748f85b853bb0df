"""Defines every folder of the kit, and has functions to read, write and hash files and texts. If a
write is interrupted, the old file is unchanged. Notebooks never build a path themselves.
"""

import codecs
import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import secrets
import stat
import sys
import time
import tokenize
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TextIO

from lookuplab.errors import UserError

# the checkout: ``$LOOKUPLAB_HOME``, by default the folder from which the library was installed
ROOT = Path(os.environ.get("LOOKUPLAB_HOME") or Path(__file__).parents[2]).resolve()
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
PAPER = DATA / "paper"  # numbers that the papers report
MINI = DATA / "mini"  # inputs and models of the mini profile, committed
DOWNLOADS = DATA / "downloads"  # fetched, pinned by size and sha256; ignored by git
FIGURES = ROOT / "figures"
# the name of the profile for published answers, and of the folder with that profile's notebooks
PUBLISHED = "published"
RUNS = ROOT / "runs"  # executed notebooks, stores, logs; ignored by git
COMPLETIONS = RUNS / "completions.sqlite"
# environment variable with the path of the completion store; the other stores are in its folder
STORE_VARIABLE = "LOOKUPLAB_STORE"
# the prefix of this process's temporary folders, so that they can be removed after an interrupt
TEMPORARY = f"lookuplab-{secrets.token_hex(4)}-"
DAY = 86_400  # in seconds; no process writes one file for so long
HashForm = Literal["content", "digests", "lines"]
UTF_16 = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE  # the byte order marks of UTF-16
# file suffix -> function that compresses, with options that make equal content give equal bytes
COMPRESS = {".gz": partial(gzip.compress, mtime=0), ".xz": partial(lzma.compress, preset=9)}


def located(path: Path | str) -> Path:
    """Return the first of these paths that exists: ``path`` in the working directory, the folder of
    the fetched model called ``path`` (``all-minilm-l6-v2``), and ``path`` in the checkout.

    If none exists, return ``path`` unchanged; it may be a name on the hub.
    """
    places = Path(path), fetched_model(path), ROOT / path
    return next(filter(Path.exists, places), places[0])


def fetched_model(name: Path | str) -> Path:
    """Return the folder for a model that is fetched from the package index. The folder exists only
    if the model has been fetched.
    """
    return DOWNLOADS / "models" / name


def expand_path(path: Path | str) -> Path:
    """Return a path with ``~`` expanded. Raises UserError for an unknown user's home, and for a
    text that cannot be a path.
    """
    why = "it has a NUL character"
    if "\0" not in str(path):
        try:
            os.fsencode(found := Path(path).expanduser())
            return found
        except RuntimeError:
            why = "there is no such user"
        except UnicodeError:
            why = "it has half a character (a lone surrogate)"
    raise UserError(f"{str(path)!r} is not a path: {why}")


def completions_file() -> Path:
    """Return the path of the completion store: ``$LOOKUPLAB_STORE``, by default COMPLETIONS."""
    # A relative path starts at $PWD, the folder where the user typed the command. The kernel of a
    # notebook inherits $PWD, although its working directory is another folder.
    stated = expand_path(os.environ.get(STORE_VARIABLE) or COMPLETIONS)
    return Path(os.environ.get("PWD", ""), stated).absolute()


def parse(read: Callable[[Any], Any], text: Any) -> Any:
    """Return ``read(text)``. ``read`` is a parser, such as ``json.loads``, and ``text`` comes from
    outside the kit.

    Whatever the parser raises (for nesting that is too deep, for invalid characters, for a YAML tag
    with the wrong value) becomes a ValueError with a message of one line.
    """
    try:
        return read(text)
    except Exception as error:
        why = "nested too deeply" if isinstance(error, RecursionError | MemoryError) else str(error)
        if isinstance(error, json.JSONDecodeError) and error.lineno == 1:
            why = f"{error.msg} at column {error.colno}"
        raise ValueError(" ".join(why.split()) or type(error).__name__) from None


def make_folder(folder: Path) -> Path:
    """Return the folder, created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def temporary_folder() -> TemporaryDirectory[str]:
    """Return a temporary folder. An interrupt removes the folder even while a thread is still using
    it (``work.stoppable``).
    """
    return TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True)


def check_file(output: Path) -> None:
    """Raise UserError if ``output`` exists but is neither a file nor a device such as /dev/null."""
    if output.exists() and not (output.is_file() or output.is_char_device()):
        raise UserError(f"cannot write {output}: not a regular file")


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``output``, to which the block must write. When the
    block ends without an error, the written file is renamed to ``output``. After an error or a kill
    inside the block, ``output`` is unchanged.

    If ``output`` is a device, such as /dev/null, ``output`` itself is yielded. Raises UserError if
    ``output`` exists but is neither a file nor a device. Temporary files of ``output`` that killed
    processes left more than a day ago are removed.
    """
    output = output.absolute()  # with_name fails for ".", which has no name
    check_file(output)
    if output.is_char_device():
        yield output
        return
    part = output.with_name(f".{output.name}.{os.getpid()}.partial")
    try:
        make_folder(output.parent)
        for left in output.parent.glob(f".{escape(output.name)}.*.partial"):
            with suppress(OSError):  # another process may have removed it
                if time.time() - left.stat().st_mtime > DAY:
                    left.unlink()
        yield part
        part.replace(output)
    finally:
        with suppress(OSError):
            part.unlink()


def write_lines(output: Path, lines: Iterable[str]) -> None:
    """Write ``lines`` to ``output`` as ``write_text`` does, with a line break after each line."""
    write_text(output, "".join(line + "\n" for line in lines))


def write_text(output: Path, text: str) -> None:
    """Write ``text`` to ``output``. If that fails, ``output`` is left unchanged. The file is
    compressed if its name ends in .gz or .xz.
    """
    with replacing(output) as part:
        part.write_bytes(COMPRESS.get(output.suffix, bytes)(text.encode()))


def open_text(path: Path) -> TextIO:
    """Open a text file for reading; "-" is standard input. The file may be compressed (gzip, xz).
    Its encoding is UTF-8, or UTF-16 if it begins with the byte order mark of UTF-16. Bytes that
    cannot be decoded become lone surrogates.
    """
    data: Any = sys.stdin.buffer
    if path != Path("-"):
        # O_NONBLOCK, so that a pipe to which no process writes counts as empty instead of blocking
        data = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
        os.set_blocking(data.fileno(), True)
        kind = os.fstat(data.fileno()).st_mode
        # /dev/zero would never end; /dev/null is accepted, because it is empty
        if (stat.S_ISCHR(kind) or stat.S_ISBLK(kind)) and not data.isatty() and data.read(1):
            raise OSError(errno.ENXIO, "a device", str(path))
    data = io.BufferedReader(data)
    for magic, decompressed in ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ", lzma.open)):
        if data.peek(len(magic)).startswith(magic):
            data = io.BufferedReader(decompressed(data, "rb"))
    encoding = "utf-16" if data.peek(2).startswith(UTF_16) else "utf-8-sig"
    return io.TextIOWrapper(data, encoding, "surrogateescape")


def is_special(path: object) -> bool:
    """Return whether ``path`` names a pipe, a socket or a device. Reading one of these may never
    end.
    """
    try:
        mode = os.stat(path).st_mode if isinstance(path, str | os.PathLike) else stat.S_IFREG
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def source_text(path: Path) -> str:
    """Return the text of a Python file, decoded as Python decodes it: a byte order mark and a
    declared encoding are respected, and all line ends become line feeds. Files in UTF-16, which
    Python refuses, are decoded, too. Bytes that cannot be decoded become U+FFFD.
    """
    with path.open("rb") as file:
        otherwise = "utf-16" if file.peek(2).startswith(UTF_16) else "utf-8"
        # the declared encoding may be unknown, not be one of text, or not be that of this file
        with suppress(SyntaxError, LookupError, UnicodeError):
            return path.read_text(tokenize.detect_encoding(file.readline)[0], "replace")
    return path.read_text(otherwise, "replace")


def json_lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) for each line of a JSON Lines file, compressed or not. Empty
    lines are skipped.

    A lone surrogate (half a character) or a byte that is not UTF-8 becomes "?", because it could
    not be written to a file again. A message on stderr gives the number of lines that were changed.
    Raises UserError for a file that cannot be read, and for an invalid line, whose number the
    message gives.
    """
    number = 0
    replaced = []
    try:
        with open_text(file) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    fields = parse(json.loads, line.rstrip())
                    if not isinstance(fields, dict):
                        raise ValueError("not an object")
                    # only such a line can contain a lone surrogate or a byte that is not UTF-8
                    if "\\u" in line or not line.isascii():
                        text = json.dumps(fields, ensure_ascii=False)
                        clean = text.encode("utf-8", "replace").decode()
                        if clean != text:
                            replaced.append(number)
                            fields = json.loads(clean)
                    yield number, fields
    except ValueError as error:
        why = f"{error}; each line must be one JSON object"
        raise UserError(f"cannot read {file}, line {number}: {why}") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        why = str(getattr(error, "strerror", None) or error)
        at = f" after line {number}" if number else ""
        raise UserError(f"cannot read {file}{at}: {why}") from None
    if replaced:
        print(
            f'{file}: lines in which invalid Unicode became "?": {len(replaced)} '
            f"(the first is line {replaced[0]})",
            file=sys.stderr,
        )


def file_hash(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal digits."""
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def folder_hash(folder: Path, files: Iterable[Path], form: HashForm) -> str:
    """Return a sha256 over the names (relative to ``folder``) and contents of ``files``, in the
    given order.

    ``form`` says what is hashed for each file, and where the result is used:

    - "content": name, size and content; in the keys of models' stored answers.
    - "digests": name and the content's sha256; in the keys of answers about repositories.
    - "lines": the same as text, one line per file; in the data hash of figures.

    None of the three forms may change, because stored keys and hashes depend on them.
    """
    total = hashlib.sha256()
    for file in files:
        name = os.fsencode(file.relative_to(folder).as_posix())
        if form == "lines":
            total.update(b"%b %b\n" % (name, file_hash(file).encode()))
        elif form == "digests":
            total.update(b"%b\0%b" % (name, bytes.fromhex(file_hash(file))))
        else:
            total.update(b"%b\0%d\0" % (name, file.stat().st_size))
            with file.open("rb") as stream:
                hashlib.file_digest(stream, lambda: total)  # continues the running hash
    return total.hexdigest()


def canonical(fields: object) -> str:
    """Return JSON that does not depend on the order in which dictionaries have their keys."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """Return 128 bits of a text's sha256 as hexadecimal digits. Up to 10^15 answers, the
    probability of a collision is negligible.
    """
    return hashed(text)[:32]


def hashed(text: str) -> str:
    """Return a text's sha256 as hexadecimal digits. Sorting texts by their hashes gives an order
    that is the same on every machine and unrelated to what the texts say.
    """
    return hashlib.sha256(text.encode()).hexdigest()
