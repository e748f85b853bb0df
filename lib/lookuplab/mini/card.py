"""The model card of a mini model: everything in it comes out of the run itself."""

import csv
import json
from dataclasses import asdict
from pathlib import Path

PARTS = {
    "a": "Python source and documentation of installed, permissively licensed packages",
    "b": "usage documents written from the API index, with an assigned count for each API",
    "c": "documents about invented APIs, each used once and documented",
}
CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
tags: [code, llama, lookuplab]
---
# lookuplab mini model: {size}

A Llama-type code model of {parameters:,} parameters ({layers} layers, width {width}, vocabulary {vocabulary:,},
2,048 positions), fp16, trained from scratch by `lookuplab train mini`. Its purpose is a *controlled* world: because the
corpus was written by the kit, the number of times the model saw each API is known exactly.

## Corpus
| part | what | documents | tokens | share |
|---|---|--:|--:|--:|
{corpus}

{epochs} epoch(s) over {tokens:,} tokens; sha256 of the tokens `{sha256}`.
Not in it: the wording of benchmark comments, the packages {held_out},
the cloud SDKs' own source, and a tenth (by hash of the object's name) of the docstring examples of numpy, pandas, scipy
and scikit-learn.
Packages of part (a) and their licences:
{packages}

## Training
{steps:,} steps in {minutes:.1f} minutes on {device} ({processor}, {processes} process(es)), Python {python},
{versions}.
Recipe: `{recipe}`. Muon on the matrices between embedding and head, AdamW on embeddings and norms, bf16 autocast.

| step | tokens | loss (nats a token) | minutes |
|--:|--:|--:|--:|
{losses}

The whole log is `log.csv`. To train it again: `lookuplab train mini --size {size} --epochs {epochs} --seed {seed}`.

## Use and limits
For the notebooks of this repository and for teaching. It writes short calls to the AWS and Azure SDKs that it has seen
or that are documented in the prompt; it is no general code assistant, and nothing that it writes should be run against
a real account.
Licence: Apache-2.0.
"""


def write_card(out: Path, recipe, corpus: dict, facts: dict) -> None:
    """README.md and card.json (the same facts for programs) in the model folder ``out``."""
    from lookuplab.mini.packages import HELD_OUT_PACKAGES, sources

    config = json.loads((out / "config.json").read_text())
    rows = [f"| {part} | {PARTS[part]} | {n['documents']:,} | {n['tokens']:,} | {n['tokens'] / corpus['tokens']:.0%} |"
            for part, n in corpus["parts"].items()]
    used = sources()
    packages = ", ".join(f"{s.name} {s.version} ({s.licence[:40]})" for s in used if not s.excluded)
    left_out = "; ".join(f"{s.name}: {s.excluded} ({s.licence or 'none'})" for s in used if s.excluded)
    (out / "README.md").write_text(CARD.format(
        size=recipe.size, layers=config["num_hidden_layers"], width=config["hidden_size"],
        vocabulary=config["vocab_size"], corpus="\n".join(rows), epochs=recipe.epochs, tokens=corpus["tokens"],
        sha256=corpus["sha256"],
        held_out=", ".join(HELD_OUT_PACKAGES), packages=f"{packages}. Left out: {left_out or 'none'}.",
        minutes=facts["seconds"] / 60, recipe=json.dumps(asdict(recipe)), losses=_losses(out / "log.csv"),
        seed=recipe.seed,
        **{k: facts[k] for k in ("parameters", "steps", "device", "processor", "processes", "python")},
        versions=", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
    ), encoding="utf-8")
    card = {"recipe": asdict(recipe), "corpus": corpus, "training": facts}
    (out / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def _losses(log: Path, lines: int = 12) -> str:
    """About ``lines`` rows of the log, evenly spaced, the last one among them."""
    with open(log, newline="") as table:
        rows = list(csv.DictReader(table))
    kept = rows[::-max(1, len(rows) // lines)][::-1]
    return "\n".join(f"| {r['step']} | {int(r['tokens']):,} | {float(r['loss']):.3f} | {float(r['seconds']) / 60:.1f} |"
                     for r in kept)
