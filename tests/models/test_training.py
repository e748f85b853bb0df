"""Tests the order in which a model is trained on pairs. ``test_finetuning`` tests the training."""

import pytest

from lookuplab.models.training import Order, Recipe


@pytest.mark.parametrize("grouped", [False, True])
def test_the_order_is_new_every_epoch_and_complete_and_pairs_of_like_length_share_a_batch(grouped):
    lengths = [(i * 37) % 101 for i in range(105)]
    order = Order(lengths, Recipe(batch_size=10, group_by_length=grouped))
    epochs = []
    for epoch in (0, 1, 0):
        order.set_epoch(epoch)
        epochs.append(list(order))
    assert sorted(epochs[0]) == list(range(105)) and epochs[0] == epochs[2] != epochs[1]
    batches = [[lengths[i] for i in epochs[0][k : k + 10]] for k in range(0, 100, 10)]
    assert all(max(batch) - min(batch) <= 12 for batch in batches) == grouped
    assert batches != sorted(batches), "and the batches are shuffled"
