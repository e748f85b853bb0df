"""The one way from prompts to completions: look them up, generate what is missing, store it as it comes.

Batching, caching, resuming and progress exist here once; every notebook and every room calls ``complete``
or ``score`` and never a model itself. What a call finds in the store costs no weights and no writing.

Several processes of one machine (``accelerate launch -m lookuplab run NOTEBOOK``) share a store: each
generates its share of the prompts and waits for what the others generate.
"""

import csv
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, fields, replace

from tqdm import tqdm

from lookuplab.errors import UserError
from lookuplab.models.store import CompletionStore, canonical, digest
from lookuplab.models.types import Completion, Decoding, Model, Prompt

DECODING_VERSION = (
    1  # raise it whenever the same model and parameters would give another answer than before
)
LATER = (
    "choices_below",
)  # left out of the key at its default: keys are those from before it existed
SHARE = "LOOKUPLAB_SHARE"  # "1/4": the second of four processes; set by the runner
POLL_SECONDS, PATIENCE_SECONDS = (
    0.5,
    3600.0,
)  # without one answer of the others; a launcher ends all where one fails
LOG = "LOOKUPLAB_ANSWERS"  # a file for the answers that a notebook used; set by the runner
COLUMNS = (
    "model",
    "prompt",
    "sample",
    "question",
    "answer",
    "margin",
)  # of that file, one line a use
# Nats, or probability of a draw: an answer with a narrower decision is a near tie and its margin is told. Between the
# vector extensions of one processor the mini models' log-probabilities differ by 2e-5 at most, their margins by 3e-5.
NEAR = 1e-4

Store = CompletionStore | str | os.PathLike | bool | None


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
    for name, fine, allowed in (
        ("max_new_tokens", decoding.max_new_tokens >= 1, "at least 1"),
        ("temperature", decoding.temperature >= 0, "0 (greedy) or more"),
        (
            "n",
            decoding.n == 1 or decoding.n > 1 and decoding.temperature > 0,
            "1, or more at a temperature above 0",
        ),
        ("top_p", 0 < decoding.top_p <= 1, "above 0 and at most 1"),
        ("stop", "" not in decoding.stop, "without an empty string, which would end every answer"),
        ("truncation", decoding.truncation in (None, "left", "right"), "'left', 'right' or None"),
        ("choices_below", 0 <= decoding.choices_below <= 1, "a probability, 0 to 1"),
    ):
        if not fine:
            raise UserError(
                f"decoding: {name} is {getattr(decoding, name)!r}; it must be {allowed}"
            )
    asked = [(prompt, "", sample) for prompt in prompts for sample in range(decoding.n)]

    def answer(missing: list[tuple[Prompt, str, int]]) -> Iterator[list[Completion]]:
        return model.generate([(prompt, sample) for prompt, _, sample in missing], decoding)

    return _answered(model, prompts, asked, decoding, answer, store, progress, requires_logprobs)


def score(
    model: Model, pairs: Sequence[tuple[Prompt, str]], store: Store = None, progress: bool = True
) -> list[Completion]:
    """Log-probabilities of given continuations (teacher forcing), in the order of ``pairs``.

    Each Completion has the continuation as ``text``; ``tokens`` and ``token_logprobs`` are those of the
    continuation. Stored and resumed as in ``complete``; prompt ids are unique here too.
    """
    asked = [(prompt, text, 0) for prompt, text in pairs]

    def answer(missing: list[tuple[Prompt, str, int]]) -> Iterator[list[Completion]]:
        return model.score([(prompt, text) for prompt, text, _ in missing])

    return _answered(model, [one for one, _ in pairs], asked, None, answer, store, progress, True)


