"""Chat prompts and answers."""

import pytest
import tiny_checkpoint

from lookuplab.errors import UserError
from lookuplab.models.chat import LISTING_1, render, strip_backticks
from lookuplab.models.types import Prompt

REFUSING_TEMPLATE = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
)


@pytest.fixture
def tokenizer(tmp_path):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_checkpoint.save(tmp_path))


def test_listing_1_is_the_system_turn_and_the_code_the_users(tokenizer):
    assert (
        render(tokenizer, Prompt("a", "x = f("))
        == f"<|system|>\n{LISTING_1}\n<|user|>\nx = f(\n<|assistant|>\n"
    )


def test_an_own_system_text_replaces_listing_1_and_an_empty_one_removes_it(tokenizer):
    assert (
        render(tokenizer, Prompt("a", "x", "be brief"))
        == "<|system|>\nbe brief\n<|user|>\nx\n<|assistant|>\n"
    )
    assert render(tokenizer, Prompt("a", "x", "")) == "<|user|>\nx\n<|assistant|>\n"


def test_a_template_that_refuses_the_system_role_gets_its_text_in_the_user_turn(tokenizer):
    tokenizer.chat_template = REFUSING_TEMPLATE
    assert render(tokenizer, Prompt("a", "x = f(", "be brief")) == "<user>be brief\nx = f("


def test_a_tokenizer_without_template_is_one_clear_line(tokenizer):
    tokenizer.chat_template = None
    with pytest.raises(UserError, match="has no chat template"):
        render(tokenizer, Prompt("a", "x"))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("```python\nf(a=1)\n```", "f(a=1)"),
        ("```\nf(a=1)\n```\nThis calls f.", "f(a=1)"),
        ("Here you are:\n```py\nf(\n    a=1,\n)\n```", "f(\n    a=1,\n)"),
        ("```python\nf(a=1", "f(a=1"),
        ("```python\nf(a=1)```", "f(a=1)"),
        ("`f(a=1)`", "f(a=1)"),
        ("```f(a=1)```", "f(a=1)"),
        (" `f(a=1)` is the call", "f(a=1)"),
        ("`f(a=1)\n", "f(a=1)"),
        ("Call `f(a=1)`:\n```\nf(a=1)\n```", "f(a=1)"),
        ("```python\n    f(a=1)\n    ```", "    f(a=1)"),
        ("f(a='`')", "f(a='`')"),
        ("f(a=1)\n", "f(a=1)\n"),
        ("", ""),
    ],
)
def test_the_code_between_backticks(answer, code):
    assert strip_backticks(answer) == code
