"""The mini corpus of snippets, taken from what the docstrings of four installed libraries describe
and show; and its rankers.

What is held out from whom:

- An object is held out if any of its names is (``packages.example_split``); the mini models never
  saw its examples.
- Its examples become the problems of the mini benchmark. They are in the corpus, as answers to
  questions are on Stack Overflow, but no prompt shows a snippet that contains the expression asked
  for (``asking.fair``).
- A query is another sentence of the same docstring (the second of the summary, else one of Returns
  or Notes), never the text that describes the snippet. A sentence that names the object as code is
  not used.
- The objects for development give validation queries in the same way. Neither their docstrings nor
  those of held-out objects train the sentence encoder, but 6% of its pairs have a sentence that one
  of these shares. The word vectors learn from the corpus that is searched, as in nokia/codesearch.
"""

import ast
import inspect
import random
import re
import shutil
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import metadata
from itertools import chain
from typing import Any

import click

from lookuplab import paths
from lookuplab.errors import needs
from lookuplab.execution.progress import watched
from lookuplab.retrieval.rankers import save_words, train_words
from lookuplab.run.commands import Group, command, run_module
from lookuplab.run.commands.train import steady
from lookuplab.stackoverflow import ranking
from lookuplab.stackoverflow.corpus import CORPUS_FOLDER, Snippet, load_snippets, queries, write
from recipes.mini import packages
from recipes.mini.docstrings import Documented, documented, sections, sessions
from recipes.mini.packages import EXAMPLE_PACKAGES, example_split
from recipes.prose import opening_sentence, prose_sentences

MAX_CODE = 1200  # characters; longer examples are sessions rather than snippets
MAX_OBJECTS = 3  # a sentence shared by more objects asks for nothing in particular
VOCABULARY, DIMENSIONS = 6000, 160  # of the sentence encoder
MAX_PHRASINGS = 4  # per docstring: long notes would crowd out the others
BOILERPLATE = re.compile(  # about the documentation, not the object
    r"User Guide|deprecated|alias|version|docstring|Array API|rv_continuous|rv_discrete|sphx_glr|"
    r"compatib|^(Refer|See) ",
    re.I,
)
ENCODER_CARD = """# Sentence encoder of the mini profile

A static embedding of sentence-transformers, half precision, learned from {pairs:,} pairs of sentences of one docstring,
without the objects that the mini corpus holds out or asks about for validation, though 6% of the pairs have a sentence that
one of these shares. To train it again:
`python -m recipes.mini.snippets rankers`. Licence: Apache-2.0. The docstrings come from {licences}.
"""


def split_of(item: Documented) -> str:
    """ "test" for an object with a held-out name, "valid" for one with a name for development,
    "train" for the rest.
    """
    splits = set(map(example_split, item.names))
    return "test" if "test" in splits else "valid" if "development" in splits else "train"


def phrasings(item: Documented) -> list[str]:
    """Other sentences about what an object does, best first: the rest of the summary, Returns,
    Notes.
    """
    parts = sections(item.text)
    # without the lines `name : type`
    returned = re.sub(r"^\S.*\n", "", parts.get("returns", ""), flags=re.M)
    found = parts[""], textwrap.dedent(returned), parts.get("notes", "")
    naming = {name.rpartition(".")[2] for name in item.names}
    in_code = re.compile(
        "|".join(rf"\b{re.escape(one)}(?=\()|\.{re.escape(one)}\b" for one in naming)
    )
    first = opening_sentence(sections(item.text)[""]).rstrip(".")
    return [
        one
        for one in dict.fromkeys(sentence for part in found for sentence in prose_sentences(part))
        if one.rstrip(".") != first
        and not BOILERPLATE.search(one)
        and not in_code.search(one)
        and not any("_" in name and name in one for name in naming)
    ]


