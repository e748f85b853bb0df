"""The mini profile's rankers: word vectors and a sentence encoder that are shipped, an index made on the spot."""

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.mini.packages import sources
from lookuplab.retrieval.bag_of_words import NeuralBagOfWords
from lookuplab.retrieval.ranker import Ranker
from lookuplab.retrieval.word_vectors import WordVectors
from lookuplab.stackoverflow import ranking
from lookuplab.stackoverflow.corpus import MINI, Snippet, load
from lookuplab.stackoverflow.ranking import NAMES

WORDS = MINI / "words"
ENCODER = MINI / "encoder"
WORK = paths.RUNS / "train" / "stackoverflow"

WORDS_CARD = """# Word vectors of the mini corpus

fastText skip-gram vectors of the {words:,} words of {snippets:,} snippets ("mini-retrieval": descriptions and code from
docstrings of numpy, pandas, scipy and scikit-learn), in half precision. Trained by gensim on one core in {minutes:.0f}
minutes with `{settings}`. Vectors of subwords are not kept (18 MB): a word that no snippet has counts for nothing.

To train them again: `lookuplab train mini-rankers`. Licence: Apache-2.0; the texts have the licences of the libraries,
see `../snippets.md`.
"""
ENCODER_CARD = """# Sentence encoder of the mini profile

A static embedding of sentence-transformers: the mean of one vector a subword ({vocabulary:,} subwords, {dimensions}
dimensions, half precision, from random values). It learned from {pairs:,} pairs of sentences of one docstring, without
the objects that the mini corpus holds out or asks about for validation. Trained in {minutes:.1f} minutes of one core
with `{training}`.

Why not the source's loss: see `lookuplab.mini.descriptions`. To train it again: `lookuplab train mini-rankers`.
Licence: Apache-2.0. The docstrings come from {licences}.
"""


def rankers(snippets: list[Snippet], names: Sequence[str] = NAMES) -> dict[str, Ranker]:
    """The paper's rankers over ``snippets`` with the mini models. Raises UserError where these are missing."""
    if not (WORDS / "about.json").exists() or not (ENCODER / "modules.json").exists():
        raise UserError("the mini profile's rankers are not there: `lookuplab train mini-rankers`")
    return ranking.rankers(snippets, WORDS, ENCODER, names)


def train_words(out: Path = WORDS) -> WordVectors:
    """Learn the word vectors from "mini-retrieval", the corpus that is searched, and write those of its words."""
    begun, snippets = time.monotonic(), load("mini-retrieval")
    trained = NeuralBagOfWords.train({one.id: one.description for one in snippets},
                                     {one.id: one.code for one in snippets})
    small = trained.word_vectors.without_subwords()
    small.save(out)
    card = WORDS_CARD.format(words=len(small.words), snippets=len(snippets), minutes=(time.monotonic() - begun) / 60,
                             settings=json.dumps(asdict(small.settings)))
    (out / "README.md").write_text(card, encoding="utf-8")
    return small


def train_encoder(out: Path = ENCODER, work: Path = WORK) -> int:
    """Learn the sentence encoder from docstrings, write it in half precision; returns the number of pairs."""
    from lookuplab.mini.descriptions import DIMENSIONS, TRAINING, VOCABULARY, pairs
    from lookuplab.retrieval.encoder_training import static_encoder, train

    found, begun = pairs(), time.monotonic()
    model = static_encoder((text for pair in found for text in pair), VOCABULARY, DIMENSIONS)
    train(model, found, TRAINING, work)
    shutil.rmtree(out, ignore_errors=True)
    model.half().save(str(out), create_model_card=False)
    licences = ", ".join(f"{one.name} {one.version} ({one.licence[:40]})" for one in sources() if not one.excluded)
    card = ENCODER_CARD.format(vocabulary=VOCABULARY, dimensions=DIMENSIONS, pairs=len(found), licences=licences,
                               training=json.dumps(asdict(TRAINING)), minutes=(time.monotonic() - begun) / 60)
    (out / "README.md").write_text(card, encoding="utf-8")
    return len(found)
