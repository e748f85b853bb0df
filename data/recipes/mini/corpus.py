"""Makes the code models' training corpus and trains the models (data/mini/DESIGN.md).

Part (a) of the corpus is the source code of Python packages. Part (b) is usage of real cloud APIs.
How often each API occurs was drawn at random. So the effect of this frequency can be measured in a
randomised experiment, which no paper could run. Part (c) is about invented APIs, each of which is
used once and always documented. A model cannot memorise them, so the only way to lower the loss on
their calls is to copy names and arguments from the documentation. Without part (c), a small model
does not learn to use documentation at all.
"""

import keyword
import math
import re
from array import array
from collections import ChainMap, Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise
from operator import attrgetter
from pathlib import Path
from random import Random
from textwrap import indent
from typing import Literal

import click
import pandas

from lookuplab import paths
from lookuplab.cloudapi.prompts import (
    DESIGNS,
    HEADER,
    construction,
    docstring,
    imports,
    invocation,
    task_prompt,
)
from lookuplab.cloudapi.specs import ApiSpec, Parameter, load_documentation, load_index
from lookuplab.cloudapi.tasks import (
    TASKS,
    ApiTask,
    frequency_class,
    interleave,
    load_tasks,
    stable_order,
)
from lookuplab.paths import write_lines
from lookuplab.retrieval.rankers import identifier_words
from lookuplab.run.cli import command, run_module
from lookuplab.run.commands.train import steady
from lookuplab.work import watched
from recipes.cloudapi.comments import VERBS, intent, reword, wordings
from recipes.cloudapi.tasks import GENERIC, build, obstacle, quotas, tasks_of, write_tasks
from recipes.mini import DRAW, WORDINGS, order
from recipes.mini.packages import HELD_OUT_PACKAGES, licences, package_documents

CODE_MODELS = paths.MINI / "models"
FURTHER = TASKS.with_name("tasks_further.jsonl.gz")
DEVELOPMENT_TASKS = TASKS.with_name("tasks_development.jsonl")
# Maps each model to its arm, a percentage. The documentation in a usage text is wrong if it is only
# about APIs that the text does not call. The arm says how many of the documented usage texts have
# wrong documentation.
ARMS = {"large": 0, "medium": 0, "small": 0, "medium-arm15": 15}
# pool -> (number of APIs with a drawn count, number of APIs with count 0); the corpus never calls
# an API that is in no pool
POOLS = {"asked": (500, 250), "development": (67, 33), "background": (1_500, 0)}
HIGHEST_COUNT = {"asked": 600, "development": 600, "background": 10}  # drawn counts begin at 1
N_FURTHER = 2_000  # number of tasks in addition to the benchmark's 622
PACKAGE_CHARACTERS = 9_000_000  # size of part (a), about 15% of the corpus's tokens
N_INVENTED = 20_500  # number of documents in part (c), about 40% of the corpus's tokens
DOCUMENTED = 0.25  # share of the usage texts that have documentation above the code
DOCUMENTED_APIS = WORDINGS["documented_apis"]
# the largest size of full documentation, in characters; a row has 2,048 tokens, and the call below
# the documentation must fit in, too
ROOM = 5_500
TAB = "    "
# the types of invented arguments; most are strings, as in the SDKs
TYPES = ["string"] * 20 + WORDINGS["types"]
ABOUT_PACKAGES = (
    "# Packages whose source code and docstrings the mini models learned from, with their licences"
)
ABOUT_CODE_MODELS = """The kit wrote the corpus, so it is known exactly how
often the model saw each API. The corpus has Python packages, calls of real cloud APIs and invented APIs. It leaves out
the benchmark's comments, the packages {held_out}, the cloud SDKs' source, and a fifth of the docstring
examples of numpy, pandas, scipy and scikit-learn. Some calls have documentation above them; {arm} of it lacks
the API that is called. `../PACKAGES.md` lists the packages."""  # noqa: E501  # the committed cards have these lines


