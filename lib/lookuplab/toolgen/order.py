"""The order of the pairs, epoch by epoch, from the seed alone: a resumed run meets the same batches, on any number of
processes."""

from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import DataLoader, Sampler
from transformers import Trainer, TrainerCallback

POOL = 50  # batches whose pairs are sorted together: less padding from more, but less chance in who meets whom


class Order(Sampler, TrainerCallback):
    """Shuffled; ``by_length`` puts pairs of like length into a batch of ``batch_size`` and shuffles the batches."""

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int, by_length: bool):
        self.lengths, self.batch_size, self.seed, self.by_length = lengths, batch_size, seed, by_length
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def on_epoch_begin(self, args, state, control, **_) -> None:
        self.epoch = int(state.epoch)  # of a resumed run: the epoch in which it was cut off

    def __iter__(self) -> Iterator[int]:
        chance = torch.Generator().manual_seed(self.seed * 100_003 + self.epoch)
        shuffled = torch.randperm(len(self), generator=chance).tolist()
        if not self.by_length:
            return iter(shuffled)
        pool, size = POOL * self.batch_size, self.batch_size
        pools = (sorted(shuffled[i : i + pool], key=self.lengths.__getitem__) for i in range(0, len(self), pool))
        batches = [part[i : i + size] for part in pools for i in range(0, len(part), size)]
        last = [batches.pop()] if len(batches[-1]) < size else []  # all others must stay whole
        mixed = [batches[i] for i in torch.randperm(len(batches), generator=chance).tolist()]
        return iter([i for batch in mixed + last for i in batch])


class OrderedTrainer(Trainer):
    """A Trainer that takes its training pairs in a given order."""

    def __init__(self, *args, order: Order, **options):
        super().__init__(*args, **options)
        self.order = order
        self.add_callback(order)

    def get_train_dataloader(self) -> DataLoader:
        return self.accelerator.prepare(DataLoader(
            self.train_dataset, self.args.train_batch_size, sampler=self.order, collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory))
