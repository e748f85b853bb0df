"""Conditions of the machine that are no bug: told in one line, not as a traceback."""

import errno

_CONDITIONS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR}


def condition(error: OSError) -> str | None:
    """A full disk, a read-only or forbidden place, in words; None for every other error."""
    if error.errno not in _CONDITIONS:
        return None
    return f"cannot write {error.filename or 'to the disk'}: {error.strerror}; free or allow the place and run again"
