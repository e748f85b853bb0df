"""Hand-made responses of endpoints, as the API gives them."""

import pytest
from openai.types import Completion as TextResponse
from openai.types.chat import ChatCompletion

from lookuplab.models.answers import completion_from_chat, completion_from_text, scored_from_echo
from lookuplab.models.types import Decoding, Prompt

PROMPT = Prompt("a", "x = ")


def text_response(text, tokens, logprobs, finish="stop"):
    """Built as the client builds it: without checking."""
    logprobs = {"tokens": tokens, "token_logprobs": logprobs}
    return TextResponse.construct(choices=[{"index": 0, "text": text, "finish_reason": finish, "logprobs": logprobs}],
                                  usage={"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6})


def test_the_end_token_behind_the_text_is_left_out():
    done = completion_from_text(text_response("f()", ["f", "()", "</s>"], [-1.0, -2.0, -3.0]), PROMPT, 2, Decoding())
    assert (done.sample, done.tokens, done.token_logprobs, done.finish_reason, done.prompt_tokens) == (
        2, ("f", "()"), (-1.0, -2.0), "eos", 3)


def test_a_stop_string_cut_out_of_a_token_leaves_the_token_whole():
    done = completion_from_text(text_response("f(", ["f", "()\n", "\n"], [-1.0, -2.0, -3.0]), PROMPT, 0,
                                Decoding(stop=(")",)))
    assert (done.text, done.tokens, done.finish_reason) == ("f()\n", ("f", "()\n"), "stop")


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_other_reasons_to_finish_are_kept(finish):
    done = completion_from_text(text_response("f()", [], [], finish), PROMPT, 0, Decoding(stop=("#",)))
    assert (done.finish_reason, done.tokens, done.token_logprobs) == (finish, (), None)


def test_a_chat_answer_without_content_is_empty():
    response = ChatCompletion.construct(choices=[{"index": 0, "finish_reason": "stop", "logprobs": None,
                                                  "message": {"role": "assistant", "content": None}}])
    done = completion_from_chat(response, PROMPT, 0, Decoding())
    assert (done.text, done.token_logprobs, done.finish_reason, done.prompt_tokens) == ("", None, "eos", 0)


def test_an_echo_is_cut_to_the_continuation_and_a_straddling_token_counts_to_it():
    echo = text_response("x = f()!", ["x", " =", " f", "()", "!"], [None, -1.0, -2.0, -3.0, -4.0])
    done = scored_from_echo(echo, PROMPT, "f()")
    assert (done.text, done.tokens, done.token_logprobs, done.prompt_tokens) == ("f()", (" f", "()"), (-2.0, -3.0), 2)
