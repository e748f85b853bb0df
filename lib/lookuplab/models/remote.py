"""Calls a model behind an OpenAI-compatible endpoint: OpenAI's own, a vLLM server, ``transformers
serve`` and the like.

Base models are called through ``/completions``, chat models through ``/chat/completions``. The
``openai`` client repeats failed requests (status 429 or 5xx, time-outs) after exponentially growing
delays, or after the delay in the server's Retry-After.

The text of a completion is the text in the server's reply. A reply counts as an error, and is never
stored, if the server broke the completion off, or if the tokens with log-probabilities do not spell
the text. If a model refuses a parameter (``max_tokens``, ``stop``), the parameter is left out or
renamed from then on, and a warning is printed. If a model refuses ``temperature``, UserError is
raised, because the model would sample in its own way; ``sampled=true`` accepts such a model.
Requests to a server on this machine use no proxy. Redirects are not followed. A reply may take at
most ``total`` seconds, retries included, and its size is limited.

The API key comes from an environment variable and is passed only to the client. It appears in no
name, identity, store, log or message. A warning is printed if the API key goes to a host for which
it may not be meant, or over the network unencrypted.

Some things are not checked or supported:

- Nothing checks what an endpoint's log-probabilities mean. By default, vLLM computes them at
  temperature 1, like the kit's local models.
- Nothing checks whether the endpoint samples as requested. ``transformers serve`` stays greedy
  unless the checkpoint's own configuration samples.
- Only local models can score given texts, or restrict answers to given names.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from multiprocessing import TimeoutError
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lookuplab.errors import UserError, needs
from lookuplab.models.completions import (
    Batches,
    Completion,
    Continuations,
    Decoding,
    Prompt,
    Requests,
    visible,
)
from lookuplab.models.names import KEY_VARIABLE, OPENAI, split_options
from lookuplab.models.tokens import UNFINISHED
from lookuplab.paths import canonical, hashed
from lookuplab.work import say

with needs("remote"):
    import openai

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

OPENAI_URL = "https://api.openai.com/v1"
ADDRESS = r"(?i)https?://[^/:@?]+[^@?]*"  # a host, perhaps with a port and a path; no user or query
RETRIES = 5
LONGEST = 1e6  # seconds; the system refuses a time limit of more than 24 days
REFUSABLE = {  # parameter that some models refuse -> what happens then
    "max_tokens": "max_completion_tokens is sent instead",
    "temperature": "the server decides how answers are sampled",
    "top_p": "the server decides how answers are sampled",
    "seed": "left out",
    "stop": "answers are cut here",
}
MAX_STOP_STRINGS = 4  # OpenAI's limit; this module cuts answers at further stop strings itself
# the largest size of a reply is BYTES bytes, and TOKEN_BYTES more for each token that was requested
BYTES, TOKEN_BYTES = 2**20, 2**12
LOOPBACK = r"localhost|127\..*|0\.0\.0\.0|::1"  # names and addresses of this machine itself
# finish_reason of various servers -> "stop" if the answer is complete, "length" if it was cut off
# at the limit of tokens
FINISHED = dict.fromkeys(
    "stop eos eos_token end end_turn end_of_text stop_sequence complete completed finished".split(),
    "stop",
) | dict.fromkeys("length max_tokens max_output_tokens max_length model_length".split(), "length")
# surrogates, which are halves of characters above U+FFFF
HALVES = re.compile("[\ud800-\udfff]")
# Matches what a server writes for an incomplete character in a token: U+FFFD or surrogates (if the
# server decoded the token alone), or ``bytes:\xe2`` (OpenAI).
CHARACTER_PARTS = re.compile(rf"(?:{UNFINISHED}|{HALVES.pattern}|bytes:(?:\\x[0-9a-fA-F]{{2}})+)+")
# matches the name of a field that holds a secret, and the beginning of a key (sk-)
SECRET = re.compile(r"(?i)api.?key|authori[sz]ation|password|secret|access.?token|bearer|\bsk-\w")
# Matches HTML in an error message. An element that is never closed extends to the end of the
# message (\Z). Without this rule, the search for its end would read the rest of the message again
# for each such element.
MARKUP = re.compile(r"(?is)<(script|style).*?(</\1>|\Z)|<[^<>]*>")


# raised for a reply whose parts have unexpected types or values
REPLY_ERRORS = AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError


class RemoteModel:
    """A remote model. ``place`` is ``openai:MODEL`` or ``http://HOST:PORT/v1#MODEL``. ``chat`` says
    whether the model is a chat model; ``openai:MODEL`` always is one.

    ``parallel`` is the largest number of simultaneous requests. ``timeout`` is the time in seconds
    within which a server must begin or continue a reply, and ``total`` the time within which a
    reply must be complete, retries included. ``key_variable`` is the name of the environment
    variable with the API key. ``tokenizer`` names a local model with the same tokenizer; the kit
    uses this tokenizer to count tokens. ``revision`` is any label of yours: change it when the same
    address serves new weights, so that answers of the old weights are not reused.

    ``logprobs=False`` is for an endpoint that gives no log-probabilities. ``extra`` has further
    fields for each request, such as ``reasoning_effort``, or ``chat_template_kwargs`` for the
    server's chat template. ``sampled`` accepts a model that refuses ``temperature``. Each of these
    three options is part of the keys of stored answers.
    """

    def __init__(
        self,
        place: str,
        *,
        chat: bool = False,
        parallel: int = 32,
        timeout: float = 120.0,
        total: float = 900.0,
        key_variable: str = KEY_VARIABLE,
        tokenizer: str = "",
        revision: str = "",
        logprobs: bool = True,
        sampled: bool = False,
        extra: dict[str, Any] | None = None,
    ) -> None:
        url, _, self.name = place.partition("#")
        if place.startswith(OPENAI):
            url = OPENAI_URL
            self.name = place.removeprefix(OPENAI)
            chat = True
        if not (re.fullmatch(ADDRESS, url) and self.name):
            raise UserError(
                "a remote model is named http://HOST:PORT/v1#MODEL or openai:MODEL, with options "
                "after it (?chat=true&parallel=32) and no user, password or key in it: the key "
                f"comes from the variable {key_variable}"
            )
        self.base_url = url.rstrip("/")
        self.chat = chat
        self.revision = revision
        self.key_variable = key_variable
        self.timeout = min(timeout, LONGEST)
        self.total = min(total, LONGEST)
        self.parallel = parallel
        self._tokenizer = tokenizer
        self.logprobs = logprobs
        self.sampled = sampled
        self.extra = extra or {}
        # options can be part of the model's name, which is written to folders, logs and figures
        if SECRET.search(canonical(self.extra)):
            raise UserError(
                f"model {self.name}: its option extra has what looks like a key; put the key into "
                "an environment variable (option key_variable)"
            )
        self._refused: set[str] = set()
        self._most = BYTES

    @property
    def identity(self) -> dict[str, str]:
        """Return everything about the model that may change its answers. The endpoint's address
        is part of the identity, because two servers may use one name for different weights.
        """
        identity = {
            "kind": "remote",
            "name": self.name,
            "endpoint": self.base_url,
            "asked_as": "chat" if self.chat else "completions",
            "revision": self.revision,
        }
        if not self.logprobs:
            identity["logprobs"] = "none"
        if self.sampled:
            identity["sampled"] = "as the server likes"
        if self.extra:
            identity["fields"] = canonical([self.extra, None])
        return identity

    @cached_property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """Return the tokenizer of the local model that the option ``tokenizer`` names. No weights
        are loaded. Raises UserError if the option is not given.
        """
        if not self._tokenizer:
            raise UserError(
                f"{self.name}: to count tokens, name a model with its tokens: ?tokenizer=OWNER/NAME"
            )
        from lookuplab.models.local import LocalModel

        place, options = split_options(self._tokenizer)
        return LocalModel(place, **options).tokenizer

    def generate(self, requests: Requests, decoding: Decoding) -> Batches:
        """Answer each (prompt, sample index). Yield lists of answers as they arrive.

        After the first failure no new requests are sent. Answers in progress are still yielded, and
        then UserError is raised. UserError is also raised for prompts with ``choices``.
        """
        if any(prompt.choices for prompt, _ in requests):
            raise self._unsupported("restrict answers to given names (choices)")
        _ = self._client  # created before the threads start, so that they share one client
        self._most = BYTES + TOKEN_BYTES * decoding.max_new_tokens
        failures: list[UserError] = []

        def ask(request: tuple[Prompt, int]) -> list[Completion]:
            try:
                return [] if failures else [self._answer(*request, decoding)]
            except UserError as error:
                failures.append(error)
            except REPLY_ERRORS as error:
                form = f"a reply of unknown format ({self._quoted(error)})"
                failures.append(UserError(f"{self.name} at {self.base_url}: {form}"))
            return []

        with ThreadPool(min(self.parallel, len(requests) or 1, 1024)) as pool:
            answers = pool.imap_unordered(ask, requests)
            for _ in requests:
                try:
                    answer = answers.next(self.total)
                except TimeoutError:
                    # A thread cannot be stopped, so this request's thread is abandoned. No further
                    # answers are awaited.
                    late = f"no complete reply after {self.total:g} seconds (option total)"
                    failures.append(UserError(f"{self.name} at {self.base_url}: {late}"))
                    break
                if answer:
                    yield answer
        if failures:
            raise failures[0]

    def score(self, _: Continuations) -> Batches:
        """Raise UserError, because few servers can score a given text."""
        raise self._unsupported("score given texts")

    def _unsupported(self, what: str) -> UserError:
        return UserError(f"{self.name}: an endpoint does not {what}; use a local model")

    @cached_property
    def _client(self) -> openai.OpenAI:
        key = os.environ.get(self.key_variable, "").strip()
        if not key and self.base_url == OPENAI_URL:
            raise UserError(
                f"{self.name} needs a key: set the environment variable {self.key_variable}"
            )
        # checked here, because the client's own error would show the key
        if re.search("[^!-~]", key):
            raise UserError(f"{self.key_variable} is no key: it has blanks or is not ASCII")
        address = urlsplit(self.base_url)
        host = address.hostname or ""
        is_here = re.fullmatch(LOOPBACK, host) is not None
        how = " unencrypted (http)" if address.scheme == "http" else ""
        is_meant = self.base_url == OPENAI_URL or (self.key_variable != KEY_VARIABLE and not how)
        if key and not (is_here or is_meant):
            advice = f"; if this is a mistake, unset {self.key_variable} or use key_variable"
            say(f"warning: {self.name}: the key in {self.key_variable} goes to {host}{how}{advice}")
        try:
            return openai.OpenAI(
                api_key=key or "no-key",  # a local server needs no key, but the client does
                base_url=self.base_url,
                timeout=openai.Timeout(self.timeout, connect=min(self.timeout, 10.0)),
                max_retries=RETRIES,
                http_client=openai.DefaultHttpxClient(
                    trust_env=not is_here,
                    follow_redirects=False,
                    event_hooks={"response": [self._limit_response]},
                ),
            )
        # raised if the environment names a proxy with an invalid address, or a proxy for which a
        # Python package is missing
        except (ImportError, ValueError) as error:
            raise UserError(
                f"cannot use the proxy that the environment names: {error}; for a server that "
                f"needs none, set NO_PROXY={host}"
            ) from None

    def _limit_response(self, response: Any) -> None:
        """Limit the size of a response. Reading the response then raises UserError as soon as the
        response is larger than any answer to the request can be.
        """
        read = response.iter_bytes

        def chunks(*arguments: Any) -> Iterator[bytes]:
            size = 0
            for chunk in read(*arguments):
                size += len(chunk)
                if size > self._most:
                    long = f"more than {self._most:,} bytes cannot be an answer to this prompt"
                    raise UserError(f"{self.name} at {self.base_url}: {long}")
                yield chunk

        response.iter_bytes = chunks

    def _ask(self, fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Send a request with these fields. If the model refuses a parameter, send the request
        again without it. Return two objects from the reply: the first choice, and the numbers of
        tokens that were used ({} if the reply does not state them). Raises UserError with the
        server's own words in one line, in which the API key is masked.
        """
        sent = {name: value for name, value in fields.items() if name not in self._refused}
        if "max_tokens" in self._refused:
            sent["max_completion_tokens"] = fields["max_tokens"]
        path = "/chat/completions" if self.chat else "/completions"
        try:
            reply: Any = self._client.post(path, cast_to=object, body=sent)
            reply = json.loads(reply) if isinstance(reply, str) else reply
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            words = error.response.text
            if self.logprobs and "logprobs" in words:
                raise self._logprobs_error("gives no log-probabilities") from None
            if self._refuses(words, sent):
                return self._ask(fields)
            raise self._with_advice(error) from None
        # ValueError: the reply is not JSON; RecursionError: the reply is nested too deeply
        except (openai.APIError, ValueError, RecursionError) as error:
            raise self._with_advice(error) from None
        match reply:
            case {"choices": [dict() as choice, *_]}:
                return choice, reply.get("usage") or {}
            case {"error": failure} if failure:  # some routers report errors with status 200
                raise self._with_advice(failure)
        raise self._with_advice(
            ValueError(f"{json.dumps(reply)} is not an answer of an OpenAI-compatible endpoint")
        )

    def _refuses(self, words: str, sent: dict[str, Any]) -> bool:
        """Return whether the server's error message, ``words``, says that the model refuses a
        parameter of the request. If so, remember the parameter, and print a warning the first time.
        Raises UserError if the model would sample without the parameter, unless ``sampled`` accepts
        that.
        """
        if not re.search(
            "(?i)unsupported|not (support|permit|allow)|only the default|unrecogni|unknown param"
            "|deprecated",
            words,
        ):
            return False
        for name in REFUSABLE:
            if name in sent and re.search(rf"\b{name}\b", words):
                is_sampled = name == "temperature" or (name == "top_p" and sent[name] < 1)
                if is_sampled and not self.sampled:
                    raise UserError(
                        f"{self.name} refuses {name}, so {REFUSABLE[name]}, even if greedy answers "
                        "are requested; the option sampled=true accepts this and stores such "
                        "answers separately"
                    )
                if name not in self._refused:
                    self._refused.add(name)
                    print(f"{self.name} refuses {name}: {REFUSABLE[name]}", file=sys.stderr)
                return True
        return False

    def _with_advice(self, error: Any) -> UserError:
        """Return a UserError that quotes the error and, for known causes, gives advice."""
        status = getattr(error, "status_code", 0)
        advice = ""
        if status:
            words = f"{status} {error.response.reason_phrase}: {error.response.text}"
        elif isinstance(error, openai.APIError):
            words = f"{error} {error.__cause__ or ''}"
        elif isinstance(error, json.JSONDecodeError):
            words = f"a reply that is not JSON: {error.doc}"
        else:
            words = str(error)
        words = self._quoted(" ".join(MARKUP.sub(" ", words).split()))
        is_lost = isinstance(error, openai.APIConnectionError)
        if 300 <= status < 400:
            place = self._quoted(error.response.headers.get("location", "nowhere"))
            advice = f"; it redirects to {place}: if you trust that address, name it"
        elif status in (408, 409, 429) or status >= 500 or is_lost:
            advice = f" (after {RETRIES} retries at most)"
        elif status in (401, 403):
            advice = f"; the key is taken from {self.key_variable} (option key_variable)"
        elif status == 404 or isinstance(error, ValueError):
            advice = "; check the address (it usually ends with /v1)"
        return UserError(f"{self.name} at {self.base_url}: {words}{advice}")

    def _quoted(self, words: object) -> str:
        """Return the beginning of what a server wrote, in which the API key is masked."""
        return str(words).replace(self._client.api_key, "***")[:300]

    def _logprobs_error(self, reason: str) -> UserError:
        return UserError(
            f"{self.name} at {self.base_url} {reason}; if you need no log-probabilities "
            "(confidence and perplexity need them), add the option logprobs=false to its name"
        )

    def _answer(self, prompt: Prompt, sample: int, decoding: Decoding) -> Completion:
        stop = [*decoding.stop, *getattr(decoding.stop_rule, "stop", ())]
        asked: dict[str, Any] = {
            "model": self.name,
            "max_tokens": decoding.max_new_tokens,
            "temperature": decoding.temperature,
        }
        if stop:
            asked["stop"] = stop[:MAX_STOP_STRINGS]
        # A seed is sent only if it has an effect, because some endpoints refuse seeds. The seed has
        # 31 bits, so that it fits into a signed 32-bit integer.
        if decoding.temperature > 0:
            seed = int(hashed(f"{decoding.seed}/{prompt.id}/{sample}")[:8], 16) >> 1
            asked |= {"top_p": decoding.top_p, "seed": seed}
        if self.chat:
            asked["messages"] = prompt.messages
        else:
            asked["prompt"] = prompt.text
        if self.logprobs:
            asked["logprobs"] = True if self.chat else 1
        choice, usage = self._ask(asked | self.extra)
        prompt_tokens = int(usage.get("prompt_tokens") or 0)
        # an answer may be null, but a reply without the field is one of the other kind
        text = content_text(choice["message"].get("content") if self.chat else choice["text"])
        finish = self._finish(choice.get("finish_reason"), text)
        given = choice.get("logprobs") or {}
        pairs = self._log_probabilities(given, text)
        pieces = [piece for piece, _ in pairs]
        # if the server cut a stop string off within a token, the pieces are longer than the text
        text = "".join(pieces) or text
        # if no stop strings were sent, "stop" means that the model itself ended the answer
        if finish == "stop" and not stop:
            finish = "eos"
        over = decoding.stopper()
        # without log-probabilities there are no pieces; ``over`` then reads single characters
        parts = pieces or text
        at = next((at for at, part in enumerate(parts, 1) if over(part)), 0)
        if at:
            text = "".join(parts[:at])
            pairs = pairs[:at]
            finish = "stop"
        # the log-probabilities are () if the reply has none, and None if none were requested
        empty = (), () if self.logprobs else None
        tokens, logprobs = zip(*pairs, strict=True) if pairs else empty
        return Completion(prompt.id, sample, text, tokens, (), logprobs, finish, prompt_tokens)

    def _finish(self, reason: object, text: str) -> str:
        """Return ``"stop"`` or ``"length"`` for the ``reason`` that a server gives for the end of
        an answer; servers use different words. Raises UserError for any other reason, because the
        server then broke the answer off. Also raises UserError if a chat model used all its tokens
        for reasoning.
        """
        finish = FINISHED.get(str(reason).lower(), "")
        if not finish:
            raise UserError(
                f"{self.name} at {self.base_url} did not finish its answer (finish_reason "
                f"{self._quoted(repr(reason))}, {len(text)} characters): repeat the "
                "command, or leave this task out if the server refuses it again"
            )
        if self.chat and finish == "length" and not visible(text).strip():
            raise UserError(
                f"{self.name} at {self.base_url} spent all its tokens on reasoning, before it "
                "answered: raise max_new_tokens, or switch reasoning off (option extra)"
            )
        return finish

    def _log_probabilities(self, given: dict[str, Any], text: str) -> list[tuple[str, float]]:
        """Return (piece of the text, log-probability) pairs, or [] if no log-probabilities were
        requested. Raises UserError if the reply has no log-probabilities, or if the pieces to which
        they belong do not spell the text.
        """
        if not (self.logprobs and text):
            return []
        pairs = logprob_pairs(given)
        if not pairs or any(None in pair for pair in pairs):
            what = "log-probability for each piece" if pairs else "log-probabilities"
            raise self._logprobs_error(f"gives no {what}")
        parts = align_pieces(text, [piece for piece, _ in pairs])
        if not parts:
            raise self._logprobs_error(
                "gives log-probabilities of pieces that do not spell its text "
                f"({self._quoted(pairs[0])} ...)"
            )
        return [(part, number) for part, (_, number) in zip(parts, pairs, strict=False)]


