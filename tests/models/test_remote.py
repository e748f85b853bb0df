"""Remote models end to end over loopback, against a small server around a tiny model that gives log-probabilities."""

import logging
import socket
import threading
import time

import nbformat
import pytest
import tiny_checkpoint
from nbclient import NotebookClient
from tiny_endpoint import KEY, TinyEndpoint

from lookuplab.errors import UserError
from lookuplab.models import chat
from lookuplab.models.complete import complete, score
from lookuplab.models.load import load
from lookuplab.models.remote import OPENAI, RemoteModel
from lookuplab.models.store import CompletionStore
from lookuplab.models.types import Decoding, Prompt

PROMPTS = [Prompt("a", "client = boto3."), Prompt("b", "from azure.storage import"), Prompt("c", "# upload")]
SHORT = Decoding(max_new_tokens=12)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tiny_checkpoint.save(tmp_path_factory.mktemp("tiny"))
    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def running(tiny):
    with TinyEndpoint(*tiny) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def endpoint(running, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    running.reset()
    return running


def remote(endpoint, **options):
    return RemoteModel.from_name(f"{endpoint.url}#tiny", **options)


def locally(tiny, text, decoding=SHORT):
    """Greedy answer of the same weights: token ids without the end token, and their log-probabilities."""
    import torch

    model, tokenizer = tiny
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    out = model.generate(ids, max_new_tokens=decoding.max_new_tokens, do_sample=False)
    new = [token for token in out[0, ids.shape[1]:].tolist() if token != tokenizer.eos_token_id]
    logprobs = torch.log_softmax(model(out).logits[0, ids.shape[1] - 1:], -1)
    return tokenizer.decode(new), [logprobs[place, token].item() for place, token in enumerate(new)]


def test_answers_and_log_probabilities_are_those_of_the_local_weights(endpoint, tiny):
    for answer, prompt in zip(complete(remote(endpoint), PROMPTS, SHORT, store=False), PROMPTS, strict=True):
        text, logprobs = locally(tiny, prompt.text)
        assert (answer.id, answer.text, "".join(answer.tokens)) == (prompt.id, text, text)
        assert answer.token_logprobs == pytest.approx(logprobs, abs=1e-4)
        assert answer.prompt_tokens == len(tiny[1](prompt.text)["input_ids"])


def test_a_chat_model_is_asked_with_listing_1_through_the_chat_template(endpoint, tiny):
    answer, = complete(RemoteModel.from_name(f"{endpoint.url}#tiny&chat"), PROMPTS[:1], SHORT, store=False)
    text, logprobs = locally(tiny, chat.render(tiny[1], PROMPTS[0]))
    assert endpoint.bodies[-1]["messages"][0] == {"role": "system", "content": chat.LISTING_1}
    assert answer.text == text and answer.token_logprobs == pytest.approx(logprobs, abs=1e-4)


def test_scores_are_the_log_probabilities_of_the_continuation(endpoint, tiny):
    scored, = score(remote(endpoint), [(PROMPTS[0], "client('s3')")], store=False)
    model, tokenizer = tiny
    ids = tokenizer(PROMPTS[0].text + "client('s3')")["input_ids"]
    expected = endpoint.log_probabilities(ids)[len(tokenizer(PROMPTS[0].text)["input_ids"]) - 1:]
    assert "".join(scored.tokens) == scored.text == "client('s3')"
    assert scored.token_logprobs == pytest.approx(expected, abs=1e-4)
    local, = score(load(tokenizer.name_or_path), [(PROMPTS[0], "client('s3')")], store=False)
    assert (local.tokens, local.finish_reason, local.prompt_tokens) == (
        scored.tokens, scored.finish_reason, scored.prompt_tokens)
    assert local.token_logprobs == pytest.approx(scored.token_logprobs, abs=1e-4)


def test_stop_strings_reach_the_endpoint(endpoint, tiny):
    text, _ = locally(tiny, PROMPTS[0].text)
    answer, = complete(remote(endpoint), PROMPTS[:1], Decoding(max_new_tokens=12, stop=(text[6],)), store=False)
    assert endpoint.bodies[-1]["stop"] == [text[6]]
    assert answer.text.startswith(text[:text.index(text[6])]) and answer.finish_reason == "stop"
    assert "".join(answer.tokens) == answer.text and len(answer.tokens) == len(answer.token_logprobs)


def test_a_stop_rule_ends_the_answer_where_it_ends_a_local_one(endpoint, tiny):
    decoding = Decoding(max_new_tokens=12, stop_rule="first_call")
    local = complete(load(tiny[1].name_or_path), PROMPTS, decoding, store=False)
    answers = complete(remote(endpoint), PROMPTS, decoding, store=False)
    assert [(answer.text, answer.tokens, answer.finish_reason) for answer in answers] == [
        (answer.text, answer.tokens, answer.finish_reason) for answer in local]
    assert "stop" in {answer.finish_reason for answer in answers}
    endpoint.gives_logprobs = False
    for answer, whole in zip(complete(remote(endpoint), PROMPTS, decoding, store=False), answers, strict=True):
        assert whole.text.startswith(answer.text) and answer.finish_reason == whole.finish_reason


def test_an_unknown_stop_rule_is_refused_before_anything_is_asked(endpoint):
    with pytest.raises(UserError, match="no stop rule is named 'never'"):
        complete(remote(endpoint), PROMPTS, Decoding(stop_rule="never"), store=False)
    assert endpoint.bodies == []


def test_stop_strings_beyond_those_an_endpoint_takes_end_the_answer_too(endpoint, tiny):
    text, _ = locally(tiny, PROMPTS[0].text)
    decoding = Decoding(max_new_tokens=12, stop=("@1", "@2", "@3", "@4", text[6]))
    answer, = complete(remote(endpoint), PROMPTS[:1], decoding, store=False)
    assert len(endpoint.bodies[-1]["stop"]) == 4 and answer.finish_reason == "stop"
    assert text.startswith(answer.text) and text[6] in answer.tokens[-1]


def test_a_seed_is_sent_for_samples_only_and_differs_by_prompt_and_sample(endpoint):
    complete(remote(endpoint), PROMPTS, Decoding(max_new_tokens=1), store=False)
    assert all("seed" not in body for body in endpoint.bodies)
    endpoint.reset()
    complete(remote(endpoint), PROMPTS, Decoding(max_new_tokens=1, temperature=0.5, n=2), store=False)
    assert len({body["seed"] for body in endpoint.bodies}) == 6


def test_a_second_run_from_the_store_needs_no_endpoint(endpoint, tmp_path):
    first = complete(remote(endpoint), PROMPTS, SHORT, tmp_path / "s.sqlite")
    endpoint.reset()
    assert complete(remote(endpoint), PROMPTS, SHORT, tmp_path / "s.sqlite") == first and endpoint.bodies == []


@pytest.mark.parametrize("failures", [[(429, [("retry-after", "0.05")])], [(500, [])] * 3, [(503, []), (429, [])]])
def test_passing_failures_are_tried_again(endpoint, failures):
    endpoint.failures = list(failures)
    assert len(complete(remote(endpoint, parallel=1), PROMPTS, SHORT, store=False)) == 3
    assert len(endpoint.bodies) == 3 + len(failures)


def test_retry_after_is_honoured(endpoint):
    endpoint.failures, started = [(429, [("retry-after", "0.4")])], time.monotonic()
    complete(remote(endpoint), PROMPTS[:1], SHORT, store=False)
    assert time.monotonic() - started >= 0.4


@pytest.mark.parametrize(("status", "message"), [
    (500, "the server failed 3 times"), (429, "still too many requests after 3 tries"), (400, "request refused")])
def test_lasting_failures_are_one_clear_line_without_the_key(endpoint, status, message):
    endpoint.failures = [(status, [])] * 100
    with pytest.raises(UserError, match=message) as raised:
        complete(remote(endpoint, max_retries=2), PROMPTS[:1], SHORT, store=False)
    assert "\n" not in str(raised.value) and KEY not in str(raised.value)


def test_a_refused_key_is_told_at_once_and_never_shown(endpoint, monkeypatch):
    endpoint.wants_key = True
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key")
    with pytest.raises(UserError, match=r"not authorised \(401\); set a valid key in OPENAI_API_KEY") as raised:
        complete(remote(endpoint), PROMPTS, SHORT, store=False)
    assert "sk-wrong" not in str(raised.value) and endpoint.bodies == []


def test_another_variable_may_hold_the_key(endpoint, monkeypatch):
    endpoint.wants_key = True
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("LAB_KEY", KEY)
    assert len(complete(remote(endpoint, key_variable="LAB_KEY"), PROMPTS, SHORT, store=False)) == 3


def test_openai_without_a_key_is_told_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError, match="set the environment variable OPENAI_API_KEY"):
        complete(RemoteModel.from_name("openai:gpt-4o"), PROMPTS, SHORT, store=False)


