"""Chat models: the paper's system prompt, a prompt in the model's own chat template, the code in an answer.

CloudAPIBench asks instruction-tuned models with a system prompt that makes them complete one API invocation (paper
Appendix A.3, Listing 1). Base models never see any of this.
"""

import hashlib
import re

from lookuplab.errors import UserError
from lookuplab.models.types import Prompt

# The first two paragraphs are the paper's words. The end of the listing, an input and the output that is wanted for
# it, cannot be read in the text that we have of the paper (it repeats "As an example you will be given a code input.
# And you should return your output as"), so the example below is ours, in the form of the benchmark's tasks.
LISTING_1 = """\
You are code completion model. You generate code starting from the end of the prompt given to you. \
You will give your output surrounded by backticks.
Notably, the prompt requires you to complete an API invocation. Complete the API invocation and stop there. \
Do not write any code other than the single API invocation.
As an example you will be given a code input:
```
import boto3

# Create a client for the translation service
client = boto3.client("translate")

# Translate the greeting from English into German
response = client.
```
And you should return your output as:
```
translate_text(Text="Good morning", SourceLanguageCode="en", TargetLanguageCode="de")
```
"""

# Part of a chat model's identity: whoever changes the listing asks other questions than before.
LISTING_ID = f"listing1-{hashlib.sha256(LISTING_1.encode()).hexdigest()[:8]}"

FENCE = re.compile(r"```[ \t]*[\w+#.-]*[ \t]*\n(?P<code>.*?)(?:\n[ \t]*```|```|\Z)", re.DOTALL)
INLINE = re.compile(r"\A\s*(?P<ticks>`+)(?P<code>.*?)(?:(?P=ticks)|\s*\Z)", re.DOTALL)


def system_text(prompt: Prompt) -> str:
    """What stands in the system role: the prompt's own text, Listing 1 without one, nothing for an empty one."""
    return LISTING_1 if prompt.system is None else prompt.system


def messages(prompt: Prompt, fold_system: bool = False) -> list[dict[str, str]]:
    """The conversation that asks one prompt; ``fold_system`` puts the system text before the code in the user turn."""
    system = system_text(prompt)
    if not system:
        return [{"role": "user", "content": prompt.text}]
    if fold_system:
        return [{"role": "user", "content": f"{system}\n{prompt.text}"}]
    return [{"role": "system", "content": system}, {"role": "user", "content": prompt.text}]


def render(tokenizer, prompt: Prompt) -> str:
    """The prompt in the tokenizer's chat template, ready for the assistant's answer.

    The template writes the special tokens itself: encode the result with ``add_special_tokens=False``. A template
    that refuses the system role (Gemma's does) gets the system text at the head of the user turn. UserError for a
    tokenizer without chat template.
    """
    from jinja2.exceptions import (
        TemplateError,
    )  # transformers renders with jinja2 and lets this one through

    if not getattr(tokenizer, "chat_template", None):
        raise UserError(
            f"{getattr(tokenizer, 'name_or_path', '') or 'this tokenizer'} has no chat template: "
            "use it as a base model (chat=False) or take the instruction-tuned checkpoint"
        )
    try:
        return tokenizer.apply_chat_template(
            messages(prompt), tokenize=False, add_generation_prompt=True
        )
    except TemplateError:
        folded = messages(prompt, fold_system=True)
        return tokenizer.apply_chat_template(folded, tokenize=False, add_generation_prompt=True)


def strip_backticks(text: str) -> str:
    """The code in a chat model's answer: the first fenced block, else what an answer of backticks surrounds.

    A fence that the length limit left open counts to the end. Text without either comes back as it is. Use it on
    answers of chat models only: in code of a base model backticks are part of the code.
    """
    return text[slice(*code_span(text))]


def code_span(text: str) -> tuple[int, int]:
    """Where the code that ``strip_backticks`` takes begins and ends; the words before it may hold the same call."""
    found = FENCE.search(text) or INLINE.match(text)
    return found.span("code") if found else (0, len(text))
