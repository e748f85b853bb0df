"""Ranks code snippets for questions in natural language: with BM25, with a neural ranker of code,
with a neural ranker of descriptions, and with an ensemble of the two neural rankers.

The neural rankers are those of Heyman and Van Cutsem (2020), which the StackOverflow paper uses
(Sections 3 and 4.4). Text is split into words as in their code (nokia/codesearch), except that
words are not lemmatised, because spaCy's English model is not on any package registry.
"""

import hashlib
import json
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from importlib.metadata import version
from itertools import chain, count
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tree_sitter_python
from tree_sitter import Language, Node, Parser

from lookuplab import paths
from lookuplab.errors import UserError, first_line, needs
from lookuplab.retrieval.metrics import Floats, RelevantRanks, relevant_ranks

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

K1, B, EPSILON = 1.5, 0.75, 0.25  # BM25's parameters; rank-bm25 has the same defaults
STOP_WORDS = frozenset(
    """
    a an the this that these those it its i me my we our you your he she they them their there here
    is are was were be been being am do does did doing have has had having will would shall should
    can could may might must of in on at by to from with without into onto for as and or but if then
    than so such how what which who whom whose when while why also very just some any please want
    need
    """.split()
)
HOW_TO = re.compile(
    r"^\s*(how to|how do (i|you)|how does one|(the )?best way to|(how )?can (you|i))\s+", re.I
)
# characters of scripts that put no spaces between words, such as Thai, Chinese and Japanese
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
# Tree-sitter's names of the operators that count as words of code. An operator counts only inside a
# node whose type is in OPERATIONS, because ** and * also mark arguments.
OPERATORS = frozenset("< > + - / // * ** @ %".split())
OPERATIONS = ("binary_operator", "comparison_operator")
LOOPS = ("for", "while")
# Patterns that split an identifier into words. They differ in how they treat digits; the keys say
# how. None of them may change: rankings and the mini models' training texts depend on all three.
WORDS = {
    # digits are treated like lower-case letters, but are dropped at the end of the name, as in
    # nokia/codesearch
    "dropped last": re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z_]+|[A-Z]"),
    # digits belong to the word before them (s3); an acronym keeps its plural s (ClientAPIs)
    "joined": re.compile(r"[A-Z]+s?(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+"),
    # digits are separate words
    "apart": re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+"),
}
# Cosines are rounded to this many decimals. Further decimals are float32 noise, which would give
# equal texts different scores.
DIGITS = 6
# at most BATCH queries are scored at once, and about SCORES scores are in memory
BATCH, SCORES = 256, 30_000_000
WEIGHTS = (0.3, 0.4, 0.5)  # the ensemble weights that the paper tries
# The settings of the word vectors that differ from gensim's defaults. They come from
# nokia/codesearch, and from fastText's own defaults for a skip-gram model.
FASTTEXT = {
    "sg": 1,
    "window": 20,
    "epochs": 30,
    "min_count": 1,
    "alpha": 0.05,
    "sample": 1e-4,
    "workers": 1,  # so that the result depends only on the seed
}
SNIPPET_PARSER = Parser(Language(tree_sitter_python.language()))


def identifier_words(name: str, digits: str = "dropped last") -> list[str]:
    """Return the words of a snake_case, dashed or camelCase name, in lower case. ``digits`` is a
    key of WORDS.

    ``getHTTPResponse2`` gives get, http and response; with "joined" the last word is response2, and
    with "apart" there is a fourth word, 2. ``__init__`` gives init, and ``_`` gives nothing. A name
    with non-ASCII letters is split only at underscores.
    """
    if not name.isascii():
        return list(filter(None, name.casefold().split("_")))
    if digits == "dropped last":
        name = name.strip("_").rstrip("0123456789")
    return [word.lower() for word in WORDS[digits].findall(name)]


def query_words(text: str) -> list[str]:
    """Return the words of a question, a description or a comment, without "how to", stop words,
    numbers and punctuation.

    Identifiers are split as in code. The text may be in any script. In scripts without spaces
    between words, such as Chinese, Japanese and Thai, every character is a word.
    """
    text = HOW_TO.sub("", text)
    if not text.isascii():  # \w would split words at vowel signs and accents
        text = UNSPACED.sub(r" \g<0> ", unicodedata.normalize("NFKC", text))
        kinds = ((one, unicodedata.category(one)[0]) for one in text)
        text = "".join(one if kind in "LMN" or one == "_" else " " for one, kind in kinds)
    names = re.findall(r"\w+" if text.isascii() else r"\S+", text)
    return [word for name in names for word in identifier_words(name) if word not in STOP_WORDS]


