"""A model behind an OpenAI-compatible endpoint: GPT-4o, vLLM, ``transformers serve`` and the like.

Base models are called through ``/completions``, chat models through ``/chat/completions``. The
``openai`` client does the retries (429, 5xx, time-outs; exponential, honouring Retry-After) and
explains failures.

A completion's text is the server's. The pieces of its log-probabilities count only if they spell
it, and a completion that the server did not finish is an error: neither is ever stored as what the
model wrote. A parameter that a model refuses (``max_tokens``, ``temperature``, ``stop``) is left
out or renamed from then on, and said.

The key comes from the environment and is passed only to the client: it appears in no name,
identity, store, log or message. Not covered: truncation of long prompts (endpoints refuse them);
the meaning of an endpoint's log-probabilities (vLLM's are those of the unscaled distribution by
default, as here); whether the endpoint samples as requested (``transformers serve`` stays greedy
unless the checkpoint's own configuration samples).
"""

import hashlib
import json
import os
import re
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lookuplab.errors import UserError, check_choice, needs
from lookuplab.models.completions import Completion, Decoding, Prompt, visible
from lookuplab.models.names import OPENAI, split_options

with needs("remote"):
    import openai

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

OPENAI_URL = "https://api.openai.com/v1"
ADDRESS = r"(?i)https?://[^/:@?]+[^@?]*"  # a host and perhaps a port and a path
RETRIES = 5
REFUSABLE = {  # parameters that some models refuse -> what is done instead
    "max_tokens": "max_completion_tokens is sent in its place",
    "temperature": "its answers are sampled as the server likes, also where greedy ones were asked",
    "top_p": "left out",
    "seed": "left out",
    "stop": "answers are cut here",
}
MAX_STOP_STRINGS = 4  # what OpenAI accepts; further ones are applied to the returned text


