"""Tests Algorithm 1 with the real Jedi, on the paper's Figure 4 and on cases marked by hand. Also
tests the marked corpus, its statistics, and a file that has only the positions of marks.
"""

import json
from dataclasses import replace
from unittest.mock import patch

import pytest
from doors import call
from scripted_model import BASE

from lookuplab.toolgen import jedi_tool, marking
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.marking import augmented, find_marks, marked_records
from lookuplab.toolgen.rules import PACKAGE_RULES, PAPER_RULES
from lookuplab_notebooks.toolgen.marked import (
    by_repository,
    name_contexts,
    offered_rows,
    queries,
    statistics_rows,
)


def pair(folder, text, tool, rules=PAPER_RULES):
    (folder / "module.py").write_text(text, encoding="utf-8")
    [function] = extract(folder).functions
    marks = find_marks(function, tool, rules)
    assert not marks["failures"]
    return augmented(function, marks["positions"], rules)


def test_figure_4(tmp_path, tool):
    (tmp_path / "base.py").write_text(BASE)
    text = (
        "from base import Base\n\nclass Layer(Base):\n    def register_updates(self, *updates):\n"
        '        """Register updates that are executed."""\n        for update in updates:\n'
        "            self._registered_updates.add(update)\n"
    )
    assert pair(tmp_path, text, tool).body == (
        "    for update in <COMP>updates:\n"
        "        self.<COMP>_registered_updates.<COMP>add(<COMP>update)"
    )


@pytest.mark.parametrize(
    "marked",
    [
        "raise ValueError(str(<COMP>n))",
        "return <COMP>n.__dict__",
        "größe = <COMP>n; return <COMP>größe",
        's = """n\n  n"""; return <COMP>n + <COMP>s',
        "return <COMP>n, f'{n} {n!r}'",  # an f-string is one token
        "d = {'n': 1}; return <COMP>d['n']",
        "return <COMP>helper(<COMP>alpha=<COMP>n)",
    ],
)
def test_marks_of_one_statement(tmp_path, tool, marked):
    text = "def helper(alpha):\n    return 1\n\ndef f(n):\n    '''Say what f does.'''\n    "
    assert pair(tmp_path, text + marked.replace("<COMP>", "") + "\n", tool).body == "    " + marked


def test_tabs_and_windows_line_ends_shift_no_mark_and_what_follows_defines_no_name(tmp_path, tool):
    text = (
        'class A:\r\n\tdef f(self, n):\r\n\t\t"""Say what f does."""\r\n\t\tself.later = n\r\n'
        '\t\tm = (n, """\r\n n""", n,\r\n\t\t\tn)\r\n\t\treturn self.later, m\r\n'
    )
    assert pair(tmp_path, text, tool).body == (
        '\tself.later = <COMP>n\n\tm = (<COMP>n, """\n n""", <COMP>n,\n\t\t<COMP>n)\n'
        "\treturn self.<COMP>later, <COMP>m"
    )


def test_the_package_skips_a_closed_list_and_marks_no_local_name_at_a_statements_start(
    tmp_path, tool
):
    text = (
        "SIZE = 1\n\ndef f(n=SIZE):  # why\n    '''Say what f does.'''\n    n.foo()  # so\n\n"
        "    # then\n    d = {'n': 1}\n    if d['n']:\n"
        "        raise Warning(dict(n=n), str, __name__, f.__doc__)\n"
    )
    paper = pair(tmp_path, text, tool)
    package = pair(tmp_path, text, tool, PACKAGE_RULES)
    assert paper.signature == package.signature == "def f(n=SIZE):"
    assert paper.body.startswith("    <COMP>n.foo()  # so\n\n    # then\n")
    assert paper.body.endswith(
        "raise Warning(dict(<COMP>n=<COMP>n), str, __name__, <COMP>f.__doc__)"
    )
    assert package.body == (
        "    n.foo()  \n    d = {'n': 1}\n    if <COMP>d[<COMP>'n']:\n"
        "        raise <COMP>Warning(dict(<COMP>n=<COMP>n), str, <COMP>__name__, <COMP>f.__doc__)"
    )
    assert len(marking.NEVER_MARKED) == 36 + 24 + 67 + 31


FUNCTION = (
    "def f{0}(a, b):\n    '''Do the thing number {0}.'''\n    total = a + b\n    return total\n\n"
)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "my repo"
    folder.mkdir()
    (folder / "good.py").write_text("".join(map(FUNCTION.format, range(4))))
    (folder / "bad.py").write_text("def (\n")
    return folder