def code_words(code: str) -> list[str]:
    """Return the words of Python code in the order of their occurrence: the words in identifiers
    and comments, the keywords ``for`` and ``while``, and the binary operators in OPERATORS.

    If the code does not parse as a whole (Python 2, a fragment), the words of the parts that parse
    are returned.
    """
    words: list[str] = []
    stack = [(SNIPPET_PARSER.parse(code.encode()).root_node, "")]
    while stack:  # an explicit stack, because expressions nest deeply
        node, parent = stack.pop()
        stack.extend((child, node.type) for child in reversed(node.children))
        words.extend(() if node.children else _words_of(node, parent))
    return words


def _words_of(node: Node, parent: str) -> list[str]:
    """Return the words of a node without children. ``parent`` is the type of its parent, given
    because tree-sitter would search for the parent from the root.
    """
    text = (node.text or b"").decode(errors="replace")
    if node.type == "identifier":
        return identifier_words(text)
    if node.type == "comment":
        return query_words(text)
    operation = node.type in OPERATORS and parent in OPERATIONS
    return [node.type] if operation or node.type in LOOPS else []


class Wordless(UserError):
    """Raised if none of a ranker's documents has a word, because the ranker cannot rank them."""


class Ranker(ABC):
    """The base class of rankers. A ranker scores documents for a query, and ranks them by their
    scores. ``ids`` are the documents' ids, sorted; arrays of scores are in the same order.
    """

    ids: list[str]

    @abstractmethod
    def scores_of(self, queries: Sequence[str]) -> Floats:
        """Return a score for each of q queries and n documents, (q, n) floats; higher is better."""

    def top(self, query: str, k: int) -> list[tuple[str, float]]:
        """Return (id, score) of the best min(k, n) documents for a query, best first."""
        (scores,) = self.scores_of([query])
        return [(self.ids[at], float(scores[at])) for at in best(scores, k)]

    def rank(self, queries: Mapping[str, str], k: int) -> dict[str, list[str]]:
        """Return {query's id: ids of the best min(k, n) documents}, best first. ``queries`` is
        {id: text}. Documents with equal scores are in the order of their ids.
        """
        ranked = ([self.ids[at] for at in best(line, k)] for line in self._lines(queries))
        return dict(zip(queries, ranked, strict=True))

    def relevant_ranks(
        self,
        queries: Mapping[str, str],
        relevant: Mapping[str, Collection[str]],
        k: int,
        hidden: Mapping[str, Collection[str]],
    ) -> RelevantRanks:
        """Return the ranks of the relevant documents among the first ``k`` for each query, as input
        for ``metrics``. ``relevant`` and ``hidden`` map a query's id to ids of documents. A
        query's hidden documents are left out of its ranking.
        """
        at = {name: place for place, name in enumerate(self.ids)}

        def seen() -> Iterator[tuple[Floats, list[int], int]]:
            for query, scores in zip(queries, self._lines(queries), strict=True):
                line = scores.astype(float)
                line[[at[name] for name in hidden[query]]] = -np.inf
                names = {*relevant[query]}
                yield line, [at[name] for name in names if name in at], len(names)

        return relevant_ranks(seen(), k)

    def _lines(self, queries: Mapping[str, str]) -> Iterator[Floats]:
        """Yield the scores of each query, (n,). They are computed in batches that fit in memory."""
        texts = list(queries.values())
        size = min(BATCH, SCORES // len(self.ids) + 1)
        batches = (texts[start : start + size] for start in range(0, len(texts), size))
        return (line for batch in batches for line in self.scores_of(batch))


def best(scores: Floats, k: int) -> Floats:
    """Return the indices of the ``k`` highest of ``scores`` (n,), highest first. Equal scores stay
    in their original order.
    """
    k = min(k, len(scores))
    # NumPy finds the lowest of many equal numbers ten times as fast as the highest
    negative = -scores
    # sorting only the scores that are at least as high as the k-th best saves time
    candidates = np.flatnonzero(negative <= np.partition(negative, k - 1)[k - 1])
    return candidates[np.argsort(negative[candidates], kind="stable")][:k]


class Bm25(Ranker):
    """Ranks ``documents`` (id -> words) with Okapi BM25. The scores are exactly rank-bm25's.

    rank-bm25 scores all documents anew for every query. This class scores every pair of a word and
    a document once, in the constructor. These scores do not include the weight (IDF) of the word,
    by which they are multiplied when a query is scored. Many scores without weights are equal, and
    equal scores are stored only once, which saves memory. ``words`` splits a query into words; a
    word that occurs twice in a query counts twice. Raises Wordless if no document has a word.
    """

    def __init__(
        self,
        documents: Mapping[str, Sequence[str]],
        words: Callable[[str], Iterable[str]] = query_words,
    ):
        self.ids = sorted(documents)
        self.words = words
        if not any(documents.values()):
            raise Wordless(f"nothing to search: {len(documents)} documents without a single word")
        # words are numbered in the order of their first occurrence
        self.numbers: dict[str, int] = defaultdict(count().__next__)
        lengths = np.array([len(documents[name]) for name in self.ids])
        every = chain.from_iterable(documents[name] for name in self.ids)
        pairs = np.fromiter(map(self.numbers.__getitem__, every), np.int64)
        # A posting says that a document contains a word. All postings of word 0 come first, then
        # the postings of word 1, and so on: the postings of word i are from ``starts[i]`` to
        # ``starts[i + 1]``. ``holders`` has the document of each posting. A posting's score, before
        # it is multiplied by the word's weight, depends only on how often the word occurs and on
        # the document's length. Many postings therefore have the same score. ``impacts`` has each
        # score once, and ``codes`` has, for each posting, the index of its score in ``impacts``.
        # These indices need only one or two bytes.
        pairs *= len(lengths)
        pairs += np.repeat(np.arange(len(lengths)), lengths)
        pairs, counts = np.unique(pairs, return_counts=True)
        word, holder = np.divmod(pairs, len(lengths))
        self.starts = np.searchsorted(word, np.arange(len(self.numbers) + 1))
        self.weights = _weights(np.diff(self.starts).tolist(), len(lengths))
        # the operations are in rank-bm25's order, so that even the last bits are equal
        scale = K1 * (1 - B + B * lengths / lengths.mean())
        self.holders = holder.astype(np.int32)
        impacts = counts * (K1 + 1) / (counts + scale[holder])
        self.impacts = np.unique(impacts)
        codes = np.searchsorted(self.impacts, impacts)
        self.codes = codes.astype(np.min_scalar_type(len(self.impacts)))

    def scores_of(self, queries: Sequence[str]) -> Floats:
        scores = np.zeros((len(queries), len(self.ids)))
        for line, query in zip(scores, queries, strict=True):
            for word in self.words(query):
                if (number := self.numbers.get(word)) is not None:
                    own = slice(self.starts[number], self.starts[number + 1])
                    # converted once here, because ``+=`` would convert an index of another type
                    # twice
                    holders = self.holders[own].astype(np.intp)
                    line[holders] += (self.weights[number] * self.impacts).take(self.codes[own])
        return scores


def _weights(holders: list[int], documents: int) -> Floats:
    """Return the weight (IDF) of each word, (words,) floats, as rank-bm25 computes it. ``holders``
    says in how many documents each word occurs; ``documents`` is the number of documents.

    A word in more than half of the documents would have a negative weight. Its weight is EPSILON
    times the mean weight instead.
    """
    weights = [math.log(documents - n + 0.5) - math.log(n + 0.5) for n in holders]
    least = EPSILON * (reduce(add, weights) / len(weights))  # sum() would round differently
    return np.array([least if weight < 0 else weight for weight in weights])


@dataclass
class Cosine(Ranker):
    """Ranks documents by the cosine of their vectors and the query's vector, rounded to DIGITS.

    ``vectors`` are the documents' vectors, (n, d). ``encode`` turns q queries into vectors (q, d).
    Vectors may have any norm; the cosine with a vector of zeros counts as 0.
    """

    ids: list[str]
    vectors: Floats
    encode: Callable[[Sequence[str]], Floats]

    def __post_init__(self) -> None:
        self.vectors = normalise(self.vectors)

    def scores_of(self, queries: Sequence[str]) -> Floats:
        cosines: Floats = normalise(self.encode(queries)) @ self.vectors.T
        return cosines.round(DIGITS)


def normalise(vectors: Floats) -> Floats:
    """Return the vectors (n, d) scaled to norm 1, as float32. Vectors of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


@dataclass
class Ensemble(Ranker):
    """Ranks documents by ``weight`` times the cosine of the query and the document's code, plus the
    cosine of the query and the document's description (StackOverflow paper, Sections 3 and 4.3).

    The paper does not say to which of the two cosines its WEIGHTS apply. We weight the code, as
    Heyman and Van Cutsem's notebook does. ``code`` and ``description`` must rank the same
    documents.
    """

    code: Ranker
    description: Ranker
    weight: float

    def __post_init__(self) -> None:
        self.ids = self.code.ids

    def scores_of(self, queries: Sequence[str]) -> Floats:
        code, description = self.code.scores_of(queries), self.description.scores_of(queries)
        return (self.weight * code + description).round(DIGITS)


def by_code(codes: Mapping[str, str], vectors: Mapping[str, Floats]) -> Cosine:
    """Return a ranker of ``codes`` (id -> code): the neural bag of words (NCS) of Heyman and Van
    Cutsem (Section 4.1). ``vectors`` are word vectors, {word: (d,)}.

    The vector of a query is the mean of the vectors of its words. The vector of a piece of code is
    the mean of the vectors of its words, weighted by TF-IDF. Unknown words are ignored. Raises
    Wordless if no code has a word.
    """
    if not any(map(code_words, codes.values())):
        raise Wordless(f"nothing to search: {len(codes)} pieces of code without a single word")
    zeros = np.zeros_like(next(iter(vectors.values())))

    def vectors_of(words: Iterable[str]) -> list[Floats]:
        return [vectors.get(word, zeros) for word in words]

    def encode(queries: Sequence[str]) -> Floats:
        # the sum in place of the mean: both have the same direction, and so the same cosine
        return np.array([sum(vectors_of(query_words(query)), zeros) for query in queries])

    def weighted() -> Floats:
        from sklearn.feature_extraction.text import TfidfVectorizer

        tf_idf = TfidfVectorizer(analyzer=code_words, norm=None)
        weights = tf_idf.fit_transform(codes[name] for name in ids)
        mean: Floats = weights @ np.array(vectors_of(tf_idf.get_feature_names_out()))
        return mean

    ids = sorted(codes)
    known = hashlib.sha256(np.array([*vectors.values()]).tobytes()).hexdigest()
    about = [version("scikit-learn"), known, *vectors, *(codes[name] for name in ids)]
    return Cosine(ids, cached(about, weighted), encode)


def by_description(descriptions: Mapping[str, str], encoder: str | Path) -> Cosine:
    """Return a ranker of ``descriptions`` (id -> text) that compares sentence vectors. ``encoder``
    is a sentence-transformers model: a folder, or a name on the hub.

    Heyman and Van Cutsem (Section 4.2) fine-tune the Universal Sentence Encoder instead. Raises
    UserError if the model does not load.
    """

    def encode(texts: Sequence[str]) -> Floats:
        def encoded() -> Floats:
            model = sentence_encoder(str(encoder))
            made = model.encode(list(texts), batch_size=BATCH, show_progress_bar=False)
            return np.array(np.nan_to_num(made))  # the vector of a text without tokens is NaN

        # a name on the hub does not identify the model's content, so its vectors are not cached
        if not folder.is_dir():
            return encoded()
        files = filter(Path.is_file, sorted(folder.rglob("*")))
        with needs("rank"):
            versions = [version("torch"), version("sentence-transformers")]
        return cached([*versions, paths.folder_hash(folder, files, "content"), *texts], encoded)

    folder = paths.located(encoder)

    ids = sorted(descriptions)
    return Cosine(ids, encode([descriptions[name] for name in ids]), encode)


def cached(about: Sequence[str], make: Callable[[], Floats]) -> Floats:
    """Return the vectors that ``make`` computes, from a cache on disk if they are there. The name
    of the cache's file is a hash of ``about``, which must contain everything on which the vectors
    depend. The cache exists because six notebooks need the same vectors, and importing the
    encoder's package takes seven seconds.
    """
    name = paths.hashed(json.dumps(about))[:16]
    place = paths.RUNS / "rankers" / f"{name}.npy"
    if not place.is_file():
        with paths.replacing(place) as part, part.open("wb") as file:
            np.save(file, make())
    vectors: Floats = np.load(place)
    return vectors


@lru_cache(maxsize=2)
def sentence_encoder(name: str) -> "SentenceTransformer":
    """Return a sentence-transformers model in float32. ``name`` is a folder, or a name on the hub.
    Raises UserError if the model does not load.
    """
    with needs("rank"):
        from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(str(paths.located(name))).float()
    # for a model that is missing, unreachable or of another kind, the package raises many kinds of
    # exceptions
    except Exception as error:
        raise UserError(
            f"no sentence encoder {name!r}: {first_line(error)}; give a folder or a name on the hub"
        ) from error


def train_words(lines: Sequence[Sequence[str]], folder: Path, **changes: float) -> None:
    """Train fastText on tokenised lines, and write the word vectors to a folder in half precision.
    The list of words is written last, so a folder that has this list is complete. ``changes``
    override settings in FASTTEXT.
    """
    with needs("words", " (with Python 3.13 or older)"):
        from gensim.models import FastText

    trained = FastText(lines, **FASTTEXT | changes).wv
    paths.make_folder(folder)
    np.save(folder / "vectors.npy", trained.vectors.astype(np.float16))
    words = json.dumps({"words": trained.index_to_key}, ensure_ascii=False)
    paths.write_lines(folder / "about.json", [words])


def load_words(folder: Path) -> dict[str, Floats]:
    """Return the word vectors that ``train_words`` wrote, as {word: (d,) float32}. Raises UserError
    if the folder has no word vectors.
    """
    try:
        words = json.loads((folder / "about.json").read_text("utf-8"))["words"]
        return dict(zip(words, np.load(folder / "vectors.npy").astype(np.float32), strict=True))
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{folder} holds no word vectors ({error})") from None
