"""What is read from docstrings, the corpus as it is committed, what its builder keeps apart, and
its rankers.
"""

from lookuplab.stackoverflow import corpus
from recipes.mini import snippets
from recipes.mini.docstrings import Documented, sections, sessions
from recipes.mini.packages import example_split
from recipes.prose import opening_sentence, plain, prose_sentences

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
HELD = next(f"numpy.f{n}" for n in range(100) if example_split(f"numpy.f{n}") == "test")


def test_each_example_stands_alone_behind_what_it_needs():
    before = "import numpy as np\na = np.array([1, 2])\n"
    loop = "a[0] = 9\nfor x in a:\n    print(x + b)"
    assert sessions(DOC) == [
        ("", f"{before}b = 5\nadd(a)"),
        ("With an axis that counts from the end:", f"{before}b = 7\n{loop}"),
    ]
    assert sessions(">>> f(\n3\n") == sessions(">>>f()\n") == sessions("no session") == []


def test_sentences_are_prose_without_markup():
    assert list(sections(DOC)) == ["", "returns", "examples"]
    assert prose_sentences(sections(DOC)[""]) == ["The sum is taken over the given axis."]
    text = (
        "Use i.e. ``this`` one here. No more.\n\n- a list of more words\n\n.. note:: one two three"
    )
    assert prose_sentences(text) == ["Use i.e. this one here."]
    marked = ":func:`~a.b` of `x`, :ref:`the guide <guide>`\n and **bold** [2]_"
    assert plain(marked) == "a.b of x, the guide and bold"


def test_no_two_snippets_have_the_same_code():
    codes = [snippets._key(one.code) for one in corpus.load_snippets("mini")]
    assert len(codes) > 5000 and len(set(codes)) == len(codes)


def test_a_phrasing_neither_repeats_the_summary_nor_names_the_object_in_code():
    text = (
        "Sort an array.\n\nSort an array. The order is that of the elements. Call np.order(x) "
        "for it.\n"
        "See the guide for more of it.\n\nReturns\n-------\nout : array\n    The array in its "
        "new order.\n"
    )
    item = Documented(("numpy.order",), text)
    assert opening_sentence(sections(item.text)[""]) == "Sort an array."
    assert snippets.phrasings(item) == [
        "The order is that of the elements.",
        "The array in its new order.",
    ]


def test_the_encoder_does_not_learn_from_held_out_objects():
    text = "Sort an array.\n\nThe order is that of the elements.\n"
    assert snippets.pairs_of(Documented((HELD,), text)) == []
    found = [snippets.pairs_of(Documented((f"numpy.g{n}",), text)) for n in range(30)]
    assert [("Sort an array.", "The order is that of the elements.")] in found


def test_training_brings_the_two_texts_of_a_pair_together_and_is_the_same_each_time():
    pairs = [("sort the rows", "order lines"), ("mean of columns", "average"), ("join", "merge")]

    model, again = (snippets.train_encoder(pairs, batch=3, epochs=20) for _ in range(2))
    one, other = (model.encode([pair[at] for pair in pairs]) for at in (0, 1))
    assert model.similarity(one, other).argmax(dim=1).tolist() == [0, 1, 2]
    assert again.encode(["rows"]).tobytes() == model.encode(["rows"]).tobytes()
