"""The code models' training corpus, and the models that learn it (data/mini/DESIGN.md).

Part (a) is the source code of Python packages. Part (b) is usage of real cloud APIs, where a hash decided at random how
often each API occurs: a randomised experiment that no paper could run. Part (c) is about invented APIs, each used once
and always documented. Nothing about those can be memorised, so the only way to lower the loss on their calls is to copy
names and arguments from the documentation; without them a small model does not learn to use documentation at all.
"""

import keyword
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, groupby, islice, pairwise, zip_longest
from pathlib import Path
from random import Random
from textwrap import indent

import pandas
from tqdm import tqdm

from lookuplab import paths
from lookuplab.cloudapi import benchmark
from lookuplab.cloudapi.benchmark import Task, frequency_class, obstacle, quotas, stable_order
from lookuplab.cloudapi.comments import VERBS, distinct_comments, intent, reword
from lookuplab.cloudapi.prompts import (
    DESIGNS,
    HEADER,
    construction,
    docstring,
    imports,
    task_prompt,
)
from lookuplab.cloudapi.specs import ApiSpec, Parameter, load_documentation, load_index
from lookuplab.mini import DRAW
from lookuplab.mini.packages import HELD_OUT_PACKAGES, licences, package_documents

MODELS = paths.MINI / "models"
TASKS = benchmark.TASKS
FURTHER = TASKS.with_name("tasks_further.jsonl.gz")
DEVELOPMENT = TASKS.with_name("tasks_development.jsonl")
# Model -> the percentage of documentation texts in which the called API is missing
ARMS = {"large": 0, "medium": 0, "small": 0, "medium-arm15": 15}
# The number of APIs in each pool: with a drawn count, and with count 0. The others are never called.
POOLS = {"asked": (500, 250), "development": (67, 33), "background": (1_500, 0)}
COUNTS = {"asked": (1, 600), "development": (1, 600), "background": (1, 10)}
N_FURTHER = 2_000  # tasks in addition to the 622
PACKAGE_CHARACTERS = 9_000_000  # about 15 % of the tokens
N_INVENTED = 20_500  # about 40 % of the tokens
DOCUMENTED = 0.25  # share of the usage texts
SHOWN = (1, 1, 1, 1, 2, 3, 4, 5)  # numbers of APIs in a documentation text, equally often
ROOM = 5_500  # characters of full documentation that leave room for the call in the 2,048 tokens of a row
TAB = "    "
LAYOUTS = ("benchmark", "script", "function", "inside", "method", "guarded")
FORMS = ("above", "end", "docstring", "name", "none")  # of a comment, in all layouts but the first
HEADERS = (
    HEADER,
    "API reference:",
    "The following APIs may be useful:",
    "Documentation of the client:",
    "See the documentation below.",
    "Relevant methods of this service:",
)
OPENINGS = """
Now
First,
Then
Next,
Here we
We need to
We have to
Step 2:
Finally,
Let us
""".strip().splitlines()
PURPOSES = """
for the nightly job
before the release
for this demo
in the staging account
for the report
as the ticket asks
once a day
for the new team
on behalf of the caller
and keep the answer
""".strip().splitlines()
TAILS = """
print(response)
print(response)
return_value = response
logger.info(response)
assert response is not None
""".strip().splitlines()
# Comments that say nothing about the API's name, which has to come from the documentation.
BLAND = """
Do the step described above
Call the API
Make the request
Use the documented operation
Carry out the next step
Perform the action
Call the service as documented
Invoke the operation
Run the step
Send the request
Handle the ticket
Finish this part of the job
Do what the caller asked for
Prepare the environment
Do the work
""".strip().splitlines()
OBJECTS = """
the {}
a {}
the specified {}
one or more {} entries
information about the {}
an existing {}
""".strip().splitlines()
PLACES = (
    "",
    "",
    " for the account",
    " in the current region",
    " that you own",
    " of the specified resource",
)
TYPES = ("string",) * 20 + tuple("integer boolean list structure map timestamp blob".split())
ABOUT = """Its purpose is a controlled world: because the corpus was written by the kit, the number of times that the
model saw each API is known exactly. The corpus: Python packages, usage of real cloud APIs, invented APIs. Not in it:
the wording of benchmark comments, the packages {held_out}, the cloud SDKs' own source, and a fifth of the docstring
examples of numpy, pandas, scipy and scikit-learn. {arm} of the documentation above usage texts lacks the API that is
called. Packages: {licences}."""


