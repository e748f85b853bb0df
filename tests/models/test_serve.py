"""A remote model end to end against ``transformers serve``, which gives no log-probabilities."""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import tiny_checkpoint

from lookuplab.errors import UserError
from lookuplab.models.complete import complete, score
from lookuplab.models.load import load
from lookuplab.models.types import Decoding, Prompt

PROMPTS = [Prompt("a", "client = boto3."), Prompt("b", "from azure.storage import")]
SHORT = Decoding(max_new_tokens=12)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """(address, checkpoint folder) of a running server."""
    folder = tiny_checkpoint.save(tmp_path_factory.mktemp("served") / "a tiny model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("transformers")
    log = tmp_path_factory.mktemp("log") / "serve.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [
                program,
                "serve",
                folder,
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--device",
                "cpu",
            ],
            stdout=out,
            stderr=out,
        )
    try:
        _wait_until_healthy(server, port, log)
        yield f"http://127.0.0.1:{port}/v1", folder
    finally:
        server.terminate()
        server.wait(timeout=20)


def _wait_until_healthy(server, port, log):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(240):
        assert server.poll() is None, log.read_text()
        try:
            return opener.open(f"http://127.0.0.1:{port}/health", timeout=5).read()
        except OSError:
            time.sleep(0.25)
    raise AssertionError(f"the server did not start:\n{log.read_text()}")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def greedy(folder, texts):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = (
        AutoModelForCausalLM.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
    )
    answers = []
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        out = model.generate(ids, max_new_tokens=SHORT.max_new_tokens, do_sample=False)
        answers.append(tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True))
    return answers


def test_the_plain_path_answers_as_the_local_weights_do(served):
    url, folder = served
    answers = complete(load(f"{url}#{folder}"), PROMPTS, SHORT, store=False)
    assert [answer.text for answer in answers] == greedy(
        folder, [prompt.text for prompt in PROMPTS]
    )
    assert [(answer.tokens, answer.token_logprobs) for answer in answers] == [((), None)] * 2


def test_the_chat_path_answers_as_the_local_weights_do(served):
    url, folder = served
    answers = complete(load(f"{url}#{folder}?chat=true"), PROMPTS, SHORT, store=False)
    texts = [f"<|user|>\n{prompt.text}\n<|assistant|>\n" for prompt in PROMPTS]
    assert [answer.text for answer in answers] == greedy(folder, texts)


def test_a_clear_line_where_log_probabilities_are_needed(served):
    model = load("#".join(map(str, served)))
    with pytest.raises(UserError, match="gives no log-probabilities, which are needed here"):
        complete(model, PROMPTS, SHORT, store=False, requires_logprobs=True)
    with pytest.raises(UserError, match="gives no log-probabilities of a given text"):
        score(model, [(PROMPTS[0], "client('s3')")], store=False)
