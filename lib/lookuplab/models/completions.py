"""Gets the completions of prompts: looks them up in the record and in the store, has a model
generate the missing ones, and stores each as it arrives. Also finds the reasoning and the blocks of
code in an answer.

Caching, resuming and progress are implemented only here, so notebooks and packages call
``complete`` or ``score``. They call a model directly only to train it, for next-token distributions
(``decoding.distributions``, in ToolGen's notebooks and lesson 3), and in the naive baselines of the
performance notebooks. If the record and the store together have all answers, no weights are loaded
and nothing is written.

Several processes (``accelerate launch -m lookuplab run NOTEBOOK``, shards) may share a store. Each
process first generates the answers to its own share of the prompts, and then answers that are still
missing from other processes' shares (``next_keys``). Judgements are divided by the same rule
(``store.turn``).
"""

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from lookuplab.errors import UserError, check_choice
from lookuplab.models.record import NEAR_TIE_MARGIN
from lookuplab.models.store import (
    ANSWERS,
    CompletionStore,
    key_suffix,
    log_file,
    turn,
)
from lookuplab.paths import canonical, digest
from lookuplab.work import Progress, shard

# part of the key of each stored answer; increase this number whenever a code change alters a
# model's answer to a given prompt with given decoding
DECODING_VERSION = 1
# a process that takes over work from other processes generates at most this many answers at a time
OTHERS = 32
# model -> {key of an answer that this process used: how the answer ended}
ENDED: dict[str, dict[str, str]] = {}


# 1. What a model is asked, and what it answers


@dataclass(frozen=True)
class Prompt:
    """One question to a model. ``id`` names the prompt in every table. ``system`` is the system
    message, which only chat models use.

    ``choices`` are the names (identifiers) with which the answer may begin. None and () allow any
    beginning. Only local models that do not chat support ``choices``. ``place`` says where in a
    repository the answer will be inserted. A prompt has a ``place`` only if the answer depends on
    the place (ToolGen's models query Jedi there). The place is then part of the answer's key.
    """

    id: str
    text: str
    system: str | None = None
    choices: tuple[str, ...] | None = None
    place: str | None = None

    @property
    def messages(self) -> list[dict[str, str]]:
        """Return the messages that a chat model reads."""
        user = {"role": "user", "content": self.text}
        return [{"role": "system", "content": self.system}, user] if self.system else [user]


class StopRule(Protocol):
    """A rule that reads one answer piece by piece and decides where it ends. ``name`` is part of
    the keys of stored answers.
    """

    name: ClassVar[str]

    def feed(self, piece: str) -> bool:
        """Read a piece of the answer. Return True if the answer can end here, because any text
        after this piece would be ignored.
        """
        ...


@dataclass(frozen=True)
class Decoding:
    """The settings of decoding. The defaults are CloudAPIBench's: greedy, one sequence, up to 256
    tokens (Section 2.3).

    ``temperature`` 0 is greedy. ``n`` samples are drawn per prompt. Each sample is seeded by
    (``seed``, prompt id, sample index), so it does not depend on the other rows of the batch. An
    answer ends when it contains one of the ``stop`` strings, or when the ``stop_rule`` says so.
    ``stop_rule`` is a class; each answer gets its own instance. ``truncation`` "left" drops the
    beginning of a prompt that is too long; without truncation, such a prompt is an error. Raises
    UserError for a value out of range.
    """

    max_new_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    n: int = 1
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_rule: type[StopRule] | None = None
    truncation: Literal["left"] | None = None

    def __post_init__(self) -> None:
        check_choice("truncation", self.truncation, (None, "left"))
        if (
            min(self.max_new_tokens, self.n) < 1
            or not self.temperature >= 0
            or not 0 < self.top_p <= 1
            or (self.n > 1 and not self.temperature)
            # "" would end an answer at once. It is also in a text, which is no tuple of texts.
            or "" in self.stop
        ):
            raise UserError(
                f"{self} is out of range; see models.Decoding (n above 1 needs a temperature, and "
                'stop is a tuple of texts: ("###",))'
            )

    def stopper(self) -> Callable[[str], bool]:
        """Return a function that decides where one answer ends. Call the function with each piece
        of the answer in turn. It returns True when a ``stop`` string or the rule ends the answer.
        """
        rule = self.stop_rule() if self.stop_rule else None
        longest = max(map(len, self.stop), default=0)
        read = ""  # the last characters of the text, where a stop string may have begun

        def over(piece: str) -> bool:
            nonlocal read
            read += piece
            found = any(text in read for text in self.stop)
            read = read[max(0, len(read) - longest) :]
            return found or bool(rule and rule.feed(piece))

        return over


