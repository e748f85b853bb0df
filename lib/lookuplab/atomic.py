"""Output files that are complete or not there."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lookuplab.errors import UserError


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """A path beside ``output`` to write to, renamed to ``output`` when the block ends without an error.

    After an error or a kill in the block, what stood at ``output`` stands there still.
    """
    partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(output)
    finally:
        with suppress(OSError):
            partial.unlink()


def write_lines(output: Path, lines: Iterable[str]) -> None:
    """Write each of ``lines`` and a line break to ``output``, all or nothing. Raises UserError where it cannot."""
    if output.exists() and not output.is_file():
        raise UserError(f"cannot write {output}: not a regular file")
    try:
        with replacing(output) as partial, partial.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(line + "\n" for line in lines)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from None
