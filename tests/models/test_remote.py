"""Compares remote models with the local engine. The servers run on this machine: vLLM's and
``transformers serve``, where they are installed, and a small server that misbehaves on demand.
"""

import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Barrier
from urllib.request import urlopen

import pytest
from beside import table
from doors import quick, refused
from tiny_architectures import TOLERANCE, save_chat
from tiny_endpoint import KEY, TinyEndpoint
from waiting import until

from lookuplab.models import Decoding, Prompt, complete, load, score
from lookuplab.models.remote import MARKUP
from lookuplab.toolgen.generation import generate
from lookuplab.toolgen.jedi_tool import JediTool

VLLM = "-m vllm.entrypoints.openai.api_server --served-model-name tiny --dtype float32 "
VLLM += "--enforce-eager --host 127.0.0.1"
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "1",
    "OMP_NUM_THREADS": "1",
}
PROMPTS = [Prompt(f"{at}", f"client = boto3.client({at!r})\nclient.") for at in range(8)]
SHORT, ONE = Decoding(max_new_tokens=12), Decoding(max_new_tokens=1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(save_chat(tmp_path_factory.mktemp("served"), width=128))


@pytest.fixture(scope="module")
def model(tiny):
    return load(tiny)


@pytest.fixture
def endpoint(model):
    # each test has its own server, because requests of a test that gave up may arrive late
    with TinyEndpoint(model) as running:
        yield running


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)


@pytest.fixture(params=["tiny", "vllm", "uvicorn"])
def remote(request, tiny, endpoint):
    """Yield a function that loads the tiny model from a server. The server is our own small one,
    vLLM's (in another process) or that of `transformers serve`.
    """
    if request.param == "tiny":
        yield partial(load, f"{endpoint.url}#tiny", parallel=2)
        return
    pytest.importorskip(request.param)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    if request.param == "vllm":
        command = [sys.executable, *VLLM.split(), "--model", tiny, "--port", str(port)]
        process = subprocess.Popen(command, env=os.environ | SETTINGS, start_new_session=True)
        name, gives = "tiny", True
        end = lambda: (os.killpg(process.pid, signal.SIGKILL), process.wait())  # noqa: E731
    else:
        from transformers.cli.serve import Serve

        server = Serve(tiny, host="127.0.0.1", port=port, non_blocking=True)
        # this server names a model by its folder, and gives no log-probabilities
        name, gives, end = tiny, False, server.kill_server

    def is_up():
        with suppress(OSError):
            return urlopen(f"http://127.0.0.1:{port}/health")

    try:
        until(is_up)
        yield partial(load, f"http://127.0.0.1:{port}/v1#{name}", parallel=2, logprobs=gives)
    finally:
        end()


def ask(endpoint, prompts=PROMPTS[:3], decoding=SHORT, store=False, **options):
    return complete(load(f"{endpoint.url}#tiny", **options), prompts, decoding, store)


def assert_equal(answers, expected):
    for answer, one in zip(answers, expected, strict=True):
        # some servers leave out the end token, so only the tokens before it are compared
        shown = len(answer.tokens)
        logprobs = answer.token_logprobs
        same = replace(one, tokens=one.tokens[:shown], token_ids=(), token_logprobs=logprobs)
        assert answer == same
        if logprobs is not None:
            assert logprobs == pytest.approx(one.token_logprobs[:shown], abs=TOLERANCE)


def test_answers_are_the_local_ones(remote, tiny):
    assert_equal(*(complete(each, PROMPTS, SHORT, False) for each in (remote(), load(tiny))))


def test_an_endpoint_neither_scores_given_texts_nor_holds_answers_to_names(endpoint):
    with refused("does not score given texts; use a local model"):
        score(load(f"{endpoint.url}#tiny"), [(PROMPTS[0], "x")], False)
    with refused("does not restrict answers to given names"):
        ask(endpoint, [replace(PROMPTS[0], choices=("read",))])


