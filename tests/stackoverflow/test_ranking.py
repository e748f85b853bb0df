"""The paper's rankers by name, over any corpus."""

import numpy as np
import pytest

from lookuplab.errors import UserError
from lookuplab.stackoverflow import ranking
from lookuplab.stackoverflow.corpus import MINI, Snippet

SNIPPETS = [Snippet("a", "Sort an array in place.", "np.sort(values)", "mine", "MIT"),
            Snippet("b", "Compute the mean of a column.", "frame['x'].mean()", "mine", "MIT"),
            Snippet("c", "Invert a matrix.", "np.linalg.inv(matrix)", "mine", "MIT")]
PLACES = MINI / "words", MINI / "encoder"


@pytest.fixture(scope="module")
def found():
    return ranking.rankers(SNIPPETS, *PLACES)


def test_every_ranker_ranks_the_same_snippets(found):
    assert list(found) == list(ranking.NAMES)
    assert all(list(ranker.ids) == ["a", "b", "c"] for ranker in found.values())


@pytest.mark.parametrize("name", ["bm25-description", "bm25-both", "description", "ensemble-0.4"])
def test_the_snippet_that_is_described_is_found(found, name):
    assert found[name].top("how do I invert my matrix", 1)[0][0] == "c"


def test_an_ensemble_is_the_weighted_sum_of_its_parts(found):
    query = "mean of a column"
    expected = 0.5 * found["code"].scores(query) + found["description"].scores(query)
    np.testing.assert_allclose(found["ensemble-0.5"].scores(query), expected, atol=2e-6)


def test_only_what_is_asked_for_is_made():
    assert list(ranking.rankers(SNIPPETS, "nowhere", "nowhere", ["bm25-code"])) == ["bm25-code"]


def test_word_vectors_are_learned_from_the_snippets_themselves_without_a_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(ranking, "KEPT", tmp_path)
    (ranker,) = ranking.rankers(SNIPPETS, "", "nowhere", ["code"]).values()
    assert np.isfinite(ranker.scores("sort values")).all()


@pytest.mark.parametrize("name", ["bm25", "ensemble", "ensemble-x", "ensemble-0", "Code"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(UserError, match="no ranker"):
        ranking.rankers(SNIPPETS, *PLACES, [name])
