"""Remote models end to end over loopback, against a small server around a tiny model that gives
log-probabilities.
"""

import logging
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tiny_architectures import save_chat
from tiny_endpoint import KEY, TinyEndpoint

from lookuplab.errors import UserError
from lookuplab.models import Decoding, Prompt, complete, load, score
from lookuplab.toolgen.generation import generate
from lookuplab.toolgen.jedi_tool import JediTool

PROMPTS = [
    Prompt("a", "client = boto3."),
    Prompt("b", "from azure.storage import"),
    Prompt("c", "# upload"),
]
MANY = [Prompt(str(number), f"x = {number}") for number in range(6)]
SHORT = Decoding(max_new_tokens=12)
ONE = Decoding(max_new_tokens=1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_chat(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def running(tiny):
    with TinyEndpoint(load(str(tiny))) as server:
        yield server


@pytest.fixture
def endpoint(running, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    running.reset()
    return running


def ask(endpoint, prompts=PROMPTS, decoding=SHORT, store=False, **options):
    return complete(load(f"{endpoint.url}#tiny", **options), prompts, decoding, store)


@pytest.mark.parametrize("chat", [False, True])
def test_answers_and_log_probabilities_are_those_of_the_local_weights(endpoint, tiny, chat):
    """In llama.cpp's form, and through the chat template; in vLLM's: test_remote_servers."""
    endpoint.like_llama_cpp = True
    prompts = [*PROMPTS, Prompt("d", "x = f(", "be brief")]
    local = complete(load(str(tiny), chat=chat), prompts, SHORT, False)
    for answer, one in zip(ask(endpoint, prompts, chat=chat), local, strict=True):
        shown = len(answer.tokens)  # without the end token
        assert (answer.id, answer.text, answer.tokens) == (one.id, one.text, one.tokens[:shown])
        assert answer.token_logprobs == pytest.approx(one.token_logprobs[:shown], abs=1e-4)
        assert answer.prompt_tokens == one.prompt_tokens


def test_stop_strings_reach_the_endpoint_and_what_it_does_not_take_ends_the_answer_too(endpoint):
    text = ask(endpoint)[0].text
    for before in ((), ("@1", "@2", "@3", "@4")):
        decoding = replace(SHORT, stop=(*before, text[6]))
        (done,) = ask(endpoint, PROMPTS[:1], decoding)
        assert endpoint.bodies[-1]["stop"] == list(decoding.stop[:4])
        assert done.finish_reason == "stop" and done.text.startswith(text[: text.index(text[6])])
        assert "".join(done.tokens) == done.text
        assert len(done.tokens) == len(done.token_logprobs) <= 7


class UpToAVowel:
    """A rule, and what an endpoint may be told of it."""

    name, stop = "up_to_a_vowel", ("#",)

    def feed(self, piece):
        return bool({*"aeiou"} & {*piece})


def test_a_stop_rule_ends_the_answer_where_it_ends_a_local_one(endpoint, tiny):
    decoding = replace(SHORT, stop_rule=UpToAVowel)
    local = complete(load(str(tiny)), PROMPTS, decoding, store=False)
    answers = ask(endpoint, decoding=decoding)
    assert endpoint.bodies[-1]["stop"] == ["#"]
    assert "stop" in {one.finish_reason for one in answers}
    by_letter = ask(endpoint, decoding=decoding, logprobs=False)
    for one, other, bare in zip(answers, local, by_letter, strict=True):
        assert (one.text, one.tokens) == (other.text, other.tokens)
        assert one.text.startswith(bare.text)


def test_a_seed_is_sent_for_samples_only_and_differs_by_prompt_and_sample(endpoint):
    ask(endpoint, decoding=ONE)
    ask(endpoint, decoding=replace(ONE, temperature=0.5, n=2))
    seeds = [body.get("seed") for body in endpoint.bodies]
    assert seeds[:3] == [None] * 3 and len(set(seeds[3:])) == 6


def test_a_refused_key_is_told_at_once_and_never_shown_and_another_variable_may_hold_one(
    endpoint, monkeypatch
):
    endpoint.wants_key = True
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key")
    with pytest.raises(UserError, match="401") as raised:
        ask(endpoint)
    assert "sk-wrong" not in str(raised.value) and len(endpoint.bodies) <= 3, "no use to try again"
    monkeypatch.setenv("LAB_KEY", KEY)
    assert len(ask(endpoint, key_variable="LAB_KEY")) == 3
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UserError, match="set the environment variable OPENAI_API_KEY"):
        complete(load("openai:gpt-4o"), PROMPTS, SHORT, store=False)


def test_the_key_is_in_no_store_log_message_or_object(endpoint, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    endpoint.wants_key = True
    model = load(f"{endpoint.url}#tiny")
    complete(model, PROMPTS, SHORT, tmp_path / "s.sqlite")
    endpoint.failures = [(500, [])] * 50  # its message repeats the authorisation header
    with pytest.raises(UserError, match=r"tiny at http.*500") as raised:
        complete(model, [Prompt("d", "x")], SHORT, tmp_path / "s.sqlite")
    assert "\n" not in str(raised.value)
    shown = repr(raised.value), str(vars(model)), str(model.identity), caplog.text
    assert not any(KEY in text for text in (*shown, *capfd.readouterr()))
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_what_is_no_model_or_no_endpoint_is_one_clear_line(endpoint):
    with pytest.raises(UserError, match=r"404.*`other` does not exist.*the names there: tiny"):
        complete(load(f"{endpoint.url}#other"), PROMPTS, SHORT, store=False)
    endpoint.seconds = 1.0
    with pytest.raises(UserError, match="timed out"):
        ask(endpoint, PROMPTS[:1], timeout=0.1)


def test_no_more_requests_than_allowed_are_in_flight(endpoint):
    endpoint.seconds = 0.5  # a busy machine starts the third within that time
    ask(endpoint, MANY, ONE, parallel=3)
    assert endpoint.most_at_once == 3


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("how", [{"gives_logprobs": False}, {"refused": ("logprobs",)}], ids=str)
def test_an_endpoint_without_log_probabilities_answers_once_its_name_says_so(
    endpoint, how, chat, tmp_path
):
    vars(endpoint).update(how)
    with pytest.raises(UserError, match="add the option logprobs=false"):
        ask(endpoint, chat=chat, store=tmp_path / "s.sqlite")
    bare = ask(endpoint, chat=chat, store=tmp_path / "s.sqlite", logprobs=False)
    assert [answer.token_logprobs for answer in bare] == [None] * 3
    model = load(f"{endpoint.url}#tiny?logprobs=false", chat=chat)
    with pytest.raises(UserError, match="cannot score"):
        score(model, [(PROMPTS[0], "x")], False)
    endpoint.reset()
    assert None not in [
        one.token_logprobs for one in ask(endpoint, chat=chat, store=tmp_path / "s.sqlite")
    ], "answers with log-probabilities are others"


def test_failures_that_pass_are_tried_again_and_cost_no_log_probabilities(endpoint):
    """Also those that repeat the request, with the word "logprobs"."""
    endpoint.failures = [(503, []), (500, []), (429, [("retry-after", "0.05")])]
    answers = ask(endpoint, parallel=1)
    endpoint.failures = [(503, [])] * 50
    with pytest.raises(UserError, match=r"503.*'logprobs': 1"):
        ask(endpoint, parallel=1)
    assert None not in [one.token_logprobs for one in answers]
    assert all(body["logprobs"] == 1 for body in endpoint.bodies)


REPLIES = yaml.safe_load(Path(__file__).with_name("replies.yaml").read_text("utf-8"))


def reply(body, status=200, headers=(), **told):
    """What the endpoint sends, and what is told of it."""
    return (status, [*dict(headers).items()], body.encode()), told


@pytest.mark.parametrize("given", REPLIES["read"], ids=str)
def test_what_other_servers_reply_is_read_as_meant(endpoint, given):
    """A stop string that was cut out of a token leaves the token whole; characters of several
    pieces come as OpenAI and as vLLM show them.
    """
    endpoint.reply, told = reply(**given)
    chat = "message" in given["body"]
    (done,) = ask(endpoint, PROMPTS[:1], replace(SHORT, stop=("@",)), chat=chat)
    assert done.text == "".join(done.tokens)
    assert told == {"pieces": [*done.tokens], "finish": done.finish_reason}


@pytest.mark.parametrize("given", REPLIES["refused"], ids=str)
def test_what_is_no_finished_answer_is_an_error_and_not_stored(endpoint, tmp_path, given):
    endpoint.reply, told = reply(**given)
    with pytest.raises(UserError, match=told["words"]) as raised:
        ask(endpoint, PROMPTS[:1], chat=True, store=tmp_path / "s.sqlite")
    assert "\n" not in str(raised.value)
    before, endpoint.reply = len(endpoint.bodies), None
    ask(endpoint, PROMPTS[:1], chat=True, store=tmp_path / "s.sqlite")
    assert len(endpoint.bodies) == before + 1


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"thinking": False}, {}),
        ({"thinking": 500, "extra": {"seed": 1}}, {"max_tokens": 512, "seed": 1}),
    ],
)
def test_options_for_thinking_are_sent_and_part_of_the_identity(endpoint, options, sent):
    plain, thinking = (load(f"{endpoint.url}#tiny?chat=true", **each) for each in ({}, options))
    for model in (plain, thinking):
        complete(model, PROMPTS[:1], SHORT, False)
    switches = dict.fromkeys(("enable_thinking", "thinking"), bool(options["thinking"]))
    assert endpoint.bodies[1] == endpoint.bodies[0] | sent | {"chat_template_kwargs": switches}
    assert plain.identity != thinking.identity


