#!/usr/bin/env bash
# xgrammar 0.2.9: in a regex, `.` matches a newline, so `.*` does not end with the line.
#
# Expected: `.` matches any character except a newline, as in Python's re. This is so in outlines-core 0.2.14 and llguidance 1.9.1.
# Seen: with the regex `x = .*`, xgrammar lets a model write "x = 1", a newline and "y = 2". The two others allow only the end of the text there. `\d` and
# `\w` differ as well: they match only ASCII in xgrammar, but every digit and letter of Unicode in the others and in re.
# Why it matters: a completion of one line is often decoded with such a regex. With xgrammar, which vLLM and SGLang use, the answer goes on, up to the
# limit of tokens, and exact match with the line that was asked for is lost. With another engine for the same regex, the same model answers correctly.
# What to do: write `[^\n]*`, which all three understand in the same way.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 xgrammar==0.2.9 outlines-core==0.2.14 llguidance==1.9.1 2>/dev/null
"$place/venv/bin/python" -W ignore - 2>"$place/err" <<'PY' || { tail -3 "$place/err" >&2; exit 1; }
import re
from importlib.metadata import version

import xgrammar
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from outlines_core import Guide, Index, Vocabulary

BYTES = [bytes([number]) for number in range(256)]
END = 256


def xgrammar_allows(regex, text):
    info = xgrammar.TokenizerInfo([*BYTES, b"<end>"], stop_token_ids=[END])
    matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(info).compile_regex(regex))
    return all(matcher.accept_token(byte) for byte in text.encode()) and matcher.accept_token(END)


def outlines_allows(regex, text):
    guide = Guide(Index(regex, Vocabulary(END, {byte: [number] for number, byte in enumerate(BYTES)})))
    for byte in text.encode():
        if byte not in guide.get_tokens():
            return False
        guide.advance(byte)
    return END in guide.get_tokens()


class Tokens:
    eos_token_id, bos_token_id, special_token_ids, tokens = END, None, [END], [*BYTES, b"<end>"]

    def __call__(self, text):
        return list(text)


def llguidance_allows(regex, text):
    matcher = LLMatcher(LLTokenizer(TokenizerWrapper(Tokens())), LLMatcher.grammar_from_regex(regex))
    wanted = list(text.encode())
    return matcher.try_consume_tokens(wanted) == len(wanted) and matcher.is_accepting()


CASES = [  # regex, text, whether xgrammar, the two others and re allow it
    ("x = .*", "x = 1", [True, True, True, True]),
    ("x = .*", "x = 1\ny = 2", [True, False, False, False]),
    (r"x = [^\n]*", "x = 1\ny = 2", [False, False, False, False]),
    (r"x = \d+", "x = ٣", [False, True, True, True]),
    (r"\w+ = 1", "größe = 1", [False, True, True, True]),
]
print(*(f"{name} {version(name)}" for name in ("xgrammar", "outlines-core", "llguidance")))
for regex, text, wanted in CASES:
    seen = [allows(regex, text) for allows in (xgrammar_allows, outlines_allows, llguidance_allows)] + [bool(re.fullmatch(regex, text))]
    print(f"{regex!r} allows {text!r}: xgrammar {seen[0]}, outlines-core {seen[1]}, llguidance {seen[2]}, re {seen[3]}")
    assert seen == wanted, "the behaviour changed"
PY
