"""Tiny bases of three architectures, and what the tests of fine-tuning do with them."""

import csv
import json
from dataclasses import replace

from lookuplab.toolgen.finetune import Recipe, finetune
from lookuplab.toolgen.pairs import Pair

KINDS_OF_MODELS = ("gpt2", "t5", "llama")
BODIES = ["    for item in <COMP>items:\n        self.<COMP>print(item)\n", "    return <COMP>x\n"]
PAIRS = [Pair(f"p{i}", "Read the file.", f"def read{i}(path):", BODIES[i % 2] * (1 + i % 3)) for i in range(40)]
RECIPE = Recipe(epochs=2, learning_rate=2e-3, batch_size=8)
LORA = replace(RECIPE, lora_rank=4, lora_dropout=0.1)


def tune(base, output, recipe=RECIPE, marked=True, pairs=PAIRS, **options):
    usual = {"work": output.parent / f"{output.name} work", "log_every": 1, "save_every": 3, "progress": False}
    return finetune(base, pairs, output, recipe, marked=marked, **(usual | options))


def log_of(folder):
    with (folder / "log.csv").open(newline="") as stream:
        return [{name: float(value) for name, value in line.items()} for line in csv.DictReader(stream)]


def weights(folder):
    (file,) = folder.glob("*.safetensors")
    return file.read_bytes()


def corpus_file(path, pairs=PAIRS):
    with path.open("w") as stream:
        for pair in pairs:
            plain = {"signature": pair.signature, "body": pair.body.replace("<COMP>", "")}
            stream.write(json.dumps({"id": pair.id, "docstring": pair.docstring, **plain,
                                     "marked_signature": pair.signature, "marked_body": pair.body}) + "\n")
    return path