class RemoteModel:
    """``openai:MODEL`` (a chat model) or ``http://HOST:PORT/v1#MODEL``; ``chat`` chooses the
    endpoint.

    ``parallel`` limits the requests in flight; ``timeout`` (seconds) applies to each request.
    ``key_variable`` names the environment variable with the key; ``tokenizer`` names a local model
    with the same tokens, for budgets in tokens. ``revision`` is any label of yours: change it when
    the same address serves new weights, so that no stored answers are reused. ``logprobs=False`` is
    for an endpoint that gives no log-probabilities: its answers have none, and are kept apart from
    those that have them.
    """

    def __init__(
        self,
        place: str,
        *,
        chat: bool = False,
        parallel: int = 32,
        timeout: float = 120.0,
        key_variable: str = "OPENAI_API_KEY",
        tokenizer: str = "",
        revision: str = "",
        logprobs: bool = True,
    ) -> None:
        url, _, self.name = place.partition("#")
        if place.startswith(OPENAI):
            url, self.name, chat = OPENAI_URL, place.removeprefix(OPENAI), True
        if not (re.fullmatch(ADDRESS, url) and self.name and parallel >= 1):
            raise UserError(
                "a remote model is named http://HOST:PORT/v1#MODEL or openai:MODEL, with options "
                "after it (?chat=true&parallel=32) and no user, password or key in it: the key "
                f"comes from the variable {key_variable}"
            )
        for option, given in ("chat", chat), ("logprobs", logprobs):
            check_choice(f"model {self.name}: {option}", given, (False, True))
        self.base_url, self.chat, self.revision = url.rstrip("/"), chat, revision
        self.key_variable, self.timeout, self.parallel = key_variable, timeout, parallel
        self._tokenizer, self.logprobs = tokenizer, logprobs
        self._refused: set[str] = set()
        self._lock = threading.Lock()

    @property
    def identity(self) -> dict[str, str]:
        """Includes the address: two servers may use the same name for different weights."""
        identity = {
            "kind": "remote",
            "name": self.name,
            "endpoint": self.base_url,
            "asked_as": "chat" if self.chat else "completions",
            "revision": self.revision,
        }
        return identity if self.logprobs else identity | {"logprobs": "none"}

    @cached_property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The tokenizer of the local model named for it."""
        if not self._tokenizer:
            raise UserError(
                f"{self.name}: to count tokens, name one with the same ones: ?tokenizer=OWNER/NAME"
            )
        from lookuplab.models.local import named

        place, options = split_options(self._tokenizer)
        return named(place, **options).tokenizer

    def generate(
        self, requests: Sequence[tuple[Prompt, int]], decoding: Decoding
    ) -> Iterator[list[Completion]]:
        """Answer each (prompt, sample index), yielding answers as they arrive. UserError if the
        endpoint fails.

        After the first failure no new requests are sent, but answers already under way are still
        yielded.
        """
        if any(prompt.choices for prompt, _ in requests):
            raise UserError(
                f"{self.name}: an endpoint cannot be held to choices (names); use a local model"
            )
        failures: list[UserError] = []

        def ask(request: tuple[Prompt, int]) -> list[Completion]:
            try:
                return [] if failures else [self._answer(*request, decoding)]
            except UserError as error:
                failures.append(error)
                return []

        with ThreadPool(self.parallel) as pool:
            yield from filter(None, pool.imap_unordered(ask, requests))
        if failures:
            raise failures[0]

    def score(self, _pairs: Sequence[tuple[Prompt, str]]) -> Iterator[list[Completion]]:
        """Not possible: endpoints do not score texts that they did not write. Raises UserError."""
        raise UserError(f"{self.name}: an endpoint cannot score a given text; use a local model")

    @cached_property
    def _client(self) -> openai.OpenAI:
        key = os.environ.get(self.key_variable, "").strip()
        if not key and self.base_url == OPENAI_URL:
            raise UserError(
                f"{self.name} needs a key: set the environment variable {self.key_variable}"
            )
        try:
            return openai.OpenAI(
                api_key=key or "no-key",  # local servers need none, but the client insists on one
                base_url=self.base_url,
                timeout=openai.Timeout(self.timeout, connect=min(self.timeout, 10.0)),
                max_retries=RETRIES,
            )
        except (ImportError, ValueError) as error:  # a proxy that needs a package, or is no address
            raise UserError(
                f"cannot use the proxy that the environment names: {error}; for a server that "
                f"needs none, set NO_PROXY={urlsplit(self.base_url).hostname}"
            ) from None

    def _ask(self, create: Callable[..., Any], parameters: dict[str, Any]) -> tuple[Any, int]:
        """Send one request, again without what the model refuses. UserError with the server's own
        words in one line, the key masked.
        """
        sent = self._accepted(parameters)
        try:
            response = create(model=self.name, **sent)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            if self.logprobs and "logprobs" in str(error):
                raise self._without_logprobs("gives no log-probabilities") from None
            if self._refuses(str(error), sent):
                return self._ask(create, parameters)
            raise self._failed(error) from None
        except (openai.APIError, ValueError) as error:  # ValueError: a reply that is no JSON
            raise self._failed(error) from None
        # a router may answer with status 200 and an error in the body
        if failure := getattr(response, "error", None):
            raise self._failed(failure)
        # the answer may be a web page, say: the client returns text unchanged
        if not getattr(response, "choices", None):
            raise UserError(
                f"{self.base_url} does not answer as an OpenAI-compatible endpoint; check the "
                "address (it usually ends with /v1)"
            )
        return response.choices[0], response.usage.prompt_tokens if response.usage else 0

    def _accepted(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """The parameters without those that the model refuses."""
        accepted = {name: value for name, value in parameters.items() if name not in self._refused}
        if "max_tokens" in self._refused:
            accepted["extra_body"] = {"max_completion_tokens": parameters["max_tokens"]}
        return accepted

    def _refuses(self, words: str, sent: dict[str, Any]) -> bool:
        """Remember and say what the model refuses of what was sent, by the server's words."""
        if not re.search(r"(?i)unsupported|not support|only the default|not allowed", words):
            return False
        for name in REFUSABLE:
            if name in sent and re.search(rf"\b{name}\b", words):
                with self._lock:  # requests are answered in threads
                    if name not in self._refused:
                        self._refused.add(name)
                        print(f"{self.name} refuses {name}: {REFUSABLE[name]}", file=sys.stderr)
                return True
        return False

    def _failed(self, error: Any) -> UserError:
        """What failed, in the server's words, and what to do where that is known."""
        status = getattr(error, "status_code", 0)
        body = getattr(getattr(error, "response", None), "text", "")
        words = str(error) if isinstance(error, Exception) else json.dumps(error, default=str)
        if isinstance(error, ValueError):
            words = f"a reply that is no JSON ({words})"
        elif body and body not in words and not getattr(error, "body", None):
            words = f"{words}: {body}"
        advice = f" (after {RETRIES} retries at most)" if status in (408, 409, 429) else ""
        if status >= 500 or isinstance(error, openai.APIConnectionError):
            advice = f" (after {RETRIES} retries at most)"
        if status in (400, 404) and (names := self._served()):
            advice = f"; the names there: {', '.join(names)}"
        words = " ".join(words.split()).replace(self._client.api_key, "***")
        return UserError(f"{self.name} at {self.base_url}: {words[:300]}{advice}")

    def _served(self) -> list[str]:
        """The models that the server names if this one is not among them, ten at most."""
        try:
            names = [model.id for model in self._client.models.list().data]
        except (openai.APIError, ValueError, AttributeError, TypeError):
            return []
        return [] if self.name in names else names[:10]

    def _without_logprobs(self, reason: str) -> UserError:
        return UserError(
            f"{self.name} at {self.base_url} {reason}; if none are needed (confidence and "
            "perplexity need them), add the option logprobs=false to its name"
        )

    def _answer(self, prompt: Prompt, sample: int, decoding: Decoding) -> Completion:
        stop = [*decoding.stop, *getattr(decoding.stop_rule, "stop", ())]
        options: dict[str, Any] = {
            "max_tokens": decoding.max_new_tokens,
            "temperature": decoding.temperature,
            "stop": stop[:MAX_STOP_STRINGS] or openai.NOT_GIVEN,
        }
        # a seed is sent only where it matters: some endpoints refuse it
        if decoding.temperature > 0:
            seed = hashlib.sha256(f"{decoding.seed}/{prompt.id}/{sample}".encode()).digest()
            options |= {"top_p": decoding.top_p, "seed": int.from_bytes(seed[:4]) >> 1}
        if self.chat:
            messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
            options["messages"] = [*messages, {"role": "user", "content": prompt.text}]
            create: Callable[..., Any] = self._client.chat.completions.create
        else:
            options["prompt"] = prompt.text
            create = self._client.completions.create
        if self.logprobs:
            options["logprobs"] = True if self.chat else 1
        choice, read = self._ask(create, options)
        text = (choice.message.content if self.chat else choice.text) or ""
        text = text.encode("utf-8", "replace").decode()  # half a character cannot be stored
        self._check_finished(choice, text)
        given = choice.logprobs.model_dump() if self.logprobs and choice.logprobs else {}
        # llama.cpp's server uses the chat format for completions, too
        if content := given.get("content"):
            told = [(piece["token"], piece["logprob"]) for piece in content]
        else:
            both = given.get("tokens") or (), given.get("token_logprobs") or ()
            told = list(zip(*both, strict=False))
        # after the text, some servers list the end-of-text token or the tokens of a removed stop
        # string
        ends = list(accumulate(len(piece) for piece, _ in told))
        told = told[: bisect_left(ends, len(text)) + 1] if text else []
        pieces = [piece for piece, _ in told]
        if self.logprobs and text and (not told or any(number is None for _, number in told)):
            raise self._without_logprobs("gives no log-probabilities")
        if told and not "".join(pieces).startswith(text):
            raise self._without_logprobs(
                f"gives log-probabilities of pieces that do not spell its text ({pieces[0]!r} ...)"
            )
        text = "".join(pieces) or text  # a stop string was cut out of a token: keep it whole
        # the API does not distinguish a stop string from the model's own end
        finish = "eos" if choice.finish_reason == "stop" and not stop else choice.finish_reason
        over = decoding.stopper()
        for end, piece in enumerate(pieces or text, 1):
            if over(piece):
                text, told, finish = "".join((pieces or text)[:end]), told[:end], "stop"
                break
        tokens, logprobs = zip(*told, strict=True) if told else ((), () if self.logprobs else None)
        return Completion(prompt.id, sample, text, tokens, (), logprobs, finish, read)

    def _check_finished(self, choice: Any, text: str) -> None:
        """Raises UserError for a completion that is not one: cut short by the server, or all spent
        on reasoning that is not shown.
        """
        if choice.finish_reason not in ("stop", "length"):
            raise UserError(
                f"{self.name} at {self.base_url} did not finish its answer (finish_reason "
                f"{choice.finish_reason!r}, {len(text)} characters): repeat the command, or leave "
                "this task out if the server refuses it again"
            )
        if self.chat and choice.finish_reason == "length" and not visible(text).strip():
            raise UserError(
                f"{self.name} at {self.base_url} spent all its tokens before it answered, on "
                "reasoning: set a higher max_new_tokens, or switch reasoning off at the server"
            )
