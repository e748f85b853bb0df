"""From an OpenAI-compatible response to a Completion."""

from lookuplab.models.stopping import stopping
from lookuplab.models.types import Completion, Decoding, Prompt


def completion_from_text(response, prompt: Prompt, sample: int, decoding: Decoding) -> Completion:
    """The answer of ``/completions``. Endpoints give no token ids, some no tokens and log-probabilities either."""
    choice = response.choices[0]
    given = choice.logprobs
    tokens, logprobs = (given.tokens, given.token_logprobs) if given and given.token_logprobs else ((), None)
    return _completion(choice.text or "", tokens, logprobs, choice.finish_reason, response, prompt, sample, decoding,
                       stopping(decoding))


def completion_from_chat(response, prompt: Prompt, sample: int, decoding: Decoding) -> Completion:
    """The answer of ``/chat/completions``, as the model wrote it (``chat.strip_backticks`` takes the code out).

    Stop rules do not apply: they read code, and this answer begins with backticks.
    """
    choice = response.choices[0]
    content = choice.logprobs.content if choice.logprobs else None
    tokens = [token.token for token in content] if content else ()
    logprobs = [token.logprob for token in content] if content else None
    text = choice.message.content or ""
    return _completion(text, tokens, logprobs, choice.finish_reason, response, prompt, sample, decoding)


def scored_from_echo(response, prompt: Prompt, continuation: str) -> Completion | None:
    """The continuation's part of an echoed text; None where the endpoint gives no log-probabilities.

    A token that straddles the end of the prompt counts to the continuation. The very first token of a text has no
    log-probability, so it is left out.
    """
    given = response.choices[0].logprobs
    if not given or not given.token_logprobs:
        return None
    start, kept, before = 0, [], 0
    for token, logprob in zip(given.tokens, given.token_logprobs, strict=True):
        start += len(token)
        if start <= len(prompt.text) or logprob is None:
            before += 1
        elif start - len(token) < len(prompt.text) + len(continuation):
            kept.append((token, logprob))
    return Completion(prompt.id, 0, continuation, tuple(token for token, _ in kept), (),
                      tuple(logprob for _, logprob in kept), "scored", before)


def _completion(text, tokens, logprobs, finish, response, prompt, sample, decoding, rules=()) -> Completion:
    """Some servers list the end-of-text token or those of a removed stop string behind the text: they are left out.

    ``rules`` cut as they cut while a local model decodes: behind the token that ends it, or, where the endpoint
    names no tokens, behind the character.
    """
    count, length = 0, 0
    while count < len(tokens) and length < len(text):
        length += len(tokens[count])
        count += 1
    if finish == "stop":  # the API does not say which: a stop string or the model's own end
        finish = "stop" if decoding.stop else "eos"
    spelled = "".join(tokens[:count])
    if spelled.startswith(text):  # a stop string was cut out of a token: keep the token whole, as a local model does
        text = spelled
    pieces = tokens[:count] or text
    for end, piece in enumerate(pieces, 1):
        if any([rule.feed(piece) for rule in rules]):  # a list: every rule reads every piece
            text, count, finish = "".join(pieces[:end]), min(count, end), "stop"
            break
    return Completion(prompt.id, sample, text, tuple(tokens[:count]), (), tuple(logprobs[:count]) if logprobs else None,
                      finish, response.usage.prompt_tokens if response.usage else 0)
