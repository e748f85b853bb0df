"""From nothing to the saved ToolGen mini models: functions, tokenizer, pre-training, marking, fine-tuning.

CodeGPT and CodeT5 were pre-trained on the functions of CodeSearchNet; this is the same on a small scale. Functions whose
code stands in a held-out repository are left out. What is in the folders is not made again.
"""

import ast
import hashlib
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.mini.packages import HELD_OUT_PACKAGES, PACKAGES, files_of, parsed
from lookuplab.toolgen import marking
from lookuplab.toolgen.finetuning import Recipe
from lookuplab.toolgen.functions import (
    Filters,
    Function,
    definitions,
    extract,
    first_sentence,
    locate,
)
from lookuplab.toolgen.pairs import Pair, encode

WORK = paths.RUNS / "train" / "toolgen"
MODELS = paths.MINI / "toolgen"
MAX_CHARACTERS = 1500  # of signature and body: three quarters of all functions are shorter
MAX_TOKENS = 128  # of prompt and answer
FILTERS = Filters()  # the replication package's
MARKED = tuple(
    """
    IPython _pytest attr fsspec httpx huggingface_hub ipykernel jedi jinja2 jsonschema jupyter_client
    jupyter_server nbconvert nbformat packaging parso platformdirs pluggy pydantic pygments starlette tenacity
    tornado traitlets urllib3 uvicorn yaml
    """.split()
)  # those that stay clear of torch and numpy: Jedi reads them in minutes
PER_REPOSITORY = 100  # functions, so that no package outweighs the others
VARIANTS = ("base", "toolgen")
# T5 does not divide the products of queries and keys by the root of their width, and its embeddings begin at a standard
# deviation of 1: at the others' rates it did not even learn to copy the signature.
RATES = {"t5": {"batch_tokens": 2048, "adam_rate": 0.03, "attention_rate": 0.05}}
# As in the paper (LoRA for the Llama-type, the same batch and seed), but for rates: these models are a thousand times
# smaller and saw little before, and the paper's 5e-6 would leave them as they are.
RECIPE = Recipe(
    epochs=4,
    learning_rate=1e-3,
    warmup_steps=0.05,
    bf16=True,
    group_by_length=True,
)
ADAPTED = replace(RECIPE, learning_rate=4e-3, lora_rank=16, lora_alpha=16)
HELD_OUT = f"Held out: {', '.join(HELD_OUT_PACKAGES)}."
ABOUT = (
    f"Functions of the packages {', '.join(MARKED)}, at most {PER_REPOSITORY} of each, marked by Jedi; "
    f"before that pre-trained on the functions of all listed packages. {HELD_OUT}"
)


@cache
def package_functions() -> list[Pair]:
    """Every function of the packages, each code once, in an order given by a hash of the file."""
    seen, found = held_out_codes(), []
    listed = [(f"{name}/{path}", place) for name in PACKAGES for path, place in files_of(name)]
    listed.sort(key=lambda file: hashlib.sha256(file[0].encode()).digest())
    for name, place in tqdm(listed, "reading packages", unit=" files", mininterval=1):
        for pair in file_functions(name, place):
            code = code_hash(pair.signature, pair.body)
            if code not in seen and len(pair.signature) + len(pair.body) <= MAX_CHARACTERS:
                seen.add(code)
                found.append(pair)
    return found


def held_out_codes() -> set[bytes]:
    """Hashes of the code of every held-out function."""
    files = [file for name in HELD_OUT_PACKAGES for file in locate(name).root.rglob("*.py")]
    pairs = (pair for file in files for pair in file_functions("", file))
    return {code_hash(pair.signature, pair.body) for pair in pairs}


def file_functions(name: str, place: Path) -> Iterator[Pair]:
    """The functions of one file, docstring "" where there is none; nothing from a file that cannot be parsed."""
    text, tree = parsed(place)
    lines = text.splitlines(keepends=True)
    for qualified, node in definitions(tree) if tree else ():
        docstring = ast.get_docstring(node)
        body = node.body[docstring is not None :]
        if not body or node.body[0].lineno == node.lineno:
            continue
        begin = node.body[0].end_lineno + 1 if docstring is not None else _first_line(body[0])
        signature = "".join(lines[node.lineno - 1 : _first_line(node.body[0]) - 1])
        if signature.rstrip().endswith(":"):  # else a comment is behind the colon
            code = "".join(lines[begin - 1 : node.end_lineno])
            whole, at = textwrap.dedent(signature + code), len(textwrap.dedent(signature))
            described = first_sentence(docstring) if docstring else ""
            head, tail = whole[:at].rstrip(), whole[at:].rstrip("\n")
            yield Pair(f"{name}:{qualified}#{node.lineno}", described, head, tail)


