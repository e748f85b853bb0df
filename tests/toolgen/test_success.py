"""Success rate: pylint's three errors inside the inserted function, warm and in a fresh process alike."""

import shutil
from contextlib import suppress

import pytest

from lookuplab.toolgen.analysers import WorkerLost
from lookuplab.toolgen.insertion import insert, locate
from lookuplab.toolgen.success import SuccessTool, fresh_messages, verdict

BASE = "class Base:\n    def __init__(self):\n        self.a = 1\n\n\nclass Other:\n    pass\n"
USER = """from base import Base, Other
import not_installed_anywhere


class C(Base):
    def f(self, x):
        return x

    def g(self):
        return Other().late


def last(x):
    return x
"""
CASES = [
    ("return self.a", None),
    ("return nothere", "E0602"),
    ("return self.zzz", "E1101"),
    ("return not_installed_anywhere.thing(x)", None),
    ("return foo(x", "E0001"),
    ("Other().late = 1\n        return x", None),
]


def against(tool, root, inserted, variant="paper"):
    """What pylint has against an inserted function: nothing, it passes."""
    lines = inserted.line, inserted.end_line
    return verdict(tool.judge(root, "user.py", inserted.text, lines), inserted, variant)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("a repository")
    (root / "base.py").write_text(BASE)
    (root / "user.py").write_text(USER)
    return root


@pytest.fixture(scope="module")
def tool():
    with SuccessTool() as warm:
        yield warm


@pytest.mark.parametrize(("body", "error"), CASES)
def test_a_method_with_an_imported_base_passes_or_fails_as_a_fresh_pylint_says(
    tool, repository, tmp_path, body, error
):
    """The last case gives a class of another module an attribute: it must be gone again for the others."""
    shutil.copytree(repository, copy := tmp_path / "copy")
    inserted = insert(USER, locate(USER, 6), "        " + body)
    (copy / "user.py").write_text(inserted.text)
    fresh = fresh_messages(copy, "user.py")
    assert tool.judge(repository, "user.py", inserted.text) == fresh
    found = against(tool, repository, inserted)
    assert found == verdict(fresh, inserted)
    assert {name for name, *_ in found} == {error} - {None}


@pytest.mark.parametrize("gift", ["Other().late = 1", "Other.late = 1"])
def test_what_the_original_file_did_to_other_modules_is_undone(tmp_path, gift):
    (tmp_path / "base.py").write_text(BASE)
    original = USER.replace("        return x\n\n", f"        {gift}\n        return x\n\n", 1)
    (tmp_path / "user.py").write_text(original)
    inserted = insert(original, locate(original, 6), "        return x")
    with SuccessTool() as warm:
        assert warm.judge(tmp_path, "user.py", original) == []
        assert [name for name, *_ in warm.judge(tmp_path, "user.py", inserted.text)] == ["E1101"]
        assert not against(warm, tmp_path, inserted)  # outside of the function
        assert warm.judge(tmp_path, "user.py", original) == []


def test_modules_of_the_same_name_in_two_folders_are_not_mixed_up(tool, repository, tmp_path):
    (tmp_path / "base.py").write_text(
        "class Other:\n    zzz = 1\n\n\nclass Base(Other):\n    pass\n"
    )
    (tmp_path / "user.py").write_text(USER)
    inserted = insert(USER, locate(USER, 6), "        return self.zzz")
    passed = [not against(tool, root, inserted) for root in (repository, tmp_path, repository)]
    assert passed == [False, True, False]


def test_a_syntax_error_reported_behind_the_function_fails_except_in_the_packages_window(
    tool, repository
):
    inserted = insert(USER, locate(USER, 9), "def g(self):")
    assert against(tool, repository, inserted) and not against(
        tool, repository, inserted, "package"
    )


def test_a_check_that_takes_too_long_is_lost_and_the_next_one_is_answered(repository):
    with SuccessTool(limit=0) as warm:
        inserted = insert(USER, locate(USER, 6), "        return x")
        with pytest.raises(WorkerLost, match="timeout"):
            against(warm, repository, inserted)
        warm.limit = 60
        assert not against(warm, repository, inserted)


def test_code_that_pylint_dies_of_is_lost_or_judged_and_the_next_one_is_answered(tool, repository):
    deep = "        return " + "(" * 150 + "x" + ")" * 150 + " + x" * 3000
    with suppress(WorkerLost):
        against(tool, repository, insert(USER, locate(USER, 6), deep))
    assert not against(tool, repository, insert(USER, locate(USER, 6), "        return x"))
