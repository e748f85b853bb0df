"""Tests stores on file systems that several machines share: every process on every machine finds
the same answers.
"""

import errno
import shutil
from pathlib import Path

import pytest
from toy_model import Kept

from lookuplab.models.store import is_local


@pytest.fixture
def shared(tmp_path):
    """Return a function that opens a store with journals. Each call opens the store anew, as
    another process would.
    """
    (tmp_path / "kept.sqlite.journals").mkdir()
    return lambda: Kept(tmp_path / "kept.sqlite")


def test_a_disk_and_memory_are_this_machines_and_what_nobody_knows_is_not(tmp_path):
    assert is_local(tmp_path / "not" / "there") and is_local(Path("/dev/shm"))
    assert not is_local(Path("/proc"))


@pytest.mark.parametrize("refused", ["fcntl.lockf", "mmap.mmap"])
def test_a_disk_that_refuses_locks_or_shared_memory_gets_journals(tmp_path, monkeypatch, refused):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(refused, refuse)
    with Kept(tmp_path / "kept.sqlite") as store:
        store.add({"a": 1})
    monkeypatch.undo()  # another machine has no such error
    with Kept(tmp_path / "kept.sqlite") as store:
        assert store.get("a") == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["kept.sqlite.journals"]


def test_a_folder_that_cannot_be_written_is_as_local_as_its_disk(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("lookuplab.models.store.TemporaryFile", refuse)
    assert is_local(tmp_path)


def test_the_earlier_of_two_answers_is_everybodys_and_a_later_one_after_it_was_forgotten(shared):
    with shared() as one, shared() as other:
        assert one.get("ab") == other.get("ab") == {}
        one.add({"a": 1, "b": 1})
        other.add({"a": 2})
        assert one.get("ab") == other.get("ab") == {"a": 1, "b": 1}
        other.forget("a")
        assert one.present() == {"b"}
        one.add({"a": 3})
        assert [each.get("a") for each in (one, other, shared())] == [{"a": 3}] * 3


def test_half_a_line_and_a_flipped_bit_are_left_out_and_made_anew(shared, tmp_path, capsys):
    with shared() as store:
        store.add({"a": "one", "b": "two"})
    (file,) = (tmp_path / "kept.sqlite.journals").iterdir()
    file.write_bytes(file.read_bytes().replace(b"one", b"onf")[:-3])
    with shared() as store:
        assert store.get("ab") == {} and "1 rows are damaged" in capsys.readouterr().err
        store.add({"a": "one", "b": "two"})
        assert store.get("ab") == {"a": "one", "b": "two"}
    assert "1 lines are damaged" in capsys.readouterr().err, "the half line, which then ended"
    with shared() as store:
        assert store.get("ab") == {"a": "one", "b": "two"}


def test_what_sqlite_has_not_moved_from_its_log_is_found_from_journals(tmp_path):
    with Kept(tmp_path / "first.sqlite") as store:
        store.add({"a": 1})
        for ending in "", "-wal":  # the files that a killed process leaves
            shutil.copy(tmp_path / f"first.sqlite{ending}", tmp_path / f"kept.sqlite{ending}")
    (tmp_path / "kept.sqlite.journals").mkdir()
    with Kept(tmp_path / "kept.sqlite") as store:
        store.add({"b": 2})
        assert store.get(store.present()) == {"a": 1, "b": 2}
