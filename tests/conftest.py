"""What tests of several folders share."""

import json
import os

import pytest
from click.testing import CliRunner

from lookuplab.run.cli import cli


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder for all test processes."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture
def score(tmp_path, monkeypatch):
    """Runs `lookuplab score` on a file with these lines: objects, or texts that stand there as they are."""
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "store" / "completions.sqlite"))
    file = tmp_path / "with space.jsonl"

    def run(what, lines, *options):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        file.write_text("".join(text + "\n" for text in texts))
        return CliRunner().invoke(cli, ["score", what, str(file), *map(str, options)])

    return run
