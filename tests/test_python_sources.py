"""Tests the pinned Python sources: Jedi and pylint see these sources and the repository, but no
other installed package.
"""

import contextlib
import os
import socket

import pytest
from doors import refused

from lookuplab import python_sources
from lookuplab.stackoverflow import corpus
from lookuplab.toolgen.evaluation import messages_of
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab_notebooks.performance.literal import fresh_messages

TEXT = """import iniconfig
import planted


def use():
    iniconfig.no_such_name
    planted.no_such_name
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a repository with a file that imports two modules: one is among the pinned sources,
    and the other is only installed in this environment.
    """
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "planted.py").write_text("member = 1\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    root = tmp_path / "repository"
    root.mkdir()
    (root / "user.py").write_text(TEXT)
    return root


def offered(root, name):
    text = f"import {name}\n{name}."
    return set(JediTool().complete(root, "new.py", text, 2, len(name) + 1).names)


def test_jedi_sees_the_sources_and_not_what_is_installed(repository):
    assert "command" in offered(repository, "click")
    assert not offered(repository, "planted") | offered(repository, "lookuplab")


def test_pylint_sees_the_sources_and_not_what_is_installed(repository):
    warm = messages_of(repository, "user.py", TEXT, (1, 9))
    for messages in warm, fresh_messages(repository, "user.py"):
        assert [tuple(one[:2]) for one in messages] == [("E1101", 6)]


def test_a_folder_of_your_own_takes_the_place_of_the_sources(repository, tmp_path, monkeypatch):
    # call the function without its cache, which would keep the answer for the whole process
    identity = python_sources.identity.__wrapped__
    before = identity()
    monkeypatch.setenv("LOOKUPLAB_SOURCES", str(tmp_path / "site"))
    assert offered(repository, "planted") >= {"member"} and not offered(repository, "click")
    assert identity() != before
    monkeypatch.setenv("LOOKUPLAB_SOURCES", str(tmp_path / "nowhere"))
    with refused("is not a folder; name one, or unset it"):
        python_sources.folder()


def test_of_a_wheel_with_the_pinned_hash_the_python_files_come_and_any_other_wheel_is_refused(
    tmp_path, monkeypatch, index
):
    sha256 = index("thing", {"thing.py": "answer = 42\n", "thing.so": "machine code"})
    monkeypatch.setattr(python_sources, "PINS", tmp_path / "python-sources.txt")
    monkeypatch.setattr(python_sources.paths, "DOWNLOADS", tmp_path / "downloads")
    python_sources.PINS.write_text(f"thing==1.0 --hash=sha256:{'0' * 64}\n")
    with refused("pip cannot download the sources"):
        python_sources.get()
    assert not list((tmp_path / "downloads" / "python-sources").iterdir())
    python_sources.PINS.write_text(f"thing==1.0 --hash=sha256:{sha256}\n")
    names = {one.name for one in python_sources.get().iterdir()}
    assert names == {"thing-1.0.dist-info", "thing.py"}


LINKS = {
    "alias.py": "m.py",
    "dead.py": "gone.py",
    "self.py": "self.py",
    ".venv": "../outside",
    "linked": "../outside",
    "loop": "..",
}


def test_links_pipes_environments_and_what_is_built_are_left_out_whatever_a_name_is(tmp_path):
    own = [b"m.py", b"new\nline.py", b"\xff.py", b"\xfe/m.py", b"new\nfolder/m.py", b"dir.py/m.py"]
    # ``build`` is a package here, and below a folder of built files
    own += [b"app/build/__init__.py", b"app/build/m.py"]
    others = [b"e/m.py", b".hidden/m.py", b"conda/m.py", b"__pycache__/m.py", b"../outside/m.py"]
    others += [b"build/lib/m.py", b"node_modules/gyp/m.py", b"site-packages/other/m.py"]
    for name in own + others:
        file = tmp_path / "root" / os.fsdecode(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('def f():\n    """Say it."""\n    return 1\n')
    root = tmp_path / "root"
    (root / "conda/conda-meta").mkdir()
    for name, target in (LINKS | {"e/pyvenv.cfg": "gone"}).items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe.py")
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(root):
        server.bind("socket.py")
    found = python_sources.python_files(root)
    assert {os.fsencode(file.relative_to(root)) for file in found} == {*own}
    assert len(corpus.load_snippets(root)) == len(own)


def test_a_folder_that_cannot_be_read_is_said_once(tmp_path, capsys, monkeypatch):
    for name in ("a.py", "locked/b.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read every folder
    for _ in range(2):
        assert python_sources.python_files(tmp_path) == [tmp_path / "a.py"]
    assert capsys.readouterr().err.count("locked' cannot be read: left out") == 1


def test_pip_runs_no_module_of_the_user_s_folder(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    assert python_sources.download(tmp_path / "wheels", "--no-index", "nothing-of-this-name")
    assert not (tmp_path / "marker").exists()


def test_in_a_notebook_too_pip_s_own_error_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in Jupyter's kernels
    said = python_sources.download(tmp_path, "--no-index", "nothing-of-this-name")
    assert said.startswith("No matching distribution")


def test_the_pinned_versions_are_those_of_the_constraints():
    constraints = (python_sources.paths.ROOT / "constraints.txt").read_text().lower()
    lines = python_sources.PINS.read_text().splitlines()
    pins = {line.partition(" ")[0] for line in lines if "--hash" in line}
    assert pins and pins <= set(constraints.replace("_", "-").replace(";", " ").split())
