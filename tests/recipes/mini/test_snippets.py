"""Tests what is read from docstrings, the committed corpus, what its builder keeps apart, and the
rankers.
"""

from lookuplab.stackoverflow import corpus
from recipes.mini import snippets
from recipes.mini.docstrings import Documented, documented
from recipes.mini.packages import example_split

HELD = next(f"numpy.f{n}" for n in range(100) if example_split(f"numpy.f{n}") == "test")


def test_the_committed_corpus_comes_out_of_the_docstrings_of_numpy():
    committed = {one.id: one for one in corpus.load_snippets("mini")}
    codes = {snippets._key(one.code) for one in committed.values()}
    asked = {one.text for one in corpus.queries("mini", "test")}
    assert len(codes) == len(committed) > 5000, "no two have the same code"
    for item in documented("numpy"):
        found = [*snippets._snippets("numpy", item)]
        assert codes.issuperset(snippets._key(one.code) for one in found)
        assert all(committed.get(one.id, one) == one for one in found)
        if snippets.split_of(item) == "test" and found and (others := snippets.phrasings(item)):
            assert others[0] in asked


def test_the_encoder_does_not_learn_from_held_out_objects():
    text = "Sort an array.\n\nThe order is that of the elements.\n"
    assert snippets.pairs_of(Documented((HELD,), text)) == []
    found = [snippets.pairs_of(Documented((f"numpy.g{n}",), text)) for n in range(30)]
    assert [("Sort an array.", "The order is that of the elements.")] in found


def test_training_brings_the_two_texts_of_a_pair_together_and_is_the_same_each_time():
    pairs = [("sort the rows", "order lines"), ("mean of columns", "average"), ("join", "merge")]

    model, again = (snippets.train_encoder(pairs, batch=3, epochs=20) for _ in range(2))
    one, other = (model.encode([*texts]) for texts in zip(*pairs, strict=True))
    assert model.similarity(one, other).argmax(dim=1).tolist() == [0, 1, 2]
    assert again.encode(["rows"]).tobytes() == model.encode(["rows"]).tobytes()