def _answered(
    model: Model,
    prompts: Sequence[Prompt],
    asked: list[tuple[Prompt, str, int]],
    decoding: Decoding | None,
    answer: Callable[[list[tuple[Prompt, str, int]]], Iterator[list[Completion]]],
    store: Store,
    progress: bool,
    requires_logprobs: bool,
) -> list[Completion]:
    """``asked`` are prompt, continuation to score, and sample; what another process stored first counts."""
    twice = [name for name, count in Counter(prompt.id for prompt in prompts).items() if count > 1]
    if twice:
        raise UserError(f"prompt ids must be unique, but {twice[0]!r} occurs more than once")
    settings, stated = settings_of(model.identity, decoding)
    questions = {prompt.id: _question(prompt, text, decoding) for prompt, text, _ in asked}
    hashed = {name: f"{digest(settings)}/{digest(text)}/" for name, text in questions.items()}
    keys = [f"{hashed[prompt.id]}{sample}" for prompt, _, sample in asked]

    def checked(completions: Iterable[Completion]) -> None:
        if requires_logprobs and any(one.token_logprobs is None for one in completions):
            raise UserError(
                f"{model.name} gives no log-probabilities, which are needed here (confidence, perplexity); "
                "use a local model or an endpoint that gives them (vLLM does)"
            )

    with _opened(store) as opened:
        known = {key: _restored(found) for key, found in opened.get(dict.fromkeys(keys)).items()}
        checked(known.values())
        missing = {key: one for key, one in zip(keys, asked, strict=True) if key not in known}
        if missing:
            opened.add({})  # a full disk or a read-only store shows before anything is generated
            alone = str(opened.path) == ":memory:"  # no other process sees it
            mine = {key: one for key, one in missing.items() if alone or _is_mine(key)}
            waiting = {(prompt.id, sample): key for key, (prompt, _, sample) in mine.items()}
            with closing(_bar(model.name, len(missing), progress)) as bar:
                with closing(answer(list(mine.values()))) as batches:
                    for batch in batches:
                        done = {waiting.pop((one.id, one.sample)): one for one in batch}
                        opened.add(
                            {key: {**asdict(one), "model": model.name} for key, one in done.items()}
                        )
                        checked(batch)
                        bar.update(len(batch))
                if waiting:
                    raise RuntimeError(
                        f"{model.name} left {len(waiting)} of {len(mine)} requests unanswered"
                    )
                _wait(opened, missing.keys() - mine.keys(), bar)
            known |= {key: _restored(found) for key, found in opened.get(missing).items()}
    answers = [
        replace(known[key], id=prompt.id, sample=sample)
        for key, (prompt, _, sample) in zip(keys, asked, strict=True)
    ]
    if decoding and (
        file := os.environ.get(LOG)
    ):  # continuations that were only scored are no answers
        with open(file, "a", encoding="utf-8", newline="") as log:
            near = ["" if (one.margin or 1) >= NEAR else f"{one.margin:.0e}" for one in answers]
            # digests of what was asked and answered: the same on every machine, unlike the store's keys
            csv.writer(log, lineterminator="\n").writerows(
                (
                    model.name,
                    one.id,
                    one.sample,
                    digest(stated + questions[one.id])[:8],
                    digest(one.text)[:8],
                    margin,
                )
                for one, margin in zip(answers, near, strict=True)
            )
    return answers


def settings_of(identity: dict[str, str], decoding: Decoding | None) -> tuple[str, str]:
    """What of an answer's key is common to many prompts, and the decoding alone, both as JSON."""
    stated = asdict(decoding) if decoding else {}
    stated.pop("n", None)  # the sample index says it: the first 5 of 20 samples are those of n=5
    if stated.get("stop_rule"):
        stated["stop_rule"] = getattr(decoding.stop_rule, "name", decoding.stop_rule)
    for name in LATER:
        if decoding and stated[name] == getattr(Decoding, name):
            del stated[name]
    kind = "generate" if decoding else "score"
    settings = {"kind": kind, "model": identity, "decoding": stated, "version": DECODING_VERSION}
    return canonical(settings), canonical(stated)


def _question(prompt: Prompt, continuation: str, decoding: Decoding | None) -> str:
    """The prompt as it is hashed. A sample's seed depends on the prompt's id, a greedy answer does not."""
    asked = {"text": prompt.text, "system": prompt.system}
    if decoding is None:
        asked["continuation"] = continuation
    elif prompt.choices:
        asked["choices"] = sorted(set(prompt.choices))
    if prompt.place is not None:
        asked["place"] = prompt.place
    if decoding and decoding.temperature > 0:
        asked["id"] = prompt.id
    return canonical(asked)


def _restored(answer: dict) -> Completion:
    """A stored answer; lists are tuples again."""
    known = {one.name for one in fields(Completion)}
    given = {name: value for name, value in answer.items() if name in known}
    given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return Completion(**{"id": "", "sample": 0, **given})


def _is_mine(key: str) -> bool:
    """Whether this process of a launch generates the answer: a prompt's samples are of one process.

    Processes that look up at different times agree. Raises UserError for a malformed LOOKUPLAB_SHARE.
    """
    number, _, count = os.environ.get(SHARE, "0/1").partition("/")
    if not (number.isdecimal() and count.isdecimal() and int(number) < int(count)):
        raise UserError(
            f"{SHARE} is {number}/{count}; it must be like 0/2: the first of two processes"
        )
    return int(key.split("/")[1], 16) % int(count) == int(number)


def _wait(store: CompletionStore, keys: set[str], bar: tqdm) -> None:
    """Until the other processes have stored these answers. Raises UserError if none come."""
    left, since = keys, time.monotonic()
    while left:
        came = store.get(left).keys()
        left, since = left - came, time.monotonic() if came else since
        bar.update(len(came))
        if left and time.monotonic() - since > PATIENCE_SECONDS:
            raise UserError(
                f"{len(left)} answers of the other processes did not come for an hour; run again: what was "
                "generated is kept"
            )
        time.sleep(POLL_SECONDS if left else 0)


@contextmanager
def _opened(store: Store) -> Iterator[CompletionStore]:
    """A given store stays open; one that is opened here is closed here."""
    if isinstance(store, CompletionStore):
        yield store
        return
    with CompletionStore(
        ":memory:" if store is False else None if store is True else store
    ) as opened:
        yield opened


def _bar(name: str, total: int, progress: bool) -> tqdm:
    """Time to go on stderr. In a notebook or a log file every refresh is a new line, so there it comes rarely."""
    terminal = sys.stderr.isatty()
    delay, interval = (0, 0.5) if terminal else (5, 10)
    return tqdm(
        total=total,
        desc=name,
        unit="answer",
        disable=not progress,
        delay=delay,
        mininterval=interval,
        smoothing=0.1,
    )