def build() -> dict[str, list[dict[str, Any]]]:
    """File -> records; the same versions of the libraries give the same records."""
    made: dict[str, list[Snippet]] = defaultdict(list)
    asked: dict[str, list[tuple[str, list[Snippet]]]] = defaultdict(list)
    for name, package in EXAMPLE_PACKAGES.items():
        for item in watched(documented(package), name):
            found, others, split = [*_snippets(name, item)], phrasings(item), split_of(item)
            made[split] += found
            if found and others:
                asked[split].append((others[0], found))
    known: dict[str, Snippet] = {}
    for one in [*made["test"], *sorted(made["train"] + made["valid"], key=lambda one: one.id)]:
        # if several objects share a snippet, it has the name of the held-out one
        known.setdefault(_key(one.code), one)
    kept = set(known.values())
    return {
        "snippets": [asdict(one) for one in known.values()],
        "queries_valid": [*_queries(asked["valid"], kept)],
        "queries_test": [*_queries(asked["test"], kept)],
    }


def _snippets(distribution: str, item: Documented) -> Iterator[Snippet]:
    first, licence = (
        opening_sentence(sections(item.text)[""]),
        packages.licence_of(metadata.distribution(distribution)),
    )
    origin = f"{distribution} {metadata.version(distribution)}: {item.name}"
    found = sessions(sections(item.text).get("examples", "")) or sessions(item.text)
    for number, (lead, code) in enumerate(found if len(first.split()) > 1 else ()):
        if len(code) <= MAX_CODE and ("(" in code or "[" in code):
            description = f"{first.rstrip('.')}. {lead}" if lead else first
            yield Snippet(f"{item.name}#{number}", description, code, origin, licence)


def _key(code: str) -> str:
    """Code without its imports and white space, so that the same example under another name counts
    as the same.
    """
    return re.sub(r"(?m)^\s*(import|from)\s.*|\s", "", code)


def _queries(
    asked: list[tuple[str, list[Snippet]]], kept: set[Snippet]
) -> Iterator[dict[str, Any]]:
    """``{query, relevant_ids}`` of the sentences that few objects share and that have snippets in
    the corpus.
    """
    by_text = defaultdict(list)
    for text, found in asked:
        by_text[text].append(found)
    for text, objects in by_text.items():
        ids = [one.id for one in chain(*objects) if one in kept]
        if ids and len(objects) <= MAX_OBJECTS:
            yield {"query": text, "relevant_ids": ids}


def pairs() -> list[tuple[str, str]]:
    """What the sentence encoder learns: pairs of sentences about the same object, each once, from
    all listed packages.

    Heyman and Van Cutsem learn from titles of duplicate questions. Here, two sentences of one
    docstring replace those: both say what an object does, in different words. No pair contains the
    text of a query.
    """
    asked = {query.text for split in ("valid", "test") for query in queries("mini", split)}
    found = (pair for item in watched(_items(), "reading docstrings") for pair in pairs_of(item))
    return [pair for pair in dict.fromkeys(found) if not asked & set(pair)]


def pairs_of(item: Documented) -> list[tuple[str, str]]:
    """The summary paired with each other sentence and with each sentence that leads to an example.

    There are none for an object that is held out or asked about.
    """
    first = opening_sentence(sections(item.text)[""])
    if split_of(item) != "train" or len(first.split()) < 2:
        return []
    others = phrasings(item)[:MAX_PHRASINGS]
    leads = [lead for lead, _ in sessions(sections(item.text).get("examples", "")) if lead]
    found = [(first, other) for other in [*others, *leads[:MAX_PHRASINGS]]]
    # as snippets are described
    both = zip(leads[:1], others[:1], strict=False)
    return found + [(f"{first.rstrip('.')}. {lead}", other) for lead, other in both]


def _items() -> Iterator[Documented]:
    """Objects of the four libraries as imported, and whatever the other packages' files document."""
    for package in EXAMPLE_PACKAGES.values():
        yield from documented(package)
    for name in packages.CORPUS_PACKAGES:
        for path, place in sorted(packages.files_of(name)) if name not in EXAMPLE_PACKAGES else ():
            _, tree = packages.parsed(place)
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    if text := ast.get_docstring(node):
                        yield Documented((f"{path}.{node.name}",), inspect.cleandoc(text))


