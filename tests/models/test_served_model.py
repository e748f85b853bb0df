"""A real server of quantised weights, llama.cpp's, where it and the weights are: `pip install xllamacpp`, `lookuplab
data get gemma-3-270m`.
"""

import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from lookuplab import data_sources
from lookuplab.errors import UserError
from lookuplab.models.complete import Decoding, Prompt, complete
from lookuplab.models.load import load

pytest.importorskip(
    "xllamacpp", reason="llama.cpp's server is not installed (pip install xllamacpp)"
)
FILE = data_sources.find("gemma-3-270m").path
if not FILE.is_file():
    pytest.skip("no weights to serve (lookuplab data get gemma-3-270m)", allow_module_level=True)

SERVER = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.n_parallel, params.n_ctx, params.cpuparams.n_threads = 2, 2048, 1
server = xllamacpp.Server(params)
time.sleep(1800)
"""
PROMPTS = [Prompt(str(n), f"{n}, {n + 1}, {n + 2},") for n in range(6)]
SHORT = Decoding(max_new_tokens=4)


class Server:
    """``start`` waits until it answers, ``kill`` is -9."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(FILE), str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(600):
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=60)
            except (urllib.error.URLError, OSError):
                assert self.process.poll() is None, "the server ended"
                time.sleep(0.5)
        raise TimeoutError("the server does not start")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def server():
    server = Server()
    server.start()
    yield server
    server.kill()


def ask(server, prompts=PROMPTS, decoding=SHORT, store=False, **options):
    options = {"timeout": 600, "max_retries": 0, **options}
    return complete(load(f"{server.url}#gemma", **options), prompts, decoding, store)


def test_answers_come_with_a_log_probability_for_each_token(server):
    (one,) = ask(server, PROMPTS[1:2])
    assert one.text.startswith(" 4") and "".join(one.tokens) == one.text
    assert len(one.token_logprobs) == len(one.tokens) and max(one.token_logprobs) <= 0


def test_a_stop_string_ends_an_answer(server):
    (one,) = ask(server, PROMPTS[1:2], Decoding(max_new_tokens=8, stop=(",",)))
    assert one.finish_reason == "stop" and one.text.count(",") <= 1 and len(one.tokens) < 8


def test_answers_that_are_asked_at_once_are_those_asked_one_by_one(server):
    for one, other in zip(ask(server, parallel=1), ask(server, parallel=4), strict=True):
        assert (one.id, one.tokens[0]) == (other.id, other.tokens[0])
        assert one.token_logprobs[0] == pytest.approx(other.token_logprobs[0], abs=0.1)


def test_a_server_that_is_killed_is_one_line_and_what_it_answered_is_kept(server, tmp_path):
    store = tmp_path / "completions.sqlite"
    kept = ask(server, PROMPTS[:3], store=store)
    server.kill()
    with pytest.raises(UserError, match=r"gemma at http.*Connection error") as raised:
        ask(server, store=store)
    assert "\n" not in str(raised.value) and ask(server, PROMPTS[:3], store=store) == kept
    server.start()
    assert ask(server, store=store)[:3] == kept