@cache
def pools() -> dict[str, dict[str, int]]:
    """Pool -> API id -> how often it is to occur: log-uniform in the pool's range, or never.

    A hash decides at random, so that frequency is not confounded with how hard an API is to call. Of the operations
    with the same name only the first can be drawn, so that counts by name are exact.
    """
    by_name: dict[str, ApiSpec] = {}
    for spec in sorted(load_index().operations, key=lambda spec: stable_order(spec.id, DRAW)):
        if not obstacle(spec, benchmark.GENERIC) and distinct_comments(spec, 1):
            by_name.setdefault(spec.name, spec)
    left, found = list(by_name.values()), {}
    for pool, sizes in POOLS.items():
        low, high = COUNTS[pool]
        found[pool] = {}
        for size, counted in zip(sizes, (True, False), strict=True):
            azure = [spec for spec in left if spec.provider == "azure"][: quotas(size)["azure"]]
            aws = [spec for spec in left if spec.provider == "aws"][: size - len(azure)]
            for spec in aws + azure:
                drawn = Random(f"count {DRAW} {spec.id}").uniform(math.log(low), math.log(high + 1))
                found[pool][spec.id] = min(high, int(math.exp(drawn))) if counted else 0
                left.remove(spec)
    return found


def build_tasks() -> dict[Path, list[Task]]:
    """File -> tasks: the 622; further ones for the same APIs with different comments; those for the
    development APIs.
    """
    index, tables = load_index(), {}
    for pool in ("asked", "development"):
        counts = pandas.Series(pools()[pool])
        named = {"count_name": counts, "count_bound": counts}
        classes = counts.map(frequency_class).astype(object)
        tables[pool] = pandas.DataFrame(named | {"class": classes})
    first = benchmark.build(index, tables["asked"], DRAW)
    known, asked = {task.comment for task in first}, Counter(task.target for task in first)

    def others(pool: str, of_an_api: int) -> list[Task]:
        dealt = []
        for api in sorted(tables[pool].index, key=lambda api: stable_order(api, DRAW + 1)):
            comments = distinct_comments(index.by_id[api], 12)
            new = [(index.by_id[api], one) for one in comments if one not in known]
            dealt.append(new[:of_an_api])
        pairs = filter(None, chain.from_iterable(zip_longest(*dealt)))
        return benchmark.tasks_of([*islice(pairs, N_FURTHER)], index, tables[pool], asked)

    return {TASKS: first, FURTHER: others("asked", 3), DEVELOPMENT: others("development", 2)}


def plain(text: str) -> str:
    """The words of a text in lower case, without punctuation, with one space before and after each."""
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


@cache
def benchmark_comments() -> dict[tuple[str, str], list[str]]:
    """The first two words -> the benchmark comments that begin with them."""
    found = defaultdict(list)
    for path in (TASKS, FURTHER, DEVELOPMENT):
        for task in benchmark.load_tasks(path):
            comment = plain(task.comment)
            found[tuple(comment.split()[:2])].append(comment)
    return found


def reserved(text: str) -> bool:
    """Whether a text contains the wording of a benchmark comment."""
    said, begun = plain(text), benchmark_comments()
    begins = set(pairwise(said.split())) & begun.keys()
    return any(comment in said for two in begins for comment in begun[two])


def words(name: str) -> list[str]:
    """The words of an identifier in any case style: ``LifecycleHookName`` -> lifecycle, hook, name."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def value(parameter: Parameter, rng: Random) -> str:
    """A plausible argument, as a developer's example would have it; strings are named after their parameter."""
    kebab, snake = "-".join(words(parameter.name)), "_".join(words(parameter.name))
    match parameter.type:
        case "integer":
            return rng.choice(("1", "10", "100", "5"))
        case "boolean":
            return rng.choice(("True", "False"))
        case "float":
            return rng.choice(("0.5", "1.0"))
        case "blob":
            return 'b"data"'
        case "timestamp":
            return '"2024-01-01"'
        case "list":
            share, text = 0.7, f'["my-{kebab}"]'
        case "structure" | "map":
            share, text = 0.6, '{"key": "value"}'
        case _:
            share, text = 0.75, f'"my-{kebab}"'
    variable = f"{snake}_value" if keyword.iskeyword(snake) else snake
    return text if rng.random() < share else variable


