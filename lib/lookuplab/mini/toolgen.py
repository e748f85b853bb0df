"""From nothing to the saved ToolGen mini models: functions, tokenizer, pre-training, marking, fine-tuning.

Every step leaves its result in the work folder and is not repeated; within a step, a killed run goes on.
"""

import gzip
import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import AutoModelForCausalLM

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.mini.functions import code_hash, held_out_codes, package_functions
from lookuplab.mini.packages import HELD_OUT_PACKAGES
from lookuplab.toolgen import marking
from lookuplab.toolgen.functions import Filters, Function, Repository, extract, locate
from lookuplab.toolgen.pairs import Pair, encode
from lookuplab.toolgen.finetuning import Recipe

WORK = paths.RUNS / "train" / "toolgen"
MODELS = paths.MINI / "toolgen"
VOCABULARY = 4096
TOKENIZER_SHARE = 3  # the tokenizer learns its merges from every third function
FILTERS = Filters()  # the replication package's
MARKED = tuple("""
    IPython _pytest attr fsspec httpx huggingface_hub ipykernel jedi jinja2 jsonschema jupyter_client
    jupyter_server nbconvert nbformat packaging parso platformdirs pluggy pydantic pygments starlette tenacity
    tornado traitlets urllib3 uvicorn yaml
""".split())  # of the permissively licensed packages those that stay clear of torch and numpy: Jedi reads them in minutes
PER_REPOSITORY = 100  # functions, so that no package outweighs the others
ROLES = {"gpt": "CodeGPT", "t5": "CodeT5", "llama": "CodeLlama"}
VARIANTS = ("base", "toolgen")
ABOUT = (f"Functions of the packages {', '.join(MARKED)}, at most {PER_REPOSITORY} of each, marked by Jedi; "
         f"before that pre-trained on the functions of all listed packages. Held out: {', '.join(HELD_OUT_PACKAGES)}.")
CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
tags: [code, python, toolgen, lookuplab]
---
# {name}

A model of {parameters:,} parameters, pre-trained from scratch by `lookuplab train mini-toolgen` on {functions:,} Python
functions ({tokens:,} tokens, sha256 `{sha256}`) of permissively licensed packages: what the LoRA adapters of
the ToolGen mini models lie over. Not in it: the code of {held_out}.

{steps:,} steps in {seconds:.0f} seconds on a CPU that other work shared. Recipe: `{recipe}`. The whole log is `log.csv`.

It writes bodies of Python functions and is no general code assistant; run nothing of it unread. Licence: Apache-2.0.
"""


def recipe(family: str) -> Recipe:
    """As in the paper (LoRA for the Llama-type, the same batch and seed), but for rates: these models are a thousand
    times smaller and saw little before, and the paper's 5e-6 would leave them as they are."""
    shared = Recipe(epochs=4, learning_rate=1e-3, warmup_steps=0.05, precision="bf16", sampling="group_by_length")
    return replace(shared, learning_rate=4e-3, lora_rank=16, lora_alpha=16) if family == "llama" else shared


def pretraining_pairs(folder: Path) -> list[Pair]:
    """The functions of the listed packages, read once and kept in ``folder``."""
    file = folder / "functions.jsonl.gz"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        with gzip.open(part, "wt", compresslevel=1, encoding="utf-8") as stream:
            stream.writelines(json.dumps(asdict(pair)) + "\n" for pair in package_functions())
        part.rename(file)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [Pair(**json.loads(line)) for line in lines]


def tokenizer(folder: Path):
    """The tokenizer of all three families, made from ``pretraining_pairs`` and kept in ``folder``."""
    from lookuplab.mini.tokenizer import load_tokenizer, train_tokenizer

    if not (folder / "tokenizer" / "tokenizer.json").exists():
        texts = (f"{p.docstring}\n{p.signature}\n{p.body}" for p in pretraining_pairs(folder)[::TOKENIZER_SHARE])
        train_tokenizer(texts, VOCABULARY).save_pretrained(folder / "tokenizer")
    return load_tokenizer(folder / "tokenizer")


