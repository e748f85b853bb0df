"""Builds the mini corpus of snippets from the descriptions and examples in the docstrings of four
installed libraries, and trains its rankers.

The rules of held-out data are:

- An object is held out if any of its names is in the split "test" (``packages.example_split``). The
  mini models never saw the examples of a held-out object.
- The examples of held-out objects become the problems of the mini benchmark. These examples are
  also in the corpus, just as Stack Overflow contains the answers to its questions, but no prompt
  shows a snippet that contains the problem's expression (``asking.without_answers``).
- The query for an object's snippets is another sentence of the same docstring (the second of the
  summary, or if there is none, one of Returns or Notes). It is never the text that describes the
  snippet, nor a sentence that names the object as code.
- The objects for development give validation queries in the same way. The sentence encoder is not
  trained on docstrings of objects for development or of held-out objects, but 6% of its pairs have
  a sentence that also occurs in one of these docstrings. The word vectors learn from the corpus
  that is searched, as in nokia/codesearch.
"""

import ast
import random
import re
import shutil
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import metadata
from itertools import chain
from operator import attrgetter
from typing import Any, Literal

import click

from lookuplab import paths
from lookuplab.errors import needs
from lookuplab.retrieval.rankers import save_words, train_words
from lookuplab.run.commands import command, run_module
from lookuplab.run.commands.train import steady
from lookuplab.stackoverflow import ranking
from lookuplab.stackoverflow.corpus import CORPUS_FOLDER, Snippet, load_snippets, queries
from lookuplab.work import watched
from recipes import tables, write_rows
from recipes.mini import packages
from recipes.mini.docstrings import Documented, documented, sections, sessions
from recipes.mini.packages import EXAMPLE_PACKAGES, example_split
from recipes.prose import opening_sentence, prose_sentences

MAX_CODE = 1200  # characters; longer examples are whole sessions rather than snippets
MAX_OBJECTS = 3  # a sentence shared by more objects describes none of them in particular
VOCABULARY, DIMENSIONS = 6000, 160  # subwords of the sentence encoder, and length of its vectors
MAX_PHRASINGS = 4  # sentences per docstring, so that long notes do not outweigh other docstrings
BOILERPLATE = re.compile(  # matches sentences about the documentation instead of the object
    r"User Guide|deprecated|alias|version|docstring|Array API|rv_continuous|rv_discrete|sphx_glr|"
    r"compatib|^(Refer|See) ",
    re.I,
)
ENCODER_CARD = """# Sentence encoder of the mini profile

A static embedding of sentence-transformers, half precision, learned from {pairs:,} pairs of sentences of one docstring,
without the objects that the mini corpus holds out or asks about for validation, though 6% of the pairs have a sentence that
one of these shares. To train it again:
`python -m recipes.mini.snippets rankers`. Licence: Apache-2.0. The docstrings come from the packages of data/mini/models/PACKAGES.md.
"""  # noqa: E501  # the committed card has these lines


def split_of(item: Documented) -> str:
    """Return the split of an object: "test" if any of its names is in that split; otherwise
    "development" if any name is in that split; otherwise "training".
    """
    splits = [*map(example_split, item.names), "training"]
    return next(split for split in ("test", "development", "training") if split in splits)


def phrasings(item: Documented) -> list[str]:
    """Return the sentences, apart from the first, that say what an object does, best first: from
    the summary, then from Returns, then from Notes.

    Sentences that name the object as code or are about the documentation are left out.
    """
    parts = sections(item.text)
    # the lines ``name : type`` of Returns are dropped, and their descriptions stay
    returned = re.sub(r"^\S.*\n", "", parts.get("returns", ""), flags=re.M)
    texts = parts[""], textwrap.dedent(returned), parts.get("notes", "")
    naming = {name.rpartition(".")[2] for name in item.names}
    in_code = "|".join(rf"\b{name}(?=\()|\.{name}\b" for name in naming)
    first = opening_sentence(parts[""]).rstrip(".")
    return [
        sentence
        for sentence in dict.fromkeys(chain(*map(prose_sentences, texts)))
        if sentence.rstrip(".") != first
        and not BOILERPLATE.search(sentence)
        and not re.search(in_code, sentence)
        and not any("_" in name and name in sentence for name in naming)
    ]