def _first_line(node: ast.stmt) -> int:
    return min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))


def code_hash(signature: str, body: str) -> bytes:
    """A hash of a function's code, whatever its whitespace."""
    return hashlib.sha256("".join(f"{signature}{body}".split()).encode()).digest()


def tokenizer(folder: Path):
    """The tokenizer of all three families, learned from every third function and kept in ``folder``."""
    from transformers import PreTrainedTokenizerFast

    from lookuplab.mini.training import train_tokenizer

    if not (folder / "tokenizer" / "tokenizer.json").exists():
        texts = (
            f"{one.docstring}\n{one.signature}\n{one.body}" for one in package_functions()[::3]
        )
        train_tokenizer(texts).save_pretrained(folder / "tokenizer")
    return PreTrainedTokenizerFast.from_pretrained(folder / "tokenizer")


def pretrained(folder: Path, out: Path, family: str) -> Path:
    """The folder of the pre-trained model of one family: for the Llama-type, whose fine-tuned ones are adapters over it,
    in ``out``.
    """
    from lookuplab.mini import training

    target = (out if family == "llama" else folder / "pretrained") / family
    if not target.exists():
        spelled, kind = tokenizer(folder), "encoder-decoder" if family == "t5" else "decoder"
        found = encode(spelled, package_functions(), kind)
        examples = [(one.prompt, one.answer) for one in found]
        if kind == "decoder":  # it learns to continue the prompt, too: that is code like the answer
            examples = [((), (*read, *written)) for read, written in examples]
        examples = [one for one in examples if len(one[0]) + len(one[1]) <= MAX_TOKENS]
        recipe = training.Recipe(family, **RATES.get(family, {}))
        about = f"The functions of permissively licensed packages. {HELD_OUT}"
        training.pretrain(examples, spelled, recipe, folder / family, target, about)
    return target


def chosen_functions(folder: Path) -> list[Function]:
    """At most PER_REPOSITORY functions of each marked package, chosen by a hash of their ids."""
    spelled, held_out, seen, chosen = tokenizer(folder), held_out_codes(), set(), []
    for name in tqdm(MARKED, "reading", unit=" repositories"):
        found = extract(
            locate(name), FILTERS, seen, lambda text: len(spelled(text)["input_ids"])
        ).functions
        fresh = [one for one in found if code_hash(one.signature, one.body) not in held_out]
        ranked = sorted(fresh, key=lambda one: hashlib.sha256(one.id.encode()).digest())
        chosen += sorted(ranked[:PER_REPOSITORY], key=lambda one: (one.file, one.line))
    return chosen


def marked_pairs(folder: Path, kept: Path) -> list[Pair]:
    """The pairs of ``chosen_functions`` with the marks of the file ``kept``, which is written if it is not there."""
    functions = chosen_functions(folder)
    if not kept.exists():
        marking.save(marking.marked(functions), kept)
    found = marking.lay_over(functions, marking.load(kept))
    if len(found) < len(functions):
        raise UserError(f"{kept} does not fit the sources; delete it to mark them anew")
    return found


def finetuned(folder: Path, out: Path, family: str, variant: str, learned: Sequence[Pair]) -> Path:
    """``out``/FAMILY-VARIANT, fine-tuned from the pre-trained model."""
    from lookuplab.toolgen.finetuning import finetune

    base, target = pretrained(folder, out, family), out / f"{family}-{variant}"
    if not target.exists():
        finetune(
            base,
            learned,
            target,
            ADAPTED if family == "llama" else RECIPE,
            marked=variant == "toolgen",
            half=True,
            work=folder / target.name,
            about=ABOUT,
            licence="apache-2.0",
        )
    return target