@cache
def pools() -> dict[str, dict[str, int]]:
    """Return {pool: {API id: number of occurrences in the corpus}}. The number is 0, or drawn
    log-uniformly from 1 to HIGHEST_COUNT.

    A hash decides at random, so that frequency is not confounded with how hard an API is to call.
    Of several operations with the same name, only the first can be drawn, so that counts by name
    are exact.
    """
    by_name = {}
    for spec in sorted(load_index().operations, key=lambda spec: order(spec.id)):
        if spec.name not in by_name and not obstacle(spec, GENERIC) and any(wordings(spec, 1)):
            by_name[spec.name] = spec
    found: dict[str, dict[str, int]] = defaultdict(dict)
    # all pools take their APIs from the same two iterators, so that no API is in two pools
    aws, azure = (
        iter([one.id for one in by_name.values() if one.provider == cloud])
        for cloud in ("aws", "azure")
    )
    for pool, sizes in POOLS.items():
        for size, counted in zip(sizes, (True, False), strict=True):
            second = [*islice(azure, quotas(size)["azure"])]
            for api in (*islice(aws, size - len(second)), *second):
                rng = Random(f"count {DRAW} {api}")
                top = math.log(HIGHEST_COUNT[pool] + 1)
                found[pool][api] = int(math.exp(rng.uniform(0, top))) if counted else 0
    return found


def build_tasks() -> dict[Path, list[ApiTask]]:
    """Return {file: tasks} for three files: the 622 tasks of the benchmark; further tasks for the
    same APIs with different comments; and tasks for the development APIs.
    """
    index = load_index()
    tables = {}
    for pool, counts in pools().items():
        tables[pool] = table = pandas.DataFrame({"count_name": counts, "count_bound": counts})
        table["class"] = table.count_name.map(frequency_class).astype(object)
    first = build(index, tables["asked"], DRAW)
    known = {task.comment for task in first}
    asked = Counter(task.target for task in first)

    def others(pool: str, of_an_api: int) -> list[ApiTask]:
        dealt = []
        for api in sorted(tables[pool].index, key=lambda api: stable_order(api, DRAW + 1)):
            spec = index.by_id[api]
            new = ((spec, one) for one in wordings(spec, 12) if one not in known)
            dealt.append([*islice(new, of_an_api)])
        return tasks_of(interleave(dealt)[:N_FURTHER], index, tables[pool], asked)

    return {TASKS: first, FURTHER: others("asked", 3), DEVELOPMENT_TASKS: others("development", 2)}


def plain(text: str) -> str:
    """Return the words of a text in lower case, without punctuation. There is a space before and
    after each word, so that ``in`` finds whole words only.
    """
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


@cache
def benchmark_comments() -> dict[tuple[str, ...], list[str]]:
    """Return {first two words: comments of the mini tasks that begin with these words}. The
    comments are in the form that ``plain`` returns.
    """
    found = defaultdict(list)
    for path in (TASKS, FURTHER, DEVELOPMENT_TASKS):
        for task in load_tasks(path):
            comment = plain(task.comment)
            found[tuple(comment.split()[:2])].append(comment)
    return found


def reserved(text: str) -> bool:
    """Return whether a text contains the comment of a mini task, whatever its case and
    punctuation.
    """
    words = plain(text)
    begun = benchmark_comments()
    begins = {*pairwise(words.split())} & begun.keys()
    return any(comment in words for two in begins for comment in begun[two])


def value(parameter: Parameter, rng: Random) -> str:
    """Return the source of an argument that a developer may write in an example: a constant, such
    as a string with the parameter's name in it, or a variable that is named like the parameter.
    """
    known = WORDINGS["values"]
    share, texts = known.get(parameter.type, known[""])
    snake = "_".join(identifier_words(parameter.name, "apart"))
    if share == 1 or rng.random() < share:
        text = str(rng.choice(texts) if len(texts) > 1 else texts[0])
        return text.replace("NAME", snake.replace("_", "-"))
    return f"{snake}_value" if keyword.iskeyword(snake) else snake


