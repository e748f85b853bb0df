"""Words of names, questions and code by hand."""

import pytest

from lookuplab.retrieval.words import code_words, identifier_words, query_words


@pytest.mark.parametrize(("name", "words"), [
    ("__init__", ["init"]), ("getHTTPResponse", ["get", "http", "response"]), ("_", []), ("read_csv", ["read", "csv"]),
    ("x12", ["x"]), ("DataFrame", ["data", "frame"]), ("B", ["b"]), ("2", []), ("float64", ["float"]),
    ("log2p_", ["log2p"]), ("XMLFile", ["xml", "file"]),
])
def test_identifiers_are_split_and_lose_their_last_digits(name, words):
    assert identifier_words(name) == words


def test_a_question_loses_its_how_to_its_stop_words_and_its_numbers():
    assert query_words("How to sort a DataFrame by 2 columns?") == ["sort", "data", "frame", "columns"]
    assert query_words("how do I use read_csv?") == ["use", "read", "csv"]
    assert query_words("How can I?") == []


def test_code_keeps_comments_identifiers_loops_and_binary_operators():
    code = "import numpy as np\n# sum the rows\nfor row in table:\n    total = row.sum(axis=1) + 2 * 'text'\n"
    assert code_words(code) == ["numpy", "np", "sum", "rows", "for", "row", "table", "total", "row", "sum", "axis",
                                "+", "*"]


def test_docstrings_literals_and_other_punctuation_are_dropped():
    code = 'def f(*args):\n    """Docs of it."""\n    if not args[0] == -1.5:\n        return "s", None\n'
    assert code_words(code) == ["f", "args", "args"]


def test_code_that_does_not_parse_gives_the_words_of_its_parts():
    assert "frame" in code_words("print frame\nx = = frame.mean(")
    assert code_words("") == []


def test_deep_code_is_no_recursion_error():
    assert code_words("x = " + "+".join(["a"] * 3000)).count("a") == 3000
