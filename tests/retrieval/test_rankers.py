"""Word vectors, bag of words, description model and ensemble: by hand where vectors are given, trained where small."""

from dataclasses import replace

import numpy as np
import pytest

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.retrieval.bag_of_words import NeuralBagOfWords, training_lines
from lookuplab.retrieval.bm25 import Bm25Text
from lookuplab.retrieval.descriptions import DescriptionModel
from lookuplab.retrieval.encoder_training import Training, static_encoder, train
from lookuplab.retrieval.ensemble import Ensemble
from lookuplab.retrieval.ranker import Ranker
from lookuplab.retrieval.word_vectors import FastText, WordVectors
from lookuplab.retrieval.words import code_words, query_words

DESCRIPTIONS = {"s": "Sort the rows of a table", "m": "Mean of every column", "j": "Join two tables by key", "e": "1"}
CODES = {"s": "table.sort_values('x')", "m": "frame.mean(axis=0)", "j": "left.merge(right, on='k')", "e": "1"}
PAIRS = [("sort the rows", "order lines of it"), ("mean of columns", "average each column"),
         ("join two tables", "merge frames by key")]
TINY = FastText(dimensions=8, epochs=3, buckets=1000)


def given(vectors: dict[str, list[float]]) -> WordVectors:
    empty = np.zeros((0, 2), dtype=np.float32)
    return WordVectors(list(vectors), np.array(list(vectors.values()), dtype=np.float32), np.zeros(0, np.int64), empty,
                       FastText(dimensions=2))


@pytest.fixture(scope="module")
def bag() -> NeuralBagOfWords:
    return NeuralBagOfWords.train(DESCRIPTIONS, CODES, TINY, progress=False)


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("encoder")
    model = static_encoder([text for pair in PAIRS for text in pair], vocabulary=200, dimensions=16)
    train(model, PAIRS, Training("ranking", epochs=20, batch_size=3, rate=0.05), folder / "work")
    model.save(str(folder / "model"))
    return str(folder / "model")


@pytest.fixture(scope="module")
def description(encoder_folder) -> DescriptionModel:
    return DescriptionModel.index(DESCRIPTIONS, encoder_folder, progress=False)


@pytest.fixture(params=["bag", "description", "ensemble", "bm25"])
def ranker(request, bag, description) -> Ranker:
    bm25 = Bm25Text({name: code_words(CODES[name]) + query_words(DESCRIPTIONS[name]) for name in CODES})
    ensemble = Ensemble(bag, description, 0.3)
    return {"bag": bag, "description": description, "ensemble": ensemble, "bm25": bm25}[request.param]


def test_a_snippet_gives_three_lines():
    assert training_lines(["d"], ["a", "b", "c"]) == [["a", "d", "b", "c"], ["d", "a", "b", "c"], ["a", "b", "c", "d"]]


def test_code_is_the_tf_idf_weighted_mean_of_its_words_and_a_query_the_mean():
    words = given({"rare": [1, 0], "common": [0, 1]})
    bag = NeuralBagOfWords.index({"1": "common.common.rare", "2": "common", "3": "unknown"}, words)
    rare, common = np.log(4 / 2) + 1, np.log(4 / 3) + 1  # of three snippets one holds "rare", two "common"
    length = np.hypot(rare, 2 * common)
    assert bag.code_vectors[0] == pytest.approx([rare / length, 2 * common / length])
    assert bag.scores("rare") == pytest.approx([rare / length, 0, 0], abs=1e-6)
    assert bag.scores("rare common common") == pytest.approx(
        [(rare + 4 * common) / length / 5 ** .5, 2 / 5 ** .5, 0], abs=1e-6)


def test_without_a_known_word_the_score_is_zero_and_never_nan(ranker):
    assert ranker.scores("").tolist() == [0.0] * 4
    assert np.isfinite(ranker.scores_of(["sort", "", "?!", "zzz"])).all()


def test_code_without_a_word_scores_zero(bag):
    assert bag.scores("sort rows")[bag.ids.index("e")] == 0
    assert bag.scores("the of ?!").tolist() == [0.0] * 4


def test_ids_are_sorted_and_the_top_is_the_beginning_of_the_order(ranker):
    assert ranker.ids == sorted(CODES)
    order = np.argsort(-ranker.scores("mean of columns"), kind="stable")
    assert [name for name, _ in ranker.top("mean of columns", 3)] == [ranker.ids[at] for at in order[:3]]
    assert ranker.rank({"q": "mean of columns"}, 9) == {"q": [ranker.ids[at] for at in order]}
    with pytest.raises(UserError, match="k is 0"):
        ranker.top("mean", 0)


def test_a_batch_scores_like_single_queries(ranker):
    queries = ["sort rows", "", "mean of columns", "merge"]
    assert ranker.scores_of(queries) == pytest.approx(np.array([ranker.scores(query) for query in queries]), abs=2e-6)
    assert ranker.scores_of([]).shape == (0, 4)


def test_a_saved_ranker_comes_back_bit_for_bit(ranker, tmp_path):
    ranker.save(tmp_path / "saved")
    again = type(ranker).load(tmp_path / "saved")
    queries = ["sort rows by keys", "unseen subwords sorted", "mean"]
    assert again.ids == ranker.ids and again.scores_of(queries).tobytes() == ranker.scores_of(queries).tobytes()


