#!/usr/bin/env bash
# xgrammar 0.2.9: a string with maxLength or minLength in a JSON schema can contain no quotation mark, no backslash and no newline, but a raw tab.
#
# Expected: {"type": "string", "maxLength": 2000} allows each JSON string of at most 2000 characters, as in llguidance 1.9.1.
# Seen: every escape is forbidden, so "x = 1\ny = 2" and "print(\"a\")" cannot be written; a raw tab is allowed, which json.loads refuses. Without a
# length all of this is right, in xgrammar too.
# Why it matters: a schema for answers often limits the field for the code, so that the answer ends. The model can then write only one line without
# quotation marks. The answers remain valid JSON, so they look like mistakes of the model.
# What to do: leave out the lengths in the schema, and limit the number of tokens.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 xgrammar==0.2.9 llguidance==1.9.1 2>/dev/null
"$place/venv/bin/python" -W ignore - 2>"$place/err" <<'PY' || { tail -3 "$place/err" >&2; exit 1; }
import json
from importlib.metadata import version

import xgrammar
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

BYTES = [bytes([number]) for number in range(256)]
END = 256


def xgrammar_allows(schema, text):
    info = xgrammar.TokenizerInfo([*BYTES, b"<end>"], stop_token_ids=[END])
    matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(info).compile_json_schema(schema))
    return all(matcher.accept_token(byte) for byte in text.encode()) and matcher.accept_token(END)


class Tokens:
    eos_token_id, bos_token_id, special_token_ids, tokens = END, None, [END], [*BYTES, b"<end>"]

    def __call__(self, text):
        return list(text)


def llguidance_allows(schema, text):
    matcher = LLMatcher(LLTokenizer(TokenizerWrapper(Tokens())), LLMatcher.grammar_from_json_schema(schema))
    wanted = list(text.encode())
    return matcher.try_consume_tokens(wanted) == len(wanted) and matcher.is_accepting()


def valid(text):
    try:
        return bool(json.loads(text))
    except ValueError:
        return False


SHORT, LONG, ANY = ({"type": "string", **limit} for limit in ({"maxLength": 40}, {"minLength": 1}, {}))
CASES = [  # schema, text, whether xgrammar allows it
    (SHORT, '"x = 1"', True),
    (SHORT, json.dumps("x = 1\ny = 2"), False),
    (SHORT, json.dumps('print("a")'), False),
    (SHORT, json.dumps("a\\b"), False),
    (SHORT, '"x\ty"', True),
    (LONG, json.dumps("x = 1\ny = 2"), False),
    (ANY, json.dumps("x = 1\ny = 2"), True),
    (ANY, '"x\ty"', False),
]
print(*(f"{name} {version(name)}" for name in ("xgrammar", "llguidance")))
for limit, text, wanted in CASES:
    seen = [allows(json.dumps(limit), text) for allows in (xgrammar_allows, llguidance_allows)] + [valid(text)]
    print(f"{limit} allows {text!r}: xgrammar {seen[0]}, llguidance {seen[1]}; valid JSON {seen[2]}")
    assert seen == [wanted, seen[2], seen[2]], "the behaviour changed"
PY
