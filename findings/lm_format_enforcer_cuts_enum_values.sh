#!/usr/bin/env bash
# lm-format-enforcer 0.11.3: if the values of an enum contain a quotation mark, the model can only write them up to this mark.
#
# Expected: the schema {"enum": ["print(\"a\")"]} allows exactly one text, "print(\"a\")", as in llguidance 1.9.1.
# Seen: it allows only "print(", which is no value of the enum. The values `print("a")` and `print("b")` become the same text. A value of two lines can
# only be written with a raw newline in the string, which json.loads refuses. There is no error and no warning.
# Why it matters: candidates of which a model chooses one, lines or calls of a program, often contain quotation marks. Every answer then counts as wrong, or
# as the first candidate with this beginning.
# What to do: let the model choose a number or a letter, and look up the candidate.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet lm-format-enforcer==0.11.3 llguidance==1.9.1 2>/dev/null
"$place/venv/bin/python" -W ignore - <<'PY'
import json
from importlib.metadata import version

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from lmformatenforcer import JsonSchemaParser

SPACE = " \n\r\t"


class Tokens:
    eos_token_id, bos_token_id, special_token_ids = 256, None, [256]
    tokens = [bytes([number]) for number in range(256)] + [b"<end>"]

    def __call__(self, text):
        return list(text)


def llguidance_allows(schema, text):
    matcher = LLMatcher(LLTokenizer(TokenizerWrapper(Tokens())), LLMatcher.grammar_from_json_schema(json.dumps(schema)))
    wanted = list(text.encode())
    return matcher.try_consume_tokens(wanted) == len(wanted) and matcher.is_accepting()


def enforcer_texts(schema):
    """Return all texts that a model can write, apart from spaces around the value."""
    found, front = set(), [("", JsonSchemaParser(schema))]
    while front:
        text, parser = front.pop()
        if parser.can_end():
            found.add(text)
            continue
        allowed = parser.get_allowed_characters()
        front += [(text + one, parser.add_character(one)) for one in allowed if text or one not in SPACE]
    return found


CASES = [  # values of the enum, texts that lm-format-enforcer allows
    (["max", "min"], {'"max"', '"min"'}),
    (['print("a")'], {'"print("'}),
    (['print("a")', 'print("b")'], {'"print("'}),
    (["x = 1\ny = 2"], {'"x = 1\ny = 2"'}),
]
print("lm-format-enforcer", version("lm-format-enforcer"), "llguidance", version("llguidance"))
for values, wanted in CASES:
    schema = {"enum": values}
    seen = enforcer_texts(schema)
    print(f"enum {values}: lm-format-enforcer allows {sorted(seen)}, llguidance {[json.dumps(value) for value in values]}")
    assert all(llguidance_allows(schema, json.dumps(value)) for value in values)
    assert seen == wanted, "the behaviour changed"
PY
