"""Tests how functions are read from a repository. Their text and positions are exact. The
replication package's filters apply, and every function that is left out has a reason.
"""

import json
import os
import sys
import textwrap

import pytest
from doors import refused

from lookuplab import paths, python_sources
from lookuplab.toolgen.functions import (
    Filters,
    extract,
    first_sentence,
    locate,
    locate_all,
    package_docstring,
    without_comments,
)
from lookuplab.toolgen.rules import PACKAGE_RULES

PLAIN = """def plain(a, b):
    '''Add the two given numbers.'''
    total = a + b
    return total
"""


F = "def f(a):\n    '''One two three.'''\n"


def take(folder, text, **limits):
    content = text if isinstance(text, bytes) else text.encode()
    (folder / "module.py").write_bytes(content)
    return extract(folder, Filters(**limits))


def test_a_plain_function_is_taken_apart_exactly(tmp_path):
    [function] = take(tmp_path, "import os\n\n" + PLAIN).functions
    assert function.id == f"{tmp_path.name}/module.py:plain#3"
    assert (function.line, function.end_line, function.body_line, function.indent) == (3, 6, 5, "")
    assert function.docstring == "Add the two given numbers."
    assert function.code == "def plain(a, b):\n    total = a + b\n    return total"
    assert function.source + "\n" == PLAIN


TRICKY = '''class Outer:
    @property
    @staticmethod
    async def method(x: dict[str, int] = {"a:b": 1}, *, f=lambda y: y) -> "A: B":
        """Do all of this. Then more."""
        text = """first
    second
        third"""
        def nested(z):
            \'\'\'Return the wert größer ü of it.\'\'\'
            größe = z; return größe + len(text)
        return nested(x)  # behind

if True:
    try:
        def branch(q):
            "Answers in a branch here"
            # a comment
            r = q
            return r
    except ValueError:
        pass
'''


def test_methods_nested_async_decorated_and_branch_functions_are_found_with_their_places(tmp_path):
    found = take(tmp_path, TRICKY).functions
    names = [function.id.partition(":")[2] for function in found]
    assert names == ["Outer.method#4", "Outer.method.nested#9", "branch#16"]
    method, nested, branch = found
    assert method.indent == "    " and method.docstring == "Do all of this."
    signature = 'async def method(x: dict[str, int] = {"a:b": 1}, *, f=lambda y: y) -> "A: B":'
    assert method.signature == signature
    assert '"""first\n    second\n        third"""' in method.body, "a string was dedented"
    assert method.body.endswith("    return nested(x)")
    assert nested.body == "    größe = z; return größe + len(text)"
    assert [t[:2] for t in nested.tokens if t.text == "größe"] == [(11, 12), (11, 30)]
    assert branch.body == "    # a comment\n    r = q\n    return r"


@pytest.mark.parametrize("ending", ["\r\n", "\r", "\n"])
def test_line_ends_byte_order_marks_and_encodings_change_nothing(tmp_path, ending):
    text = PLAIN.replace("total", "größe")
    marked = b"\xef\xbb\xbf" + text.replace("\n", ending).encode()
    declared = ("# coding: latin-1\n" + text).encode("latin-1")
    for line, content in enumerate((marked, declared), 1):
        [function] = take(tmp_path, content).functions
        assert function.source + "\n" == text and function.line == line