def call(spec: ApiSpec, rng: Random) -> str:
    """A valid invocation ``name(...)``, on one line or with one argument per line.

    It has all required arguments and sometimes one or two optional ones.
    """
    optional = [p for p in spec.parameters if not p.required and not p.kind.startswith("VAR_")]
    required = [p for p in spec.parameters if p.required]
    chosen = list(required)
    if optional and rng.random() < 0.2:
        chosen += rng.sample(optional, min(len(optional), rng.choice((1, 1, 2))))
    values = {p.name: value(p, rng) for p in chosen}
    positional = (
        spec.provider == "azure"
        and rng.random() < 0.15
        and all(p.kind == "POSITIONAL_OR_KEYWORD" for p in required)
    )
    bare = spec.required if positional else ()
    texts = [text if name in bare else f"{name}={text}" for name, text in values.items()]
    if len(texts) <= 1 or rng.random() < 0.4:
        return f"{spec.name}({', '.join(texts)})"
    inner = "".join(f"    {text},\n" for text in texts)
    return f"{spec.name}(\n{inner})"


def usage(calls: Sequence[tuple[ApiSpec, str]], rng: Random) -> str:
    """Code that creates a client and makes the given calls (API, comment) on it in turn.

    It has one of six layouts, with the first comment in one of five forms.
    """
    layout, form = rng.choice(LAYOUTS), rng.choice(FORMS)
    (spec, comment), *more = calls
    if layout == "benchmark":
        code = task_prompt(spec, comment) + f"{call(spec, rng)}\n"
        for other, said in more:
            code += f"\n# {said}\nresponse = client.{call(other, rng)}\n"
        return code + (f"{rng.choice(TAILS)}\n" if rng.random() < 0.3 else "")
    in_function = layout in ("function", "inside", "method") or form == "name"
    result = f"{rng.choice(('response', 'result', 'out'))} = "
    if in_function and not more:
        result = rng.choice(("return ", result))
    owner = "self.client" if layout == "method" else "client"
    body = f"{result}{owner}.{call(spec, rng)}"
    commented = {"above": f"# {comment}\n{body}\n", "end": f"{body}  # {comment}\n"}
    body = commented.get(form, f"{body}\n")
    for other, said in more:
        body += f"\n# {said}\n{result}{owner}.{call(other, rng)}\n"
    if layout == "guarded":
        failure = rng.choice(("raise", 'print("failed")', "pass"))
        body = f"try:\n{indent(body, TAB)}except Exception:\n{TAB}{failure}\n"
    head, made, said = imports(spec), construction(spec), ""
    if layout == "inside":
        body, made = made + body, ""
    if form == "docstring":
        said = f'"""{comment.replace(chr(92), "/")}."""\n'
    if in_function:
        name = slug(comment) if form == "name" else rng.choice(("main", "handler", "run", "task"))
        arguments = "self" if layout == "method" else ""
        body, said = f"def {name}({arguments}):\n{indent(said + body, TAB)}", ""
    if layout == "method":
        name = rng.choice(("Job", "Task", "Service", "Worker"))
        method = indent(f"def __init__(self):\n{TAB}self.{made}\n{body}", TAB)
        body, made = f"class {name}:\n{method}", ""
    return "\n".join(filter(None, (said + head, made, body)))


def slug(comment: str) -> str:
    """A function name made from the first words of a comment."""
    name = "_".join(re.findall("[a-z0-9]+", comment.lower())[:5])
    return f"do_{name}" if keyword.iskeyword(name) or not name.isidentifier() else name


def documentation(
    spec: ApiSpec, others: Sequence[ApiSpec], texts: Mapping[str, str], rng: Random
) -> str:
    """A docstring with the documentation of an API and of others, in random order and in one of the five augmentation
    designs; with as many full texts as fit.
    """
    design, shown, room = rng.choice(DESIGNS), [spec], ROOM - len(texts.get(spec.id, ""))
    for other in others:
        room -= len(texts.get(other.id, ""))
        shown += [other] if design != "full" or room >= 0 else []
    rng.shuffle(shown)
    header = rng.choice(HEADERS[1:]) if rng.random() < 2 / 3 else HEADER
    return docstring(shown, design, texts, header)


def usage_documents(counts: Mapping[str, int], arm: int = 0) -> Iterator[tuple[str, str]]:
    """(document id, text): ``counts[api]`` documents for every API, each with one call, all different.

    In ``arm`` of 100 documentation texts the called API is missing; nothing else differs between arms.
    """
    index = load_index()
    for api, count in sorted(counts.items()):
        spec, made, attempt = index.by_id[api], {}, 0
        methods = index.methods(spec.provider, spec.client, spec.service).values()
        others = [one for one in methods if one.operation and one.name != spec.name]
        while len(made) < count:
            made[_usage(spec, others, arm, f"usage {DRAW} {api} {attempt}")] = None
            attempt += 1
        yield from ((f"{api}@{number}", text) for number, text in enumerate(made))


