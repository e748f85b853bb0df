"""Statistics of marked functions: where identifiers stand, which are offered, what the variants share."""

import json

import pandas as pd
import pytest

from lookuplab.toolgen import augmentation, marks
from lookuplab.toolgen.augmentation import (
    asked,
    by_repository,
    corpus_records,
    marked,
    offered_rows,
    only_one,
    places,
    statistics_rows,
    variant_rows,
)
from lookuplab.toolgen.files import locate
from lookuplab.toolgen.functions import extract

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


@pytest.fixture(scope="module")
def function(tmp_path_factory):
    folder = tmp_path_factory.mktemp("augmentation") / "books"
    folder.mkdir()
    (folder / "book.py").write_text(CODE)
    (one,) = extract(locate(str(folder))).functions
    return one


def at(function, place):
    return [token.text for token, found in places(function).items() if found == place]


def test_every_identifier_has_the_place_where_it_stands(function):
    assert at(function, "behind self.") == ["größe"]
    assert at(function, "behind another dot") == ["foo", "bar"]
    assert at(function, "keyword argument") == ["times", "a"]
    assert at(function, "name that is read") == [
        "self", "text", "dict", "times", "größe", "range", "times", "text", "self", "i", "path"]
    assert at(function, "name that is bound") == ["größe", "i"]
    assert at(function, "in an import") == ["os", "path"]
    assert at(function, "in the signature")[:3] == ["def", "write", "("]
    assert '"ä"' in at(function, "no identifier")


def record(repository, marks, docstring=4, tokens=20):
    return {"repository": repository, "marks": marks, "docstring_tokens": docstring, "function_tokens": tokens}


def test_the_statistics_are_the_papers_five_numbers():
    rows = {row["metric"]: row for row in statistics_rows([record("a", 2), record("a", 4), record("b", 9)], "training")}
    assert [rows[name]["value"] for name in ("functions", "repositories", "marks_per_function")] == [3, 2, 5]
    assert (rows["marks_per_function"]["ci_low"], rows["marks_per_function"]["ci_high"]) == (3, 9)  # all of a, all of b
    assert rows["function_tokens"]["value"] == 20 and rows["docstring_tokens"]["n"] == 3
    assert [row["value"] for row in statistics_rows([], "training")] == [0, 0]


def test_marks_are_averaged_within_each_repository():
    frame = by_repository([record("a", 2), record("b", 1), record("a", 4)])
    assert frame.condition.tolist() == ["evaluation/a", "evaluation/b"] and frame.value.tolist() == [3, 1]


def test_saved_marks_give_the_same_statistics_as_their_records(function, tmp_path):
    records = marked([function], workers=1, folder=tmp_path, progress=False)
    marks.save(records, tmp_path / "marks.gz")
    (corpus,) = tmp_path.glob("*.jsonl")
    for file in (tmp_path / "marks.gz", corpus):
        assert statistics_rows(corpus_records(file), "x") == statistics_rows(records, "x")


def test_what_was_marked_once_is_kept_until_the_repository_changes(function, tmp_path, monkeypatch):
    first = marked([function], workers=1, folder=tmp_path, progress=False)
    with monkeypatch.context() as patched:
        patched.setattr(augmentation.jedi_tool.Worker, "_started", lambda self: pytest.fail("Jedi was asked again"))
        again = marked([function], workers=1, folder=tmp_path, progress=False)
    assert [one["marked_body"] for one in again] == [one["marked_body"] for one in first]
    other = function.root / "other.py"
    other.write_text("x = 1\n")
    try:
        marked([function], workers=1, folder=tmp_path, progress=False)
    finally:
        other.unlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_functions_with_a_failed_call_are_marked_again(function, tmp_path):
    whole = marked([function], workers=1, folder=tmp_path, progress=False)
    (file,) = tmp_path.iterdir()
    file.write_text(json.dumps({**whole[0], "failures": {"timed out": 1}, "positions": []}) + "\n")
    again = marked([function], workers=1, folder=tmp_path, progress=False)
    assert not again[0]["failures"] and list(again[0]["positions"]) == list(whole[0]["positions"])


def test_each_question_is_a_row_and_offered_iff_it_was_marked(function, tmp_path):
    records = marked([function], workers=1, folder=tmp_path, progress=False)
    frame = asked([function], records)
    assert len(frame) == records[0]["asked"] and frame.offered.sum() == records[0]["marks"]
    offered = frame.set_index(["place", "name"]).offered
    assert offered["behind self.", "größe"].all() and not offered["behind another dot", "foo"].any()
    failed = [{**records[0], "failures": {"timed out": 1}}]
    assert asked([function], failed).empty


def test_the_share_offered_is_of_the_questions_at_a_place():
    frame = pd.DataFrame({"repository": list("aabb"), "place": ["behind self."] * 3 + ["in an import"],
                          "offered": [True, False, True, False]})
    rows = {row["condition"]: (row["value"], row["n"]) for row in offered_rows(frame)}
    assert rows == {"evaluation/all": (50, 4), "evaluation/behind self.": (pytest.approx(200 / 3), 3),
                    "evaluation/in an import": (0, 1)}


def test_the_variants_are_compared_function_by_function(function, tmp_path):
    paper, package = (marked([function], variant, 1, tmp_path, False) for variant in ("paper", "package"))
    change = variant_rows(paper, package)[1]
    assert change["value"] == package[0]["marks"] - paper[0]["marks"]
    table = only_one([function], paper, package)
    assert table["both"].sum() + table["paper only"].sum() == paper[0]["marks"]
    assert table["both"].sum() + table["package only"].sum() == package[0]["marks"]
    assert table.loc["keyword argument", "package only"] == 0