def test_tabs_form_feeds_and_other_separators_do_not_shift_positions(tmp_path):
    method = textwrap.indent(PLAIN, "\t")
    [function] = take(tmp_path, f"x = 'a\x0cb\u2028c'\n\x0c\nclass A:\n{method}").functions
    assert function.line == 4 and function.indent == "\t"
    assert function.source + "\n" == PLAIN
    assert [t[:2] for t in function.tokens if t.text == "total"] == [(6, 5), (7, 12)]


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_form_feed_on_the_line_of_a_def_changes_no_indentation(tmp_path, indent):
    method = textwrap.indent(PLAIN, indent)
    [function] = take(tmp_path, f"class A:\n    x = 1\n\x0c{method}").functions
    assert function.source + "\n" == PLAIN


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(a):\n    return a\n", "no docstring"),
        (PLAIN.replace("plain", "test_f"), "name begins with test_"),
        (F + "    raise NotImplementedError('x')\n", "body does nothing"),
        (F, "body does nothing"),
        ("def f(a):\n    '''One two.'''\n    return a\n", "not 3 to 256 words of docstring"),
        (
            "def f(a):\n    '''1 two three.'''\n    return a\n",
            "docstring does not begin with a letter",
        ),
        ("def f(a): 'One two three.'; return a\n", "docstring shares its line with code"),
        (F + "    a += 1\n" * 50, "not 2 to 50 lines"),
        (F + "    return [" + "a, " * 260 + "]\n", "not 0 to 512 Python tokens"),
    ],
)
def test_a_function_that_is_left_out_is_counted_with_its_reason(tmp_path, text, reason):
    result = take(tmp_path, text)
    assert not result.functions and result.left_out == {f"function: {reason}": 1}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"def f(:\n", "does not parse"),
        (b"x = 1\0", "cannot be read" if sys.version_info >= (3, 14) else "does not parse"),
        (b"# coding: rot13\n", "cannot be read"),
        (b"# coding: utf-16\n", "cannot be read"),
        (b"x = '\xff'\n", "cannot be read"),
        (b"#" * 10_000_000, "more than 1000000 bytes"),
        (b"x = 1\n" * 1001, "more than 1000 lines"),
        (b"(" * 5000, "does not parse"),
    ],
)
def test_a_file_that_is_left_out_is_counted_and_the_others_are_read(tmp_path, content, reason):
    (tmp_path / "good.py").write_text(PLAIN)
    result = take(tmp_path, content)
    assert len(result.functions) == 1 and result.files == 2
    assert result.left_out == {f"file: {reason}": 1}
    assert take(tmp_path, PLAIN, max_files=1).left_out == {"repository: more than 1 files": 1}
    empty = {"repository: no Python file that can be read": 1}
    assert extract(tmp_path / "none").left_out == empty


def test_a_file_whose_name_is_not_utf_8_is_left_out(tmp_path):
    (tmp_path / os.fsdecode(b"\xe9.py")).write_text(PLAIN)
    assert take(tmp_path, "").left_out == {"file: its path is not UTF-8": 1}


def test_the_first_sentence_ends_at_a_full_stop_or_an_empty_line():
    assert first_sentence("Read v1.5 files\n    at once. Then close.") == "Read v1.5 files at once."
    assert first_sentence("\n    Read it\n\n    Really.") == "Read it"


def test_a_docstring_of_the_package_ends_where_its_rules_say():
    cases = {
        "Read it. Then close.": "Read it",
        "Read\n  it.\n\n  Really.": "Read it.",
        "Read it\n    :param x: y": "Read it",
        "Read it\n    Really": "Read it",
    }
    assert list(map(package_docstring, cases)) == list(cases.values())


@pytest.mark.parametrize(
    "docstring",
    """Note what it says here
We read it all
returns: all of it
Is it all so?
See https://x for more
Read a=b of it
Read it -- or not
Read xxxxxxxxxxxxxxxxxxxxxxxxxx of it""".splitlines(),
)
def test_some_docstrings_are_refused_by_the_package_alone(tmp_path, docstring):
    text = PLAIN.replace("Add the two given numbers.", docstring)
    assert len(take(tmp_path, text).functions) == 1
    refused = {"function: docstring that the package refuses": 1}
    assert take(tmp_path, text, rules=PACKAGE_RULES).left_out == refused


def test_a_function_that_was_asked_for_before_or_in_training_is_left_out(tmp_path):
    assert [one.line for one in take(tmp_path, PLAIN + "\n\n" + PLAIN).functions] == [1]
    line = {"docstring": "Add the two given numbers.", "signature": "def plain(a,\n b):"}
    paths.write_lines(corpus := tmp_path / "c.jsonl", [json.dumps(line)])
    found = take(tmp_path, PLAIN, trained_on=str(corpus))
    assert not found.functions
    assert found.left_out == {"function: same docstring and signature as another": 1}


def test_without_comments_there_are_no_blank_lines_and_strings_keep_their_signs():
    text = "    # a\n    x = '#'  # b\n\n    y = [  # c\n        x]"
    assert without_comments(text) == "    x = '#'  \n    y = [  \n        x]"


def test_packages_among_the_sources_are_found_by_import_name_and_nothing_else_is():
    assert locate("click") == (python_sources.folder() / "click").resolve()
    with refused("neither a folder nor a package among the sources"):
        locate("no_such_package_here")


def test_a_folder_s_star_stands_for_the_folders_in_it(tmp_path):
    for name in ("b", "a", ".hidden"):
        (tmp_path / name).mkdir()
    found = locate_all(["click", f"{tmp_path}/*"])
    assert found == [locate("click"), tmp_path / "a", tmp_path / "b"]
    with refused("has no folders"):
        locate_all([f"{tmp_path}/a/*"])