def test_a_server_that_dies_in_the_middle_loses_and_spoils_nothing(endpoint, tiny, tmp_path):
    endpoint.lives = 3
    asked = partial(ask, endpoint, PROMPTS, store=tmp_path / "s.sqlite")
    with refused(r"after 5 retries.*; 3 of 8 prompts are answered: run it"):
        asked(parallel=2)
    endpoint.lives = math.inf
    assert_equal(asked(), complete(load(tiny), PROMPTS, SHORT, False))
    assert len(endpoint.bodies) == len(PROMPTS), "only what was missing is asked again"


def test_answers_of_a_chat_are_the_local_ones(endpoint, tiny):
    prompts = [*PROMPTS[:3], Prompt("d", "x = f(", "be brief")]
    local = complete(load(tiny, chat=True), prompts, SHORT, False)
    assert_equal(ask(endpoint, prompts, chat=True), local)


class UpToAVowel:
    """A rule that stops at a vowel. Endpoints cannot apply the rule, but they get its ``stop``
    strings.
    """

    name = "up_to_a_vowel"
    stop = ("#",)

    def feed(self, piece):
        return bool({*"aeiou"} & {*piece})


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ({"stop": ("e",)}, ["e"]),
        ({"stop": ("@1", "@2", "@3", "@4", "e")}, ["@1", "@2", "@3", "@4"]),
        ({"stop_rule": UpToAVowel}, ["#"]),
    ],
)
def test_answers_end_where_local_ones_do_also_where_the_endpoint_is_not_told(
    endpoint, tiny, ends, told
):
    decoding = replace(SHORT, **ends)
    answers = ask(endpoint, decoding=decoding)
    assert_equal(answers, complete(load(tiny), PROMPTS[:3], decoding, False))
    assert endpoint.bodies[-1]["stop"] == told
    assert "stop" in {one.finish_reason for one in answers}
    by_letter = ask(endpoint, decoding=decoding, logprobs=False)
    for one, bare in zip(answers, by_letter, strict=True):
        assert one.text.startswith(bare.text)


def test_further_fields_are_sent(endpoint):
    ask(endpoint, PROMPTS[:1], extra={"reasoning_effort": "low"})
    assert endpoint.bodies[0]["reasoning_effort"] == "low"


def test_a_seed_is_sent_for_samples_only_and_differs_by_prompt_and_sample(endpoint):
    ask(endpoint, decoding=ONE)
    ask(endpoint, decoding=replace(ONE, temperature=0.5, n=2))
    seeds = [body.get("seed") for body in endpoint.bodies]
    assert seeds[:3] == [None] * 3 and len(set(seeds[3:])) == 6


