"""Snippets and queries from files, folders and names; bad lines in one clear line."""

import gzip
import json

import pytest

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.stackoverflow import corpus

LINE = {
    "id": "1",
    "description": "Add two numbers",
    "code": "a + b",
    "source": "mine",
    "licence": "MIT",
}


@pytest.fixture
def written(tmp_path):
    def write(*records, name="corpus.jsonl"):
        file = tmp_path / name
        lines = "".join(
            (one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records
        ).encode()
        file.write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
        return file

    return write


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_a_file_is_read_as_it_was_written(written, name):
    assert corpus.load(written(LINE, "", LINE | {"id": "2"}, name=name)) == [
        corpus.Snippet(**LINE),
        corpus.Snippet(**LINE | {"id": "2"}),
    ]


def test_the_published_fields_are_read_as_the_schema(written):
    file = written({"id": 7, "code": "x", "description": "d", "attribution": "so.com/a/7"})
    assert corpus.load(file) == [corpus.Snippet("7", "d", "x", "so.com/a/7", "")]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"id": "2", "description": "d"}, "line 2: a snippet needs"),
        (LINE | {"description": ""}, "line 2: a snippet needs"),
        ("{", "line 2: "),
        ("[]", "line 2: no JSON object"),
        (LINE, "2 snippets with 1 ids"),
    ],
)
def test_a_bad_line_is_named(written, bad, said):
    with pytest.raises(UserError, match=said):
        corpus.load(written(LINE, bad))


def test_an_unknown_corpus_is_told_what_there_is():
    with pytest.raises(UserError, match="no snippet corpus 'nowhere': name one of mini, .*so-ds"):
        corpus.load("nowhere")


def test_a_corpus_that_was_not_fetched_says_how(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DOWNLOADS", tmp_path)
    with pytest.raises(UserError, match="lookuplab data get so-ds-snippets"):
        corpus.load("so-ds")
    with pytest.raises(UserError, match="lookuplab data get staqc-test"):
        corpus.queries("staqc")


def test_a_folder_gives_its_documented_functions_without_their_docstrings(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.py").write_text(
        'def f(x):\n    """Add one.\n\n    More."""\n    return x + 1\n\ndef g():\n    pass\n'
    )
    (tmp_path / "old.py").write_text("print 'Python 2'\n")
    assert corpus.load(tmp_path) == [
        corpus.Snippet("inner/a.py:1", "Add one.", "def f(x):\n    return x + 1", "inner/a.py", "")
    ]


def test_equal_questions_are_one_query_with_all_their_snippets(written):
    file = written(
        {"query": "q", "relevant_ids": ["a", "b"]},
        {"query": "p", "relevant_ids": [3]},
        {"query": "q", "relevant_ids": ["b", "c"]},
    )
    assert corpus.queries(file) == [
        corpus.Query("0", "q", ("a", "b", "c")),
        corpus.Query("1", "p", ("3",)),
    ]


def test_writing_gives_the_same_bytes_and_reads_back(tmp_path):
    corpus.write(tmp_path / "a.jsonl.gz", [LINE])
    corpus.write(tmp_path / "b.jsonl.gz", [LINE])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert corpus.load(tmp_path / "a.jsonl.gz") == [corpus.Snippet(**LINE)]


def test_pages_are_shared_by_problems_and_problems_without_a_page_left_out(written):
    page, other = {"title": "lib.sort", "text": "Sort."}, {"title": "lib.mean", "text": "Mean."}
    lines = {1: [page], 2: [], "3": [other, page]}
    file = written(*({"problem_id": id, "docs": docs} for id, docs in lines.items()))
    documents, relevant = corpus.pages(file)
    assert [(one.id, one.description, one.code) for one in documents] == [
        ("lib.sort", "Sort.", ""),
        ("lib.mean", "Mean.", ""),
    ]
    assert relevant == {"1": ("lib.sort",), "3": ("lib.mean", "lib.sort")}
    with pytest.raises(UserError, match="line 2 is no problem"):
        corpus.pages(written({"problem_id": 1, "docs": [page]}, {"problem_id": 2}))
