"""Tests how a generated function is inserted in place of the reference. The first line, the
decorators and the indentation stay those of the reference, and strings are not changed.
"""

import ast

import pytest
from doors import quick
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.toolgen.source import insert, is_empty, location_of, reindent

FILE = '''import os

class C:
    @property
    # why
    def f(self):
        """Say.

        More."""
        return os.sep  # é

    async def g(self, a,
                b=1):
        @wraps(a)
        def inner():
            pass
        return inner

def short(x): return x

def beside(x):
    """Say.
    More."""; return x
'''

PLACE = location_of(FILE, 6)


@pytest.mark.parametrize("line", [6, 12, 19, 21])
def test_the_reference_in_its_own_place_changes_nothing(line):
    place = location_of(FILE, line)
    whole = "\n".join(FILE.split("\n")[line - 1 : place.end_line])
    assert insert(FILE, place, whole).text == FILE
    text = insert(FILE, place, place.body).text
    # a body that begins on the line of the signature or docstring gets a line of its own
    assert (text == FILE) == (line < 19) and ast.dump(ast.parse(text)) == ast.dump(ast.parse(FILE))


WHOLE = "def f(self):\n    return 1"


@pytest.mark.parametrize(
    "answer",
    [
        "return 1",
        "        return 1",
        WHOLE,
        "    def f(self):\n        return 1",
        f"\n@property\n{WHOLE}",
        WHOLE.replace("\n", "\r\n"),
        "x = 1\n        return 1",  # models often omit the first indentation
        "if x:\n            return 2\n        return 1",
        "```python\n        return 1\n```",
        "```python\n        return 1\n```\n```python\n",
        "```\r\nx = 1\r\n        return 1",
        f"~~~\n{WHOLE}\n~~~\nIt returns one.",
        f"```\nC().f()\n```\nCode:\n```py\n{WHOLE}\n```\n```\nprint(1)\n```",
        f"<think>\ndef f(self):\n    return 0\n</think>\n{WHOLE}",
        f"Sure, here it is:\n\n@property\n{WHOLE}\n\nThis returns one.",
        "Words here.\n\ndef f(\n    self,\n):\n    x = 1\n#   x = 2\n    return 1\n\nMore words.",
        "Here is the body:\n\n        return 1\n\nIt returns one.",
        f"\ufeff\f{WHOLE}",
        f"import os\n\nX = 1\n\n\n@wraps(\n    X\n)\n{WHOLE}\n\nprint(f(X))",
        "```py\nclass C:\n    def f(self):\n        return 1\n\n\nself = C()\nself.f()\n```",
        'class C:\n    def f(self):\n        x = """\na\n"""\n        return 1\n\n    x = 1',
        f"@overload\ndef f(self): ...\n{WHOLE}",
        f"Here it is:\n\n@overload\ndef f(self): ...\n{WHOLE}",
    ],
)
def test_code_is_taken_out_of_an_answer_and_indented_as_the_place_wants(answer):
    function = ast.parse(insert(FILE, PLACE, answer).text).body[1].body[0]
    assert ast.unparse(function.body[-1]) == "return 1" and len(function.decorator_list) == 1


@pytest.mark.parametrize("last", ["return f", "yield f", "self.f = f"])
def test_a_body_that_uses_a_function_of_its_own_name_is_a_body(last):
    answer = f"x = 1\ndef f():\n    return x\n{last}"
    assert insert(FILE, PLACE, answer).body == reindent(answer, "        ")


@pytest.mark.parametrize(
    "answer",
    [
        "x = = 1\n        return 1",
        'x = """\n```\nreturn 1\n```\n"""',
        "```\nreturn (\n```",
        "`return 1`",
    ],
)
def test_of_any_other_answer_nothing_is_left_out(answer):
    body = insert(FILE, PLACE, answer).body
    assert "".join(body.split()) == "".join(answer.split())


@pytest.mark.parametrize(
    ("answer", "shift", "parses"),
    [
        ("            x = 1\n        return x", "", False),
        ("x = 1\nreturn x", "", False),
        (f"{WHOLE}\nprint(1)", "", False),
        (WHOLE, "", False),
        ("```\n        return 1\n```", "", False),
        ("    def f(self):\n        return 1", "", True),
        (WHOLE, "    ", True),  # the answer of a model that writes without indentation
        ("    return 1", "    ", True),
        ("    x = 1\n      return x", "    ", False),
    ],
)
def test_the_package_leaves_the_indentation_as_it_is(answer, shift, parses):
    text = insert(FILE, PLACE, answer, shift).text
    try:
        assert ast.parse(text) and parses
    except SyntaxError:
        assert not parses


@pytest.mark.parametrize("shift", [None, ""])
@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# pylint: skip-file", ""),
        ("#pylint:disable-all", ""),
        ("# noqa  # pylint: disable-next=E0602", ""),
        ("# linted", "# linted"),
        ("'# pylint: skip-file'", "'# pylint: skip-file'"),
    ],
)
def test_an_answer_loses_its_comments_for_pylint_and_the_file_keeps_its_own(comment, left, shift):
    text = FILE.replace("# why", "# pylint: disable=E0602")
    inserted = insert(text, location_of(text, 6), f"        {comment}\n        return x", shift)
    assert inserted.text.split("\n")[9:11] == [f"        {left}", "        return x"]
    assert "# pylint: disable=E0602\n" in inserted.text


def test_an_empty_body_does_nothing():
    empty = "", "    pass", "...", "    'doc'", "# no", "pass\n...  # no", "return", "return None"
    assert all(map(is_empty, empty))
    assert not any(map(is_empty, ("return 0", "raise E", "x = ", "yield", "'a' + b")))


def test_the_inside_of_a_string_is_not_moved():
    body = 'x = """a\n b\nc"""\nif x:\n    return x'
    assert reindent(body, "    ") == '    x = """a\n b\nc"""\n    if x:\n        return x'


def test_a_broken_function_is_inserted_as_it_is():
    *_, whole, body = insert(FILE, PLACE, "def f(self):\n    return foo(")
    assert whole == "    def f(self):\n        return foo(" and body == "        return foo("


@given(st.text(max_size=80))
def test_any_prediction_leaves_the_rest_of_the_file_alone(prediction):
    inserted = insert(FILE, PLACE, prediction)
    lines = inserted.text.split("\n")
    assert lines[:5] == FILE.split("\n")[:5] and lines[inserted.end_line :] == FILE.split("\n")[10:]


def test_blank_lines_in_an_answer_take_time_in_proportion_to_their_number():
    with quick():
        assert insert(FILE, PLACE, "`" + "\n" * 30_000 + "x").body.endswith("x")
