"""Tests that Jedi and pylint run nothing of a repository: none of its modules, no plugin or hook
that its settings name, and no Python interpreter in it. Also tests that these files leave a mark if
they are run.
"""

import json

import marker_repository
import pytest
from doors import call

from lookuplab.toolgen.evaluation import messages_of
from lookuplab.toolgen.jedi_tool import JediTool


@pytest.fixture
def root(tmp_path):
    marker_repository.build(tmp_path / "repository", tmp_path / "marker")
    return tmp_path / "repository"


@pytest.mark.parametrize("file", marker_repository.WAYS)
def test_each_kind_of_file_of_the_marker_repository_can_leave_its_mark(root, tmp_path, file):
    """This shows that the next test can fail: a file that runs is noticed."""
    said = marker_repository.run(root, file, tmp_path / "marker")
    assert (tmp_path / "marker").exists(), said


@pytest.mark.usefixtures("contained", "own_store")
def test_jedi_and_pylint_run_nothing_of_a_repository(root, tmp_path, monkeypatch):
    """Code that ran would leave its mark or, in a sandbox, leave a question without an answer."""
    found = messages_of(root, "user.py", marker_repository.USES, (1, 8))
    assert ["E1101", 7] in [[*one[:2]] for one in found]
    names = JediTool().complete(root, "new.py", "import plug\nplug.", 2, 5).names
    assert "value" in names
    line = {"id": 1, "repository": str(root), "file": "user.py", "line": 5}
    (tmp_path / "in.jsonl").write_text(json.dumps(line | {"prediction": "    return plug.value"}))
    monkeypatch.chdir(tmp_path)
    for command, word in (
        ("score toolgen in.jsonl", '"passed": true'),
        ("data mark repository", "plug"),
    ):
        done = call(*command.split(), "-o", "out")
        assert done.exit_code == 0 and "without an answer" not in done.output, done.output
        assert word in (tmp_path / "out").read_text(), done.output
    assert not (tmp_path / "marker").exists()
