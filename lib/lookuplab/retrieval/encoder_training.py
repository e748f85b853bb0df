"""Training of a sentence encoder on pairs of texts that ask for the same (Heyman and Van Cutsem 2020, Section 4.2)."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lookuplab.errors import UserError

LOSSES = ("bce", "ranking")


@dataclass(frozen=True)
class Training:
    """How an encoder learns.

    ``loss``: "bce" is the source's: binary cross-entropy of w x cosine + b, w = 15 and b = -5 at the start and both
    learned, each pair beside ``negatives`` pairs with a random other text, drawn anew every epoch. "ranking" is
    sentence-transformers' MultipleNegativesRankingLoss: the other texts of the batch are the negatives.
    """

    loss: str = "bce"
    negatives: int = 5
    epochs: int = 15
    batch_size: int = 512
    rate: float = 1e-4
    seed: int = 0


def static_encoder(texts: Iterable[str], vocabulary: int, dimensions: int, seed: int = 0):
    """A new sentence encoder: the mean of one vector a subword. Subwords are learned from ``texts``, lower-cased."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())  # WordPiece's trainer gives other subwords each time
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.Lowercase(), normalizers.StripAccents()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), pre_tokenizers.ByteLevel()])
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    weights = 0.1 * torch.randn(tokenizer.get_vocab_size(), dimensions, generator=torch.Generator().manual_seed(seed))
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")


def train(model, pairs: Sequence[tuple[str, str]], training: Training, work: Path) -> None:
    """Train ``model`` (a SentenceTransformer) in place; ``work`` is the trainer's folder, nothing is kept there.

    Raises UserError for an unknown loss and for fewer than two pairs.
    """
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    if training.loss not in LOSSES:
        raise UserError(f"loss {training.loss!r} is none of {', '.join(LOSSES)}")
    if len(pairs) < 2:
        raise UserError(f"{len(pairs)} pairs of texts are too few to learn from; give at least two")
    ranking = training.loss == "ranking"
    rows = len(pairs) * (1 if ranking else 1 + training.negatives)
    settings = SentenceTransformerTrainingArguments(
        str(work), max_steps=training.epochs * -(-rows // training.batch_size), learning_rate=training.rate,
        per_device_train_batch_size=training.batch_size, seed=training.seed, save_strategy="no", report_to="none",
        logging_strategy="no", dataloader_pin_memory=False,
        accelerator_config={"dispatch_batches": False})  # a bag of words cannot be sliced
    SentenceTransformerTrainer(
        model, settings, train_dataset=_dataset(pairs, training),
        loss=MultipleNegativesRankingLoss(model) if ranking else _scaled_cosine(model)).train()


def _dataset(pairs: Sequence[tuple[str, str]], training: Training):
    """The rows of all epochs as a stream, each epoch in an order and with negatives of its own."""
    from datasets import Features, IterableDataset, Value

    columns = {"anchor": "string", "positive": "string"} if training.loss == "ranking" else {
        "one": "string", "other": "string", "label": "float32"}
    kept = {"pairs": tuple(pairs), "training": training}  # a list would be cut into shards of one pair each
    features = Features({name: Value(kind) for name, kind in columns.items()})
    return IterableDataset.from_generator(_rows, gen_kwargs=kept, features=features)


def _rows(pairs: Sequence[tuple[str, str]], training: Training) -> Iterator[dict]:
    for epoch in range(training.epochs):
        generator = random.Random(f"{training.seed} {epoch}")
        if training.loss == "ranking":
            yield from ({"anchor": one, "positive": other} for one, other in generator.sample(pairs, len(pairs)))
            continue
        rows = [(one, other, 1.0) for one, other in pairs]
        rows += [(one, pairs[at - generator.randrange(1, len(pairs))][1], 0.0)  # any pair's but its own
                 for at, (one, _) in enumerate(pairs) for _ in range(training.negatives)]
        generator.shuffle(rows)
        yield from ({"one": one, "other": other, "label": label} for one, other, label in rows)


def _scaled_cosine(model):
    """Binary cross-entropy of w x cosine + b as a loss for the trainer, which learns w and b with the encoder."""
    import torch

    class ScaledCosine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model
            self.weight, self.bias = torch.nn.Parameter(torch.tensor(15.0)), torch.nn.Parameter(torch.tensor(-5.0))

        def forward(self, sentence_features, labels):
            one, other = (self.model(features)["sentence_embedding"] for features in sentence_features)
            logits = self.weight * torch.cosine_similarity(one, other) + self.bias
            return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels.float())

    return ScaledCosine()
