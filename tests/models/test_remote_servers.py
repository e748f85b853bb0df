"""Answers, scores and names by the servers that are installed here (vLLM's, ``transformers
serve``) and by our own stand-in, against the local engine.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from importlib.util import find_spec

import pytest
from tiny_architectures import save_chat
from tiny_endpoint import TinyEndpoint, log_probabilities

from lookuplab.errors import UserError
from lookuplab.models import Decoding, Prompt, complete, load, score

COMMANDS = {  # the module that must be there -> how its server is started
    "vllm": "-m vllm.entrypoints.openai.api_server --model {folder} --served-model-name tiny "
    "--dtype float32 --enforce-eager --host 127.0.0.1 --port {port}",
    "uvicorn": "-m transformers.cli.transformers serve {folder} --port {port}",
}
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "1",
    "OMP_NUM_THREADS": "1",
}
PROMPTS = [Prompt(f"{at}", f"client = boto3.client({at!r})\nclient.") for at in range(8)]
SHORT = Decoding(max_new_tokens=12)
LONG = [replace(prompt, text="x = 1\n" * 500 + prompt.text) for prompt in PROMPTS[:2]]
CUT = replace(SHORT, truncation="left")
TOLERANCE = 0.05  # of log-probabilities: llama.cpp rounds much, vLLM differs by 1e-5
NAMES = "get_waiter", "put_object", "read"
HELD = [replace(prompt, choices=NAMES) for prompt in PROMPTS]
PAIRS = [(prompt, f"put_object(Key={prompt.id})") for prompt in PROMPTS]


class Server:
    """A server of the tiny model in a process of its own."""

    def __init__(self, kind, folder):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self.command = [sys.executable, *COMMANDS[kind].format(folder=folder, port=port).split()]

    def start(self):
        self.process = subprocess.Popen(
            self.command, env=os.environ | SETTINGS, start_new_session=True
        )
        while self.process.poll() is None:
            try:
                return urllib.request.urlopen(self.url.replace("v1", "health"))
            except OSError:
                time.sleep(0.2)
        pytest.fail(f"{self.command} ends")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(save_chat(tmp_path_factory.mktemp("served"), width=128))


@pytest.fixture(scope="module", params=["tiny", *COMMANDS])
def server(request, tiny):
    if request.param == "tiny":
        with TinyEndpoint(load(tiny)) as running:
            yield running
    elif find_spec(request.param):
        running = Server(request.param, tiny)
        running.start()
        yield running
        running.kill()
    else:
        pytest.skip(f"{request.param} is not installed")


@pytest.fixture
def kind(request):
    return request.node.callspec.params["server"]


@pytest.fixture
def remote(kind, server, tiny, monkeypatch):
    """Loads the served model with options."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    # `transformers serve` calls a model by its folder, and gives no log-probabilities
    name, gives = (tiny, False) if kind == "uvicorn" else ("tiny", True)
    return lambda **options: load(f"{server.url}#{name}", parallel=2, logprobs=gives, **options)


def assert_equal(answers, expected):
    for answer, one in zip(answers, expected, strict=True):
        shown = len(answer.tokens)  # without the end token
        assert replace(answer, tokens=(), token_logprobs=None) == replace(
            one, tokens=(), token_ids=(), token_logprobs=None
        )
        if answer.token_logprobs is not None:
            assert answer.token_logprobs == pytest.approx(one.token_logprobs[:shown], abs=TOLERANCE)


def test_answers_and_cut_prompts_are_the_local_ones(kind, remote, tiny):
    assert_equal(*(complete(each, PROMPTS, SHORT, False) for each in (remote(), load(tiny))))
    cutting = remote(tokenizer=tiny, context=512)
    if kind == "uvicorn":
        with pytest.raises(UserError, match="prompt must be a string"):
            complete(cutting, LONG, CUT, False)
    else:
        assert_equal(*(complete(each, LONG, CUT, False) for each in (cutting, load(tiny))))
        with pytest.raises(UserError, match=r"context.*options tokenizer and context"):
            complete(remote(), LONG, CUT, False)


def test_given_texts_are_scored_as_locally(kind, remote, tiny):
    if kind in ("tiny", "vllm"):
        assert_equal(*(score(each, PAIRS, False) for each in (remote(tokenizer=tiny), load(tiny))))
    else:
        with pytest.raises(UserError, match=r"cannot score|does not score"):
            score(remote(tokenizer=tiny), PAIRS, False)


def test_answers_begin_with_names_and_keep_the_log_probabilities_of_the_free_model(
    kind, remote, tiny
):
    if kind == "uvicorn":
        with pytest.raises(UserError, match="does not hold answers to given names"):
            complete(remote(), HELD, SHORT, False)
        return
    model = load(tiny)
    ids_of = {model.tokenizer.decode([token]): token for token in range(len(model.tokenizer))}
    for prompt, answer in zip(HELD, complete(remote(), HELD, SHORT, False), strict=True):
        assert re.match(rf"({'|'.join(NAMES)})(?!\w)", answer.text)
        before = model.prompt_ids(prompt.text)
        expected = log_probabilities(model, before + [ids_of[piece] for piece in answer.tokens])
        assert answer.token_logprobs == pytest.approx(expected[len(before) :], abs=TOLERANCE)


def test_a_server_killed_in_the_middle_loses_and_spoils_nothing(server, remote, tiny, tmp_path):
    model, store, got = remote(), tmp_path / "s.sqlite", []
    generate = model.generate

    def interrupted(requests, decoding):
        for batch in generate(requests, decoding):
            got.extend(batch)
            if len(got) == 3:
                server.kill()
            yield batch

    model.generate = interrupted
    with pytest.raises(UserError, match="after 5 retries"):
        complete(model, PROMPTS, SHORT, store)
    assert 3 <= len(got) < len(PROMPTS)
    server.start()
    answers = complete(model, PROMPTS, SHORT, store)
    assert len(got) == len(PROMPTS), "only what was missing is asked again"
    assert_equal(answers, complete(load(tiny), PROMPTS, SHORT, False))


@pytest.mark.parametrize("server", ["tiny"], indirect=True)
def test_a_server_that_ignores_what_was_asked_stores_nothing(server, remote, tiny):
    server.ignored = "echo", "grammar", "return_token_ids"
    with pytest.raises(UserError, match="does not hold answers"):
        complete(remote(), HELD, SHORT, False)
    with pytest.raises(UserError, match="does not score"):
        score(remote(tokenizer=tiny), PAIRS, False)
    with pytest.raises(UserError, match="context is a number of tokens"):
        remote(context=9)
    server.reset()
