"""Tests pairs of docstring and function, as text and as tokens. The tokens must spell the function
exactly, with and without marks, also with tokenizers that insert blanks.
"""

import json
import re
from dataclasses import replace

import pytest
from tiny_architectures import CORPUS, byte_tokenizer, metaspace_tokenizer
from tokenizers import normalizers

from lookuplab import paths
from lookuplab.models.tokens import decode
from lookuplab.toolgen.generation import Vocabulary
from lookuplab.toolgen.pairs import Pair, add_mark, encode, read_pairs
from lookuplab.toolgen.rules import PACKAGE_RULES, PAPER_RULES

KINDS = "decoder", "encoder-decoder"
BODY = (
    "    for item in <COMP>items:\n        self.<COMP>_updates.<COMP>add(<COMP>item)\n"
    "        return <COMP>x\n"
    '    <COMP>y = f"{<COMP>z}"\n    <COMP>naïve(<COMP>名)\n'
)
PAIR = Pair("p", "Register updates.", "def f(self, items):", BODY)
TEXTS = [
    *CORPUS,
    BODY.replace("<COMP>", ""),
    "def f(self, items):\n    '''Register updates.'''\n### Description:",
]


def llama2():
    """Return a tokenizer like CodeLlama's tokenizer.json, whose normaliser puts a blank before
    every piece.
    """
    tokenizer = metaspace_tokenizer(TEXTS)
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = None
    blanks = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    backend.normalizer = normalizers.Sequence(blanks)
    return tokenizer


TOKENIZERS = {
    "byte-level": byte_tokenizer,
    "metaspace": lambda: metaspace_tokenizer(TEXTS),
    "llama 2": llama2,
}


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]()


def test_taken_out_by_its_id_the_mark_leaves_the_unmarked_function(tokenizer):
    """Tokens must spell functions exactly, also for the base variant, which knows no mark."""
    bare = PAIR.unmarked()
    end = tokenizer.eos_token_id
    for kind in KINDS:
        [example] = encode(tokenizer, [bare], kind)
        assert example.exact and example.answer[-1] == end != example.prompt[-1]
    size = len(tokenizer)
    mark = add_mark(tokenizer)
    assert mark == size == add_mark(tokenizer)
    for kind in KINDS:
        [example] = encode(tokenizer, [PAIR], kind)
        assert example.exact and example.answer.count(mark) == 9
        prompt = example.prompt if kind == "decoder" else []
        row = [token for token in example.answer if token != mark]
        start, whole = decode(tokenizer, [prompt, prompt + row])
        assert whole == start + bare.answer(kind)


def test_without_its_signature_a_function_is_written_whole_from_its_docstring():
    alone = replace(PAIR, rules=replace(PAPER_RULES, given_signature=False))
    read = ["'''Register updates.'''\n", "### Description:\nRegister updates."]
    assert [alone.prompt(kind) for kind in KINDS] == read
    assert alone.answer("decoder") == alone.answer("encoder-decoder")
    assert encode(byte_tokenizer(), [alone], "decoder")[0].signature == 0


def test_behind_a_mark_a_name_has_the_tokens_that_decoding_holds_ready_for_it():
    tokenizer = byte_tokenizer()
    mark = add_mark(tokenizer)
    [example] = encode(tokenizer, [PAIR], "decoder")
    vocabulary = Vocabulary(tokenizer, frozenset())
    rest = example.answer
    for name in re.findall(r"<COMP>(\w+)", BODY):
        rest = rest[rest.index(mark) + 1 :]
        paths, _ = vocabulary.spellings(mark, [name], "")
        assert any(rest[: len(path)] == path for path in paths)


def test_a_text_that_the_tokenizer_cannot_spell_is_told(tokenizer):
    lossy = normalizers.Replace("\n", " ")  # like T5's normaliser
    tokenizer.backend_tokenizer.normalizer = lossy
    assert not encode(tokenizer, [PAIR.unmarked()], "decoder")[0].exact


def test_the_prompt_has_no_marks_and_the_docstring_is_indented_as_the_first_line_of_code():
    bodies = {"\n  # x\n": "  ", "\treturn": "\t", "        <COMP>x": " " * 8, "": " " * 4}
    for body, indent in bodies.items():
        pair = Pair("p", "Say.", "def f(x=<COMP>y):", body)
        assert pair.prompt("decoder") == f"def f(x=y):\n{indent}'''Say.'''\n"


def test_the_package_asks_an_encoder_decoder_with_the_signature_without_def_and_colon():
    pair = Pair("p", "Say.", "async def f(x) -> int:", "    return x", PACKAGE_RULES)
    expected = "### Description:\nSay.\n\n### Signature:\nf(x) -> int"
    assert pair.prompt("encoder-decoder") == expected
    assert pair.answer("encoder-decoder").startswith("async def f(x) -> int:\n")


RECORD = {
    "id": "a",
    "docstring": "Doc.",
    "signature": "def f(x):",
    "body": "    return x",
    "marked_signature": "def f(x):",
    "marked_body": "    return <COMP>x",
}


def test_a_function_of_a_corpus_that_spells_the_mark_is_counted(tmp_path):
    odd = RECORD | {"body": "    return '<COMP>'"}
    paths.write_lines(tmp_path / "corpus.jsonl.gz", map(json.dumps, (RECORD, odd)))
    found, left_out = read_pairs(tmp_path / "corpus.jsonl.gz")
    assert found == [Pair("a", "Doc.", "def f(x):", "    return <COMP>x")]
    assert left_out == {"containing <COMP> already": 1}
