"""What is read from docstrings, on docstrings that can be read by hand."""

from lookuplab.mini.docstrings import Example, documented, examples, plain, sections, sentences

DOC = """Add numbers.

The sum is taken over the given axis. See [1]_ for `numpy.add`:

    an indented block is no prose

Returns
-------
total : float
    The sum of all elements.

Examples
--------
>>> a = np.array([1, 2])
>>> b = 5
>>> add(a)  # doctest: +SKIP
3

With an axis that counts from the end:

>>> b = 7
>>> a[0] = 9
>>> for x in a:
...     print(x + b)
16
9
"""


def test_each_example_stands_alone_behind_what_it_needs():
    assert examples(DOC) == [
        Example("", "import numpy as np\na = np.array([1, 2])\nb = 5\nadd(a)"),
        Example("With an axis that counts from the end:",
                "import numpy as np\na = np.array([1, 2])\nb = 7\na[0] = 9\nfor x in a:\n    print(x + b)"),
    ]


def test_a_session_that_does_not_parse_gives_no_example():
    assert examples(">>> f(\n3\n") == examples(">>>f()\n") == examples("no session") == []


def test_sections_are_found_by_their_underlines():
    assert list(sections(DOC)) == ["", "returns", "examples"]
    assert sections(DOC)["returns"].split() == "total : float The sum of all elements.".split()


def test_sentences_are_prose_without_markup():
    assert sentences(sections(DOC)[""]) == ["The sum is taken over the given axis."]
    assert sentences("Use i.e. ``this`` one here. No more.\n\n- a list of more words\n\n.. note:: one two three") == [
        "Use i.e. this one here."]


def test_markup_is_taken_off():
    assert plain(":func:`~a.b` of `x`, :ref:`the guide <guide>`\n and **bold** [2]_") == "a.b of x, the guide and bold"


def test_public_objects_of_a_library_come_by_their_shortest_names():
    found = {item.name: item for item in documented("numpy")}
    assert {"numpy.sort", "numpy.sin", "numpy.linalg.norm"} <= set(found)  # a function, a ufunc, one of a module
    assert "numpy.abs" in found and "numpy.absolute" in found["numpy.abs"].names
    assert not [name for name in found if "._" in name or ".tests" in name]
    assert [*found] == sorted(found)
