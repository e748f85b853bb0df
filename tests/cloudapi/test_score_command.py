"""Tests `lookuplab score cloudapi`. It judges each line of a file and prints a table, and its
messages say what is wrong with bad input.
"""

import json

import pytest
from doors import call

AWS = {
    "id": 1,
    "provider": "aws",
    "client": "kms",
    "candidate": 'encrypt(KeyId="k", Plaintext=b"(")\nprint(1)',
    "target": "encrypt",
}


def test_repeated_ids_half_characters_and_null_completions_lose_no_line(score):
    odd = AWS | {"id": 2, "candidate": "encrypt(KeyId='k', Plaintext=b'')  # \ud83d", "code": None}
    result = score("cloudapi", [AWS, AWS, odd, AWS | {"id": 3, "candidate": None}])
    assert [(row["id"], row["valid"]) for row in result.rows] == [(1, True), (2, True), (3, False)]
    assert "lines that repeat an id, left out: 1" in result.stderr
    assert "judged as empty: 1 (the first is line 4)" in result.stderr


def test_standard_input_gives_judgements_on_stdout_and_table_and_flags_on_stderr():
    line = json.dumps(AWS | {"target": ["no_such_method"]})
    result = call("score", "cloudapi", "-", input=line)
    assert json.loads(result.stdout)["category"] == "incorrect_existing"
    assert "valid_percent" in result.stderr and "unknown_target: 1" in result.stderr


def test_candidates_that_repeat_the_prompt_are_counted(score):
    candidates = "```python\nencrypt()\n```", "response = client.encrypt()", "client_x()"
    lines = [AWS | {"id": text, "candidate": text} for text in candidates]
    result = score("cloudapi", lines)
    assert "begin with a fence or with `client.`, and so are not valid: 2\n" in result.stderr


BAD = """\
[1] | line 2: not an object; each line must be
{"candidate": 3} | line 2: the field 'candidate' must be of type str
{"provider": "gcp"} | line 2: provider is 'gcp'; it must be
{"client": "s4"} | line 2: no client 's4'
{"token_logprobs": "-1"} | line 2: the field 'token_logprobs': its logits or
{"token_logprobs": [-1, null]} | line 2: the field 'token_logprobs': its logits
{"logprobs": [NaN]} | line 2: the field 'logprobs': its logits or
{"logprobs": [-0.5, 1]} | 'logprobs': a log-probability above 0 (1)
{"token_logprobs": [-1], "tokens": []} | 1 log-probabilities of 0 tokens"""


@pytest.mark.parametrize("bad", BAD.splitlines())
def test_a_bad_line_is_named_and_nothing_is_written(score, tmp_path, bad):
    """Before the bar stands the bad line. If it is an object, it has only the fields that make a
    good line bad.
    """
    text, words = bad.split(" | ")
    line = json.loads(text)
    line = AWS | line if isinstance(line, dict) else line
    result = score("cloudapi", [AWS, line], "-o", tmp_path / "out.jsonl")
    assert result.exit_code == 2 and words in result.stderr and result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["with space.jsonl"]