def pretrained(folder: Path, family: str, seed: int = 0) -> Path:
    """The folder of the pre-trained checkpoint of one family."""
    from lookuplab.mini import pretrain

    out = folder / family / "pretrained"
    if not (out / "card.json").exists():
        spelled = tokenizer(folder)
        kind = "encoder-decoder" if family == "t5" else "decoder"
        examples = [encode(spelled, pair, kind) for pair in tqdm(pretraining_pairs(folder), "tokenise", mininterval=2)]
        chosen = pretrain.recipe(family, seed=seed)
        model, facts = pretrain.pretrain(examples, chosen, len(spelled), folder / family)
        model.save_pretrained(out)
        spelled.save_pretrained(out)
        shutil.copyfile(folder / family / "log.csv", out / "log.csv")
        (out / "card.json").write_text(json.dumps({"recipe": asdict(chosen), "training": facts}, indent=1) + "\n")
    return out


def repositories() -> list[Repository]:
    """The packages whose functions are marked."""
    return [locate(name) for name in MARKED]


def chosen_functions(folder: Path) -> list[Function]:
    """At most PER_REPOSITORY functions of each marked package, chosen by a hash of their ids.

    Functions whose code a held-out repository holds too are left out.
    """
    spelled, held_out, seen, chosen = tokenizer(folder), held_out_codes(), set(), []
    for repository in tqdm(repositories(), "reading", unit=" repositories"):
        found = extract(repository, FILTERS, seen, lambda text: len(spelled(text)["input_ids"])).functions
        fresh = [one for one in found if code_hash(one.signature, one.body) not in held_out]
        ranked = sorted(fresh, key=lambda one: hashlib.sha256(one.id.encode()).digest())[:PER_REPOSITORY]
        chosen += sorted(ranked, key=lambda one: (one.file, one.line))
    return chosen


def marked_pairs(folder: Path, kept: Path, workers: int | None = None) -> list[Pair]:
    """The pairs of ``chosen_functions`` with their marks.

    Marks come from the file ``kept``, which is written if it is not there; marking goes on after a kill.
    """
    functions = chosen_functions(folder)
    if not kept.exists():
        marking.save(marking.marked(functions, workers=workers), kept)
    found, left_out = marking.lay_over(functions, marking.load(kept))
    if left_out:
        raise UserError(f"{kept} does not fit the sources ({dict(left_out)}); delete it to mark them anew")
    return found


def finetuned(folder: Path, out: Path, family: str, variant: str, learned: Sequence[Pair]) -> Path:
    """``out``/FAMILY-VARIANT, fine-tuned from the pre-trained checkpoint; for LoRA that lies beside it as FAMILY."""
    from lookuplab.toolgen.finetuning import finetune

    base, chosen = pretrained(folder, family), recipe(family)
    if chosen.lora_rank is not None:
        base = _beside(base, out / family)
    target = out / f"{family}-{variant}"
    if not target.exists():
        finetune(base, learned, target, chosen, marked=variant == "toolgen", half=True,
                 work=folder / target.name, about=ABOUT, licence="apache-2.0")
    return target


def _beside(base: Path, target: Path) -> Path:
    """The pre-trained model in fp16, with its card."""
    if not target.exists():
        part = target.with_name(f".{target.name}.part")
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float16)
        model.save_pretrained(part)
        tokenizer(base.parent.parent).save_pretrained(part)
        for name in ("card.json", "log.csv"):
            shutil.copyfile(base / name, part / name)
        facts = json.loads((base / "card.json").read_text())
        (part / "README.md").write_text(CARD.format(**facts["training"], recipe=json.dumps(facts["recipe"]),
                                                    name=target.name, held_out=", ".join(HELD_OUT_PACKAGES)))
        part.rename(target)
    return target