def content_text(content: Any) -> str:
    """Return a reply's content as one text. Some servers send the content in parts; parts that have
    no ``text``, such as reasoning, are left out. Surrogates are replaced by U+FFFD, because they
    cannot be stored.
    """
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    return HALVES.sub(UNFINISHED, content or "")


def logprob_pairs(given: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return a reply's (token, log-probability) pairs, unchecked. None stands for a token or a
    log-probability that the server left out.
    """
    # the format of chat completions; llama.cpp's server uses it for other completions, too
    if content := given.get("content"):
        return [(piece.get("token"), piece.get("logprob")) for piece in content]
    both = given.get("tokens") or (), given.get("token_logprobs") or ()
    # if one list is shorter, its missing items become None; the caller rejects pairs with None
    return list(zip_longest(*both))


def align_pieces(text: str, pieces: Sequence[str]) -> list[str]:
    """Return, for each piece, the part of the text that the piece spells. Return [] if the pieces
    together do not spell the text.

    A piece that ends with an incomplete character spells "", and the piece that completes the
    character gets the text of both pieces. Some servers also list the end-of-text token, or the
    tokens of a stop string that they cut off; these pieces at the end are left out. The last piece
    may extend beyond the text.
    """

    def pattern(pieces: str) -> str:
        """Return a regular expression that matches the text of ``pieces``. An incomplete character
        matches one or more non-ASCII characters. What follows this character in ``pieces`` is
        matched at its first occurrence only (an atomic group), so that the text is read only once.
        """
        first, *others = map(re.escape, re.split(f"{UNFINISHED}+", pieces))
        return first + "".join(rf"(?>[^\x00-\x7f]+?{part})" for part in others)

    parts: list[str] = []
    at = 0
    held = ""
    for piece in pieces:
        if at >= len(text):
            break
        held += CHARACTER_PARTS.sub(UNFINISHED, piece)
        if held.endswith(UNFINISHED):
            parts.append("")
        elif found := re.compile(pattern(held)).match(text, at):
            parts.append(found[0])
            at = found.end()
            held = ""
        elif held.startswith(text[at:]):
            parts.append(held)
            at = len(text)
        else:
            break
    if at < len(text):  # the pieces of the last character may all be incomplete
        last = "".join(held.rpartition(UNFINISHED)[:2])
        if not re.fullmatch(pattern(last) + r"[^\x00-\x7f]*", text[at:]):
            return []
        parts[-1] = text[at:]
    return parts