def build() -> dict[str, list[dict[str, Any]]]:
    """Return {name of a file: its records} for the snippets, the validation queries and the test
    queries. The same versions of the libraries give the same records.
    """
    made: dict[str, list[Snippet]] = defaultdict(list)
    requests = defaultdict(list)
    for name, package in EXAMPLE_PACKAGES.items():
        for item in watched(documented(package), name):
            snippets = [*_snippets(name, item)]
            others = phrasings(item)
            split = split_of(item)
            made[split] += snippets
            if snippets and others:
                requests[split].append((others[0], snippets))
    by_code: dict[str, Snippet] = {}
    for snippet in [
        *made["test"],
        *sorted(made["training"] + made["development"], key=attrgetter("id")),
    ]:
        # if several objects share a snippet, it gets the id of a held-out object, if there is one
        by_code.setdefault(_key(snippet.code), snippet)
    kept = set(by_code.values())
    return {
        "snippets": [*map(vars, by_code.values())],
        "queries_valid": [*_queries(requests["development"], kept)],
        "queries_test": [*_queries(requests["test"], kept)],
    }


def _snippets(distribution: str, item: Documented) -> Iterator[Snippet]:
    """Yield the snippets of a docstring: each piece of example code, described by the docstring's
    first sentence and the sentence that introduces the code.
    """
    parts = sections(item.text)
    source = metadata.distribution(distribution)
    first = opening_sentence(parts[""])
    licence = packages.licence_of(source)
    origin = f"{distribution} {source.version}: {item.name}"
    found = sessions(parts.get("examples", "")) or sessions(item.text)
    for number, (lead, code) in enumerate(found if len(first.split()) > 1 else ()):
        if len(code) <= MAX_CODE and ("(" in code or "[" in code):
            description = f"{first.rstrip('.')}. {lead}" if lead else first
            yield Snippet(f"{item.name}#{number}", description, code, origin, licence)


def _key(code: str) -> str:
    """Return code without its imports and white space. Two snippets with the same key count as one,
    for example if they differ only in how they import a function.
    """
    return re.sub(r"(?m)^\s*(import|from)\s.*|\s", "", code)


def _queries(
    asked: list[tuple[str, list[Snippet]]], kept: set[Snippet]
) -> Iterator[dict[str, Any]]:
    """Yield ``{query, relevant_ids}`` for each sentence whose objects have snippets in the corpus.
    Sentences that more than MAX_OBJECTS objects share are left out.

    ``asked`` are pairs (sentence, snippets of its object), and ``kept`` is the corpus.
    """
    by_text = defaultdict(list)
    for text, snippets in asked:
        by_text[text].append(snippets)
    for text, objects in by_text.items():
        ids = [snippet.id for snippet in chain(*objects) if snippet in kept]
        if ids and len(objects) <= MAX_OBJECTS:
            yield {"query": text, "relevant_ids": ids}


def pairs() -> list[tuple[str, str]]:
    """Return the training pairs of the sentence encoder: pairs of sentences about the same object,
    each pair once, from all listed packages.

    Heyman and Van Cutsem learn from pairs of titles of duplicate questions. In place of two titles,
    a pair here has two sentences of one docstring, which say in different words what an object
    does. No pair contains the text of a query.
    """
    asked = {query.text for split in ("valid", "test") for query in queries("mini", split)}
    found = chain(*map(pairs_of, watched(_items(), "reading docstrings")))
    return [pair for pair in dict.fromkeys(found) if asked.isdisjoint(pair)]


def pairs_of(item: Documented) -> list[tuple[str, str]]:
    """Return pairs of an object's first sentence and another sentence of its docstring. The other
    sentences are up to MAX_PHRASINGS ``phrasings``, and up to MAX_PHRASINGS sentences that
    introduce examples.

    The list is empty for an object that is for testing or development.
    """
    first = opening_sentence(sections(item.text)[""])
    if split_of(item) != "training" or len(first.split()) < 2:
        return []
    others = phrasings(item)[:MAX_PHRASINGS]
    leads = [lead for lead, _ in sessions(sections(item.text).get("examples", "")) if lead]
    found = [(first, other) for other in [*others, *leads[:MAX_PHRASINGS]]]
    if leads and others:  # one more pair has the form of a snippet's description
        found.append((f"{first.rstrip('.')}. {leads[0]}", others[0]))
    return found


