"""The ToolGen mini models from start to end: functions, tokenizer, pre-training, marking,
fine-tuning.

CodeGPT and CodeT5 were pre-trained on the functions of CodeSearchNet; this is the same on a small
scale. No training uses the code of a held-out repository, or of the classes and functions that are
held out from every other one (``split_of``). Existing files in the folders TOOLGEN_WORK and
TOOLGEN_MODELS are kept, and their steps are skipped.
"""

import ast
import hashlib
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, count, islice, product
from pathlib import Path

import click
from transformers import PreTrainedTokenizerFast

from lookuplab import paths, python_sources
from lookuplab.errors import UserError
from lookuplab.paths import write_lines
from lookuplab.python_sources import python_files
from lookuplab.run.commands import command, run_module
from lookuplab.run.commands.train import steady
from lookuplab.toolgen import marking
from lookuplab.toolgen.functions import (
    Filters,
    Function,
    definitions,
    end_of,
    extract,
    first_sentence,
    lines_of,
    locate,
)
from lookuplab.toolgen.pairs import ModelKind, Pair, encode
from lookuplab.work.progress import watched
from recipes import mini
from recipes.mini import order, training
from recipes.mini.finetuning import SETTINGS, finetuned
from recipes.mini.packages import CLOUD, HELD_OUT_PACKAGES, SKIPPED_PARTS, first_line, parsed

TOOLGEN_WORK = paths.RUNS / "train" / "toolgen"
TOOLGEN_MODELS = paths.MINI / "toolgen"
MAX_TOKENS = 256  # of prompt and answer in pre-training, of signature and body in fine-tuning
# for functions to fine-tune on; functions to generate pass the replication package's filters
LEARNED = Filters(max_model_tokens=MAX_TOKENS, max_file_lines=2000)
COPYLEFT = ("certifi", "hypothesis", "tqdm")  # not used for training
UNMARKED = ("accelerate", "transformers")  # Jedi needs a minute for ten of their functions
PER_REPOSITORY = 400  # functions per package, so that no package outweighs the others
# one in so many classes and functions is held out for tests, and one for development
HELD_OUT_ONE_IN = 20
# numbers of held-out functions in seen repositories
HELD_OUT = {"test": 150, "development": 100}
ABOUT_TOOLGEN_MODELS = (
    "Functions of the pinned sources under permissive licences (data/python-sources.txt). Held "
    f"out: the repositories {', '.join(HELD_OUT_PACKAGES)}, and from the others two in "
    f"{HELD_OUT_ONE_IN} of all classes and functions."
)


def split_of(id: str) -> str:
    """Return the split of a function: "test", "development" or "training".

    All parts of a top-level class or function have the same split.
    """
    return mini.split_of(re.sub(r"(:[^.#]*).*", r"\1", id, count=1, flags=re.S), HELD_OUT_ONE_IN)


def packages() -> list[str]:
    """Return the import names of all packages among the sources that may be used for training."""
    names = {one.name for one in python_sources.folder().iterdir() if one.is_dir()}
    return sorted(filter(str.isidentifier, names - {*HELD_OUT_PACKAGES, *COPYLEFT}))


def files_of(name: str) -> list[Path]:
    """Return a package's files, without tests, vendored code and files that mention a cloud SDK."""
    root = locate(name)
    return [
        file
        for file in python_files(root)
        if SKIPPED_PARTS.isdisjoint(file.relative_to(root).parts)
        and not CLOUD.search(file.read_text(encoding="utf-8", errors="ignore"))
    ]


@cache
def functions() -> list[Pair]:
    """Return every function of the packages, held out or not, with the files in the order of a
    hash.
    """
    place = python_sources.folder().resolve()
    found = chain(*map(files_of, packages()))
    files = {file.relative_to(place).as_posix(): file for file in found}
    listed = watched(sorted(files, key=order), "reading packages", "files")
    return [pair for path in listed for pair in file_functions(path, files[path])]


@cache
def held_out_codes() -> set[bytes]:
    """Return hashes of the code of every function that no training may use."""
    found = [pair for pair in functions() if split_of(pair.id) != "training"]
    for name in HELD_OUT_PACKAGES:
        for file in locate(name).rglob("*.py"):
            found += file_functions("", file)
    return {*map(code_hash, found)}


def training_functions() -> list[Pair]:
    """Return the functions that are not held out; equal code counts once."""
    held_out = held_out_codes()
    codes: dict[bytes, Pair] = {}
    for pair in functions():
        codes.setdefault(code_hash(pair), pair)
    return [pair for code, pair in codes.items() if code not in held_out]


def file_functions(name: str, place: Path) -> Iterator[Pair]:
    """Yield the functions of one file, with docstring "" if they have none; nothing if the file
    cannot be parsed.
    """
    text, tree = parsed(place)
    lines = lines_of(text)
    for qualified, node in definitions(tree):
        docstring = ast.get_docstring(node)
        first = node.body[0]
        alone = first is node.body[-1] and docstring is not None
        if alone or first.lineno == node.lineno:
            continue
        begin = first_line(first) if docstring is None else end_of(first, lines)[0] + 1
        signature = "".join(lines[node.lineno - 1 : first_line(first) - 1])
        if signature.rstrip().endswith(":"):  # else a comment follows the colon
            # without a comment on the last line, as in ``functions.extract``, because hashes are
            # compared
            end, column = end_of(node, lines)
            code = "".join([*lines[begin - 1 : end - 1], lines[end - 1][:column]])
            whole = textwrap.dedent(signature + code)
            at = len(textwrap.dedent(signature))
            described = first_sentence(docstring or "")
            head = whole[:at].rstrip()
            body = whole[at:].rstrip("\n")
            yield Pair(f"{name}:{qualified}#{node.lineno}", described, head, body)