def test_a_saved_description_model_names_an_encoder_of_the_checkout_from_its_root(tmp_path):
    shipped = paths.MINI / "stackoverflow" / "encoder"
    DescriptionModel.index(DESCRIPTIONS, shipped, progress=False).save(tmp_path)
    assert '"model": "data/mini/stackoverflow/encoder"' in (tmp_path / "about.json").read_text()
    assert DescriptionModel.load(tmp_path).top("sort the rows", 1)[0][0] == "s"


def test_half_a_saved_ranker_is_one_clear_line(bag, tmp_path):
    bag.save(tmp_path)
    (tmp_path / "code_vectors.npy").unlink()
    with pytest.raises(UserError, match="holds no whole ranker"):
        NeuralBagOfWords.load(tmp_path)


def test_the_same_seed_gives_the_same_vectors_and_another_seed_others(bag):
    again = NeuralBagOfWords.train(dict(reversed(DESCRIPTIONS.items())), CODES, TINY, progress=False)
    other = NeuralBagOfWords.train(DESCRIPTIONS, CODES, replace(TINY, seed=2), progress=False)
    assert again.word_vectors.vectors.tobytes() == bag.word_vectors.vectors.tobytes()
    assert other.word_vectors.vectors.tobytes() != bag.word_vectors.vectors.tobytes()


def test_what_is_kept_is_trained_once_for_the_same_snippets_and_settings(bag, tmp_path, monkeypatch):
    first = NeuralBagOfWords.kept(DESCRIPTIONS, CODES, tmp_path, TINY, progress=False)
    assert first.scores("sort").tobytes() == bag.scores("sort").tobytes()
    NeuralBagOfWords.kept(DESCRIPTIONS, CODES | {"e": "2"}, tmp_path, TINY, progress=False)
    assert len(list(tmp_path.iterdir())) == 2, "other snippets, and nothing unfinished"
    monkeypatch.setattr(WordVectors, "train", lambda *_: pytest.fail("trained again"))
    again = NeuralBagOfWords.kept(DESCRIPTIONS, CODES, tmp_path, TINY)
    assert again.scores("sort").tobytes() == first.scores("sort").tobytes()


def test_an_unseen_word_is_the_mean_of_its_known_subwords_as_in_fasttext():
    from gensim.models import FastText as Trainer

    lines = [["sorting", "rows"], ["sort", "values"]] * 5
    vectors = WordVectors.train(lines, TINY, progress=False)
    trained = Trainer(lines, vector_size=8, window=20, min_count=1, sg=1, negative=5, alpha=.05, sample=1e-4, workers=1,
                      min_n=3, max_n=6, bucket=1000, seed=1, epochs=3).wv
    assert vectors.of(["rows"])[0] == pytest.approx(trained["rows"])
    assert np.any(vectors.of(["sorted"])) and not np.any(vectors.of(["qq"]))
    assert not np.any(vectors.without_subwords().of(["sorted"]))


def test_vectors_without_subwords_are_half_as_long_on_disk_and_come_back_exactly(bag, tmp_path):
    small = bag.word_vectors.without_subwords()
    small.save(tmp_path)
    assert np.load(tmp_path / "vectors.npy").dtype == np.float16
    assert WordVectors.load(tmp_path).vectors.tobytes() == small.vectors.tobytes()


def test_the_ensemble_weights_the_code(bag, description):
    ensemble = Ensemble(bag, description, 0.5)
    expected = 0.5 * bag.scores("sort rows") + description.scores("sort rows")
    assert ensemble.scores("sort rows") == pytest.approx(expected, abs=2e-6)


def test_an_ensemble_of_different_snippets_is_refused(bag, encoder_folder):
    other = DescriptionModel.index({"x": "y"}, encoder_folder, progress=False)
    with pytest.raises(UserError, match="same snippets"):
        Ensemble(bag, other)


@pytest.mark.parametrize("loss", ["bce", "ranking"])
def test_training_brings_the_two_texts_of_a_pair_together(loss, tmp_path):
    model = static_encoder([text for pair in PAIRS for text in pair], vocabulary=200, dimensions=16)
    train(model, PAIRS, Training(loss, epochs=30, batch_size=6, rate=0.05), tmp_path)
    found = model.similarity(model.encode([one for one, _ in PAIRS]), model.encode([other for _, other in PAIRS]))
    assert found.argmax(dim=1).tolist() == [0, 1, 2]


def test_training_depends_on_the_seed_alone(tmp_path):
    def trained(seed: int) -> bytes:
        model = static_encoder([text for pair in PAIRS for text in pair], vocabulary=200, dimensions=16)
        train(model, PAIRS, Training("bce", epochs=2, batch_size=6, rate=0.05, seed=seed), tmp_path)
        return model.encode(["sort the rows"]).tobytes()

    assert trained(0) == trained(0) != trained(1)


def test_bm25_by_hand():
    found = Bm25Text({"1": ["sort", "rows"], "2": ["sort", "mean", "mean"], "3": ["join"]}).scores("mean join zz")
    assert found == pytest.approx([0, 0.628708, 0.659130], abs=1e-6)


@pytest.mark.parametrize("make", [
    lambda: NeuralBagOfWords.train({}, {}, TINY), lambda: NeuralBagOfWords.index({"a": "1"}, given({"x": [1, 0]})),
    lambda: NeuralBagOfWords.train({"a": "b"}, {"c": "d"}), lambda: DescriptionModel.index({}, "x"),
    lambda: DescriptionModel.index({"a": "b"}, "no/such/folder"), lambda: train(None, PAIRS, Training("hinge"), None),
    lambda: train(None, PAIRS[:1], Training(), None),
])
def test_bad_input_is_one_clear_line(make, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError) as caught:
        make()
    assert "\n" not in str(caught.value)
