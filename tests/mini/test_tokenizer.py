"""The mini models' tokenizer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.mini.tokenizer import train_tokenizer

SAMPLE = ["import boto3\n\nclient = boto3.client('s3')\nclient.list_identity_pool_usage(IdentityPoolId='a1')\n" * 20]
TOKENIZER = train_tokenizer(SAMPLE, 600)


def pieces(text):
    return TOKENIZER.convert_ids_to_tokens(TOKENIZER(text)["input_ids"])


@given(st.text())
def test_decoding_gives_the_text_back(text):
    assert TOKENIZER.decode(TOKENIZER(text)["input_ids"]) == text


@given(st.text(alphabet=" \t\r\n_aB1.('"))
def test_decoding_gives_white_space_and_underscores_back(text):
    assert TOKENIZER.decode(TOKENIZER(text)["input_ids"]) == text


def test_names_are_cut_at_underscores_and_changes_of_case():
    assert pieces("list_identity_pool_usage") == ["list", "_identity", "_pool", "_usage"]
    assert pieces("IdentityPoolId") == ["Identity", "Pool", "Id"]


def test_digits_stand_alone():
    assert TOKENIZER.tokenize("1024") == ["1", "0", "2", "4"]


def test_a_saved_tokenizer_loads_through_auto_tokenizer(tmp_path):
    from transformers import AutoTokenizer

    TOKENIZER.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(SAMPLE)["input_ids"] == TOKENIZER(SAMPLE)["input_ids"]
    assert (loaded.eos_token, loaded.eos_token_id, loaded.pad_token) == ("<|endoftext|>", 0, "<|pad|>")


def test_training_twice_gives_the_same_tokenizer():
    assert train_tokenizer(SAMPLE, 600).get_vocab() == TOKENIZER.get_vocab()
