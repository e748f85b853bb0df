"""A model behind an OpenAI-compatible endpoint: GPT-4o, vLLM, ``transformers serve`` and the like.

Base models are asked through ``/completions``, chat models through ``/chat/completions`` with the paper's system
prompt. The ``openai`` client does the retries (429, 5xx, time-outs; exponential, honouring Retry-After); this module
bounds the parallel requests, turns answers into completions and failures into one clear line.

The key comes from the environment and goes to the ``openai`` client, nowhere else: it is in no name, identity, store,
log or message. Not covered: truncation of long prompts (only the endpoint knows its tokens, so it refuses them); what
an endpoint's log-probabilities mean (vLLM's are those of the unscaled distribution by default, as here); whether it
samples as asked (``transformers serve`` stays greedy unless the checkpoint's own configuration samples).
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from urllib.parse import urlsplit

from lookuplab.errors import UserError
from lookuplab.models import chat as chat_prompts
from lookuplab.models.answers import completion_from_chat, completion_from_text, scored_from_echo
from lookuplab.models.stopping import stopping
from lookuplab.models.types import Completion, Decoding, Prompt

OPENAI = "https://api.openai.com/v1"
MAX_STOP_STRINGS = 4  # what OpenAI accepts; the others are applied to what comes back
OPTIONS = {"chat", "key_variable", "timeout", "max_retries", "parallel", "revision"}


class RemoteModel:
    """``model`` at ``base_url``. ``chat`` chooses the endpoint; ``key_variable`` names the variable with the key.

    ``timeout`` (seconds) and ``max_retries`` hold for one request, ``parallel`` bounds the requests in flight.
    ``revision`` is yours: name another one when the same address serves new weights, and nothing stored is reused.
    """

    def __init__(self, base_url: str, model: str, *, chat: bool = False, key_variable: str = "OPENAI_API_KEY",
                 timeout: float = 120.0, max_retries: int = 5, parallel: int = 8, revision: str = ""):
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not model:
            raise UserError("a remote model is named http://HOST:PORT/v1#MODEL (with &chat at the end for a chat "
                            "model) or openai:MODEL")
        if parts.username or parts.password or parts.query:
            raise UserError("the address of a remote model must carry no user, password or query: "
                            f"put the key into the environment variable {key_variable}")
        if parallel < 1:
            raise UserError(f"parallel is {parallel}; it must be at least 1")
        self.base_url, self.model, self.chat, self.revision = base_url.rstrip("/"), model, chat, revision
        self.key_variable, self.timeout, self.max_retries = key_variable, timeout, max_retries
        self.parallel = parallel
        self.name = model
        self._logprobs_refused = False

    @classmethod
    def from_name(cls, name: str, **options) -> "RemoteModel":
        """``openai:gpt-4o`` (a chat model) or ``http://127.0.0.1:8000/v1#model-name``, ``...#model-name&chat``."""
        unknown = sorted(set(options) - OPTIONS)
        if unknown:
            raise UserError(f"remote model {name.partition('#')[2] or name}: unknown option {unknown[0]!r} "
                            f"(there are {', '.join(sorted(OPTIONS))})")
        if name.startswith("openai:"):
            return cls(OPENAI, name.removeprefix("openai:"), **{"chat": True, **options})
        url, _, model = name.partition("#")
        if model.endswith("&chat"):
            options = {"chat": True, **options}
        return cls(url, model.removesuffix("&chat"), **options)

    def __repr__(self) -> str:
        return f"RemoteModel({self.base_url!r}, {self.model!r}, chat={self.chat})"

    @property
    def identity(self) -> dict[str, str]:
        """The address is part of it: two servers may give one name to different weights."""
        asked_as = chat_prompts.LISTING_ID if self.chat else "completions"
        return {"kind": "remote", "name": self.model, "endpoint": self.base_url, "asked_as": asked_as,
                "revision": self.revision}

    def generate(self, requests: Sequence[tuple[Prompt, int]], decoding: Decoding) -> Iterator[list[Completion]]:
        """Answer each (prompt, sample index), each as soon as it is there. UserError when the endpoint fails."""
        stopping(decoding)  # an unknown rule shows before anything is asked
        if any(prompt.choices for prompt, _ in requests):
            raise UserError(f"{self.name}: an endpoint cannot be held to given names (choices); use a local model")
        if decoding.beams > 1:
            raise UserError(f"{self.name}: an endpoint offers no beam search; use a local model or set beams to 1")
        ask = self._ask_chat if self.chat else self._ask_text
        yield from self._in_parallel([(ask, prompt, sample, decoding) for prompt, sample in requests])

    def score(self, requests: Sequence[tuple[Prompt, str]]) -> Iterator[list[Completion]]:
        """Log-probabilities of given continuations, from an endpoint that echoes the prompt with them (vLLM does)."""
        if self.chat:
            raise UserError(f"{self.name}: a chat endpoint cannot score a given continuation; use a local model")
        yield from self._in_parallel([(self._ask_echo, prompt, continuation) for prompt, continuation in requests])

    def _in_parallel(self, calls: list[tuple]) -> Iterator[list[Completion]]:
        """At the first failure nothing new is asked, but answers that are under way are still handed on."""
        self._check_reachable()
        failure = None
        pool = ThreadPoolExecutor(self.parallel, thread_name_prefix="remote")
        try:
            futures = [pool.submit(*call) for call in calls]
            for future in as_completed(futures):
                if future.cancelled():
                    continue
                if error := future.exception():
                    failure = failure or error
                    for waiting in futures:
                        waiting.cancel()
                else:
                    yield [future.result()]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        if failure:
            raise failure

    @cached_property
    def _client(self):
        from openai import OpenAI, Timeout

        return OpenAI(api_key=self._key(), base_url=self.base_url, max_retries=self.max_retries,
                      timeout=Timeout(self.timeout, connect=min(self.timeout, 10.0)))

    def _key(self) -> str:
        key = os.environ.get(self.key_variable, "").strip()
        if not key and self.base_url == OPENAI:
            raise UserError(f"{self.name} needs a key: set the environment variable {self.key_variable}")
        return key or "none"  # servers on one's own machine want none, but the client insists on one

    def _check_reachable(self) -> None:
        """Ask once without retries, so that a wrong address or key shows at once and not after all the back-offs."""
        from openai import APIConnectionError, APIStatusError, AuthenticationError

        try:
            self._client.with_options(max_retries=0, timeout=min(self.timeout, 10.0)).models.list()
        except AuthenticationError as error:
            raise self._explained(error) from None
        except APIConnectionError as error:
            if _never_connected(error):  # a server that is merely busy gets its chance
                raise self._explained(error) from None
        except APIStatusError:
            pass  # many endpoints list no models, and some keys may not ask; the first real request will tell

    def _call(self, create: Callable, **parameters):
        """One request; once more without log-probabilities where the endpoint refuses to be asked for them."""
        from openai import APIError, BadRequestError, UnprocessableEntityError, omit

        if self._logprobs_refused:
            parameters["logprobs"] = omit
        try:
            try:
                return self._checked(create(model=self.model, **parameters))
            except (BadRequestError, UnprocessableEntityError) as error:
                if "logprobs" not in str(error) or parameters["logprobs"] is omit or "echo" in parameters:
                    raise
            self._logprobs_refused = True
            return self._checked(create(model=self.model, **{**parameters, "logprobs": omit}))
        except APIError as error:
            raise self._explained(error) from None

    def _checked(self, response):
        if not getattr(response, "choices", None):  # a web page, say: the client hands text on as it came
            raise UserError(f"{self.base_url} does not answer as an OpenAI-compatible endpoint; check the address "
                            "(it usually ends with /v1)")
        return response

    def _ask_text(self, prompt: Prompt, sample: int, decoding: Decoding) -> Completion:
        response = self._call(self._client.completions.create, prompt=prompt.text, logprobs=1,
                              **_parameters(prompt, sample, decoding))
        return completion_from_text(response, prompt, sample, decoding)

    def _ask_chat(self, prompt: Prompt, sample: int, decoding: Decoding) -> Completion:
        response = self._call(self._client.chat.completions.create, messages=chat_prompts.messages(prompt),
                              logprobs=True, **_parameters(prompt, sample, decoding))
        return completion_from_chat(response, prompt, sample, decoding)

    def _ask_echo(self, prompt: Prompt, continuation: str) -> Completion:
        # one token more than is wanted: not every endpoint takes 0; scored_from_echo leaves it out
        response = self._call(self._client.completions.create, prompt=prompt.text + continuation, echo=True,
                              logprobs=1, max_tokens=1, temperature=0.0)
        scored = scored_from_echo(response, prompt, continuation)
        if scored is None:
            raise UserError(f"{self.name} at {self.base_url} gives no log-probabilities of a given text, which "
                            "scoring needs; use a local model or an endpoint that echoes them (vLLM)")
        return scored

    def _explained(self, error) -> UserError:
        """One line without the key; the endpoint's own words only where they help (never on a refused key)."""
        import openai

        where, tries = f"{self.name} at {self.base_url}", self.max_retries + 1
        status = getattr(error, "status_code", None)
        if isinstance(error, openai.APIConnectionError) and _never_connected(error):
            return UserError(f"{where}: cannot be reached; is the server running and the address right?")
        if isinstance(error, openai.APIConnectionError):
            return UserError(f"{where}: no answer within {self.timeout:g} s in {tries} tries; raise timeout or "
                             "lower parallel")
        if status in (401, 403):
            return UserError(f"{where}: not authorised ({status}); set a valid key in {self.key_variable}")
        if status == 404:
            return UserError(f"{where}: no such model or address (404): {self._words(error)}")
        if status == 429:
            return UserError(f"{where}: still too many requests after {tries} tries (429); lower parallel or wait: "
                             f"{self._words(error)}")
        if status is not None and status >= 500:
            return UserError(f"{where}: the server failed {tries} times ({status}): {self._words(error)}")
        return UserError(f"{where}: request refused ({status or 'no status'}): {self._words(error)}")

    def _words(self, error) -> str:
        """The endpoint's message in one line of at most 200 characters, with the key blanked should it stand there."""
        body = error.body if isinstance(error.body, dict) else {}
        text = " ".join(str(body.get("message") or body.get("detail") or error.message).split())
        key = os.environ.get(self.key_variable, "").strip()
        return (text.replace(key, "***") if key else text)[:200]


def _never_connected(error) -> bool:
    """Whether a connection error came before the first byte was sent (the client keeps the cause)."""
    return type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")


def _parameters(prompt: Prompt, sample: int, decoding: Decoding) -> dict:
    """Decoding in the words of the OpenAI API. A seed is sent only where it matters: some endpoints refuse it."""
    parameters = {"max_tokens": decoding.max_new_tokens, "temperature": decoding.temperature}
    if decoding.stop:
        parameters["stop"] = list(decoding.stop[:MAX_STOP_STRINGS])
    if decoding.temperature > 0:
        seed = hashlib.sha256(f"{decoding.seed}/{prompt.id}/{sample}".encode()).digest()
        parameters |= {"top_p": decoding.top_p, "seed": int.from_bytes(seed[:4]) >> 1}
    return parameters
