"""Packing, the fast training pieces, a tiny run and its resumption."""

import random

import numpy as np
import pytest
import torch

from lookuplab.mini import model as architecture
from lookuplab.mini import pipeline, tokens, train
from lookuplab.mini.tokenizer import train_tokenizer

VOCABULARY = 400


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A tiny prepared corpus; one document is longer than a short row."""
    rng = random.Random(0)
    names = ["create_bucket", "list_tables", "delete_queue"]
    texts = [f"# call {i % 3}\nclient.{names[i % 3]}(Name='{rng.randint(0, 9)}')\n" for i in range(300)]
    documents = [("b", text) for text in texts] + [("a", texts[0] * 60)]
    folder = tmp_path_factory.mktemp("corpus")
    tokenizer = train_tokenizer(texts, VOCABULARY)
    tokenizer.save_pretrained(folder / "tokenizer")
    tokens.prepare(documents, tokenizer, folder)
    return folder


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(architecture.SIZES, "tiny", (2, 32, 2, 64))


def recipe(**changes):
    return train.Recipe(**{"size": "tiny", "batch_tokens": 1024, "epochs": 4} | changes)


def test_every_token_is_trained_once_an_epoch(prepared):
    corpus = tokens.load(prepared)
    spans = sorted(span for _, rows in tokens.epoch_batches(corpus, 1024, 0, 0) for row in rows for span in row)
    assert spans[0][0] == 0 and spans[-1][1] == len(corpus.ids)
    assert all(left[1] == right[0] for left, right in zip(spans, spans[1:]))


def test_no_document_that_fits_a_row_is_cut_and_no_row_overflows():
    lengths = np.array([300, 200, 13, 513, 100])
    ends = np.cumsum(lengths)
    rows = tokens.pack(np.stack([ends - lengths, ends], axis=1), 513)
    assert sorted(end - begin for row in rows for begin, end in row) == sorted(lengths)
    assert [sum(end - begin for begin, end in row) for row in rows] == [513, 513, 100]


def test_targets_are_the_next_tokens_and_padding_is_not_learned():
    corpus = tokens.Corpus(np.arange(10, 20, dtype=np.uint16), np.array([0, 10]), {})
    inputs, targets = tokens.to_arrays(corpus, 5, [[(0, 4), (6, 7)]])
    assert inputs.tolist() == [[10, 11, 12, 13, 16]]
    assert targets.tolist() == [[11, 12, 13, 16, -100]]


def test_the_order_depends_on_seed_and_epoch_only(prepared):
    corpus = tokens.load(prepared)
    plans = [tokens.epoch_batches(corpus, 1024, seed, epoch) for seed, epoch in ((0, 0), (0, 0), (0, 1), (1, 0))]
    assert plans[0] == plans[1] and plans[0] != plans[2] and plans[0] != plans[3]


def test_blocked_attention_equals_the_stock_one():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 300, 8, requires_grad=True) for _ in range(3))
    ours = architecture.blocked_attention(None, q, k, v, None, scaling=8**-0.5)[0].transpose(1, 2)
    stock = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(ours, stock)
    weights = torch.randn_like(stock)
    for one, other in zip(*(torch.autograd.grad((out * weights).sum(), (q, k, v)) for out in (ours, stock))):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_fused_cross_entropy_equals_the_stock_one_within_bf16():
    torch.manual_seed(0)
    hidden, weight = torch.randn(50, 16, requires_grad=True), torch.randn(30, 16, requires_grad=True)
    targets = torch.randint(0, 30, (50,))
    stock = torch.nn.functional.cross_entropy(hidden @ weight.T, targets)
    ours = architecture.FusedCrossEntropy.apply(hidden, weight, targets, 16)
    torch.testing.assert_close(ours, stock, atol=0.02, rtol=0.02)
    for one, other in zip(*(torch.autograd.grad(loss, (hidden, weight)) for loss in (ours, stock))):
        assert torch.nn.functional.cosine_similarity(one.flatten(), other.flatten(), dim=0) > 0.999


def test_a_tiny_run_lowers_the_loss_and_writes_a_loadable_folder(prepared, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    facts = pipeline.train_and_save(prepared, tmp_path / "out", tmp_path / "work", size="tiny", batch_tokens=1024, epochs=8)
    losses = [float(line.split(",")[2]) for line in (tmp_path / "out/log.csv").read_text().splitlines()[1:]]
    assert facts["steps"] >= 20 and losses[-1] < losses[0] - 0.5, losses
    model, tokenizer = (kind.from_pretrained(tmp_path / "out") for kind in (AutoModelForCausalLM, AutoTokenizer))
    assert model.dtype == torch.float16 and len(tokenizer) == model.config.vocab_size
    text = "# call 1\nclient.list_tables(Name='1')\n"
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    assert model.float()(ids, labels=ids).loss < 4.5
    assert "1 epoch" not in (card := (tmp_path / "out/README.md").read_text()) and "8 epoch(s)" in card


def test_a_killed_run_that_goes_on_gives_the_same_weights(prepared, tmp_path):
    corpus = tokens.load(prepared)
    whole, _ = train.train(corpus, recipe(), VOCABULARY, tmp_path / "whole")
    train.train(corpus, recipe(), VOCABULARY, tmp_path / "killed", save_every=0, stop_at=7)
    resumed, _ = train.train(corpus, recipe(), VOCABULARY, tmp_path / "killed")
    for (name, one), other in zip(whole.state_dict().items(), resumed.state_dict().values()):
        assert torch.equal(one, other), name


def test_a_checkpoint_of_another_recipe_is_not_resumed(prepared, tmp_path):
    corpus = tokens.load(prepared)
    train.train(corpus, recipe(seed=1), VOCABULARY, tmp_path / "work", save_every=0, stop_at=2)
    steps = []
    loaded = train.Checkpoint.load
    train.Checkpoint.load = lambda self, *rest: steps.append(loaded(self, *rest)) or steps[-1]
    try:
        train.train(corpus, recipe(seed=2), VOCABULARY, tmp_path / "work", stop_at=0)
    finally:
        train.Checkpoint.load = loaded
    assert steps == [(0, 0.0)]


def test_documents_are_saved_as_objects_that_frequencies_reads(tmp_path):
    from lookuplab.cloudapi.frequency import source_files

    documents = [("a", "one", "import boto3\n"), ("b", "two", "import os  # \u2028 a separator\n")]
    file = tmp_path / "documents.jsonl.gz"
    assert pipeline.write_documents(file, documents) == 2
    assert list(pipeline.read_documents(file)) == documents
    assert [text for _, text in source_files(str(file))] == [text for _, _, text in documents]
