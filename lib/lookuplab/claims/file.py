"""A claim, and the file that states them; ``data/paper/claims.schema.json`` explains every field."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import fastjsonschema  # jsonschema would add a second to every call: it parses an URL grammar on import
import yaml

from lookuplab import paths
from lookuplab.errors import UserError

FILE = paths.PAPER / "claims.yaml"


@dataclass(frozen=True)
class Claim:
    """``test`` has a ``kind`` and its fields as in ``claims.schema.json``; ``models`` is all, any or largest."""

    id: str
    paper: str
    place: str
    statement: str
    artifact: str
    test: dict
    models: str = "all"
    why: str = ""


def load(file: Path = FILE) -> list[Claim]:
    """The claims of a YAML file; UserError with the file and the claim's id if one does not follow the schema."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{file}: expected a list of claims")
    claims, seen = [], set()
    for number, entry in enumerate(entries, 1):
        name = entry.get("id") if isinstance(entry, dict) else None
        where = f"{file}, claim {name!r}" if name else f"{file}, claim number {number}"
        try:
            _validator()(entry)
        except fastjsonschema.JsonSchemaValueException as error:
            raise UserError(f"{where}: {error.message.removeprefix('data').lstrip('. ')}") from error
        if name in seen:
            raise UserError(f"{where}: this id is taken by an earlier claim")
        seen.add(name)
        claims.append(Claim(**entry))
    return claims


@lru_cache(maxsize=1)
def _validator() -> Callable[[object], object]:
    schema = json.loads((paths.PAPER / "claims.schema.json").read_text(encoding="utf-8"))
    return fastjsonschema.compile(schema, use_default=False)