def _items() -> Iterator[Documented]:
    """Yield the documented objects of the four libraries, which are imported, and of the other
    packages, whose source files are parsed.
    """
    yield from chain(*map(documented, EXAMPLE_PACKAGES.values()))
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    others = [name for name in packages.CORPUS_PACKAGES if name not in EXAMPLE_PACKAGES]
    for path, place in chain(*(sorted(packages.files_of(name)) for name in others)):
        for node in ast.walk(packages.parsed(place)[1]):
            if isinstance(node, definitions) and (text := ast.get_docstring(node)):
                yield Documented((f"{path}.{node.name}",), text)


def train_encoder(found: Sequence[tuple[str, str]], batch: int = 512, epochs: int = 3) -> Any:
    """Return a sentence encoder, trained on pairs of texts. It encodes a text as the mean of one
    vector per subword. The subwords are learned from the same texts in lower case.

    The loss is sentence-transformers' ranking loss, for which the other texts of a batch are the
    negatives. On the 264 validation queries of an earlier mini corpus, this loss gave an MRR of
    .396 after three epochs. Heyman and Van Cutsem's loss (binary cross-entropy on the cosine, with
    five negatives) gave .368, although it learned from six times as many rows.
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

    # BPE, because the trainer of WordPiece gives different subwords each time
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.Lowercase(), normalizers.StripAccents()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.ByteLevel()]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(chain(*found), trainer)
    size = tokenizer.get_vocab_size()
    generator = torch.Generator().manual_seed(0)
    weights = 0.1 * torch.randn(size, DIMENSIONS, generator=generator)
    embedding = StaticEmbedding(tokenizer, embedding_weights=weights)
    model = SentenceTransformer(modules=[embedding], device="cpu")
    settings = SentenceTransformerTrainingArguments(
        str(paths.RUNS / "train" / "encoder"),
        max_steps=epochs * -(-len(found) // batch),
        per_device_train_batch_size=batch,
        **tables("mini/finetuning.yaml")["encoder"],
    )
    orders = (random.Random(f"0 {n}").sample(found, len(found)) for n in range(epochs))
    rows = [{"anchor": one, "positive": other} for order in orders for one, other in order]
    data = Dataset.from_list(rows).to_iterable_dataset()  # the trainer does not shuffle such data
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model, settings, train_dataset=data, loss=loss).train()
    return model


def save_encoder() -> int:
    """Train the sentence encoder, write it in half precision, and return the number of pairs."""
    found = pairs()
    out = CORPUS_FOLDER / "encoder"
    model = train_encoder(found)
    shutil.rmtree(out, ignore_errors=True)
    model.half().save(str(out), create_model_card=False)
    card = ENCODER_CARD.format(pairs=len(found))
    (out / "README.md").write_text(card, encoding="utf-8")
    return len(found)


@command()
def main(step: Literal["corpus", "rankers"]) -> None:
    """Build the mini corpus of snippets (STEP corpus: descriptions, code and queries from the
    docstrings of numpy, pandas, scipy and scikit-learn), or train its rankers (STEP rankers).

    The rankers are word vectors and a sentence encoder. Each is trained on one core, so that the
    same seed gives the same vectors.

    \b
    Examples:
      python -m recipes.mini.snippets corpus
      python -m recipes.mini.snippets rankers
    """
    if step == "corpus":
        for name, records in build().items():
            write_rows(CORPUS_FOLDER / f"{name}.jsonl.gz", records)
            click.echo(f"{len(records):,} {name} -> {CORPUS_FOLDER}")
    else:
        steady()
        words = train_words(ranking.training_lines(load_snippets("mini")))
        save_words(CORPUS_FOLDER / "words", words)
        click.echo(f"{len(words):,} words, {save_encoder():,} pairs")


if __name__ == "__main__":
    run_module(main)