def call(spec: ApiSpec, rng: Random) -> str:
    """Return a valid call ``name(...)`` of an API, on one line or with one argument per line.

    The call has all required arguments, and sometimes one or two optional arguments.
    """
    optional = [p for p in spec.parameters if not p.required and not p.kind.startswith("VAR_")]
    chosen = required = [p for p in spec.parameters if p.required]
    if optional and rng.random() < 0.2:
        chosen = required + rng.sample(optional, min(len(optional), rng.choice((1, 1, 2))))
    values = {p.name: value(p, rng) for p in chosen}
    bare: tuple[str, ...] = ()  # the arguments that are passed without their names
    if spec.provider == "azure" and rng.random() < 0.15:
        bare = spec.required if {p.kind for p in required} <= {"POSITIONAL_OR_KEYWORD"} else ()
    texts = [text if name in bare else f"{name}={text}" for name, text in values.items()]
    if len(texts) > 1 and rng.random() < 0.4:
        texts = [", ".join(texts)]
    return invocation(spec.name, texts)


def usage(calls: Sequence[tuple[ApiSpec, str]], rng: Random) -> str:
    """Return code that creates a client and then calls APIs on it. ``calls`` are pairs (API,
    comment that says what the call is for).

    One of six layouts is chosen at random for the code, and one of five forms for the first
    comment.
    """
    layout, form = rng.choice(WORDINGS["layouts"]), rng.choice(WORDINGS["forms"])
    (spec, comment), *more = calls

    def following(start: str) -> str:
        return "".join(f"\n# {said}\n{start}{call(other, rng)}\n" for other, said in more)

    if layout == "benchmark":
        code = f"{task_prompt(spec, comment)}{call(spec, rng)}\n{following('response = client.')}"
        return code + (f"{rng.choice(WORDINGS['tails'])}\n" if rng.random() < 0.3 else "")
    in_function = layout in ("function", "inside", "method") or form == "name"
    start = f"{rng.choice(WORDINGS['results'])} = "
    if in_function and not more:
        start = rng.choice(("return ", start))
    start += "self.client." if layout == "method" else "client."
    first = f"{start}{call(spec, rng)}"
    commented = {"above": f"# {comment}\n{first}\n", "end": f"{first}  # {comment}\n"}
    body = commented.get(form, f"{first}\n") + following(start)
    if layout == "guarded":
        failure = rng.choice(WORDINGS["failures"])
        body = f"try:\n{indent(body, TAB)}except Exception:\n{TAB}{failure}\n"
    head, made = imports(spec), construction(spec)
    if layout == "inside":
        body = made + body
        made = ""
    said = f'"""{comment}."""\n' if form == "docstring" else ""
    if in_function:
        name = "_".join(re.findall("[a-z0-9]+", comment.lower())[:5])
        if form != "name":
            name = rng.choice(WORDINGS["functions"])
        arguments = "self" if layout == "method" else ""
        body = f"def {name}({arguments}):\n{indent(said + body, TAB)}"
        said = ""
    if layout == "method":
        name = rng.choice(WORDINGS["classes"])
        method = indent(f"def __init__(self):\n{TAB}self.{made}\n{body}", TAB)
        body = f"class {name}:\n{method}"
        made = ""
    return "\n".join(filter(None, (said + head, made, body)))


def documentation(specs: Sequence[ApiSpec], texts: Mapping[str, str], rng: Random) -> str:
    """Return a docstring with the documentation of APIs in random order, in one of the paper's five
    augmentation designs, chosen at random.

    ``texts`` maps API ids to full texts, which only the design ``full`` shows. This design always
    includes the first API. The next APIs are included as long as all texts together have at most
    ROOM characters.
    """
    design = rng.choice(DESIGNS)
    room = ROOM
    shown: list[ApiSpec] = []
    for spec in specs:
        room -= len(texts.get(spec.id, ""))
        if not shown or design != "full" or room >= 0:
            shown.append(spec)
    rng.shuffle(shown)
    header = rng.choice(WORDINGS["headers"]) if rng.random() < 2 / 3 else HEADER
    return docstring(shown, design, texts, header)