def code_hash(one: Pair | Function) -> bytes:
    """Return a hash of a function's code that ignores white space."""
    return hashlib.sha256("".join(f"{one.signature}{one.body}".split()).encode()).digest()


def tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer of all three families, trained on every third function and kept in
    TOOLGEN_WORK.
    """
    if not (place := TOOLGEN_WORK / "tokenizer").exists():
        learned = training_functions()[::3]
        texts = (f"{one.docstring}\n{one.signature}\n{one.body}" for one in learned)
        training.train_tokenizer(texts).save_pretrained(place)
    return PreTrainedTokenizerFast.from_pretrained(place)


def pretrained(family: str) -> Path:
    """Return the folder of the pre-trained model of one family.

    The Llama-type model is in TOOLGEN_MODELS, because its fine-tuned models are adapters on it.
    """
    target = (TOOLGEN_MODELS if family == "llama" else TOOLGEN_WORK / "pretrained") / family
    if not target.exists():
        spelled = tokenizer()
        kind: ModelKind = "encoder-decoder" if family == "t5" else "decoder"
        examples = [  # a decoder also learns the prompt, which is code like the answer
            ((), one.prompt + one.answer) if kind == "decoder" else (one.prompt, one.answer)
            for one in encode(spelled, training_functions(), kind)
            if len(one.prompt) + len(one.answer) <= MAX_TOKENS
        ]
        recipe = training.PretrainingRecipe(family, **SETTINGS["pretraining"].get(family, {}))
        training.pretrain(
            examples, spelled, recipe, TOOLGEN_WORK / family, target, ABOUT_TOOLGEN_MODELS
        )
    return target


@cache
def usable_functions(filters: Filters) -> list[Function]:
    """Return the functions with a docstring for which Jedi answers in a reasonable time, held out
    or not.
    """
    spelled = tokenizer()
    found = []
    seen: set[tuple[str, str]] = set()

    for name in watched(sorted({*packages()} - {*UNMARKED}), "reading docstrings", "packages"):
        found += extract(
            locate(name), filters, seen, lambda text: len(spelled.tokenize(text)), files_of(name)
        ).functions
    return found


def chosen(found: Iterable[Function], most: int) -> Iterator[Function]:
    """Yield at most ``most`` functions of each package, in the order of a hash, so that the first n
    are a sample.
    """
    numbers: dict[str, Iterator[int]] = defaultdict(count)
    for one in sorted(found, key=lambda one: order(one.id)):
        if next(numbers[one.repository]) < most:
            yield one


def learned_functions() -> list[Function]:
    """Return the functions that the models are fine-tuned on, in the order of ids."""
    held_out = held_out_codes()
    fresh = (
        function
        for function in usable_functions(LEARNED)
        if split_of(function.id) == "training" and code_hash(function) not in held_out
    )
    return sorted(chosen(fresh, PER_REPOSITORY), key=lambda one: one.id)


def held_out_functions(split: str) -> list[Function]:
    """Return functions of seen repositories that no training uses, in the order of a hash."""
    found = (function for function in usable_functions(Filters()) if split_of(function.id) == split)
    return list(islice(chosen(found, PER_REPOSITORY // HELD_OUT_ONE_IN), HELD_OUT[split]))


def write_held_out() -> None:
    """Write the ids of the held-out functions, one per line, to TOOLGEN_MODELS/seen_SPLIT.txt,
    unless these files exist.
    """
    for split in HELD_OUT:
        if not (file := TOOLGEN_MODELS / f"seen_{split}.txt").exists():
            write_lines(file, [function.id for function in held_out_functions(split)])


def marked_pairs() -> list[Pair]:
    """Return the pairs of ``learned_functions`` with the marks in TOOLGEN_MODELS/marks.jsonl.gz,
    which is written if it does not exist.
    """
    functions = learned_functions()
    kept = TOOLGEN_MODELS / "marks.jsonl.gz"
    if not kept.exists():
        marking.write_marks(marking.marked_records(functions), kept)
    found = marking.apply_marks(functions, marking.read_marks(kept))
    if len(found) < len(functions):
        raise UserError(f"{kept} does not fit the sources; delete it to mark them again")
    return found


@command()
def main() -> None:
    """Train the mini models of ToolGen: three families, each fine-tuned with and without marks.

    First, the functions to hold out of seen repositories are drawn. The models are then pre-trained
    on the functions of the pinned sources, some of which Jedi marks, and fine-tuned.

    A step whose output exists is skipped: delete the output to repeat the step. If a run is killed,
    repeat the command to resume it.

    \b
    Example:
      python -m recipes.mini.toolgen
    """
    steady()
    write_held_out()
    learned = marked_pairs()
    for family, variant in product(("gpt", "t5", "llama"), ("base", "toolgen")):
        base = pretrained(family)
        target = TOOLGEN_MODELS / f"{family}-{variant}"
        about = ABOUT_TOOLGEN_MODELS
        marked = variant == "toolgen"
        click.echo(finetuned("toolgen", family, base, learned, target, about, marked))


if __name__ == "__main__":
    run_module(main)