def test_a_refused_key_is_told_at_once_and_never_shown_and_another_variable_may_hold_one(
    endpoint, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key")
    with refused(r"401.*Bearer \*\*\*"):
        ask(endpoint)
    assert len(endpoint.bodies) <= 3  # a request with a wrong key is not repeated for every prompt
    monkeypatch.setenv("LAB_KEY", KEY)
    assert len(ask(endpoint, key_variable="LAB_KEY")) == 3
    monkeypatch.delenv("OPENAI_API_KEY")
    with refused("set the environment variable OPENAI_API_KEY"):
        complete(load("openai:gpt-4o"), PROMPTS, SHORT, store=False)


def test_the_key_is_in_no_store_log_message_or_object(endpoint, tmp_path, caplog, capfd):
    caplog.set_level("DEBUG")
    model = load(f"{endpoint.url}#tiny")
    complete(model, PROMPTS, SHORT, tmp_path / "s.sqlite")
    endpoint.failures = [500] * 50  # the error's message repeats the authorisation header
    with refused(r"tiny at http.*500") as raised:
        complete(model, [Prompt("d", "x")], SHORT, tmp_path / "s.sqlite")
    shown = repr(raised.value), str(vars(model)), str(model.identity), caplog.text
    assert not any(KEY in text for text in (*shown, *capfd.readouterr()))
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_what_cannot_be_a_key_is_one_line_without_it(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "two\nlines")
    with refused(r"^OPENAI_API_KEY is no key"):
        ask(endpoint)


GOES = """\
http://127.0.0.1:1/v1#m OPENAI_API_KEY
openai:m OPENAI_API_KEY
https://models.invalid/v1#m OTHER_KEY
https://models.invalid/v1#m OPENAI_API_KEY goes to models.invalid;
http://models.invalid/v1#m OTHER_KEY goes to models.invalid unencrypted (http);
HTTP://[2001:db8::1]:80/v1#m OPENAI_API_KEY goes to 2001:db8::1 unencrypted"""


@pytest.mark.parametrize("line", GOES.splitlines())
def test_where_a_key_goes_that_may_not_be_meant_for_it_is_said_once(line, monkeypatch, capsys):
    place, variable, said = [*line.split(" ", 2), ""][:3]
    monkeypatch.setenv(variable, KEY)
    model = load(place, key_variable=variable)
    for _ in range(2):
        assert model._client.api_key == KEY
    shown = capsys.readouterr().err
    assert shown.count("\n") == bool(said) and said in shown and KEY not in shown


def test_what_is_no_model_or_no_endpoint_is_one_clear_line(endpoint):
    with refused(r"404.*`other` does not exist"):
        complete(load(f"{endpoint.url}#other"), PROMPTS, SHORT, store=False)
    endpoint.pause = partial(time.sleep, 0.3)
    with refused("timed out"):
        ask(endpoint, PROMPTS[:1], timeout=0.05)


def test_no_more_requests_than_allowed_are_in_flight(endpoint):
    endpoint.pause = Barrier(3, timeout=60).wait
    # a time limit that the system does not accept is no error
    ask(endpoint, PROMPTS[:6], ONE, parallel=3, total=math.inf, timeout=1e300)
    assert endpoint.most_at_once == 3


@pytest.mark.parametrize(
    ("chat", "how"), [(False, {"gives_logprobs": False}), (True, {"refused": ("logprobs",)})]
)
def test_an_endpoint_without_log_probabilities_answers_once_its_name_says_so(
    endpoint, how, chat, tmp_path
):
    asked = partial(ask, endpoint, chat=chat, store=tmp_path / "s.sqlite")
    vars(endpoint).update(how)
    with refused("add the option logprobs=false"):
        asked()
    assert {one.token_logprobs for one in asked(logprobs=False)} == {None}
    endpoint.reset()
    told = {one.token_logprobs for one in asked()}
    assert None not in told, "answers with log-probabilities are others"


def test_failures_that_pass_are_tried_again_and_cost_no_log_probabilities(endpoint):
    """Some error messages quote the request, with its field "logprobs". Such a message does not
    mean that the server gives no log-probabilities.
    """
    endpoint.failures = [503, 500, 429]
    ask(endpoint, parallel=1)
    endpoint.failures = [503] * 50
    with refused(r"503.*'logprobs': 1"):
        ask(endpoint, parallel=1)
    assert all(body["logprobs"] == 1 for body in endpoint.bodies)


REPLIES = table(__file__, "replies.yaml")


@pytest.mark.parametrize("given", REPLIES["read"], ids=str)
def test_what_other_servers_reply_is_read_as_meant(endpoint, given):
    """If a stop string ends inside a token, servers cut the text but list the whole token. If a
    character has several tokens, OpenAI and vLLM list them in different ways. llama.cpp sends
    log-probabilities of a completion in the format of chats.
    """
    endpoint.reply = given
    chat = "message" in given["body"]
    (done,) = ask(endpoint, PROMPTS[:1], replace(SHORT, stop=("@",)), chat=chat)
    assert done.text == "".join(done.tokens)
    assert ([*done.tokens], done.finish_reason) == (given["pieces"], given["finish"])


@pytest.mark.parametrize("given", REPLIES["refused"], ids=str)
def test_what_is_no_finished_answer_is_an_error_and_not_stored(endpoint, tmp_path, given):
    asked = partial(ask, endpoint, PROMPTS[:1], chat=True, store=tmp_path / "s.sqlite")
    endpoint.reply = given
    with refused(given["words"]):
        asked()
    before = len(endpoint.bodies)
    endpoint.reply = {}
    asked()
    assert len(endpoint.bodies) == before + 1


@pytest.mark.parametrize("depth", [400_000, 3_000])
def test_a_reply_that_is_nested_too_deep_is_one_line(endpoint, depth):
    endpoint.reply = {"body": "[" * depth + "]" * depth}
    with refused(r"^tiny at .{,400}$"):
        ask(endpoint, PROMPTS[:1])


def test_a_reply_that_drips_ends_with_the_time_for_a_whole_one(endpoint):
    endpoint.drips = True
    with refused(r"no complete reply after 0.5 seconds .option total"):
        ask(endpoint, PROMPTS[:1], total=0.5)


def test_a_reply_of_more_bytes_than_its_tokens_can_have_is_not_read(endpoint):
    endpoint.reply = {"body": " " * 5_000_000}
    with refused("more than 1,097,728 bytes"):
        ask(endpoint, PROMPTS[:1])


@pytest.mark.parametrize("page", ["<" * 10**6, "<script" * 10**5, "<style>x" * 10**5])
def test_an_error_page_is_read_once(page):
    """A pattern that searches up to the page's end from each opening tag would take minutes."""
    with quick():
        assert len(MARKUP.sub("", page)) in (0, 10**6)


class Counting:
    """A rule that never stops, and counts the characters that it reads."""

    name = "counting"
    read = 0

    def feed(self, piece):
        Counting.read += len(piece)


def test_a_rule_reads_a_long_answer_without_pieces_once(endpoint):
    choice = {"finish_reason": "length", "text": "x" * 60_000}
    endpoint.reply = {"body": json.dumps({"choices": [choice]})}
    (one,) = ask(endpoint, PROMPTS[:1], replace(SHORT, stop_rule=Counting), logprobs=False)
    assert one.text == choice["text"] and Counting.read == 60_000


def test_a_model_that_refuses_a_temperature_samples_only_where_its_name_says_so(endpoint, tmp_path):
    asked = partial(ask, endpoint, store=tmp_path / "s.sqlite")
    for parameter, decoding in (
        ("temperature", ONE),
        ("top_p", replace(ONE, temperature=1.0, top_p=0.5)),
    ):
        endpoint.refused = (parameter,)
        with refused(f"tiny refuses {parameter}.*option sampled=true"):
            asked(decoding=decoding)
    asked(decoding=ONE, sampled=True)
    endpoint.reset()
    asked(decoding=ONE)
    assert len(endpoint.bodies) == 3, "greedy answers are others"


def test_a_parameter_that_a_model_refuses_is_asked_for_once(endpoint, capfd):
    endpoint.refused = ("max_tokens", "temperature", "stop")
    ask(endpoint, decoding=replace(ONE, stop=("#",)), parallel=1, sampled=True)
    assert len(endpoint.bodies) == 6
    assert {"max_completion_tokens", "logprobs"} <= endpoint.bodies[-1].keys()
    assert not {"max_tokens", "temperature", "stop"} & endpoint.bodies[-1].keys()
    assert capfd.readouterr().err.count("tiny refuses temperature") == 1


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "http://127.0.0.1:9"])
def test_a_proxy_is_one_line_and_not_for_this_machine(endpoint, monkeypatch, proxy):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY")
    assert ask(endpoint, PROMPTS[:1])
    with refused(r"set NO_PROXY=host|refused .after 5 retries"):
        complete(load("http://host/v1#m"), PROMPTS[:1], SHORT, False)


def test_an_endpoint_cannot_use_a_tool_between_two_tokens():
    with refused("between two tokens"):
        generate(load("http://host/v1#m"), [], JediTool())


def test_identity_tells_address_model_endpoint_kind_revision_and_fields():
    model = load('http://host:1/v1/#m?chat=true&parallel=3&revision=1.10&extra={"b":1}')
    assert model.parallel == 3 and load("openai:gpt-4o").chat
    told = {"name": "m", "endpoint": "http://host:1/v1", "asked_as": "chat", "revision": "1.10"}
    told["fields"] = '[{"b":1},null]'
    assert model.identity == told | {"kind": "remote"}


def test_to_count_tokens_a_tokenizer_must_be_named():
    with refused("tokenizer=OWNER/NAME"):
        load("http://host/v1#m").tokenizer  # noqa: B018