@dataclass
class Work:
    """Counts what a local model has computed since it was loaded, including what it had to repeat
    because memory ran out.

    ``passes`` is the number of forward passes, each of a whole batch; the encoder's pass and the
    decoder's first pass count as one. ``prompt_tokens`` is the number of prompt tokens read, and
    ``new_tokens`` the number of tokens generated; padding does not count. A prompt is read, and
    counted, once for all its samples in a batch.
    """

    passes: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0


@dataclass(frozen=True)
class Completion:
    """One answer. ``tokens``, ``token_ids`` and ``token_logprobs`` have one item per token; the
    joined ``tokens`` are ``text``.

    ``token_logprobs`` are natural logarithms of probabilities at temperature 1, or None if an
    endpoint returns none. ``finish_reason`` says what ended the answer: ``"eos"`` (the model
    itself), ``"stop"`` (a stop string or rule), ``"length"`` (the limit of tokens) or, for a
    continuation that was only scored, ``"scored"``. After ``"eos"``, a local model's last token
    is the end-of-text token, which adds no text, like every special token. After ``"stop"``,
    ``text`` contains the last token in full, even if the answer ended in the middle of the token.
    ``prompt_tokens`` is the number of prompt tokens that the model read, and ``prompt_dropped`` the
    number of prompt tokens that truncation removed.

    ``margin`` is the smallest gap between a chosen token and the runner-up (see
    ``decoding.choose``): numerical noise larger than the gap could have changed the answer. It is
    None if there was no choice, or if the gap was not measured. ``record`` (JSON) is the log of the
    constraint on the answer, if the constraint keeps one (ToolGen's does). ``==`` ignores
    ``margin`` and ``record``.
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


Requests = Sequence[tuple[Prompt, int]]  # pairs of a prompt and the index of the sample
Continuations = Sequence[tuple[Prompt, str]]  # pairs of a prompt and the text to score
Batches = Iterator[list[Completion]]  # each list has the answers that ended since the last list


class Model(Protocol):
    """Declares what ``complete`` and the papers' packages need from a model, local or remote.

    ``chat`` says whether prompts are sent through a chat template. ``tokenizer`` is a Transformers
    tokenizer. ``identity`` is everything about the model that changes its answers: the hash of its
    files or its name, the revision, the dtype and so on. ``generate(requests, decoding)`` answers
    each (prompt, sample index), in any order, and yields each answer within about a second after
    the answer ends. ``score(pairs)`` computes, for each (prompt, continuation), the
    log-probabilities of the continuation, and yields them as Completions, in any order, too.
    """

    name: str
    chat: bool

    @property
    def tokenizer(self) -> Any: ...

    @property
    def identity(self) -> dict[str, str]: ...

    def generate(self, requests: Requests, decoding: Decoding) -> Batches: ...

    def score(self, pairs: Continuations) -> Batches: ...


# 2. Answers from the record, the store or the model

StoreOrPath = CompletionStore | str | os.PathLike[str] | Literal[False] | None
# a prompt, the continuation to score ("" if an answer is to be generated), the sample's index
CompletionRequest = tuple[Prompt, str, int]


def complete(
    model: Model,
    prompts: Sequence[Prompt],
    decoding: Decoding = Decoding(),
    store: StoreOrPath = None,
    progress: bool = True,
) -> list[Completion]:
    """Return ``decoding.n`` answers to every prompt, in the order of the prompts and then of the
    samples. Answers that neither the record nor the store has are generated.

    ``store`` is a CompletionStore or a path; None means ``$LOOKUPLAB_STORE`` or, if this is not
    set, ``paths.COMPLETIONS``. False means that answers are neither looked up nor stored on disk.
    If the decoding is greedy, prompts with equal text share one answer, which is returned under the
    id of each prompt. Raises UserError if two prompts have the same id, or if the model or the
    store fails.
    """
    requests = [(prompt, "", sample) for prompt in prompts for sample in range(decoding.n)]
    return find_or_generate(model, requests, decoding, store, progress)


def score(model: Model, pairs: Continuations, store: StoreOrPath = None) -> list[Completion]:
    """Return the log-probabilities of given continuations (teacher forcing), in the order of
    ``pairs``.

    In each Completion, ``text`` is the continuation, and ``tokens`` and ``token_logprobs`` are the
    continuation's tokens and the log-probability of each token. As in ``complete``, results are
    stored, interrupted calls can be resumed, and prompt ids must be unique.
    """
    requests = [(prompt, text, 0) for prompt, text in pairs]
    return find_or_generate(model, requests, None, store)


def find_or_generate(
    model: Model,
    requests: Sequence[CompletionRequest],
    decoding: Decoding | None,
    store: StoreOrPath,
    progress: bool = True,
) -> list[Completion]:
    """Return the answers to the requests, in their order. Answers that neither the record nor the
    store has are generated. If ``decoding`` is None, the given continuations are scored instead.

    Generated answers are read back from the store, because another process may have stored an
    answer to the same request first; all processes then return the same answer. An answer is stored
    only if it is finite and complete (``CompletionStore.fault``). Raises UserError for an invalid
    answer, for prompts that the model leaves unanswered, and for prompt ids that are not unique.
    """
    names = [(prompt.id, sample) for prompt, _, sample in requests]
    if len(set(names)) < len(names):
        name, _ = max(names, key=names.count)
        raise UserError(f"prompt ids must be unique, but {name!r} occurs more than once")
    keyed = list(keys_of(model.identity, decoding, requests))
    keys = [key for key, _ in keyed]

    opened: AbstractContextManager[CompletionStore] = (
        # a store passed by the caller stays open
        nullcontext(store) if isinstance(store, CompletionStore) else CompletionStore(store)
    )
    with opened as store:
        by_key = dict(zip(keys, requests, strict=True))
        answers, missing = store.lookup(by_key)
        if missing:
            store.add({})  # fails on a full disk or a read-only store, before anything is generated
            bar = Progress(model.name, len(missing), "answers", len(answers), quiet=not progress)
            try:
                with bar:
                    asked = {key: by_key[key] for key in missing}
                    generate_missing(model, asked, decoding, store, bar)
            except UserError as error:
                made = len(store.present(missing))
                left = f"; {made} of {len(missing)} prompts are answered: run it again for the rest"
                raise UserError(f"{error}{left if made else ''}") from None
            if unmade := {*missing} - store.present(missing):
                raise UserError(
                    f"model {model.name} left {len(unmade)} of {len(missing)} prompts unanswered"
                )
            # in an audit, an answer may be both recorded and generated; the recorded one is used
            answers = store.get(missing) | answers
    completions = [_restore(answers[key], *name) for key, name in zip(keys, names, strict=True)]
    if decoding is None:  # scored continuations do not count as answers in ENDED and the log
        return completions
    for key, completion in zip(keys, completions, strict=True):
        text = visible(completion.text) if model.chat else completion.text
        ended = completion.finish_reason if text.strip() else "empty"
        ENDED.setdefault(model.name, {})[key] = ended
    if file := log_file(ANSWERS):
        with open(file, "a", encoding="utf-8", newline="") as log:
            write = csv.writer(log, lineterminator="\n").writerow
            for (_, question), completion in zip(keyed, completions, strict=True):
                is_near = completion.margin is not None and completion.margin < NEAR_TIE_MARGIN
                margin = f"{completion.margin:.0e}" if is_near else ""
                answer = digest(completion.text)[:8]
                write((model.name, completion.id, completion.sample, question, answer, margin))
    return completions


def generate_missing(
    model: Model,
    asked: Mapping[str, CompletionRequest],
    decoding: Decoding | None,
    store: CompletionStore,
    bar: Progress,
) -> None:
    """Generate the answers to requests, given as {key: request}, and store each answer as soon as
    it is complete. Answers that other processes have stored in the meantime are not generated.

    No process waits for another, so a slow or dead process holds up nothing. Two processes may
    generate the same answer if neither has stored it yet.
    """
    left = [*asked]
    while left:
        keys = next_keys(left)
        requests = [asked[key] for key in keys]
        key_of = {(prompt.id, sample): key for key, (prompt, _, sample) in asked.items()}
        if decoding:
            own = [(prompt, sample) for prompt, _, sample in requests]
            generating = model.generate(own, decoding)
        else:
            generating = model.score([(prompt, text) for prompt, text, _ in requests])
        waiting = {*keys}
        with closing(generating) as batches:  # type: ignore[type-var]  # generators
            for batch in batches:  # whether answers are valid is checked only by ``store.add``
                named = {"model": model.name}
                made = {key_of[one.id, one.sample]: vars(one) | named for one in batch}
                store.add(made)
                bar.update(len(batch))
                waiting -= made.keys()
                found = store.present(waiting) if shard()[1] > 1 else set()
                # If this process is slow, or hung for a while, other processes may have made its
                # answers. Stopping this call loses the answers in progress, perhaps many. So it
                # stops only if the others have made at least half of the remaining answers.
                if found and 2 * len(found) >= len(waiting):
                    break
            else:
                waiting.clear()  # the model is not asked again for what it left unanswered
        done = store.present(left) | {*keys} - waiting
        left = [key for key in left if key not in done]


def next_keys(left: Sequence[str]) -> list[str]:
    """Return the keys whose answers this process should generate next. ``left`` has all keys whose
    answers are missing. This process first gets the keys of its own share and, once this share is
    done, at most OTHERS keys from the shares of other processes. A single process gets all keys at
    once.

    All samples of a prompt belong to the same share.
    """
    turns = {key: turn(key.split("/")[1]) for key in left}
    own = [key for key in left if not turns[key]]
    # at most an equal share of the remaining keys, so that every process can have some
    most = max(1, min(OTHERS, len(left) // shard()[1]))
    return own or sorted(left, key=turns.__getitem__)[:most]


def unfinished_answers() -> list[str]:
    """Return a line of text for each model that gave unfinished answers. Only answers that this
    process (a notebook's kernel) has used are counted. An answer is unfinished if it is empty apart
    from reasoning, or was cut off at ``max_new_tokens``.
    """
    lines = []
    for model, ends in ENDED.items():
        counts = Counter(ends.values())
        if counts["empty"] or counts["length"]:
            lines.append(
                f"{model}: {counts['empty']:,} of {len(ends):,} answers empty, "
                f"{counts['length']:,} cut off"
            )
    return lines


def keys_of(
    identity: dict[str, str], decoding: Decoding | None, requests: Sequence[CompletionRequest]
) -> Iterator[tuple[str, str]]:
    """Yield a pair for each request: the key of the answer in the store, and a short digest of
    prompt and decoding, which does not depend on the model.

    A key has three parts, separated by slashes. The first part is the same for all prompts: a
    digest of model, decoding and ``DECODING_VERSION``. The second is a digest of the prompt, and
    the third the sample's index.
    """
    kind = "score"
    stated = {}
    if decoding:
        rule = decoding.stop_rule and decoding.stop_rule.name
        kind = "generate"
        stated = asdict(decoding) | {"stop_rule": rule}
        del stated["n"]  # n=5 gives the same samples as the first 5 of n=20
    settings = {"kind": kind, "model": identity, "decoding": stated, "version": DECODING_VERSION}
    common = digest(canonical(settings))
    hashed = {}
    for prompt, continuation, sample in requests:
        if prompt.id not in hashed:
            fields: dict[str, Any] = {"text": prompt.text, "system": prompt.system}
            if decoding is None:
                fields["continuation"] = continuation
            elif prompt.choices:
                fields["choices"] = sorted(set(prompt.choices))
            if prompt.place is not None:
                fields["place"] = prompt.place
            if decoding and decoding.temperature > 0:  # the prompt's id seeds the samples
                fields["id"] = prompt.id
            text = canonical(fields)
            hashed[prompt.id] = f"{common}/{digest(text)}", digest(canonical(stated) + text)[:8]
        key, question = hashed[prompt.id]
        # if the prompt has a ``place``, the model queries Jedi; Jedi reads Python's standard
        # library, so the answer depends on Python's version
        yield f"{key}/{sample}{'' if prompt.place is None else key_suffix()}", question


def _restore(answer: Mapping[str, Any], name: str, sample: int) -> Completion:
    """Return a stored answer as the Completion for the prompt with the id ``name``. The stored id
    may differ from ``name``, because equal prompts share an answer. Lists become tuples again.
    """
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in answer.items()
    }
    del fields["model"]
    return Completion(**fields | {"id": name, "sample": sample})


# 3. The parts of an answer: reasoning and blocks of code. Blocks are those of CommonMark (0.31,
# Section 4.5): a line of three or more backticks or tildes, perhaps followed by words, opens a
# block, and a line with at least as many of the same character closes it. Models also write two
# forms that CommonMark does not allow: words before the opening fence in the same line, and code
# before the closing fence in the same line. Both are accepted.

# Tags before and after a model's reasoning. The first alternative matches <think> and similar tags
# (Qwen, DeepSeek, Seed, and models that imitate Claude or Gemini). The other alternatives match the
# tags of Kimi, Magistral, OpenThinker, gpt-oss, Gemma 4 and Cohere's Command, in this order.
THINKING_BEGINS, THINKING_ENDS = (
    re.compile(
        rf"<{slash}(?:seed:)?(?:think(?:ing)?|thought|reasoning)>|◁{slash}think▷|\[{slash}THINK\]"
        rf"|<\|{edge}_of_thought\|>|<\|channel\|>{channel}<\|message\|>|{gemma}"
        rf"|<\|{command}_THINKING\|>"
    )
    for slash, edge, channel, gemma, command in (
        ("", "begin", "analysis", r"<\|channel>thought", "START"),
        ("/", "end", "final", r"<channel\|>", "END"),
    )
)
LIST_MARKER = r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?"  # of a list item (Section 5.2)
# the opening fence, the rest of its line, the code, and the closing fence or the end of the answer
_BLOCK = re.compile(
    rf"(?P<fence>`{{3,}}|(?m:^)[ \t>]*{LIST_MARKER}(?P<tildes>~{{3,}}))"
    r"(?P<info>(?(tildes)[^\n]|[^`\n])*)(?:\n|\Z)"
    r"(?P<code>.*?)(?:(?m:^)[ \t>]*(?:(?(tildes)(?P=tildes)|(?P=fence)))[`~]*[ \t]*(?m:$)|\Z)",
    re.DOTALL,
)
_QUOTED = re.compile(r"(?: {0,3}> ?)*")  # blockquote markers (Section 5.1)
# the indentation, and perhaps the marker of a list item, before an opening fence
_MARGIN = re.compile(rf"[ \t]*{LIST_MARKER}(?=```|~~~)")
# labels after an opening fence
PYTHON = {"python", "python3", "py", "py3", "ipython", "ipython3", "sage", "cython"}
MARKDOWN = {"markdown", "md"}
NOT_CODE = {"bash", "sh", "shell", "zsh", "console", "text", "txt", "plaintext", "output"}


def visible(text: str) -> str:
    """Return a chat model's answer without the reasoning: the text after the last closing tag
    (``</think>``, or the tag of another model family). If an opening tag is never closed, the text
    from this tag on is removed, too.
    """
    after = THINKING_ENDS.split(text)[-1]
    return THINKING_BEGINS.split(after)[0]


class Block(NamedTuple):
    """The positions in an answer where a block begins, and where the code in it starts and ends."""

    begin: int
    start: int
    end: int


def code_of(answer: str, block: Block) -> str:
    """Return the code in a block. If the block is indented, or is part of a list or a blockquote,
    the indentation and the blockquote markers (``>``) are removed from each line.
    """
    line = answer[answer.rfind("\n", 0, block.begin) + 1 : block.start]
    code = answer[block.start : block.end]
    if quoted := _quoted(line):
        line = line[len(quoted) :]
        first, *rows = code.split("\n")
        # the blockquote ends at the first line without a ">", and so does the block
        rows = [*takewhile(lambda row: row.lstrip().startswith(">") or not row, rows)]
        marks = rf"(?: {{0,3}}> ?){{0,{quoted.count('>')}}}"
        code = "\n".join([first, *(re.sub(rf"\A{marks}", "", row) for row in rows)])
    margin = _MARGIN.match(line)
    width = len(margin[0]) if margin else 0
    return re.sub(rf"(?m)^[ \t]{{0,{width}}}", "", code)


def _quoted(line: str) -> str:
    """Return the blockquote markers (``> > ``) at the beginning of a line, or "" if it has none."""
    found = _QUOTED.match(line)
    return found[0] if found and ">" in found[0] else ""


def blocks(answer: str) -> list[Block]:
    """Return the fenced blocks that may be the requested code, in the order of the answer. If any
    blocks are labelled as Python, only these are returned. Otherwise, blocks that are labelled as
    shell sessions, output or plain text are left out, unless there are no others. Empty blocks are
    always left out.

    A block without a closing fence extends to the end of the answer. If a block is labelled as
    Markdown and has blocks inside it, these take its place.
    """
    found: list[tuple[Block, str]] = []
    for match in _BLOCK.finditer(answer):
        block, language = _labelled(answer, match)
        # only one level, because an answer may repeat an opening fence thousands of times
        inner = _BLOCK.finditer(answer, *match.span("code")) if language in MARKDOWN else ()
        found += [_labelled(answer, each) for each in inner] or [(block, language)]
    filled = [one for one in found if answer[one[0].start : one[0].end].strip()]
    python = [one for one in filled if one[1] in PYTHON]
    other = [one for one in filled if one[1] not in NOT_CODE]
    return [block for block, _ in python or other or filled]


def _labelled(answer: str, match: re.Match[str]) -> tuple[Block, str]:
    """Return the block that a match of ``_BLOCK`` found, and its label in lower case."""
    start, end = match.span("code")
    within = match["code"].find(match["tildes"] or match["fence"])
    end = end if within < 0 else start + within
    line = answer[answer.rfind("\n", 0, match.end("fence")) + 1 :]
    start = min(end, start + len(_quoted(answer[start:end]) if _quoted(line) else ""))
    language = re.sub(r"[{}.]|language-", " ", match["info"]).lower().split()[:1]
    return Block(match.start(), start, end), "".join(language)
