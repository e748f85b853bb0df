#!/usr/bin/env bash
# outlines-core 0.2.14: in a choice of names, a name that continues another one can be unreachable for the model.
#
# Expected: the regex `read|read_csv` allows both names, in any order and with any tokenizer. Python's re agrees, and so does llguidance 1.9.1.
# Seen: after "read", the only token allowed is the end of the text, so read_csv can never be written. With the order `read_csv|read`, both can be
# written, but read_csv only if the tokenizer has a token "_csv". With the tokens "_" and "csv" the model must stop after "read". For the same reason,
# the schema {"type": "number"} allows "1.5" if there is a token ".5", and only whole numbers if the point is a token of its own.
# Why it matters: a paper lets a model choose among the names of an API, usually in sorted order, in which the shorter name always comes first. Then
# os.path.join has the probability zero beside os.path. The answers are well-formed, so nobody notices, and another tokenizer gives other results.
# What to do: end each choice with a delimiter, such as a newline or a quote: `(read|read_csv)\n` allows both.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet outlines-core==0.2.14 llguidance==1.9.1 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import re
from importlib.metadata import version

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from outlines_core import Index, Vocabulary
from outlines_core.json_schema import build_regex_from_schema

LETTERS = sorted(set("read_csv\n-+.0123456789eE"))


def outlines_allows(regex, tokens, text):
    """Return whether a model can write the text, whatever tokens it chooses."""
    end = len(tokens)
    index = Index(regex, Vocabulary(end, {token: [number] for number, token in enumerate(tokens)}))
    moves, final = index.get_transitions(), set(index.get_final_states())
    front = {(index.get_initial_state(), text)}
    while front:
        if any(not rest and state in final for state, rest in front):
            return True
        steps = [(to, rest, tokens[token]) for state, rest in front for token, to in moves.get(state, {}).items() if token != end]
        front = {(to, rest.removeprefix(token)) for to, rest, token in steps if rest.startswith(token)}
    return False


class Tokens:
    eos_token_id, bos_token_id, special_token_ids = 256, None, [256]
    tokens = [bytes([number]) for number in range(256)] + [b"<end>"]

    def __call__(self, text):
        return list(text)


letters = LLTokenizer(TokenizerWrapper(Tokens()))


def llguidance_allows(regex, text):
    matcher = LLMatcher(letters, LLMatcher.grammar_from_regex(regex))
    return matcher.try_consume_tokens(list(text.encode())) == len(text) and matcher.is_accepting()


NUMBER = build_regex_from_schema('{"type": "number"}')
CASES = [  # regex, extra tokens, text, whether outlines-core lets a model write it
    ("read|read_csv", ["_csv"], "read_csv", False),
    ("read_csv|read", ["_csv"], "read_csv", True),
    ("read_csv|read", ["csv"], "read_csv", False),
    ("read(_csv)?", ["csv"], "read_csv", False),
    ("(read|read_csv)\n", ["csv"], "read_csv\n", True),
    (NUMBER, [".5"], "1.5", True),
    (NUMBER, [], "1.5", False),
]
print("outlines-core", version("outlines-core"), "llguidance", version("llguidance"))
for regex, extra, text, wanted in CASES:
    seen = [outlines_allows(regex, LETTERS + extra, text), llguidance_allows(regex, text), bool(re.fullmatch(regex, text))]
    print(f"{regex!r} with the letters and {extra}: {text!r} is allowed by outlines-core {seen[0]}, llguidance {seen[1]}, re {seen[2]}")
    assert seen == [wanted, True, True], "the behaviour changed"
PY
