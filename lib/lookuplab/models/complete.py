"""The one way from prompts to completions: look them up, generate what is missing, store it as it comes.

Batching, caching, resuming and progress exist here once; every notebook and every room calls ``complete`` or
``score`` and never a model itself.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import answer_log
from lookuplab.models.share import arriving, is_mine
from lookuplab.models.store import Asked, CompletionStore, Question
from lookuplab.models.types import Completion, Decoding, Model, Prompt

Store = CompletionStore | str | os.PathLike | bool | None


class Completions(list):
    """A list of Completion that also says how many were ``generated`` in this call and how many ``reused``."""

    def __init__(self, completions: Sequence[Completion], generated: int):
        super().__init__(completions)
        self.generated = generated
        self.reused = len(self) - generated


def complete(model: Model, prompts: Sequence[Prompt], decoding: Decoding = Decoding(), store: Store = None,
             progress: bool = True, requires_logprobs: bool = False) -> Completions:
    """Answer every prompt ``decoding.n`` times; return the answers ordered by (prompt as given, sample).

    ``store`` is a CompletionStore or a path; None means ``$LOOKUPLAB_STORE`` or ``paths.STORE``, False means none.
    Prompts with equal text share one greedy answer, each under its own id. With ``requires_logprobs`` the first
    answer without log-probabilities ends the call. UserError for that, for a prompt id that occurs twice, for
    decoding parameters out of range and for whatever model and store complain about.
    """
    _check(decoding)
    questions = [Question(prompt, sample) for prompt in _unique(prompts) for sample in range(decoding.n)]

    def answer(missing: list[Question]) -> Iterator[list[Completion]]:
        yield from model.generate([(question.prompt, question.sample) for question in missing], decoding)

    return _answer_all(model, questions, decoding, answer, store, progress, requires_logprobs)


def score(model: Model, pairs: Sequence[tuple[Prompt, str]], store: Store = None, progress: bool = True) -> Completions:
    """Log-probabilities of given continuations (teacher forcing), in the order of ``pairs``.

    Each Completion has the continuation as ``text``; ``tokens`` and ``token_logprobs`` are those of the continuation.
    Stored and resumed as in ``complete``; prompt ids are unique here too.
    """
    _unique([prompt for prompt, _ in pairs])
    questions = [Question(prompt, continuation=continuation) for prompt, continuation in pairs]

    def answer(missing: list[Question]) -> Iterator[list[Completion]]:
        yield from model.score([(question.prompt, question.continuation) for question in missing])

    return _answer_all(model, questions, None, answer, store, progress, requires_logprobs=True)


def _answer_all(model: Model, questions: list[Question], decoding: Decoding | None,
                answer: Callable[[list[Question]], Iterator[list[Completion]]], store: Store,
                progress: bool, requires_logprobs: bool) -> Completions:
    """Look up, generate the rest, return what the store holds (another process may have stored an answer first)."""
    asked = Asked(model.identity, decoding, model.name)
    keys = [asked.key(question) for question in questions]
    with _opened(store) as opened:
        known = opened.get(asked, questions)
        opened.note_uses(asked, questions)
        _check_logprobs(model, known.values(), requires_logprobs)
        missing = {key: question for key, question in zip(keys, questions, strict=True) if key not in known}
        alone = opened.path == ":memory:"  # no other process sees it
        mine = {key: question for key, question in missing.items() if alone or is_mine(key.prompt)}
        if missing:
            waiting = {(question.prompt.id, question.sample): question for question in mine.values()}
            with closing(_bar(model.name, len(missing), progress)) as bar:
                with closing(answer(list(mine.values()))) as batches:
                    for batch, seconds in _timed(batches):
                        opened.put(asked, [(waiting.pop((done.id, done.sample)), done) for done in batch], seconds)
                        _check_logprobs(model, batch, requires_logprobs)
                        bar.update(len(batch))
                if waiting:
                    raise RuntimeError(f"{model.name} left {len(waiting)} of {len(mine)} requests without an answer")
                for count in arriving(missing.keys() - mine.keys(),
                                      lambda left: opened.get(asked, [missing[key] for key in left])):
                    bar.update(count)
            known |= opened.get(asked, missing.values())
    answers = [_under_id(known[key], question) for key, question in zip(keys, questions, strict=True)]
    answer_log.note(asked, zip(questions, answers, strict=True))
    return Completions(answers, generated=len(mine))


def _timed(batches: Iterable[list[Completion]]) -> Iterator[tuple[list[Completion], float]]:
    """Each batch with the seconds that it took."""
    began = time.monotonic()
    for batch in batches:
        yield batch, time.monotonic() - began
        began = time.monotonic()


def _check_logprobs(model: Model, completions: Iterable[Completion], required: bool) -> None:
    if required and any(completion.token_logprobs is None for completion in completions):
        raise UserError(f"{model.name} gives no log-probabilities, which are needed here (confidence, perplexity); "
                        "use a local model or an endpoint that gives them (vLLM does)")


def _under_id(completion: Completion, question: Question) -> Completion:
    """The same answer under the id of this question: equal prompts share it."""
    return completion if completion.id == question.prompt.id else replace(completion, id=question.prompt.id)


def _unique(prompts: Sequence[Prompt]) -> Sequence[Prompt]:
    twice = [prompt_id for prompt_id, count in Counter(prompt.id for prompt in prompts).items() if count > 1]
    if twice:
        raise UserError(f"prompt ids must be unique, but {twice[0]!r} occurs more than once "
                        f"({len(twice)} such ids); give each prompt its own id")
    return prompts


def _check(decoding: Decoding) -> None:
    ranges = {"max_new_tokens": (decoding.max_new_tokens >= 1, "at least 1"), "n": (decoding.n >= 1, "at least 1"),
              "temperature": (decoding.temperature >= 0, "0 (greedy) or more"),
              "top_p": (0 < decoding.top_p <= 1, "above 0 and at most 1"),
              "beams": (decoding.beams >= 1, "at least 1"),
              "choices_below": (0 <= decoding.choices_below <= 1, "a probability, 0 to 1")}
    for name, (fine, allowed) in ranges.items():
        if not fine:
            raise UserError(f"decoding: {name} is {getattr(decoding, name)}; it must be {allowed}")
    if decoding.beams > 1 and (decoding.temperature > 0 or decoding.n > 1):
        raise UserError(f"decoding: beams is {decoding.beams}, and a beam search gives one answer, not sampled; "
                        "set temperature to 0 and n to 1, or beams to 1")


@contextmanager
def _opened(store: Store) -> Iterator[CompletionStore]:
    """A given store stays open; one that is opened here is closed here."""
    if isinstance(store, CompletionStore):
        yield store
        return
    if store is None or store is True:
        store = os.environ.get("LOOKUPLAB_STORE") or paths.STORE
    with CompletionStore(":memory:" if store is False else Path(store)) as opened:
        yield opened


def _bar(name: str, total: int, progress: bool) -> tqdm:
    """Time to go on stderr. In a notebook or a log file every refresh is a new line, so there it comes rarely."""
    terminal = sys.stderr.isatty()
    return tqdm(total=total, desc=name, unit="answer", disable=not progress, delay=0 if terminal else 5,
                mininterval=0.5 if terminal else 10, smoothing=0.1, dynamic_ncols=terminal)
