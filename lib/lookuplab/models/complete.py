"""The one way from prompts to completions: look them up, generate what is missing, store it as it comes.

Batching, caching, resuming and progress exist here once; every notebook and every package calls
``complete`` or ``score`` and never a model itself. What a call finds in the store costs no weights and no writing.

Several processes of one machine (``accelerate launch -m lookuplab run NOTEBOOK``) share a store: each
generates its share of the prompts and waits for what the others generate.
"""

import csv
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Literal, Protocol

from tqdm import tqdm

from lookuplab.errors import UserError
from lookuplab.models.store import CompletionStore, canonical, digest

# raise it whenever the same model and parameters would give another answer than before
DECODING_VERSION = 1
SHARE = "LOOKUPLAB_SHARE"  # "1/4": the second of four processes; set by the runner
POLL_SECONDS = 0.5  # between two looks for the others' answers; a launcher ends all where one fails
LOG = "LOOKUPLAB_ANSWERS"  # a file for the answers that a notebook used; set by the runner
# of that file, one line a use
COLUMNS = ("model", "prompt", "sample", "question", "answer", "margin")
# An answer whose margin is below this (in nats; in probability if sampled) is a near tie, and the log has its margin. Across
# a processor's vector extensions the mini models' log-probabilities differ by at most 2e-5 and their margins by 3e-5.
NEAR = 1e-4


@dataclass(frozen=True)
class Prompt:
    """One question to a model. ``id`` names it in every table; ``system`` is used by chat models only.

    ``choices`` are the names (identifiers) that may stand first in the answer; None and () leave it
    free. Only a local model can be held to them, and only where the answer continues the prompt or
    begins a text of its own (no chat). ``place`` says where the answer will stand, for a model whose
    answer depends on that too; it is part of the key of a stored answer.
    """

    id: str
    text: str
    system: str | None = None
    choices: tuple[str, ...] | None = None
    place: str | None = None


class StopRule(Protocol):
    """Reads one completion piece by piece. ``name`` stands for the rule in the keys of stored answers."""

    name: str

    def feed(self, piece: str) -> bool:
        """True once nothing that follows can matter."""
        ...


@dataclass(frozen=True)
class Decoding:
    """How to decode. The defaults are CloudAPIBench's: greedy, one sequence, up to 256 tokens (Section 2.3).

    ``temperature`` 0 is greedy. ``n`` samples are drawn per prompt, each seeded by (seed, prompt id,
    sample index), so that a sample does not depend on the batch that it was drawn in. ``stop`` strings
    and ``stop_rule`` (called once for each answer, for a fresh ``StopRule``) end an answer while it is written.
    ``beams`` above 1 is beam search, which is for greedy answers that nothing but their end stops.
    ``truncation`` "left" drops the beginning of a too long prompt; without it such a prompt is an error.
    """

    max_new_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    n: int = 1
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_rule: Callable[[], StopRule] | None = None
    truncation: str | None = None
    beams: int = 1

    def stopper(self) -> Callable[[str], bool]:
        """A reader for one answer: fed piece by piece, it says True where ``stop`` or the rule ends it."""
        rule, read = self.stop_rule and self.stop_rule(), ""
        overlap = max(map(len, self.stop), default=1) - 1

        def over(piece: str) -> bool:
            nonlocal read
            read = read[max(0, len(read) - overlap) :] + piece
            return any(text in read for text in self.stop) or bool(rule and rule.feed(piece))

        return over


@dataclass(frozen=True)
class Completion:
    """One answer. ``tokens``, ``token_ids`` and ``token_logprobs`` are parallel; joined tokens spell ``text``.

    ``token_logprobs`` are natural logarithms under the unscaled distribution (temperature 1), None
    where an endpoint gives none. ``finish_reason`` is ``"eos"``, ``"stop"`` (a stop string or rule),
    ``"length"`` or, for a continuation that was only scored, ``"scored"``. After ``"eos"`` a local
    model's last token is the end-of-text token; it spells nothing, like every special token. ``text``
    keeps the whole last token: cutting is the scorer's work. ``prompt_tokens`` counts what the model
    saw, ``prompt_dropped`` what truncation removed. ``margin`` is the smallest gap between a chosen token
    and the runner-up (see ``local.choose``): larger numerical noise could have changed the answer. None
    where there was no choice or it was not measured. ``record`` (JSON) is the log of a constraint, for
    callers that keep one (ToolGen). ``==`` ignores both.
    """

    id: str
    sample: int
    text: str
    tokens: tuple[str, ...]
    token_ids: tuple[int, ...]
    token_logprobs: tuple[float, ...] | None
    finish_reason: str
    prompt_tokens: int
    prompt_dropped: int = 0
    margin: float | None = field(default=None, compare=False)
    record: object = field(default=None, compare=False)