def _usage(spec: ApiSpec, others: Sequence[ApiSpec], arm: int, key: str) -> str:
    """One document. Documentation that contains a benchmark comment's wording is shown without descriptions."""
    rng = Random(key)
    body = usage([(spec, wording(spec, rng))], rng)
    if rng.random() >= DOCUMENTED:
        return body
    near = rng.sample(others, min(len(others), rng.choice(SHOWN)))
    wrong = near and Random(f"arm {key}").random() < arm / 100
    first, *more = near if wrong else [spec, *near[1:]]
    text = documentation(first, more, load_documentation(), rng)
    if reserved(text):
        bare = [replace(one, description="") for one in (first, *more)]
        text = documentation(bare[0], bare[1:], {}, rng)
    return text + body


def wording(spec: ApiSpec, rng: Random) -> str:
    """A comment that says what the API is for and is not one of the benchmark's.

    It varies as people's comments do: with an opening, a purpose, or a word left out.
    """
    meaning = intent(spec.description)
    for _ in range(60):
        said = reword(meaning, rng, keep=0.15)
        if not reserved(said):
            break
    else:  # every plain wording is reserved: a longer one contains none of them
        said = f"{said.split()[0]} what is needed of {' '.join(said.split()[1:])}"
    comment, draw = said[0].upper() + said[1:], rng.random()
    if draw < 0.12:
        parts = comment.split()
        if len(parts) > 4:
            del parts[rng.randrange(1, len(parts))]
        comment = " ".join(parts)
    elif draw < 0.3:
        comment = f"{rng.choice(OPENINGS)} {said[0].lower()}{said[1:]}"
    elif draw < 0.5:
        comment += f" {rng.choice(PURPOSES)}"
    return said if reserved(comment) else comment


class Inventor:
    """Invents APIs that do not exist, from the words of real ones."""

    def __init__(self):
        specs = load_index().specs
        self.names = {spec.name for spec in specs}
        named = [name.split("_") for name in self.names]
        arguments = {w for spec in specs for name in spec.required for w in words(name)}
        self.verbs = sorted({parts[0] for parts in named} & set(VERBS))
        self.nouns = sorted({w for parts in named for w in parts[1:] if w.isalpha() and len(w) > 2})
        self.words = sorted(w for w in arguments if w.isalpha() and len(w) > 1)
        self.homes = sorted({(s.provider, s.service, s.client, s.module) for s in specs})

    def word(self, rng: Random) -> str:
        """A pronounceable word that does not exist."""
        syllables = (
            rng.choice("bcdfghklmnprstvz") + rng.choice("aeiou")
            for _ in range(rng.choice((2, 3, 3)))
        )
        return "".join(syllables) + rng.choice(("", "n", "r", "x"))

    def noun(self, rng: Random) -> str:
        return self.word(rng) if rng.random() < 0.12 else rng.choice(self.nouns)

    def invent(self, rng: Random, home: tuple[str, ...] = ()) -> ApiSpec:
        """An API with 0 to 12 required and 0 to 10 optional arguments; one in ten has none at all.

        It is in ``home`` (provider, service, client, module), by default in a real or an invented service.
        """
        provider, service, client, module = home or rng.choice(self.homes)
        if not home and provider == "aws" and rng.random() < 0.4:
            service = client = "-".join(self.word(rng) for _ in range(rng.choice((1, 1, 2))))
        name = ""
        while not name or name in self.names:
            verb = rng.choice(self.verbs)
            nouns = [self.noun(rng) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
            name = "_".join([verb, *nouns])
        case = "snake" if provider == "azure" else rng.choice(("camel", "lower"))
        required = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, rng.randint(7, 12)))
        total, arguments = required + rng.choice((0, 0, 1, 2, 3, 4, 5, rng.randint(6, 10))), []
        if rng.random() < 0.1:
            required = total = 0
        while len(arguments) < total:
            parts = [
                self.noun(rng) if rng.random() < 0.3 else rng.choice(self.words)
                for _ in range(rng.choice((1, 2, 2, 3)))
            ]
            camel = "".join(part.capitalize() for part in parts)
            lower = parts[0] + camel[len(parts[0]) :]
            argument = {"snake": "_".join(parts), "camel": camel, "lower": lower}[case]
            if not keyword.iskeyword(argument) and argument not in arguments:
                arguments.append(argument)
        kind = "POSITIONAL_OR_KEYWORD" if provider == "azure" else "KEYWORD_ONLY"
        parameters = tuple(
            Parameter(argument, kind, number < required, rng.choice(TYPES))
            for number, argument in enumerate(arguments)
        )
        action, what = rng.choice(VERBS[verb]), rng.choice(OBJECTS).format(" ".join(nouns))
        said = f"{action.capitalize()} {what}{rng.choice(PLACES)}."
        return ApiSpec(provider, service, client, name, parameters, description=said, module=module)

    def document(self, spec: ApiSpec, rng: Random) -> str:
        """The documentation of an API and its call; or of up to five APIs of one service, of which one or all are called."""
        home = (spec.provider, spec.service, spec.client, spec.module)
        others = [self.invent(rng, home) for _ in range(rng.choice(SHOWN) - 1)]
        text = documentation(spec, others, {one.id: page(one) for one in (spec, *others)}, rng)
        others = [one for one in others if f"API name: {one.name}\n" in text]
        called = [spec, *(others if rng.random() < 0.4 else ())]
        return text + usage([(one, hint(one, bool(others), rng)) for one in called], rng)