def usage_documents(counts: Mapping[str, int], arm: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (document id, text) for ``counts[api]`` different documents about every API. Each
    document calls the API once, and a share DOCUMENTED of the documents begins with documentation.

    In ``arm`` percent of the documents with documentation, the documentation is only about other
    APIs than the called one. Nothing else depends on ``arm``. If the documentation contains the
    wording of a benchmark comment, the APIs are documented without their descriptions.
    """
    index = load_index()
    for api, count in sorted(counts.items()):
        spec = index.by_id[api]
        attempt = 0
        made: dict[str, None] = {}
        methods = index.methods(spec.provider, spec.client, spec.service).values()
        others = [method for method in methods if method.operation and method.name != spec.name]
        while len(made) < count:
            key = f"usage {DRAW} {api} {attempt}"
            rng = Random(key)
            text = usage([(spec, wording(spec, rng))], rng)
            if rng.random() < DOCUMENTED:
                near = rng.sample(others, min(len(others), rng.choice(DOCUMENTED_APIS)))
                wrong = near and Random(f"arm {key}").random() < arm / 100
                shown = near if wrong else [spec, *near[1:]]
                above = documentation(shown, load_documentation(), rng)
                if reserved(above):
                    bare = [replace(one, description="") for one in shown]
                    above = documentation(bare, {}, rng)
                text = above + text
            made[text] = None
            attempt += 1
        yield from ((f"{api}@{number}", text) for number, text in enumerate(made))


def wording(spec: ApiSpec, rng: Random) -> str:
    """Return a comment that says what an API is for and differs from the benchmark's comments.

    Comments vary as people's comments do: some begin with an opening ("We need to"), some end with
    a purpose ("for the report"), and some lack a word.
    """
    meaning = intent(spec.description)
    assert meaning, f"{spec.id}: nothing says what it does"
    for _ in range(60):
        said = reword(meaning, rng, keep=0.15)
        if not reserved(said):
            break
    else:  # every wording is reserved; one is made longer, so that it contains no reserved wording
        said = said.replace(" ", " what is needed of ", 1)
    comment = said[0].upper() + said[1:]
    draw = rng.random()
    if draw < 0.12:
        parts = comment.split()
        if len(parts) > 4:
            del parts[rng.randrange(1, len(parts))]
        comment = " ".join(parts)
    elif draw < 0.3:
        comment = f"{rng.choice(WORDINGS['openings'])} {said[0].lower()}{said[1:]}"
    elif draw < 0.5:
        comment += f" {rng.choice(WORDINGS['purposes'])}"
    return said if reserved(comment) else comment


# where an API belongs; an invented API may be given the home of a real one
HOME = attrgetter("provider", "service", "client", "module")


def invented_word(rng: Random) -> str:
    """Return a pronounceable word that does not exist."""
    parts = ["bcdfghklmnprstvz", "aeiou"] * rng.choice((2, 3, 3))
    return "".join(map(rng.choice, [*parts, ("", "n", "r", "x")]))


def words(found: Iterable[str], shortest: int) -> list[str]:
    """Return the words in ``found`` that consist of letters and have at least ``shortest`` of them.
    The words are in alphabetical order.
    """
    return sorted(word for word in found if word.isalpha() and len(word) >= shortest)


def inventor() -> Callable[..., ApiSpec]:
    """Return a function that invents APIs that do not exist, from the words of real ones."""
    specs = load_index().specs
    names = {spec.name for spec in specs}
    named = [name.split("_") for name in names]
    verbs = sorted({verb for verb, *_ in named if verb in VERBS})
    nouns = words({word for _, *parts in named for word in parts}, 3)
    required = {name for spec in specs for name in spec.required}
    others = words({word for name in required for word in identifier_words(name, "apart")}, 2)
    homes = sorted(set(map(HOME, specs)))

    def noun(rng: Random) -> str:
        return invented_word(rng) if rng.random() < 0.12 else rng.choice(nouns)

    def invent(rng: Random, home: tuple[str, ...] = ()) -> ApiSpec:
        """Return an invented API with 0 to 12 required and 0 to 10 optional arguments. One API in
        ten has no arguments at all.

        The API belongs to ``home`` (provider, service, client, module), or by default to a random
        service, which may be a real or an invented one.
        """
        provider, service, client, module = home or rng.choice(homes)
        if not home and provider == "aws" and rng.random() < 0.4:
            service = client = "-".join(invented_word(rng) for _ in range(rng.choice((1, 1, 2))))
        name = ""
        while not name or name in names:
            verb = rng.choice(verbs)
            about = [noun(rng) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
            name = "_".join([verb, *about])
        case = "snake" if provider == "azure" else rng.choice(("camel", "lower"))
        required = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, rng.randint(7, 12)))
        total = required + rng.choice((0, 0, 1, 2, 3, 4, 5, rng.randint(6, 10)))
        arguments: list[str] = []
        if rng.random() < 0.1:
            required = total = 0
        while len(arguments) < total:
            parts = [
                noun(rng) if rng.random() < 0.3 else rng.choice(others)
                for _ in range(rng.choice((1, 2, 2, 3)))
            ]
            camel = "".join(map(str.capitalize, parts))
            lower = parts[0] + camel[len(parts[0]) :]
            argument = {"snake": "_".join(parts), "camel": camel, "lower": lower}[case]
            if not keyword.iskeyword(argument) and argument not in arguments:
                arguments.append(argument)
        kind = "POSITIONAL_OR_KEYWORD" if provider == "azure" else "KEYWORD_ONLY"
        parameters = tuple(
            Parameter(argument, kind, number < required, rng.choice(TYPES))
            for number, argument in enumerate(arguments)
        )
        choices = VERBS[verb], WORDINGS["objects"], WORDINGS["places"]
        action, what, where = map(rng.choice, choices)
        said = f"{action.capitalize()} {what}{where}.".format(" ".join(about))
        return ApiSpec(provider, service, client, name, parameters, description=said, module=module)

    return invent


def hint(spec: ApiSpec, several: bool, rng: Random) -> str:
    """Return a comment for the call of the invented API ``spec``. If ``several`` APIs are
    documented, the comment contains the nouns of the API's name, so that a model can tell which API
    to call. If only one API is documented, most comments are bland and say nothing about it.
    """
    if not several and rng.random() < 0.65:
        return str(rng.choice(WORDINGS["bland"]))
    verb, *nouns = spec.name.split("_")
    named = " ".join(nouns if several or len(nouns) < 2 else nouns[1:])
    action = rng.choice(VERBS[verb])
    return f"{action.capitalize()} {rng.choice(('the', 'a', 'this', 'our', 'one'))} {named}"


def page(spec: ApiSpec) -> str:
    """Return documentation of an API in the style of boto3's own pages, with description, request
    syntax and parameters.
    """
    syntax = ",\n".join(f"      {p.name}='{p.type}'" for p in spec.parameters)
    inside = f"\n{syntax}\n  " if syntax else ""
    request = f"  response = client.{spec.name}({inside})"
    listed = "\n\n".join(
        f":type {p.name}: {p.type}\n:param {p.name}:{' [REQUIRED]' if p.required else ''}\n\n"
        f"  The {' '.join(identifier_words(p.name, 'apart'))}."
        for p in spec.parameters
    )
    head = f"{spec.description}\n\nSee also: AWS API Documentation\n\nRequest Syntax"
    return f"{head}\n\n{request}\n\n{listed}\n\n:rtype: dict"


def invented_documents(count: int) -> Iterator[tuple[str, str]]:
    """Yield (document id, text) of at most ``count`` documents. Each document is about an invented
    API that no other document is about.

    A text has the documentation of this API and a call of it. Some texts also have documentation of
    other invented APIs of the same service, and some of these texts call the other APIs, too.
    """
    invent, used = inventor(), set()
    for number in range(count):
        rng = Random(f"invented {DRAW} {number}")
        spec = invent(rng)
        while spec.name in used:
            spec = invent(rng)
        used.add(spec.name)
        others = [invent(rng, HOME(spec)) for _ in range(rng.choice(DOCUMENTED_APIS) - 1)]
        pages = {one.id: page(one) for one in (spec, *others)}
        text = documentation([spec, *others], pages, rng)
        others = [other for other in others if f"API name: {other.name}\n" in text]
        called = [spec, *(others if rng.random() < 0.4 else ())]
        text += usage([(one, hint(one, bool(others), rng)) for one in called], rng)
        if not reserved(text):
            yield f"invented/{number}", text


def documents(arm: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (id, text) of the whole corpus in a fixed order. No text contains the wording of a
    benchmark comment.
    """
    yield from (
        document for document in package_documents(PACKAGE_CHARACTERS) if not reserved(document[1])
    )
    yield from usage_documents(ChainMap(*pools().values()), arm)
    yield from invented_documents(N_INVENTED)


def train(names: Iterable[str], out: Path, seed: int = 0) -> Iterator[Path]:
    """Build the corpus, train the models called ``names`` on it, and yield their folders in
    ``out``. All models have the tokenizer that is learned from the corpus of arm 0 (see ARMS).

    The loss leaves out the documentation of invented APIs, because its words are random. If a text
    is too long for a row, the end of its documentation is cut off.
    """
    from recipes.mini import training

    # every third text is enough for the tokenizer
    tokenizer = training.train_tokenizer(text for _, text in islice(documents(), 0, None, 3))
    for name in names:
        examples = []
        for key, text in watched(documents(ARMS[name]), f"corpus of {name}", "texts"):
            invented = key.startswith("invented/")
            documented = invented or ("@" in key and text.startswith('"""'))
            at = text.index('"""', 3) + 4 if documented else 0
            both = [text[:at], text[at:] + tokenizer.eos_token]
            read, written = tokenizer(both, verbose=False)["input_ids"]
            read = read[: max(0, training.LONG - len(written))]
            written = written[: training.LONG]
            pair = (read, written) if invented else ([], read + written)
            # an array takes four bytes per token, a list up to 36
            examples.append((array("i", pair[0]), array("i", pair[1])))
        share = f"{ARMS[name]}%" if ARMS[name] else "none"
        about = ABOUT_CODE_MODELS.format(held_out=", ".join(HELD_OUT_PACKAGES), arm=share)
        recipe = training.PretrainingRecipe(name.partition("-")[0], seed=seed, packed=True)
        work = paths.RUNS / "train" / f"{name}-{seed}"
        training.pretrain(examples, tokenizer, recipe, work, out / name, about)
        yield out / name


@command()
def main(
    step: Literal["tasks", "models"],
    *,
    size: Literal["all", "large", "medium", "small", "medium-arm15"] = "all",
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Draw the mini profile's tasks (STEP tasks), or train the mini code models (STEP models).

    The tasks are the benchmark's 622 tasks, further tasks about the same APIs, and the development
    tasks. A task's frequency is the number of calls of its API in the corpus. The command rewrites
    the files in data/mini/cloudapi.

    The models are written as folders with their cards. There are three sizes, and one further model
    (medium-arm15): in its corpus, 15% of the documentation above usage texts is only about APIs
    that the text does not call. If a run is killed, repeat the command to resume from the last
    checkpoint. Losses are written to runs/train/SIZE-SEED/log.csv.

    \b
    Examples:
      python -m recipes.mini.corpus tasks
      python -m recipes.mini.corpus models                          all of them
      python -m recipes.mini.corpus models --size small --seed 1 --out runs/other

    Args:
        size: The model to train (STEP models).
        seed: Random seed of the weights and of the order of the data (STEP models).
        out: Parent of the model folders [default: in data/mini].
    """
    if step == "tasks":
        for path, tasks in build_tasks().items():
            write_tasks(tasks, path)
            apis = {task.target for task in tasks}
            click.echo(f"{len(tasks)} tasks of {len(apis)} APIs -> {path}")
        return
    steady()
    write_lines((out or CODE_MODELS) / "PACKAGES.md", [ABOUT_PACKAGES, "", licences()])
    for model in train(
        ARMS if size == "all" else [size], paths.make_folder(out or CODE_MODELS), seed
    ):
        click.echo(model)


if __name__ == "__main__":
    run_module(main)
