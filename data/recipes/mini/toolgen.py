"""Makes the ToolGen mini models from start to end: reads functions, learns a tokenizer, pre-trains,
marks functions and fine-tunes.

CodeGPT and CodeT5 were pre-trained on the functions of CodeSearchNet, and this module does the same
on a small scale. No training uses the code of a held-out repository. From every other repository,
some classes and functions are held out, too (``split_of``). Existing files in the folders
TOOLGEN_WORK and TOOLGEN_MODELS are kept, and the steps that make them are skipped.
"""

import ast
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
from lookuplab.models.training import Recipe
from lookuplab.paths import hashed, write_lines
from lookuplab.python_sources import python_files
from lookuplab.run.cli import command, run_module
from lookuplab.run.commands.train import steady
from lookuplab.toolgen import marking
from lookuplab.toolgen.finetuning import finetune
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
from lookuplab.work import watched
from recipes import mini, tables
from recipes.mini import order, training
from recipes.mini.packages import CLOUD, HELD_OUT_PACKAGES, SKIPPED_PARTS, first_line, parsed

TOOLGEN_WORK = paths.RUNS / "train" / "toolgen"
TOOLGEN_MODELS = paths.MINI / "toolgen"
SETTINGS = tables("mini/finetuning.yaml")
# Longer functions are left out of training. The length in pre-training is the number of tokens of
# prompt and answer; in fine-tuning, it is the number of tokens of signature and body.
MAX_TOKENS = 256
# filters for the functions to fine-tune on; the functions held out for tests have to pass the
# default filters, which are those of the paper's replication package
LEARNED = Filters(max_model_tokens=MAX_TOKENS, max_file_lines=2000)
COPYLEFT = ("certifi", "hypothesis", "tqdm")  # not used for training
# not used for fine-tuning, because Jedi needs a minute for ten functions of these packages
UNMARKED = ("accelerate", "transformers")
PER_REPOSITORY = 400  # most functions per package, so that no package outweighs the others
# of this many classes and functions, one is held out for tests and another one for development
HELD_OUT_ONE_IN = 20
HELD_OUT = 150  # functions for tests, from repositories whose other functions are used for training
ABOUT_TOOLGEN_MODELS = (
    "Training data: functions of permissively licensed packages (data/python-sources.txt), "
    f"without {', '.join(HELD_OUT_PACKAGES)}, and without two in "
    f"{HELD_OUT_ONE_IN} of all other classes and functions."
)


def split_of(id: str) -> str:
    """Return the split of the function with this id: "test", "development" or "training".

    All functions inside the same top-level class or function have the same split.
    """
    return mini.split_of(re.sub(r"(:[^.#]*).*", r"\1", id, count=1, flags=re.S), HELD_OUT_ONE_IN)


def packages() -> list[str]:
    """Return the import names of all packages in the pinned sources that may be used for training:
    neither held out nor under a copyleft licence.
    """
    names = {one.name for one in python_sources.folder().iterdir() if one.is_dir()}
    return sorted(filter(str.isidentifier, names - {*HELD_OUT_PACKAGES, *COPYLEFT}))


def files_of(name: str) -> list[Path]:
    """Return the Python files of a package, without tests, vendored code and files that mention a
    cloud SDK.
    """
    root = locate(name)
    return [
        file
        for file in python_files(root)
        if SKIPPED_PARTS.isdisjoint(file.relative_to(root).parts)
        and not CLOUD.search(file.read_text(encoding="utf-8", errors="ignore"))
    ]


@cache
def functions() -> list[Pair]:
    """Return all functions of the packages for training, even the functions that are held out. They
    are sorted by a hash of their file's path.
    """
    place = python_sources.folder().resolve()
    found = chain(*map(files_of, packages()))
    files = {file.relative_to(place).as_posix(): file for file in found}
    listed = watched(sorted(files, key=order), "reading packages", "files")
    return [pair for path in listed for pair in file_functions(path, files[path])]


@cache
def held_out_codes() -> set[str]:
    """Return the hashes of the code of all functions that no training may use."""
    found = [pair for pair in functions() if split_of(pair.id) != "training"]
    for name in HELD_OUT_PACKAGES:
        for file in locate(name).rglob("*.py"):
            found += file_functions("", file)
    return {*map(code_hash, found)}


def training_functions() -> list[Pair]:
    """Return the functions that are not held out. Of several functions with the same code, only the
    first is returned.
    """
    held_out = held_out_codes()
    codes: dict[str, Pair] = {}
    for pair in functions():
        codes.setdefault(code_hash(pair), pair)
    return [pair for code, pair in codes.items() if code not in held_out]


def file_functions(name: str, place: Path) -> Iterator[Pair]:
    """Yield the functions of the file at ``place``. ``name`` is the path of the file in the ids of
    the functions. A function without a docstring has the docstring "". A file that cannot be parsed
    gives no functions.
    """
    text, tree = parsed(place)
    lines = lines_of(text)
    for qualified, node in definitions(tree):
        docstring = ast.get_docstring(node)
        first = node.body[0]
        alone = first is node.body[-1] and docstring is not None
        # left out: a function with only a docstring, and a function on one line, because it has no
        # line where the body begins
        if alone or first.lineno == node.lineno:
            continue
        begin = first_line(first) if docstring is None else end_of(first, lines)[0] + 1
        signature = "".join(lines[node.lineno - 1 : first_line(first) - 1])
        # a signature with a comment after its colon is left out
        if signature.rstrip().endswith(":"):
            # A comment on the last line is cut off, as in ``functions.extract``. Otherwise the same
            # function would have two different hashes (``code_hash``).
            end, column = end_of(node, lines)
            code = "".join([*lines[begin - 1 : end - 1], lines[end - 1][:column]])
            whole = textwrap.dedent(signature + code)
            at = len(textwrap.dedent(signature))
            described = first_sentence(docstring or "")
            head = whole[:at].rstrip()
            body = whole[at:].rstrip("\n")
            yield Pair(f"{name}:{qualified}#{node.lineno}", described, head, body)