class Model(Protocol):
    """What ``complete`` and the paper rooms need of a model, local or remote.

    ``chat`` says that prompts are asked through a chat template; ``tokenizer`` is the Transformers one.
    """

    name: str
    chat: bool | None
    tokenizer: object

    @property
    def identity(self) -> dict[str, str]:
        """Everything about the model that changes its answers (content hash or name, revision, dtype ...)."""
        ...

    def generate(
        self, requests: Sequence[tuple[Prompt, int]], decoding: Decoding
    ) -> Iterator[list[Completion]]:
        """Answer each (prompt, sample index), in any order; a batch is yielded as soon as it is done."""
        ...

    def score(self, pairs: Sequence[tuple[Prompt, str]]) -> Iterator[list[Completion]]:
        """Log-probabilities of a given continuation of each prompt."""
        ...


Store = CompletionStore | str | os.PathLike | Literal[False] | None
Asked = tuple[Prompt, str, int]  # a prompt, the continuation to score, the sample


def complete(
    model: Model,
    prompts: Sequence[Prompt],
    decoding: Decoding = Decoding(),
    store: Store = None,
    progress: bool = True,
    requires_logprobs: bool = False,
) -> list[Completion]:
    """Answer every prompt ``decoding.n`` times; return the answers ordered by (prompt as given, sample).

    ``store`` is a CompletionStore or a path; None means ``$LOOKUPLAB_STORE`` or ``paths.STORE``, False none.
    Prompts with equal text share one greedy answer, each under its own id. With ``requires_logprobs`` the
    first answer without log-probabilities ends the call. UserError for that, for a prompt id that occurs
    twice, for decoding parameters out of range and for whatever model and store complain about.
    """
    if not (
        decoding.max_new_tokens >= 1
        and decoding.temperature >= 0
        and 0 < decoding.top_p <= 1
        and (decoding.n == 1 or decoding.n > 1 and decoding.temperature > 0)
        and decoding.beams >= 1
        and (
            decoding.beams == 1 or not (decoding.temperature or decoding.stop or decoding.stop_rule)
        )
    ):
        raise UserError(
            f"{decoding} is out of range; see models.Decoding (n above 1 needs a temperature)"
        )
    asked = [(prompt, "", sample) for prompt in prompts for sample in range(decoding.n)]
    return _answered(model, asked, decoding, store, progress, requires_logprobs)


def score(
    model: Model, pairs: Sequence[tuple[Prompt, str]], store: Store = None, progress: bool = True
) -> list[Completion]:
    """Log-probabilities of given continuations (teacher forcing), in the order of ``pairs``.

    Each Completion has the continuation as ``text``; ``tokens`` and ``token_logprobs`` are those of the
    continuation. Stored and resumed as in ``complete``; prompt ids are unique here too.
    """
    asked = [(prompt, text, 0) for prompt, text in pairs]
    return _answered(model, asked, None, store, progress, requires_logprobs=True)


