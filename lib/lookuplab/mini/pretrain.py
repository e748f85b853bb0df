"""Pre-train one family of the ToolGen mini models on functions: whole epochs, seeded, resumable."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import clip_grad_norm_
from tqdm import tqdm
from transformers import PreTrainedModel

from lookuplab.mini import train
from lookuplab.mini.families import FunctionLearner, build
from lookuplab.mini.train import Checkpoint, Log, rate
from lookuplab.toolgen.pairs import IGNORED, Example

Batch = list[int]  # numbers of examples


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights, besides functions and tokenizer. Rates and schedule as in ``mini.train``.

    ``attention_rate`` is a factor on the rate of T5's queries and keys.
    """

    family: str
    epochs: int = 1
    seed: int = 0
    batch_tokens: int = 8192  # padding included
    max_tokens: int = 128  # of prompt and answer; longer functions are left out
    muon_rate: float = 0.02
    adam_rate: float = 0.005
    attention_rate: float = 1.0
    warmup: float = 0.01
    cooldown: float = 0.6
    weight_decay: float = 0.02
    clip: float = 1.0


# T5 does not divide the products of queries and keys by the root of their width, and its embeddings begin at a standard
# deviation of 1 instead of 0.02. At the others' rates it did not even learn to copy the signature (after 0.8 million
# tokens it had 48% of its tokens right, so 96%).
RATES = {"t5": {"batch_tokens": 2048, "adam_rate": 0.03, "attention_rate": 0.05}}


def recipe(family: str, **changes) -> Recipe:
    """The recipe of the committed model of a family."""
    return Recipe(family, **RATES.get(family, {}) | changes)


def pretrain(examples: Sequence[Example], recipe: Recipe, vocab_size: int, work: Path, save_every: float = 120.0,
             stop_at: int | None = None) -> tuple[PreTrainedModel, dict]:
    """Train to the end (or to step ``stop_at``) and return (model, facts for the card); ``work`` holds checkpoint and
    log."""
    kept = [e for e in examples if len(e.prompt) + len(e.answer) <= recipe.max_tokens]
    batches = list(chain.from_iterable(epoch(kept, recipe, number) for number in range(recipe.epochs)))
    model = build(recipe.family, vocab_size, recipe.seed)
    if not model.config.is_encoder_decoder:
        model.set_attn_implementation("blocked")
    opts, learner = optimizers(model, recipe), FunctionLearner(model)
    facts = {"functions": len(kept), "tokens": sum(len(e.prompt) + len(e.answer) for e in kept),
             "sha256": fingerprint(kept), "steps": len(batches)}
    checkpoint = Checkpoint(work, asdict(recipe) | facts | {"vocabulary": vocab_size})
    step, before = checkpoint.load(model, opts)
    log, seen, losses = Log(work / "log.csv", step), 0, []
    began = saved = time.monotonic()
    for number in tqdm(range(step, len(batches) if stop_at is None else stop_at), f"pre-train {recipe.family}",
                       unit="step", mininterval=5):
        factor = rate(number, len(batches), recipe)
        batch = [kept[i] for i in batches[number]]
        losses.append(_step(learner, opts, batch, recipe, factor))
        seen += sum(len(e.prompt) + len(e.answer) for e in batch)
        last, seconds = number + 1 == len(batches), before + time.monotonic() - began
        if last or (number + 1) % 20 == 0:
            log.add(number + 1, seen, torch.stack(losses).mean().item(), factor, seconds)
            losses = []
        if last or time.monotonic() - saved >= save_every:
            checkpoint.save(number + 1, seconds, model, opts)
            saved = time.monotonic()
    model.set_attn_implementation("sdpa" if not model.config.is_encoder_decoder else "eager")
    return model, facts | {"seconds": round(before + time.monotonic() - began, 1),
                           "parameters": sum(p.numel() for p in model.parameters())}


def epoch(examples: Sequence[Example], recipe: Recipe, number: int) -> list[Batch]:
    """The batches of one epoch in training order: examples of similar length together, at most ``batch_tokens`` each."""
    rng = np.random.default_rng((recipe.seed, number))
    sizes = np.array([len(e.prompt) + len(e.answer) for e in examples]) + rng.uniform(0, 8, len(examples))
    batches, batch = [], []
    for i in np.argsort(-sizes, kind="stable").tolist():
        if batch and (len(batch) + 1) * (sizes[batch[0]] + 8) > recipe.batch_tokens:
            batches.append(batch)
            batch = []
        batch.append(i)
    return [[*batches, batch][i] for i in rng.permutation(len(batches) + 1)]


def fingerprint(examples: Sequence[Example]) -> str:
    """sha256 over the tokens of all examples, in order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(np.array([*example.prompt, -1, *example.answer, -1], dtype=np.int32).tobytes())
    return digest.hexdigest()


def optimizers(model: PreTrainedModel, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """As ``mini.train``'s, with T5's queries and keys in a group of their own."""
    muon, adam = train.optimizers(model, recipe)
    names = ("Attention.q.weight", "Attention.k.weight")
    slow = [weight for name, weight in model.named_parameters() if name.endswith(names)]
    if recipe.attention_rate != 1:
        known = {id(weight) for weight in slow}
        muon.param_groups[0]["params"] = [p for p in muon.param_groups[0]["params"] if id(p) not in known]
        muon.add_param_group({"params": slow, "factor": recipe.attention_rate})
    return [muon, adam]


def _step(learner: FunctionLearner, opts: list, batch: list[Example], recipe: Recipe, factor: float) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = learner(*arrays(batch, learner.model.config.is_encoder_decoder))
    loss.backward()
    clip_grad_norm_(learner.parameters(), recipe.clip)
    for opt, base in zip(opts, (recipe.muon_rate, recipe.adam_rate), strict=True):
        for group in opt.param_groups:
            group["lr"] = base * factor * group.get("factor", 1)
        opt.step()
        opt.zero_grad()
    return loss.detach()


def arrays(batch: list[Example], encoder_decoder: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """What ``FunctionLearner`` takes. A causal model learns to continue the prompt, too: it is code like the answer."""
    if encoder_decoder:
        return _padded([e.prompt for e in batch]), _padded([e.answer for e in batch])
    rows = [[*e.prompt, *e.answer] for e in batch]
    return _padded([row[:-1] for row in rows]), _padded([row[1:] for row in rows])


def _padded(rows: list[list[int]]) -> torch.Tensor:
    table = torch.full((len(rows), max(map(len, rows))), IGNORED, dtype=torch.long)
    for line, row in zip(table, rows, strict=True):
        line[:len(row)] = torch.tensor(row)
    return table
