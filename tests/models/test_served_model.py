"""A real server of quantised weights, llama.cpp's, where it and the weights are: `pip install
xllamacpp`, `lookuplab data get gemma-3-270m`.
"""

import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from lookuplab.errors import UserError
from lookuplab.models import Decoding, Prompt, complete, load
from lookuplab.run import downloads

pytest.importorskip(
    "xllamacpp", reason="llama.cpp's server is not installed (pip install xllamacpp)"
)
FILE = downloads.find("gemma-3-270m").path
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


@pytest.fixture(scope="module")
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def server(port, monkeypatch):
    """The server's process, once it answers."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    command = [sys.executable, "-c", SERVER, str(FILE), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=60)
                break
            except OSError:
                assert process.poll() is None, "the server ended"
                time.sleep(0.5)
        yield process
        process.kill()


@pytest.fixture
def ask(port):
    def asked(prompts=PROMPTS, store=False, parallel=32, **decoding):
        model = load(f"http://127.0.0.1:{port}/v1#gemma", timeout=600, parallel=parallel)
        return complete(model, prompts, Decoding(**{"max_new_tokens": 4} | decoding), store)

    return asked


def test_answers_come_with_a_log_probability_for_each_token_and_end_at_a_stop_string(server, ask):
    (one,) = ask(PROMPTS[1:2])
    assert one.text.startswith(" 4") and "".join(one.tokens) == one.text
    assert len(one.token_logprobs) == len(one.tokens) and max(one.token_logprobs) <= 0
    (one,) = ask(PROMPTS[1:2], max_new_tokens=8, stop=(",",))
    assert one.finish_reason == "stop" and one.text.count(",") <= 1 and len(one.tokens) < 8


def test_answers_that_are_asked_at_once_are_those_asked_one_by_one(server, ask):
    for one, other in zip(ask(parallel=1), ask(parallel=4), strict=True):
        assert (one.id, one.tokens[0]) == (other.id, other.tokens[0])
        assert one.token_logprobs[0] == pytest.approx(other.token_logprobs[0], abs=0.1)


def test_a_server_that_is_killed_is_one_line_and_what_it_answered_is_kept(server, ask, tmp_path):
    store = tmp_path / "completions.sqlite"
    before = ask(PROMPTS[:3], store)
    server.kill()
    server.wait()
    with pytest.raises(UserError, match=r"gemma at http.*Connection error") as raised:
        ask(store=store)
    assert "\n" not in str(raised.value) and ask(PROMPTS[:3], store) == before
