"""The table that counting leaves behind: CSV with the columns ``api, count_name, count_bound``."""

import csv
from pathlib import Path

from lookuplab.errors import UserError

COLUMNS = ("api", "count_name", "count_bound")


def read_frequencies(path: Path) -> tuple[dict[str, int], dict[str, int]]:
    """(count_name, count_bound) by API id. Raises UserError, with file and line, for what is not such a table."""
    try:
        with open(path, encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            if missing := [column for column in COLUMNS if column not in (reader.fieldnames or ())]:
                raise UserError(f"{path}: no column {', '.join(missing)}; make it with `lookuplab data frequencies`")
            rows = [(row["api"], _count(row, "count_name", path, reader), _count(row, "count_bound", path, reader))
                    for row in reader]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is not a CSV file: {error}") from None
    return {api: name for api, name, _ in rows}, {api: bound for api, _, bound in rows}


def _count(row: dict, column: str, path: Path, reader: csv.DictReader) -> int:
    if not str(row[column]).isdecimal():
        raise UserError(f"{path}, line {reader.line_num}: {column} is {row[column]!r}, not a count")
    return int(row[column])
