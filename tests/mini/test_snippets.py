"""The mini corpus as it is committed, and what its builder keeps apart."""

import re

import pytest

from lookuplab.mini import snippets
from lookuplab.mini.docstrings import Documented
from lookuplab.mini.packages import held_out_example
from lookuplab.stackoverflow import corpus


@pytest.fixture(scope="module")
def mini():
    return corpus.load("mini")


@pytest.fixture(scope="module")
def everything():
    return {snippet.id: snippet for snippet in corpus.load("mini-retrieval")}


def name_of(snippet_id: str) -> str:
    return snippet_id.rpartition("#")[0]


def test_the_corpus_has_thousands_of_snippets_each_with_its_licence(mini):
    assert len(mini) > 5000 and all(snippet.licence and snippet.source for snippet in mini)
    assert {snippet.source.split()[0] for snippet in mini} == {"numpy", "pandas", "scipy", "scikit-learn"}
    assert sum(file.stat().st_size for file in corpus.MINI.glob("*.jsonl.gz") if "problems" not in file.name) < 2e6


def test_no_held_out_object_is_in_the_corpus_that_prompts_show(mini, everything):
    assert not [snippet.id for snippet in mini if held_out_example(name_of(snippet.id))]
    held_out = everything.keys() - {snippet.id for snippet in mini}
    assert len(held_out) > 500


def test_no_example_of_a_held_out_object_stands_in_the_corpus_under_another_name(mini, everything):
    def core(code: str) -> str:
        return "".join(line for line in code.splitlines() if not re.match("import|from", line)).replace(" ", "")

    shown = {core(snippet.code) for snippet in mini}
    held_out = everything.keys() - {snippet.id for snippet in mini}
    assert not [one for one in held_out if core(everything[one].code) in shown]


def test_test_queries_ask_for_held_out_objects_and_validation_queries_for_open_ones(mini, everything):
    open_ids = {snippet.id for snippet in mini}
    for split, where in (("test", everything.keys() - open_ids), ("valid", open_ids)):
        found = corpus.queries("mini", split)
        assert len(found) > 200
        assert {one for query in found for one in query.relevant} <= where


def test_no_query_is_the_description_of_its_snippet(everything):
    for query in [*corpus.queries("mini", "valid"), *corpus.queries("mini", "test")]:
        for one in query.relevant:
            assert not everything[one].description.startswith(query.text.rstrip("."))


def test_a_second_build_gives_the_same_files(tmp_path):
    for folder in ("a", "b"):
        snippets.save(snippets.build(["scikit-learn"], progress=False), tmp_path / folder)
    names = sorted(file.name for file in (tmp_path / "a").iterdir())
    assert names == ["held_out.jsonl.gz", "queries_test.jsonl.gz", "queries_valid.jsonl.gz", "snippets.jsonl.gz",
                     "snippets.md"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


def test_an_object_is_held_out_by_any_of_its_names():
    held = next(f"numpy.f{n}" for n in range(100) if held_out_example(f"numpy.f{n}"))
    free = next(f"numpy.g{n}" for n in range(100) if not held_out_example(f"numpy.g{n}"))
    assert snippets.split_of(Documented((free, held), "")) == "test"
    assert snippets.split_of(Documented((free,), "")) in ("train", "valid")


def test_a_phrasing_neither_repeats_the_summary_nor_names_the_object_in_code():
    text = ("Sort an array.\n\nSort an array. The order is that of the elements. Call np.order(x) for it.\n"
            "See the guide for more of it.\n\nReturns\n-------\nout : array\n    The array in its new order.\n")
    assert snippets.summary(Documented(("numpy.order",), text)) == "Sort an array."
    assert snippets.phrasings(Documented(("numpy.order",), text)) == [
        "The order is that of the elements.", "The array in its new order."]
