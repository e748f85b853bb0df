"""Provides problems that were written for these tests (``written_problems``), and files of them."""

import json

import pytest
import written_problems as written

from lookuplab.paths import write_lines
from lookuplab.stackoverflow.ds1000 import load_problems


@pytest.fixture
def written_file(tmp_path):
    """Return a function that writes records to a file. By default, the file has three problems: a
    plain one (1), one whose test also reads the solution's text (2), and one whose solution is the
    body of a function (3).
    """

    def write(*records):
        file = tmp_path / "written.jsonl"
        inside = "    result = max(numbers) - min(numbers)\n\n    return result\n"
        lines = records or (
            written.record(),
            written.record(2, written.CONTEXT + written.STRING),
            written.record(3, written.INSIDE, inside, 3),
        )
        write_lines(file, [one if isinstance(one, str) else json.dumps(one) for one in lines])
        return file

    return write


@pytest.fixture
def problems(written_file):
    """Return the three problems that ``written_file`` writes by default."""
    return load_problems(written_file())