def code_hash(one: Pair | Function) -> str:
    """Return a hash of a function's code that ignores white space."""
    return hashed("".join(f"{one.signature}{one.body}".split()))


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer of all three families, trained on every third training function."""
    learned = training_functions()[::3]
    return training.train_tokenizer(
        f"{one.docstring}\n{one.signature}\n{one.body}" for one in learned
    )


def pretrained(family: str) -> Path:
    """Return the folder of the pre-trained model of a family, "gpt", "t5" or "llama". The model is
    trained if the folder does not exist.

    The Llama-type model is kept in TOOLGEN_MODELS, because the models fine-tuned from it are
    adapters, which cannot be loaded without it.
    """
    target = (TOOLGEN_MODELS if family == "llama" else TOOLGEN_WORK / "pretrained") / family
    if not target.exists():
        spelled = tokenizer()
        kind: ModelKind = "encoder-decoder" if family == "t5" else "decoder"
        # a decoder learns to write the prompt, too, because the prompt is code like the answer
        examples = [
            ((), one.prompt + one.answer) if kind == "decoder" else (one.prompt, one.answer)
            for one in encode(spelled, training_functions(), kind)
            if len(one.prompt) + len(one.answer) <= MAX_TOKENS
        ]
        recipe = training.PretrainingRecipe(family, **SETTINGS["pretraining"].get(family, {}))
        training.pretrain(
            examples, spelled, recipe, TOOLGEN_WORK / family, target, ABOUT_TOOLGEN_MODELS
        )
    return target


def usable_functions(filters: Filters) -> list[Function]:
    """Return the functions that have a docstring and pass the filters, including those that are
    held out. Packages for which Jedi takes too long (UNMARKED) are left out.
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
    """Yield at most ``most`` functions of each package, in the order of a hash. For any n, the
    first n functions are therefore a random sample.
    """
    numbers: dict[str, Iterator[int]] = defaultdict(count)
    for one in sorted(found, key=lambda one: order(one.id)):
        if next(numbers[one.repository]) < most:
            yield one


def learned_functions() -> list[Function]:
    """Return the functions that the models are fine-tuned on, in the order of their ids."""
    held_out = held_out_codes()
    fresh = (
        function
        for function in usable_functions(LEARNED)
        if split_of(function.id) == "training" and code_hash(function) not in held_out
    )
    return sorted(chosen(fresh, PER_REPOSITORY), key=lambda one: one.id)


def held_out_functions() -> list[Function]:
    """Return the functions for tests, in the order of a hash. No training uses these functions, but
    training uses other functions of their repositories.
    """
    found = (one for one in usable_functions(Filters()) if split_of(one.id) == "test")
    return list(islice(chosen(found, PER_REPOSITORY // HELD_OUT_ONE_IN), HELD_OUT))


def marked_pairs() -> list[Pair]:
    """Return the ``learned_functions`` as pairs with marks. The marks are read from
    TOOLGEN_MODELS/marks.jsonl.gz; if this file does not exist, the functions are marked, and the
    file is written. Raises UserError if the file lacks some of the functions.
    """
    functions = learned_functions()
    kept = TOOLGEN_MODELS / "marks.jsonl.gz"
    if not kept.exists():
        marking.write_marks(marking.marked_records(functions), kept)
    found = marking.apply_marks(functions, marking.read_marks(kept))
    if len(found) < len(functions):
        raise UserError(f"{kept} does not fit the sources; delete it to mark the functions again")
    return found


@command()
def main() -> None:
    """Train the mini models of ToolGen: three families, each fine-tuned with and without marks.

    First, some functions of the repositories for training are drawn and held out. Then Jedi marks
    the functions for fine-tuning. The models are pre-trained on the functions of the pinned sources
    and fine-tuned.

    A step whose output exists is skipped: delete the output to repeat the step. If a run is killed,
    repeat the command to resume it.

    \b
    Example:
      python -m recipes.mini.toolgen
    """
    steady()
    if not (file := TOOLGEN_MODELS / "seen_test.txt").exists():
        write_lines(file, [function.id for function in held_out_functions()])
    learned = marked_pairs()
    for family, variant in product(("gpt", "t5", "llama"), ("base", "toolgen")):
        base = pretrained(family)
        target = TOOLGEN_MODELS / f"{family}-{variant}"
        if not target.exists():
            finetune(
                base,
                learned,
                target,
                Recipe(**SETTINGS["toolgen"][family]),
                marked=variant == "toolgen",
                half=True,
                save_every=50,
                about=ABOUT_TOOLGEN_MODELS,
                licence="apache-2.0",
            )
        click.echo(target)


if __name__ == "__main__":
    run_module(main)
