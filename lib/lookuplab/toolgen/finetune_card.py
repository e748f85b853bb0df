"""The model card of a fine-tuned model: everything in it comes out of the run itself."""

import csv
import json
import platform
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from lookuplab.provenance import device, processor

VERSIONS = ("torch", "transformers", "tokenizers", "accelerate", "peft")
CARD = """---
{head}---
# {name}

`{base}` ({kind}, {parameters:,} parameters), fine-tuned on {pairs:,} {made}

## Pairs
{about}| | pairs |
|---|--:|
{counts}

sha256 of the tokens: `{hash}`.

## Training
{trained}
{steps:,} steps in {minutes:.1f} minutes on {device} ({processor}, {processes} process(es)), Python {python},
{versions}.
Recipe: `{recipe}`.

| step | epoch | loss (nats a token) | minutes |
|--:|--:|--:|--:|
{losses}

The whole log is `log.csv`.

## Use and limits
`lookuplab.models.load` loads the folder. {use} Run nothing of it unread.
Licence: {licence}.
"""
@dataclass(frozen=True)
class Subject:
    """What the card says of the pairs: ``made`` (what they are and by which command) and ``use`` (what the model does),
    sentences; ``tag`` for the hub."""

    made: str
    use: str
    tag: str


_FUNCTIONS = ("pairs of docstring and function by\n`lookuplab train toolgen`: ",
              "It writes the body of a Python function from signature and docstring, in the\n"
              "format of its training (`lookuplab.toolgen.pairs`).")
MARKED = Subject(f"{_FUNCTIONS[0]}the ToolGen variant. It writes `<COMP>`, a token, where a completion tool would offer "
                 "the next identifier.", _FUNCTIONS[1], "toolgen")
BASE = Subject(f"{_FUNCTIONS[0]}the base variant, on functions without marks, which the ToolGen variant is compared "
               "with.", _FUNCTIONS[1], "toolgen")


def write_card(folder: Path, facts: dict[str, Any], subject: Subject) -> None:
    """README.md and card.json (the same facts for programs) in the model folder."""
    facts |= {"device": device(), "processor": processor(), "python": platform.python_version(),
              "versions": {name: metadata.version(name) for name in VERSIONS}}
    (folder / "card.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    recipe, left_out = facts["recipe"], facts["left_out"]
    head = {"license": facts["licence"], "library_name": "transformers" if recipe["lora_rank"] is None else "peft",
            "tags": ["code", "python", subject.tag, "lookuplab"]}
    if "@" in facts["base"]:
        head["base_model"] = facts["base"].partition("@")[0]
    counts = [("used", facts["pairs"]), *((f"left out: {reason}", n) for reason, n in left_out.items())]
    share = f"{facts['trainable']:,} weights ({facts['trainable'] / facts['parameters']:.2%})"
    trained = "All weights." if recipe["lora_rank"] is None else (
        f"LoRA of rank {recipe['lora_rank']}, alpha {recipe['lora_alpha']}: {share}, the others frozen.")
    (folder / "README.md").write_text(CARD.format(**{
        **facts, "head": yaml.safe_dump(head, sort_keys=False), "about": facts["about"] and facts["about"] + "\n\n",
        "made": subject.made, "use": subject.use, "minutes": facts["seconds"] / 60, "trained": trained,
        "counts": "\n".join(f"| {what} | {n:,} |" for what, n in counts), "losses": _losses(folder / "log.csv"),
        "recipe": json.dumps(recipe), "versions": ", ".join(f"{n} {v}" for n, v in facts["versions"].items()),
    }), encoding="utf-8")


def licence_of(base: str) -> str:
    """What the card in a base model's folder says; "other" (look at the base) where there is none."""
    card = Path(base) / "README.md"
    found = re.search(r"^license:\s*(\S+)", card.read_text(encoding="utf-8"), re.MULTILINE) if card.is_file() else None
    return found.group(1) if found else "other"


def _losses(log: Path, lines: int = 12) -> str:
    """About ``lines`` rows of the log, evenly spaced, the last one among them."""
    with log.open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    kept = rows[::-max(1, len(rows) // lines)][::-1]
    return "\n".join(f"| {row['step']} | {float(row['epoch']):.2f} | {float(row['loss']):.3f} | "
                     f"{float(row['seconds']) / 60:.1f} |" for row in kept)