def test_the_key_is_in_no_store_log_message_or_object(endpoint, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    endpoint.wants_key = True
    model = remote(endpoint, max_retries=1)
    complete(model, PROMPTS, SHORT, tmp_path / "s.sqlite")
    endpoint.failures = [(500, [])] * 50  # its message repeats the authorisation header
    with pytest.raises(UserError) as raised:
        complete(model, [Prompt("d", "x")], SHORT, tmp_path / "s.sqlite")
    with CompletionStore(tmp_path / "s.sqlite") as store:
        store.export(tmp_path / "export.jsonl")
    seen = [str(raised.value), repr(raised.value), repr(model), str(vars(model)),
                str(model.identity), caplog.text, *capfd.readouterr()]
    assert [text for text in seen if KEY in text] == []
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_the_key_is_in_no_executed_notebook_even_where_a_cell_fails(endpoint):
    endpoint.wants_key = True
    start = (f"from lookuplab.models import Decoding, Prompt, complete, load\nmodel = load('{endpoint.url}#tiny')\n"
             "complete(model, [Prompt('a', 'x')], Decoding(max_new_tokens=2), store=False)")
    fail = "model.max_retries = 0; del model._client\ncomplete(model, [Prompt('b', 'y')], store=False)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(start), nbformat.v4.new_code_cell("model")])
    client = NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True)
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
        endpoint.failures = [(500, [])] * 10
        notebook.cells.append(nbformat.v4.new_code_cell(fail))
        client.execute_cell(notebook.cells[-1], 2)
    text = nbformat.writes(notebook)
    assert "RemoteModel(" in text and "UserError" in text and "the server failed" in text
    assert KEY not in text


