"""Batches under a limit of rows and of tokens: in the given order, full, the same after an interruption."""

from hypothesis import given
from hypothesis import strategies as st
from tiny_architectures import save

from lookuplab.models.batching import BatchSize, in_batches
from lookuplab.models.local import load_local
from lookuplab.models.types import Decoding, Prompt


def batches(lengths, rows, tokens):
    return list(in_batches(lengths, lambda length: length, list, BatchSize(rows, tokens), "model"))


def test_rows_times_the_longest_stay_within_the_budget():
    assert batches([50, 40, 40, 9, 8, 7, 6, 5, 1], 4, 100) == [[50, 40], [40, 9], [8, 7, 6, 5], [1]]
    assert batches([50, 40, 9], 4, None) == [[50, 40, 9]]


def test_a_single_long_row_goes_alone():
    assert batches([500, 400, 30, 30, 0], 9, 100) == [[500], [400], [30, 30, 0]]


@given(st.lists(st.integers(0, 60)), st.integers(1, 9), st.integers(1, 200), st.integers(0, 20))
def test_an_interrupted_run_goes_on_with_the_same_batches(lengths, rows, tokens, done):
    ordered = sorted(lengths, reverse=True)
    whole = batches(ordered, rows, tokens)
    assert sum(whole, []) == ordered
    assert all(len(batch) == 1 or len(batch) * batch[0] <= tokens and len(batch) <= rows for batch in whole)
    left = sum(whole[done:], [])
    assert batches(left, rows, tokens) == whole[done:]


def test_the_budget_changes_no_answer(tmp_path):
    model = load_local(save(tmp_path, "llama"))
    prompts = [(Prompt(f"p{i}", "import boto3\n" + "x = 1\n" * (i % 9) + f"y{i} = client."), 0) for i in range(20)]

    def answers(tokens):
        model.batch.tokens = tokens
        found = list(model.generate(prompts, Decoding(max_new_tokens=8)))
        return len(found), {done.id: (done.token_ids, done.finish_reason) for batch in found for done in batch}

    (few, expected), (many, same) = answers(None), answers(120)
    assert few == 1 and many > 5 and same == expected
