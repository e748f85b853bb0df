"""From nothing to the saved ToolGen mini models: functions, tokenizer, pre-training, marking, fine-tuning.

Every step leaves its result in the work folder and is not repeated; within a step, a killed run goes on.
"""

import gzip
import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.mini.functions import code_hash, held_out_codes, package_functions
from lookuplab.toolgen.corpus import mark_into
from lookuplab.toolgen.files import Repository, locate
from lookuplab.toolgen.filters import Filters
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.pairs import Pair, encode
from lookuplab.toolgen.recipe import Recipe

WORK = paths.RUNS / "train" / "toolgen"
MODELS = paths.MINI / "toolgen"
VOCABULARY = 4096
TOKENIZER_SHARE = 3  # the tokenizer learns its merges from every third function
FILTERS = Filters()  # the replication package's
MARKED = tuple("""
    IPython _pytest attr fsspec formulaic httpx huggingface_hub ipykernel jedi jinja2 joblib jsonschema jupyter_client
    jupyter_server nbconvert nbformat packaging parso patsy platformdirs pluggy pydantic pygments starlette tenacity
    tornado traitlets urllib3 uvicorn yaml
""".split())  # of the permissively licensed packages those that stay clear of torch and numpy: Jedi reads them in minutes
PER_REPOSITORY = 100  # functions, so that no package outweighs the others
ROLES = {"gpt": "CodeGPT", "t5": "CodeT5", "llama": "CodeLlama"}
VARIANTS = ("base", "toolgen")


def recipe(family: str) -> Recipe:
    """As in the paper (LoRA for the Llama-type, the same batch and seed), but for rates: these models are a thousand
    times smaller and saw little before, and the paper's 5e-6 would leave them as they are."""
    shared = Recipe(epochs=4, learning_rate=1e-3, warmup_steps=0.05, precision="bf16", sampling="group_by_length")
    return replace(shared, learning_rate=4e-3, lora_rank=16, lora_alpha=16) if family == "llama" else shared


def pretraining_pairs(folder: Path) -> list[Pair]:
    """The functions of the installed packages, read once and kept in ``folder``."""
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
    from lookuplab.mini.pretrain import Recipe, pretrain

    out = folder / family / "pretrained"
    if not (out / "card.json").exists():
        spelled = tokenizer(folder)
        kind = "encoder-decoder" if family == "t5" else "decoder"
        examples = [encode(spelled, pair, kind) for pair in tqdm(pretraining_pairs(folder), "tokenise", mininterval=2)]
        recipe = Recipe(family, seed=seed)
        model, facts = pretrain(examples, recipe, len(spelled), folder / family)
        model.save_pretrained(out)
        spelled.save_pretrained(out)
        (out / "card.json").write_text(json.dumps({"recipe": asdict(recipe), "training": facts}, indent=1) + "\n")
    return out


def repositories() -> list[Repository]:
    """The packages whose functions are marked."""
    return [locate(name) for name in MARKED]


def marked_corpus(folder: Path, workers: int | None = None) -> list[dict]:
    """Records (see ``toolgen.corpus``) of at most PER_REPOSITORY functions of each package, chosen by a hash of their
    ids, in ``folder``/marked.jsonl; resumed after a kill.

    Functions whose code a held-out repository holds too are left out.
    """
    spelled, held_out, seen, chosen = tokenizer(folder), held_out_codes(), set(), []
    for repository in tqdm(repositories(), "reading", unit=" repositories"):
        found = extract(repository, FILTERS, seen, lambda text: len(spelled(text)["input_ids"])).functions
        fresh = [one for one in found if code_hash(one.signature, one.body) not in held_out]
        ranked = sorted(fresh, key=lambda one: hashlib.sha256(one.id.encode()).digest())[:PER_REPOSITORY]
        chosen += sorted(ranked, key=lambda one: (one.file, one.line))
    return list(tqdm(mark_into(chosen, folder / "marked.jsonl", FILTERS, workers=workers), "marking", len(chosen),
                     unit=" functions"))
