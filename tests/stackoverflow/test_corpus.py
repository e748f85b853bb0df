"""Tests how snippets and queries are read: from a file, from a folder of code, or from a corpus
that the kit knows by name.
"""

import os

import pytest
from doors import refused

from lookuplab import paths
from lookuplab.stackoverflow import corpus

LINE = {"id": "1", "description": "Add two numbers", "code": "a + b"}


def test_the_published_fields_are_read_as_the_schema(written_file):
    file = written_file(
        {"id": 7, "code": "x", "description": "d", "attribution": ["so.com", "so.com/a/7"]}, ""
    )
    assert corpus.load_snippets(file) == [corpus.Snippet("7", "d", "x", "so.com/a/7")]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (LINE | {"id": "2", "description": ""}, "line 2: a snippet needs"),
        (LINE | {"id": None}, "line 2: a snippet needs"),
        (LINE | {"id": "2", "description": None}, "line 2: a snippet needs"),
        (LINE | {"id": "2", "code": ["a", "b"]}, "line 2: a snippet needs"),
        ("{", "line 2: "),
        ("[]", "line 2: not an object"),
        (LINE, "2 snippets with 1 ids"),
    ],
)
def test_a_bad_line_is_named(written_file, bad, said):
    with refused(said):
        corpus.load_snippets(written_file(LINE, bad))


def test_an_unknown_corpus_is_told_what_there_is():
    with refused(r"no snippet corpus 'nowhere': name one of mini, .*so-ds"):
        corpus.load_snippets("nowhere")


def test_a_corpus_that_was_not_fetched_says_how(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DOWNLOADS", tmp_path)
    with refused("lookuplab data get so-ds-snippets"):
        corpus.load_snippets("so-ds")


def test_a_folder_gives_its_documented_functions_without_their_docstrings(tmp_path):
    folder = tmp_path / os.fsdecode(b"inner\xff")
    folder.mkdir()
    (folder / "a.py").write_text(
        'def f(x):\n    """Add one.\n\n    More."""\n    return x + 1\n\ndef g():\n    pass\n'
    )
    (tmp_path / "old.py").write_text("print 'Python 2'\n")
    (tmp_path / "deep.py").write_text("x = 1" + " + 1" * 5000)
    place = r"inner\xff/a.py"  # the undecodable byte is escaped
    assert corpus.load_snippets(tmp_path) == [
        corpus.Snippet(f"{place}:1", "Add one.", "def f(x):\n    return x + 1", place)
    ]


def test_equal_questions_are_one_query_with_all_their_snippets(written_file):
    asked = {"q": ["a", "b"], "p": [3]}
    lines = [{"query": text, "relevant_ids": ids} for text, ids in asked.items()]
    file = written_file(*lines, {"query": "q", "relevant_ids": ["b", "c"]})
    found = [(one.text, one.relevant) for one in corpus.queries(file)]
    assert found == [("q", ("a", "b", "c")), ("p", ("3",))]


def test_a_quarter_of_a_file_s_queries_is_for_validation(written_file):
    file = written_file(*({"query": f"q{number}", "relevant_ids": ["a"]} for number in range(200)))
    valid, test, every = (corpus.queries(file, split) for split in ("valid", "test", ""))
    assert {*valid, *test} == {*every} and not {*valid} & {*test} and 35 <= len(valid) <= 65


NO_QUERIES = """\
 | has no queries
{"query": "q"} | line 1 is not a query
{"query": "q", "relevant_ids": []} | line 1 is not a query
{"query": "q", "relevant_ids": "ab"} | line 1 is not a query
{"query": "q", "relevant_ids": 3} | line 1 is not a query
{"query": ["q"], "relevant_ids": ["a"]} | line 1 is not a query
{"query": " ", "relevant_ids": ["a"]} | line 1 is not a query
{"query": "q", "relevant_ids": ["a", null]} | line 1 is not a query"""


@pytest.mark.parametrize("case", NO_QUERIES.splitlines())
def test_what_is_no_query_and_a_file_without_queries_are_refused(tmp_path, case):
    line, words = case.split(" | ")
    (tmp_path / "q.jsonl").write_text(line)
    with refused(words):
        corpus.queries(tmp_path / "q.jsonl")


def test_relevant_ids_that_no_snippet_has_are_said_and_out_of_the_rate(capsys):
    snippets = [corpus.Snippet(id, "d", "c") for id in "ab"]
    wanted = [("a", "x"), ("y", "z", "w"), ("b",)]
    asked = [corpus.Query(str(at), "q", ids) for at, ids in enumerate(wanted)]
    left = corpus.answerable(asked, snippets)
    assert [(one.id, one.relevant) for one in left] == [("0", ("a",)), ("2", ("b",))]
    assert capsys.readouterr().err == (
        "warning: queries: 4 of 6 relevant ids are not in the corpus (x, y, z, ...); "
        "left out: 1 of 3 queries\n"
    )
    assert corpus.answerable(left, snippets) == left and not capsys.readouterr().err
    with refused(r"3 of 3 relevant ids are not in the corpus \(y, z, w\)"):
        corpus.answerable(asked[1:2], snippets)
