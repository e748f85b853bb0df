"""Tests the success rate: a function passes if pylint reports none of three errors in it. A worker
that has checked other code must give the same messages as a new process.
"""

import shutil

import pytest

from lookuplab.paths import write_text
from lookuplab.toolgen import analysers
from lookuplab.toolgen.analysers import WorkerLost
from lookuplab.toolgen.evaluation import messages_of, relevant_messages
from lookuplab.toolgen.rules import PACKAGE_2023_RULES, PACKAGE_RULES, PAPER_RULES
from lookuplab.toolgen.source import Inserted, insert, location_of
from lookuplab_notebooks.performance.literal import fresh_messages

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
    ("Other().late = 1\n        return x", None),
    ("return self.a", None),
    ("return nothere", "E0602"),
    ("return self.zzz", "E1101"),
    ("return not_installed_anywhere.thing(x)", None),
    # the parent of all workers has parsed these two modules
    ("import dataclasses\n        return dataclasses.nothere(x)", "E1101"),
    ("import typing\n        return typing.NamedTuple('N', [])().count(x)", None),
    ("return foo(x", "E0001"),  # pylint reports it on the next line
]


WHOLE = 1, 999


def replaced(body, text=USER):
    return insert(text, location_of(text, 6), body)


def against(root, inserted):
    """Return the messages of pylint for which an inserted function fails."""
    lines = inserted.line, inserted.end_line
    return relevant_messages(messages_of(root, "user.py", inserted.text, lines), inserted)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("a repository")
    (root / "base.py").write_text(BASE)
    (root / "user.py").write_text(USER)
    return root


@pytest.mark.parametrize(("body", "error"), CASES)
def test_a_method_with_an_imported_base_passes_or_fails_as_a_fresh_pylint_says(
    repository, tmp_path, body, error
):
    """In the first case, the code sets an attribute of a class in another module. The other cases
    must not see this attribute.
    """
    shutil.copytree(repository, copy := tmp_path / "copy")
    inserted = replaced("        " + body)
    (copy / "user.py").write_text(inserted.text)
    fresh = fresh_messages(copy, "user.py")
    assert messages_of(repository, "user.py", inserted.text, WHOLE) == fresh
    found = against(repository, inserted)
    assert found == relevant_messages(fresh, inserted)
    assert {name for name, *_ in found} == {error} - {None}


def test_what_the_original_file_did_to_other_modules_is_undone(tmp_path):
    """One of the other modules, base.py, imports the original file."""
    (tmp_path / "base.py").write_text(BASE + "\n\nimport user\n\nuser.C.own = user.C().g()\n")
    original = USER.replace("        return x\n", "        Other.late = 1\n        return x\n", 1)
    (tmp_path / "user.py").write_text(original)
    inserted = replaced("        return x", original)
    for text, errors in (original, []), (inserted.text, ["E1101"]), (original, []):
        found = messages_of(tmp_path, "user.py", text, WHOLE)
        assert [name for name, *_ in found] == errors
    assert not against(tmp_path, inserted)  # the error is outside of the function


def test_what_a_module_gives_to_another_is_there_only_for_texts_that_import_it(tmp_path):
    for name, text in {
        "owner": "class Owner:\n    pass\n",
        "giver": "from owner import Owner\n\nOwner.gift = 1\n",
        "friend": "import giver\n\n\ndef f():\n    return giver.Owner().gift\n",
        "stranger": "from owner import Owner\n\n\ndef f():\n    return Owner().gift\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    for name, passes in {"stranger.py": False, "friend.py": True}.items():
        found = messages_of(tmp_path, name, (tmp_path / name).read_text(), WHOLE)
        assert found == fresh_messages(tmp_path, name) and passes != bool(found)


def test_a_syntax_error_counts_for_the_paper_anywhere_and_the_packages_look_further():
    """The function has the lines 5 to 7. The paper's rules count a syntax error anywhere, because
    pylint may report it on a line after the function. The packages' rules also read one line (2023)
    or two lines (2024) after the function. A crash of pylint (F0002) always counts.
    """
    messages = [["E0602", line, "why"] for line in range(4, 12)]
    messages += [["E0001", 20, "why"], ["F0002", 21, "why"], ["E1120", 6, "why"]]
    for rules, lines in (
        (PAPER_RULES, [5, 6, 7, 20, 21]),
        (PACKAGE_2023_RULES, [5, 6, 7, 8, 21, 6]),
        (PACKAGE_RULES, [5, 6, 7, 8, 9, 21]),
    ):
        found = relevant_messages(messages, Inserted("", 5, 7, "", ""), rules)
        assert [line for _, line, _ in found] == lines


CRASH = """
import sys
from pathlib import Path
from lookuplab.toolgen import success

success.WarmLinter.check_astroid_module = lambda *_, **__: 1 / 0
success.linter().warm_up(*(question := (Path(sys.argv[1]), "user.py", [], sys.argv[2], (1, 999))))
print(success.findings(*question))
"""


def test_a_crash_of_pylint_is_said(tmp_path, repository, monkeypatch, run_python):
    monkeypatch.setenv("PYLINTHOME", str(tmp_path))  # pylint writes its crash report there
    found = eval(run_python(CRASH, repository, USER).splitlines()[-1])
    assert [name for name, *_ in found] == ["F0002"]


def test_a_check_that_takes_too_long_is_lost_and_the_next_one_is_answered(repository, monkeypatch):
    inserted = replaced("        return x")
    with monkeypatch.context() as hurried:
        hurried.setattr(analysers, "LIMIT", 1e-4)
        with pytest.raises(WorkerLost, match="timed out"):
            against(repository, inserted)
    assert not against(repository, inserted)


def test_a_wrong_name_of_a_namespace_package_fails(tmp_path):
    """Without ``__init__.py``, modules are looked up in the repository's root or in its ``src``."""
    for root in (tmp_path / "flat", tmp_path / "nested" / "src"):
        for name, text in {"core/tools.py": "right = 1\n", "app/main.py": ""}.items():
            write_text(root / "acme" / name, text)
    for file in "flat/acme/app/main.py", "nested/src/acme/app/main.py":
        repository, _, inner = file.partition("/")
        for member, errors in ("right", []), ("wrong", ["E1101"]):
            text = f"from acme.core import tools\n\n\ndef f():\n    return tools.{member}\n"
            found = messages_of(tmp_path / repository, inner, text, WHOLE)
            assert [name for name, *_ in found] == errors
