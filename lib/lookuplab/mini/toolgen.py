"""From nothing to the saved ToolGen mini models: functions, tokenizer, pre-training, marking, fine-tuning.

Every step leaves its result in the work folder and is not repeated; within a step, a killed run goes on.
"""

import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.mini.functions import code_hash, held_out_codes, package_functions
from lookuplab.mini.packages import sources
from lookuplab.toolgen.corpus import Corpus
from lookuplab.toolgen.files import Repository
from lookuplab.toolgen.filters import Filters
from lookuplab.toolgen.pairs import Pair, encode

WORK = paths.RUNS / "train" / "toolgen"
MODELS = paths.MINI / "toolgen"
VOCABULARY = 4096
TOKENIZER_SHARE = 3  # the tokenizer learns its merges from every third function
FILTERS = Filters()  # the replication package's


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
    """The packages that the corpus of marked functions is made from: one folder for each importable package."""
    importable = metadata.packages_distributions()
    names = {source.name.lower().replace("_", "-") for source in sources() if not source.excluded}
    found = []
    for module, distributions in sorted(importable.items()):
        if names & {name.lower().replace("_", "-") for name in distributions} and module.isidentifier():
            folder = Path(metadata.distribution(distributions[0]).locate_file(module))
            if folder.is_dir() and any(folder.glob("*.py")):
                found.append(Repository(module, folder.resolve()))
    return found


def marked_corpus(folder: Path, chosen: Sequence[Repository] | None = None, workers: int | None = None) -> Corpus:
    """The marked functions of the packages, in ``folder``/marked.jsonl; resumed after a kill.

    Functions whose code a held-out repository holds too are taken out.
    """
    from lookuplab.toolgen.corpus import build

    spelled = tokenizer(folder)
    corpus = build(chosen or repositories(), folder / "marked.jsonl", FILTERS, workers=workers,
                   count_tokens=lambda text: len(spelled(text)["input_ids"]))
    held_out = held_out_codes()
    corpus.records = [r for r in corpus.records if code_hash(r["signature"], r["body"]) not in held_out]
    return corpus