def train_encoder(found: Sequence[tuple[str, str]], batch: int = 512, epochs: int = 3) -> Any:
    """A sentence encoder, the mean of one vector per subword, trained on pairs of texts with
    sentence-transformers' ranking loss, where the other texts of a batch are the negatives. The
    subwords are learned from the same texts, lower-cased.

    On the 264 validation queries of the first mini world this gave an MRR of .396 after three
    epochs; the source's loss (binary cross-entropy on the cosine with five negatives) gave .368
    from six times the rows.
    """
    import torch

    with needs("rank"):
        from sentence_transformers import (
            SentenceTransformer,
            SentenceTransformerTrainer,
            SentenceTransformerTrainingArguments,
        )
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    with needs("train"):
        from datasets import Dataset
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())  # WordPiece's trainer gives different subwords each time
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.Lowercase(), normalizers.StripAccents()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.ByteLevel()]
    )
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator((text for pair in found for text in pair), trainer)
    size, generator = tokenizer.get_vocab_size(), torch.Generator().manual_seed(0)
    weights = 0.1 * torch.randn(size, DIMENSIONS, generator=generator)
    embedding = StaticEmbedding(tokenizer, embedding_weights=weights)
    model = SentenceTransformer(modules=[embedding], device="cpu")
    settings = SentenceTransformerTrainingArguments(
        str(paths.RUNS / "train" / "encoder"),
        max_steps=epochs * -(-len(found) // batch),
        learning_rate=0.03,
        per_device_train_batch_size=batch,
        seed=0,
        save_strategy="no",
        report_to="none",
        logging_strategy="no",
        dataloader_pin_memory=False,
        accelerator_config={"dispatch_batches": False},  # a bag of words cannot be sliced
    )
    orders = (random.Random(f"0 {n}").sample(found, len(found)) for n in range(epochs))
    rows = [{"anchor": one, "positive": other} for order in orders for one, other in order]
    data = Dataset.from_list(rows).to_iterable_dataset()  # read in this order
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model, settings, train_dataset=data, loss=loss).train()
    return model


def save_encoder() -> int:
    """Train the sentence encoder, write it in half precision, and return the number of pairs."""
    found, out = pairs(), CORPUS_FOLDER / "encoder"
    model = train_encoder(found)
    shutil.rmtree(out, ignore_errors=True)
    model.half().save(str(out), create_model_card=False)
    card = ENCODER_CARD.format(pairs=len(found), licences=packages.licences())
    (out / "README.md").write_text(card, encoding="utf-8")
    return len(found)


@click.group(cls=Group)
def main() -> None:
    """Build the mini corpus of snippets; train the rankers that search it.

    \b
    Examples:
      python -m recipes.mini.snippets corpus
      python -m recipes.mini.snippets rankers
    """


@command(main, "corpus")
def write_corpus() -> None:
    """Build the mini corpus of snippets: descriptions, code and queries from the docstrings of
    numpy, pandas, scipy and scikit-learn.

    \b
    Example:
      python -m recipes.mini.snippets corpus
    """
    for name, records in build().items():
        write(CORPUS_FOLDER / f"{name}.jsonl.gz", records)
        click.echo(f"{len(records):,} {name} -> {CORPUS_FOLDER}")


@command(main, "rankers")
def train_rankers() -> None:
    """Train the word vectors and the sentence encoder that rank the mini corpus of snippets.

    Each uses one core, so that the same seed gives the same vectors.

    \b
    Example:
      python -m recipes.mini.snippets rankers
    """
    steady()
    found = train_words(ranking.training_lines(load_snippets("mini")))
    save_words(CORPUS_FOLDER / "words", found)
    click.echo(f"{len(found):,} words, {save_encoder():,} pairs")


if __name__ == "__main__":
    run_module(main)
