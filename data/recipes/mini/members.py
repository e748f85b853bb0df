"""Which of the members that pylint misses exist when the code runs: ``toolgen/members.json``."""

import builtins
import importlib
import json
import re
import sys
from typing import Any

from lookuplab import paths, python_sources
from lookuplab.models import record
from lookuplab.run.commands import command, run_module

MEMBERS = paths.MINI / "toolgen" / "members.json"
MISSING = re.compile(r"(Instance of|Class|Module) '(.+)' has no '(.+)' member")


def exists(file: str, words: str) -> bool | None:
    """Return whether the member that a message misses is there once the file is imported; None if
    it cannot be imported here, or what should have the member is not found.

    A class is looked for in the file, its package and Python. Of an instance, only what its class
    has counts.
    """
    if not (parts := MISSING.match(words)):
        return None
    kind, owner, member = parts.groups()
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package = name.partition(".")[0]
    try:
        places: list[Any] = [importlib.import_module(name)]
        owners: list[Any] = [importlib.import_module(owner)] if kind == "Module" else []
    except (ImportError, OSError):
        return None
    places += [one for at, one in [*sys.modules.items()] if at.partition(".")[0] == package]
    for place in [] if owners else [*places, builtins]:
        owners += [one for one in vars(place).values() if getattr(one, "__name__", "") == owner]
        if owners:
            break
    return any(member in dir(one) for one in owners) if owners else None


@command()
def main() -> None:
    """Import the sources of the repositories, and write which members exist that pylint reports as
    missing, in the judgements of the record.

    \b
    Example:
      python -m recipes.mini.members
    """
    sys.path.append(str(python_sources.folder()))
    answers = record.rows("judgements", record.kinds("judgements")["success"])
    asked = {
        (key.split(" ")[1].rpartition(":")[0], words)
        for key, messages in answers.items()
        for check, _, words in messages
        if check == "E1101"
    }
    found = {one: exists(*one) for one in sorted(asked)}
    told = {
        "reported": len(found),
        "looked for": sum(there is not None for there in found.values()),
        "exist": [one for one, there in found.items() if there],
    }
    paths.write_lines(MEMBERS, [json.dumps(told, indent=1)])


if __name__ == "__main__":
    run_module(main)
