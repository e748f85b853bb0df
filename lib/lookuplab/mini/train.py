"""Train one mini model on a prepared corpus: whole epochs, seeded, resumable, on a CPU or through accelerate on GPUs.

    accelerate launch -m lookuplab.mini.train --size large
"""

import csv
import os
import time
from dataclasses import asdict, dataclass
from itertools import accumulate, chain
from pathlib import Path

import torch
from torch.optim import AdamW, Muon
from tqdm import tqdm

from lookuplab.mini import model as architecture
from lookuplab.mini import tokens


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights, besides corpus and tokenizer."""

    size: str
    epochs: int = 1
    seed: int = 0
    batch_tokens: int = 8192
    muon_rate: float = 0.02  # hidden matrices
    adam_rate: float = 0.005  # embeddings
    warmup: float = 0.01  # part of the steps
    cooldown: float = 0.6  # part of the steps, linear to zero
    weight_decay: float = 0.02  # on hidden matrices, times the rate
    clip: float = 1.0


def rate(step: int, steps: int, recipe: Recipe) -> float:
    """The factor on both learning rates: warm-up, constant, linear cool-down to zero."""
    up, down = max(1, recipe.warmup * steps), max(1, recipe.cooldown * steps)
    return min(1.0, (step + 1) / up, (steps - step) / down)


def optimizers(model: torch.nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices between embedding and head, AdamW for embeddings and norms."""
    embeddings = {weight for module in model.modules() if isinstance(module, torch.nn.Embedding)
                  for weight in module.parameters()}  # a head that is tied to them is one of them
    hidden = [p for p in model.parameters() if p.ndim == 2 and p not in embeddings]
    rest = [p for p in model.parameters() if p.ndim != 2 or p in embeddings]
    return [Muon(hidden, lr=recipe.muon_rate, weight_decay=recipe.weight_decay, momentum=0.95),
            AdamW(rest, lr=recipe.adam_rate, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0, fused=True)]


class Checkpoint:
    """Where a run can go on after a kill: weights, optimizer states and step in one file, replaced atomically."""

    def __init__(self, folder: Path, identity: dict):
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.identity = folder / "checkpoint.pt", identity

    def save(self, step: int, seconds: float, model, opts) -> None:
        part = self.path.with_suffix(".part")
        torch.save({"identity": self.identity, "step": step, "seconds": seconds, "model": model.state_dict(),
                    "optimizers": [opt.state_dict() for opt in opts]}, part)
        os.replace(part, self.path)

    def load(self, model, opts) -> tuple[int, float]:
        """Restore and return (next step, seconds so far); (0, 0) without a checkpoint of the same run."""
        if not self.path.exists():
            return 0, 0.0
        saved = torch.load(self.path, weights_only=True)
        if saved["identity"] != self.identity:
            return 0, 0.0
        model.load_state_dict(saved["model"])
        for opt, state in zip(opts, saved["optimizers"]):
            opt.load_state_dict(state)
        return saved["step"], saved["seconds"]


class Log:
    """log.csv: step, tokens, loss, rate, seconds; a resumed run drops the lines behind its checkpoint."""

    FIELDS = ("step", "tokens", "loss", "rate", "seconds")

    def __init__(self, path: Path, step: int):
        rows = list(csv.reader(path.read_text().splitlines()))[1:] if path.exists() and step else []
        self.file = open(path, "w", newline="")
        self.writer = csv.writer(self.file)
        self.writer.writerows([self.FIELDS, *(row for row in rows if int(row[0]) <= step)])

    def add(self, step: int, seen: int, loss: float, factor: float, seconds: float) -> None:
        self.writer.writerow([step, seen, f"{loss:.4f}", f"{factor:.4f}", f"{seconds:.1f}"])
        self.file.flush()