def hint(spec: ApiSpec, several: bool, rng: Random) -> str:
    """A comment: mostly bland; if several APIs are documented, close to the right one's description."""
    if not several and rng.random() < 0.65:
        return rng.choice(BLAND)
    verb, *nouns = spec.name.split("_")
    named = " ".join(nouns if several or len(nouns) < 2 else nouns[1:])
    action = rng.choice(VERBS[verb])
    return f"{action.capitalize()} {rng.choice(('the', 'a', 'this', 'our', 'one'))} {named}"


def page(spec: ApiSpec) -> str:
    """Documentation in the style of boto3's own pages: description, request syntax, parameters."""
    syntax = ",\n".join(f"      {p.name}='{p.type}'" for p in spec.parameters)
    request = f"  response = client.{spec.name}(" + f"\n{syntax}\n  " * bool(syntax) + ")"
    listed = "\n\n".join(
        f":type {p.name}: {p.type}\n:param {p.name}:{' [REQUIRED]' if p.required else ''}\n\n"
        f"  The {' '.join(words(p.name))}."
        for p in spec.parameters
    )
    head = f"{spec.description}\n\nSee also: AWS API Documentation\n\nRequest Syntax"
    return f"{head}\n\n{request}\n\n{listed}\n\n:rtype: dict"


def invented_documents(count: int) -> Iterator[tuple[str, str]]:
    """(document id, text) of at most ``count`` documents, each about an API that occurs in no other call."""
    inventor, used = Inventor(), set()
    for number in range(count):
        rng = Random(f"invented {DRAW} {number}")
        spec = inventor.invent(rng)
        while spec.name in used:
            spec = inventor.invent(rng)
        used.add(spec.name)
        if not reserved(text := inventor.document(spec, rng)):
            yield f"invented/{number}", text


def documents(arm: int = 0) -> Iterator[tuple[str, str]]:
    """(id, text) of the whole corpus in a fixed order. No text contains the wording of a benchmark comment."""
    yield from (one for one in package_documents(PACKAGE_CHARACTERS) if not reserved(one[1]))
    counts = chain.from_iterable(pool.items() for pool in pools().values())
    yield from usage_documents(dict(counts), arm)
    yield from invented_documents(N_INVENTED)


def train(names: Iterable[str], out: Path, seed: int = 0) -> Iterator[Path]:
    """Build the corpus and train these models on it, each into a folder in ``out``. The tokenizer is that of arm 0.

    The documentation of an invented API is random words, so it is read but not learned. If a text is too long for a
    row, its documentation loses its end.
    """
    from lookuplab.mini import training

    tokenizer = training.train_tokenizer(text for _, text in islice(documents(), 0, None, 3))
    for arm, alike in groupby(sorted(names, key=ARMS.get), ARMS.get):
        found = list(tqdm(documents(arm), "corpus", unit=" documents", mininterval=1))
        texts = []
        for key, text in found:
            documented = key.startswith("invented/") or "@" in key and text.startswith('"""')
            at = text.index('"""', 3) + 4 if documented else 0
            texts += [text[:at], text[at:] + tokenizer.eos_token]
        ids, examples = tokenizer(texts, verbose=False)["input_ids"], []
        for (key, _), read, written in zip(found, ids[::2], ids[1::2], strict=True):
            read, written = read[: max(0, training.LONG - len(written))], written[: training.LONG]
            invented = key.startswith("invented/")
            examples.append((read, written) if invented else ([], read + written))
        share = f"{arm} of 100" if arm else "None"
        about = ABOUT.format(held_out=", ".join(HELD_OUT_PACKAGES), licences=licences(), arm=share)
        for name in alike:
            recipe = training.Recipe(name.partition("-")[0], seed=seed, packed=True)
            work = paths.RUNS / "train" / name
            training.pretrain(examples, tokenizer, recipe, work, out / name, about)
            yield out / name
