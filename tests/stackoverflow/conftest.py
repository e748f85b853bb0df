"""Lets the tests of this folder import the problems beside them, and write them to files."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
import written_problems as written


@pytest.fixture
def problems_file(tmp_path):
    """Writes records, by default three problems: plain (1), with a test of the text (2), inside a
    function (3).
    """

    def write(*records, name="problems.jsonl"):
        file = tmp_path / name
        lines = records or (
            written.record(),
            written.record(2, written.CONTEXT + written.STRING),
            written.record(
                3,
                written.INSIDE,
                "    result = max(numbers) - min(numbers)\n\n    return result\n",
                3,
            ),
        )
        file.write_text(
            "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines)
        )
        return file

    return write