class Books:
    """The main process's account of a run: bar, log and time. Losses stay on the device until a line is written."""

    def __init__(self, log: Path, size: str, plan: list[tokens.Batch], step: int, before: float, main: bool):
        self.seen = list(accumulate(sum(end - begin for row in rows for begin, end in row) for _, rows in plan))
        self.log = Log(log, step) if main else None
        self.bar = tqdm(total=len(plan), initial=step, desc=f"train {size}", unit="step", mininterval=5,
                        disable=not main)
        self.began = time.monotonic() - before
        self.running: list[torch.Tensor] = []

    @property
    def seconds(self) -> float:
        """Of training, those before a kill included."""
        return time.monotonic() - self.began

    def add(self, step: int, loss: torch.Tensor, factor: float, line: bool) -> None:
        """``step`` steps are done; with ``line`` the mean loss since the last line goes into the log."""
        self.bar.update()
        if self.log is None:
            return
        self.running.append(loss.detach())
        if line:
            mean = torch.stack(self.running).mean().item()
            self.running = []
            self.log.add(step, self.seen[step - 1], mean, factor, self.seconds)
            self.bar.set_postfix_str(f"loss {mean:.3f}")


def learn(accelerator, learner: torch.nn.Module, opts: list, corpus: tokens.Corpus, batch: tokens.Batch,
          recipe: Recipe, factor: float) -> torch.Tensor:
    """One step on a batch, of which every process takes its share; returns the mean loss of this share in nats."""
    length, rows = batch
    mine = rows[accelerator.process_index::accelerator.num_processes] or rows[:1]
    inputs, targets = (torch.from_numpy(a).to(accelerator.device) for a in tokens.to_arrays(corpus, length, mine))
    loss = learner(inputs, targets)
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(learner.parameters(), recipe.clip)
    for opt, base in zip(opts, (recipe.muon_rate, recipe.adam_rate)):
        opt.param_groups[0]["lr"] = base * factor
        opt.step()
        opt.zero_grad()
    return loss


def train(corpus: tokens.Corpus, recipe: Recipe, vocab_size: int, work: Path, save_every: float = 120.0,
          log_every: int = 20, stop_at: int | None = None) -> tuple[torch.nn.Module, dict]:
    """Train to the end (or to step ``stop_at``) and return (model, facts for the card).

    ``work`` holds the checkpoint and the log. ``save_every`` is in seconds; 0 saves after every step.
    """
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="bf16")
    model = architecture.build(recipe.size, vocab_size, recipe.seed)
    model.set_attn_implementation("blocked" if accelerator.device.type == "cpu" else "sdpa")
    opts = optimizers(model, recipe)
    checkpoint = Checkpoint(work, asdict(recipe) | {"corpus": corpus.facts["sha256"], "vocabulary": vocab_size})
    step, before = checkpoint.load(model, opts)
    learner = accelerator.prepare(architecture.Learner(model))
    opts = [accelerator.prepare(opt) for opt in opts]

    # the whole plan of batches is known beforehand: steps, order and resume point need no state of their own
    epochs = (tokens.epoch_batches(corpus, recipe.batch_tokens, recipe.seed, epoch) for epoch in range(recipe.epochs))
    plan = list(chain.from_iterable(epochs))
    main = accelerator.is_main_process
    books = Books(work / "log.csv", recipe.size, plan, step, before, main)
    saved = time.monotonic()
    for number in range(step, len(plan) if stop_at is None else min(stop_at, len(plan))):
        factor = rate(number, len(plan), recipe)
        loss = learn(accelerator, learner, opts, corpus, plan[number], recipe, factor)
        last = number + 1 == len(plan)
        books.add(number + 1, loss, factor, line=last or (number + 1) % log_every == 0)
        if main and (last or time.monotonic() - saved >= save_every):
            checkpoint.save(number + 1, books.seconds, model, opts)
            saved = time.monotonic()
    books.bar.close()
    facts = {"main": main, "steps": len(plan), "seconds": round(books.seconds, 1), "device": str(accelerator.device),
             "processes": accelerator.num_processes, "parameters": sum(p.numel() for p in model.parameters())}
    return accelerator.unwrap_model(learner).model, facts


def main() -> None:
    """``accelerate launch -m lookuplab.mini.train``, on a corpus that ``lookuplab train mini --corpus-only`` built."""
    import argparse

    from lookuplab.mini import pipeline

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=pipeline.WORK)
    parser.add_argument("--out", type=Path, default=pipeline.MODELS)
    parser.add_argument("--size", choices=sorted(architecture.SIZES), required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch-tokens", type=int, default=Recipe.batch_tokens)
    given = parser.parse_args()
    pipeline.train_and_save(given.work / "corpus", given.out / given.size, given.work / given.size, size=given.size,
                            epochs=given.epochs, seed=given.seed, batch_tokens=given.batch_tokens)


if __name__ == "__main__":
    main()