def test_an_unknown_model_is_one_clear_line(endpoint):
    with pytest.raises(UserError, match=r"other at .* no such model or address \(404\).*`other` does not exist"):
        complete(RemoteModel.from_name(f"{endpoint.url}#other"), PROMPTS, SHORT, store=False)


def test_a_time_out_is_one_clear_line(endpoint):
    endpoint.seconds = 1.0
    with pytest.raises(UserError, match="no answer within 0.2 s in 2 tries"):
        complete(remote(endpoint, timeout=0.2, max_retries=1), PROMPTS[:1], SHORT, store=False)


def test_an_unreachable_endpoint_is_told_at_once(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(UserError, match="cannot be reached"):
        complete(RemoteModel.from_name(f"http://127.0.0.1:{port}/v1#tiny"), PROMPTS, SHORT, store=False)
    assert time.monotonic() - started < 5


def test_something_else_than_an_endpoint_is_told(endpoint):
    with pytest.raises(UserError, match="not answer as an OpenAI-compatible|no such model or address|request refused"):
        endpoint.failures = [(200, [("x-nothing", "1")])]
        complete(remote(endpoint), PROMPTS[:1], SHORT, store=False)


def test_no_more_requests_than_allowed_are_in_flight(endpoint):
    endpoint.seconds = 0.05
    prompts = [Prompt(str(number), f"x = {number}") for number in range(12)]
    complete(remote(endpoint, parallel=3), prompts, Decoding(max_new_tokens=1), store=False)
    assert endpoint.most_at_once == 3


def test_answers_that_came_before_a_failure_are_kept(endpoint, tmp_path):
    endpoint.failures = []
    prompts = [Prompt(str(number), f"x = {number}") for number in range(6)]
    complete(remote(endpoint, parallel=1), prompts[:2], SHORT, tmp_path / "s.sqlite")
    endpoint.failures = [(400, [])]
    with pytest.raises(UserError):
        complete(remote(endpoint, parallel=2), prompts, SHORT, tmp_path / "s.sqlite")
    assert complete(remote(endpoint), prompts, SHORT, tmp_path / "s.sqlite").reused >= 2


def test_an_endpoint_without_log_probabilities_is_told_where_they_are_needed(endpoint, tmp_path):
    endpoint.gives_logprobs = False
    store = tmp_path / "s.sqlite"
    assert complete(remote(endpoint), PROMPTS, SHORT, store)[0].token_logprobs is None
    for call in (lambda: complete(remote(endpoint), PROMPTS, SHORT, store, requires_logprobs=True),
                 lambda: score(remote(endpoint), [(PROMPTS[0], "x")], store)):
        with pytest.raises(UserError, match="gives no log-probabilities"):
            call()


@pytest.mark.parametrize("suffix", ["", "&chat"])
def test_an_endpoint_that_refuses_to_be_asked_for_log_probabilities_still_answers(endpoint, suffix):
    endpoint.refuses_logprobs = True
    answers = complete(RemoteModel.from_name(f"{endpoint.url}#tiny{suffix}"), PROMPTS, SHORT, store=False)
    assert [answer.token_logprobs for answer in answers] == [None] * 3


def test_a_chat_endpoint_cannot_score(endpoint):
    with pytest.raises(UserError, match="cannot score"):
        score(remote(endpoint, chat=True), [(PROMPTS[0], "x")], store=False)
