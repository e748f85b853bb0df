"""Marks without code: saved, and laid over the same functions again."""

import pytest

from lookuplab.errors import UserError
from lookuplab.toolgen import corpus, marks
from lookuplab.toolgen.files import locate
from lookuplab.toolgen.functions import extract

CODE = '''class Book:
    def __init__(self):
        self._updates = set()

    def register(self, *updates):
        """Register some updates here."""
        for update in updates:
            self._updates.add(update)

    def forget(self, *updates):
        """Forget some updates here."""
        for update in updates:
            self._updates.discard(update)
'''


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """(folder of a repository, its marked corpus)."""
    folder = tmp_path_factory.mktemp("marks") / "books"
    folder.mkdir()
    (folder / "book.py").write_text(CODE)
    built = corpus.build([locate(str(folder))], folder.parent / "marked.jsonl", workers=1, progress=False)
    return folder, built.records


def test_marks_laid_over_the_same_code_give_the_augmented_functions_again(marked):
    folder, records = marked
    file = folder.parent / "marks.jsonl.gz"
    assert marks.save(records, file) == 2
    found, left_out = marks.lay_over(extract(locate(str(folder))).functions, marks.load(file))
    assert [each.body for each in found] == [record["marked_body"] for record in records] and not left_out
    assert "<COMP>_updates.<COMP>add(<COMP>update)" in marks.pair(found[0]).body


def test_the_same_marks_are_the_same_bytes(marked):
    folder, records = marked
    files = [folder.parent / name for name in ("first.gz", "second.gz")]
    marks.save(records, files[0])
    marks.save(records[::-1], files[1])
    assert files[0].read_bytes() == files[1].read_bytes()


def test_saved_marks_keep_what_the_statistics_of_a_corpus_need(marked, tmp_path):
    _, records = marked
    marks.save(records, tmp_path / "marks.gz")
    saved = marks.load(tmp_path / "marks.gz")
    for record in records:
        one = saved[record["id"]]
        assert (one["docstring_tokens"], one["function_tokens"], len(one["marks"])) == (
            record["docstring_tokens"], record["function_tokens"], record["marks"])


def test_functions_that_changed_or_are_new_are_counted_and_left_out(marked, tmp_path):
    folder, records = marked
    saved = {r["id"]: r for r in records}
    file = tmp_path / "marks.gz"
    marks.save(records[:1], file)
    changed = tmp_path / "books"
    changed.mkdir()
    (changed / "book.py").write_text(CODE.replace(".add(", ".update("))
    found, left_out = marks.lay_over(extract(locate(str(changed))).functions, marks.load(file))
    assert not found and dict(left_out) == {"other code when it was marked": 1, "not marked": 1} and len(saved) == 2


def test_a_file_that_holds_no_marks_is_one_clear_line(tmp_path):
    file = tmp_path / "x.gz"
    file.write_bytes(b"nothing")
    with pytest.raises(UserError, match="holds no marks"):
        marks.load(file)