def test_a_parameter_that_a_model_refuses_is_asked_for_once(endpoint, capfd):
    endpoint.refused = ("max_tokens", "temperature", "stop")
    model = load(f"{endpoint.url}#tiny", parallel=1)
    complete(model, MANY, replace(ONE, stop=("#",)), False)
    assert len(endpoint.bodies) == len(MANY) + 3
    assert {"max_completion_tokens", "logprobs"} <= endpoint.bodies[-1].keys()
    assert not {"max_tokens", "temperature", "stop"} & endpoint.bodies[-1].keys()
    assert capfd.readouterr().err.count("tiny refuses temperature") == 1


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "http://127.0.0.1:9"])
def test_a_proxy_is_one_line_and_not_for_this_machine(endpoint, monkeypatch, proxy):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY")
    assert ask(endpoint, PROMPTS[:1])
    with pytest.raises(UserError, match=r"set NO_PROXY=host|refused .after 5 retries"):
        complete(load("http://host/v1#m"), PROMPTS[:1], SHORT, False)


def test_an_endpoint_cannot_use_a_tool_between_two_tokens():
    with pytest.raises(UserError, match="between two tokens"):
        generate(load("http://host/v1#m"), [], JediTool())


def test_identity_tells_address_model_endpoint_kind_and_revision():
    model = load("http://host:1/v1/#m?chat=true&parallel=3", revision="2")
    assert model.parallel == 3 and load("openai:gpt-4o").chat
    told = {"name": "m", "endpoint": "http://host:1/v1", "asked_as": "chat", "revision": "2"}
    assert model.identity == told | {"kind": "remote"}


def test_to_count_tokens_a_tokenizer_must_be_named():
    with pytest.raises(UserError, match="tokenizer=OWNER/NAME"):
        load("http://host/v1#m").tokenizer  # noqa: B018
