"""Output files that are complete or not there."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from lookuplab.errors import UserError


def write_lines(output: Path, lines: Iterable[str]) -> None:
    """Write each of ``lines`` and a line break into a file beside ``output``, and rename it when it is complete.

    Raises UserError where that is impossible; what stood at ``output`` is then untouched.
    """
    if output.exists() and not output.is_file():
        raise UserError(f"cannot write {output}: not a regular file")
    partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as stream:
            stream.writelines(line + "\n" for line in lines)
        partial.replace(output)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            partial.unlink()
