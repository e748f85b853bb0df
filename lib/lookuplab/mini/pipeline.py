"""From nothing to a saved mini model: corpus text, tokenizer, token file, training, model folder with its card."""

import gzip
import json
import platform
import shutil
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.provenance import processor

WORK = paths.RUNS / "train"
MODELS = paths.MINI / "models"
FIELDS = ("part", "id", "text")  # of a document in documents.jsonl.gz
VOCABULARY = 4096
TOKENIZER_SHARE = 3  # the tokenizer learns its merges from every third document


def prepare_corpus(folder: Path, seed: int, rebuild: bool = False) -> None:
    """Write documents.jsonl.gz, tokenizer/ and the token file into ``folder``, unless they stand there for this seed."""
    from lookuplab.mini import corpus, tokens
    from lookuplab.mini.tokenizer import train_tokenizer

    mark = folder / "seed.json"
    if not rebuild and mark.exists() and json.loads(mark.read_text()) == {"seed": seed}:
        return
    mark.unlink(missing_ok=True)
    text = folder / "documents.jsonl.gz"
    count = write_documents(text, corpus.documents(seed))
    learned_from = (body for number, (_, _, body) in enumerate(read_documents(text)) if number % TOKENIZER_SHARE == 0)
    tokenizer = train_tokenizer(learned_from, VOCABULARY)
    tokenizer.save_pretrained(folder / "tokenizer")
    tokens.prepare(((part, body) for part, _, body in read_documents(text)), tokenizer, folder, count, corpus.unlearned)
    mark.write_text(json.dumps({"seed": seed}))


def write_documents(path: Path, documents: Iterable[tuple[str, str, str]]) -> int:
    """Save (part, id, text) documents, one JSON object a line, as `lookuplab data frequencies` reads them; returns how
    many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as out:
        for document in documents:
            out.write(json.dumps(dict(zip(FIELDS, document, strict=True))) + "\n")
            count += 1
    return count


def read_documents(path: Path) -> Iterator[tuple[str, str, str]]:
    """The (part, id, text) documents of a file that ``write_documents`` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            yield tuple(document[field] for field in FIELDS)


def train_and_save(folder: Path, out: Path, work: Path, **recipe) -> dict:
    """Train one size on the corpus in ``folder`` and write the model folder ``out``; ``recipe`` as ``train.Recipe``."""
    from lookuplab.mini import tokens, train
    from lookuplab.mini.card import write_card
    from lookuplab.mini.tokenizer import load_tokenizer

    if not (folder / "corpus.json").exists():
        raise UserError(f"no prepared corpus in {folder}: run `lookuplab train mini`, which builds it")
    corpus, tokenizer = tokens.load(folder), load_tokenizer(folder / "tokenizer")
    chosen = train.Recipe(**recipe)
    model, facts = train.train(corpus, chosen, len(tokenizer), work)
    if not facts["main"]:
        return facts
    out.mkdir(parents=True, exist_ok=True)
    save(model, tokenizer, out)
    shutil.copyfile(work / "log.csv", out / "log.csv")
    facts |= {"versions": {name: metadata.version(name) for name in ("torch", "transformers", "tokenizers", "accelerate")},
              "python": platform.python_version(), "processor": processor()}
    write_card(out, chosen, corpus.facts, facts)
    return facts


def save(model, tokenizer, out: Path) -> None:
    """A plain fp16 Llama folder: loads with AutoModelForCausalLM and AutoTokenizer."""
    import torch

    model = model.to("cpu", torch.float16)
    model.set_attn_implementation("sdpa")
    model.config.use_cache = True
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
