"""A generated function takes the reference's place: by line, with decorators, indentation and
strings as they are.
"""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.errors import UserError
from lookuplab.toolgen.insertion import function_of, indented, insert, location_of

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
'''


def test_a_function_is_found_by_the_line_of_its_def_and_taken_apart():
    place = location_of(FILE, 6)
    assert (place.name, place.line, place.end_line, place.body_line) == ("f", 6, 10, 10)
    assert place.header == '    def f(self):\n        """Say.\n\n        More."""'
    assert place.body == "        return os.sep  # é"


def test_a_body_that_begins_with_a_decorated_function_begins_with_its_decorator():
    assert location_of(FILE, 12).body.startswith("        @wraps(a)")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [(FILE, 5, "no function starts on line"), ("def f(:\n", 1, "does not parse")],
)
def test_where_no_function_is_found_a_line_says_why(text, line, problem):
    with pytest.raises(UserError, match=problem):
        location_of(text, line)


@pytest.mark.parametrize("line", [6, 12, 19])
def test_the_reference_in_its_own_place_changes_nothing(line):
    place = location_of(FILE, line)
    whole = "\n".join(FILE.split("\n")[line - 1 : place.end_line])
    assert insert(FILE, place, whole).text == FILE
    if line != 19:
        assert insert(FILE, place, place.body).text == FILE


@pytest.mark.parametrize(
    "prediction",
    [
        "return 1",
        "        return 1",
        "def f(self):\n    return 1",
        "    def f(self):\n        return 1",
        "\n@property\ndef f(self):\n    return 1",
        "def f(self):\r\n    return 1",
    ],
)
def test_bodies_and_whole_functions_are_indented_as_the_place_wants(prediction):
    inserted = insert(FILE, location_of(FILE, 6), prediction)
    tree = ast.parse(inserted.text)
    function = tree.body[1].body[0]
    assert ast.unparse(function.body[-1]) == "return 1" and len(function.decorator_list) == 1
    assert (function.lineno, function.end_lineno) == (inserted.line, inserted.end_line)


def test_a_function_of_another_name_stands_for_itself_and_one_within_a_body_does_not():
    place = location_of(FILE, 6)
    whole, body = function_of(place, "def other(\n    self,\n):\n\n    return 1")
    assert whole == "    def other(\n        self,\n    ):\n\n        return 1"
    assert body == "    return 1"
    for nested in (
        "def inner():\n    return 1\nreturn inner",
        "    def inner():\n        return 1",
    ):
        assert function_of(place, nested)[0].startswith(place.header)


def test_a_body_behind_a_function_of_one_line_goes_on_the_next_line():
    assert insert(FILE, location_of(FILE, 19), "return 2").text.endswith(
        "def short(x):\n    return 2\n"
    )


def test_the_inside_of_a_string_is_not_moved():
    body = 'x = """a\n b\nc"""\nif x:\n    return x'
    assert indented(body, "    ") == '    x = """a\n b\nc"""\n    if x:\n        return x'


def test_a_broken_function_is_inserted_as_it_is():
    place = location_of(FILE, 6)
    whole, body = function_of(place, "def f(self):\n    return foo(")
    assert whole == "    def f(self):\n        return foo(" and body == "        return foo("
    assert insert(FILE, place, "").text.split("\n")[8:11] == ['        More."""', "", ""]


@given(st.text(max_size=80))
def test_any_prediction_leaves_the_rest_of_the_file_alone(prediction):
    inserted = insert(FILE, location_of(FILE, 6), prediction)
    lines = inserted.text.split("\n")
    assert lines[:5] == FILE.split("\n")[:5] and lines[inserted.end_line :] == FILE.split("\n")[10:]