@pytest.mark.usefixtures("own_store")
@pytest.mark.parametrize("is_machine", [False, True])
def test_the_command_goes_on_where_files_do_not_parse_and_jedi_crashes(
    repository, tmp_path, end_analyser, is_machine
):
    """The code of crash.py ends every process that reads it, and the command still succeeds. But if
    harmless code ends the process, too, the machine is at fault, and the command fails.
    """
    (repository / "crash.py").write_text(FUNCTION.format("").replace("thing", "thing that ended"))
    end_analyser(jedi_tool, "jedi_tool", "completions", "os.abort()" if is_machine else "0")
    file = tmp_path / "marked.jsonl"
    done = call("data", "mark", repository, "-o", file, "-j1")
    assert ("1 of 1 repositories have unanswered questions" in done.output) == is_machine
    assert done.exit_code == 2 * is_machine and "my repo/crash.py:f#" in done.stderr, done.output
    found = [json.loads(line)["marked_body"] for line in file.open()]
    assert "    total = a + b\n    return total" in found
    assert found.count("    total = <COMP>a + <COMP>b\n    return <COMP>total") == 4
    assert "file: does not parse" in done.output
    reason = "crashed" if is_machine else "error in Jedi: crashed 3 times"
    assert f"{4:>7}  call: {reason}\n" in done.output


def test_what_was_marked_once_is_kept_until_the_repository_changes(repository, tmp_path):
    functions = extract(repository).functions
    store = tmp_path / "marks"
    with patch.object(marking, "find_marks", wraps=find_marks) as asked:
        first = marked_records(functions[:3], workers=1, store=store)
        assert marked_records(functions, workers=1, store=store)[:3] == first
        (repository / "other.py").write_text("x = 1\n")
        marked_records(functions, workers=1, store=store)
    assert [call.args[0] for call in asked.call_args_list] == functions * 2


def test_saved_marks_laid_over_the_same_code_give_the_augmented_functions_again(
    repository, tmp_path
):
    functions = extract(repository).functions
    records = marked_records(functions, workers=1, store=":memory:")
    marking.write_marks(records[::-1], tmp_path / "marks.gz")
    saved = marking.read_marks(tmp_path / "marks.gz")
    assert repr(statistics_rows(saved, "x")) == repr(statistics_rows(records, "x"))
    found = marking.apply_marks(functions, saved)
    assert [one.body for one in found] == [record["marked_body"] for record in records]
    changed = [replace(functions[0], source="changed"), *functions[1:]]
    assert len(marking.apply_marks(changed, saved)) == 3


CODE = '''class Book:
    def __init__(self):
        self.größe = {}

    def write(self, text, *, times=1):
        """Write a text into this book."""
        from os import path
        größe = "ä"; self.größe[text] = dict(times=times, a=größe)
        for i in range(
times):
            text.foo.bar(self, i)
        return path
'''


def test_each_question_is_a_row_with_its_place_and_offered_iff_it_was_marked(tmp_path):
    (tmp_path / "book.py").write_text(CODE)
    [book] = extract(tmp_path).functions
    places = {
        "behind self.": ["größe"],
        "behind another dot": ["foo", "bar"],
        "before =": ["times", "größe", "]", "times", "a"],
    }
    contexts = name_contexts(book).items()
    for place, names in places.items():
        assert [token.text for token, found in contexts if found == place] == names
    [record] = records = marked_records([book], workers=1, store=":memory:")
    frame = queries([book], records)
    assert len(frame) == record["asked"] and frame.offered.sum() == record["marks"]
    rows = {row["condition"]: row["value"] for row in offered_rows(frame)}
    assert rows["evaluation/behind self."] == 100 and rows["evaluation/behind another dot"] == 0
    assert queries([book], [{**record, "failures": {"timed out": 1}}]).empty


def test_the_statistics_are_the_papers_five_numbers():
    records = [
        {"repository": name, "marks": marks, "docstring_tokens": 4, "function_tokens": 20}
        for name, marks in (("a", 2), ("b", 9), ("a", 4))
    ]
    *rows, marks = statistics_rows(records, "training")
    assert [row["value"] for row in rows] == [3, 2, 4, 20]
    assert (marks["value"], marks["n"], marks["clusters"]) == (5, 3, 2)
    assert list(by_repository(records).value) == [3, 9]