def _answered(
    model: Model,
    asked: list[Asked],
    decoding: Decoding | None,
    store: Store,
    progress: bool,
    requires_logprobs: bool,
) -> list[Completion]:
    """Look up, generate the rest (without ``decoding``: score it), return what the store holds: another process may have
    stored an answer first.
    """
    counts = Counter((prompt.id, sample) for prompt, _, sample in asked)
    if twice := [name for (name, _), count in counts.items() if count > 1]:
        raise UserError(f"prompt ids must be unique, but {twice[0]!r} occurs more than once")
    keyed = list(keys_of(model.identity, decoding, asked))
    keys = [key for key, _ in keyed]

    def require_logprobs(logprobs: Iterable[object]) -> None:
        if requires_logprobs and None in logprobs:
            raise UserError(
                f"{model.name} gives no log-probabilities, which are needed here (confidence, perplexity); "
                "use a local model or an endpoint that gives them (vLLM does)"
            )

    used = nullcontext(store)  # a given store stays open
    if not isinstance(store, CompletionStore):
        used = store = CompletionStore(":memory:" if store is False else store)
    with used:
        known = store.get(set(keys))
        require_logprobs(one["token_logprobs"] for one in known.values())
        missing = {key: one for key, one in zip(keys, asked, strict=True) if key not in known}
        if missing:
            store.add({})  # a full disk or a read-only store shows before anything is generated
            alone = str(store.path) == ":memory:"  # no other process sees it
            mine = {key: one for key, one in missing.items() if alone or _is_mine(key)}
            key_of = {(prompt.id, sample): key for key, (prompt, _, sample) in mine.items()}
            if decoding:
                given = [(prompt, sample) for prompt, _, sample in mine.values()]
                answering = model.generate(given, decoding)
            else:
                answering = model.score([(prompt, text) for prompt, text, _ in mine.values()])
            # in a notebook or a log file every refresh is a new line, so there it comes rarely
            rarely = {} if sys.stderr.isatty() else {"delay": 5, "mininterval": 10}
            some = {"total": len(missing), "unit": "answer", "disable": not progress, **rarely}
            with tqdm(desc=model.name, **some) as bar, closing(answering) as batches:
                for batch in batches:
                    named = {key_of[one.id, one.sample]: vars(one) for one in batch}
                    store.add({key: one | {"model": model.name} for key, one in named.items()})
                    require_logprobs(one.token_logprobs for one in batch)
                    bar.update(len(batch))
                others = missing.keys() - mine.keys()
                while others:
                    came = store.get(others).keys()
                    bar.update(len(came))
                    others -= came
                    time.sleep(POLL_SECONDS if others else 0)
            known |= store.get(missing)
    answers = [
        _restored(known[key], prompt.id, sample)
        for key, (prompt, _, sample) in zip(keys, asked, strict=True)
    ]
    # continuations that were only scored are no answers
    if decoding and (file := os.environ.get(LOG)):
        with open(file, "a", encoding="utf-8", newline="") as log:
            write = csv.writer(log, lineterminator="\n").writerow
            for (_, question), one in zip(keyed, answers, strict=True):
                near = one.margin is not None and one.margin < NEAR
                told = digest(one.text)[:8], f"{one.margin:.0e}" if near else ""
                write((model.name, one.id, one.sample, question, *told))
    return answers


def keys_of(
    identity: dict[str, str], decoding: Decoding | None, asked: Sequence[Asked]
) -> Iterator[tuple[str, str]]:
    """For each request, the key of its answer and a short digest of the question, which does not depend on the model.

    A key has three parts: what many prompts have in common (model, decoding, version), the prompt, the sample.
    """
    stated = asdict(decoding) if decoding else {}
    stated.pop("n", None)  # the sample index says it: the first 5 of 20 samples are those of n=5
    if stated.get("beams") == 1:  # as answers were stored before there were others
        del stated["beams"]
    if decoding and decoding.stop_rule:
        stated["stop_rule"] = decoding.stop_rule.name
    kind = "generate" if decoding else "score"
    settings = {"kind": kind, "model": identity, "decoding": stated, "version": DECODING_VERSION}
    common, hashed = digest(canonical(settings)), {}
    for prompt, continuation, sample in asked:
        if prompt.id not in hashed:
            fields = {"text": prompt.text, "system": prompt.system}
            if decoding is None:
                fields["continuation"] = continuation
            elif prompt.choices:
                fields["choices"] = sorted(set(prompt.choices))
            if prompt.place is not None:
                fields["place"] = prompt.place
            if decoding and decoding.temperature > 0:  # a sample's seed depends on the prompt's id
                fields["id"] = prompt.id
            text = canonical(fields)
            hashed[prompt.id] = f"{common}/{digest(text)}", digest(canonical(stated) + text)[:8]
        key, question = hashed[prompt.id]
        yield f"{key}/{sample}", question


def _restored(answer: dict, name: str, sample: int) -> Completion:
    """A stored answer under the id of this question, for equal prompts share it; lists are tuples again."""
    fields = {
        name: tuple(value) if isinstance(value, list) else value for name, value in answer.items()
    }
    del fields["model"]
    return Completion(**fields | {"id": name, "sample": sample})


def _is_mine(key: str) -> bool:
    """Whether this process of a launch generates the answer: a prompt's samples are of one process.

    Processes that look up at different times agree.
    """
    number, count = os.environ.get(SHARE, "0/1").split("/")
    return int(key.split("/")[1], 16) % int(count) == int(number)
