"""The code models' training corpus, and the models that learn it.

Part (a) is the source of Python packages. Part (b) are usage documents of real cloud APIs, each API exactly as often as
a hash decided: a randomised experiment that no paper could run. Part (c) are documents about invented APIs, each used
once and always documented. Nothing about those can be memorised, so the only way to lower the loss on their calls is to
copy names and arguments from the documentation; without them a small model does not learn to use documentation at all.
"""

import keyword
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path
from random import Random

from tqdm import tqdm

from lookuplab import paths
from lookuplab.cloudapi.benchmark import load_tasks, stable_order, unambiguous
from lookuplab.cloudapi.comments import VERBS, intent, reword
from lookuplab.cloudapi.prompts import construction, docstring, imports, task_prompt
from lookuplab.cloudapi.specs import ApiSpec, Parameter, load_documentation, load_index
from lookuplab.mini.packages import HELD_OUT_PACKAGES, licences, package_documents

MODELS = paths.MINI / "models"
PACKAGE_CHARACTERS = 7_000_000  # about 15 % of the tokens
N_INVENTED = 29_000  # about 40 % of the tokens
# APIs per class and provider; every other API of the index never occurs (count 0, which is low).
POOLS = {
    "high": {"aws": 90, "azure": 45},
    "medium": {"aws": 110, "azure": 55},
    "low": {"aws": 1500, "azure": 300},
}
RANGES = {"high": (101, 600), "medium": (11, 100), "low": (1, 10)}
DESIGN_WEIGHTS = {  # of documentation: the paper's favourites more often
    "name": 10,
    "description": 10,
    "specification": 30,
    "description_specification": 38,
    "full": 12,
}
FULL_CHARACTERS = 1_200  # of documentation, so that the call stays within a training sequence
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
the wording of benchmark comments, the packages {held_out}, the cloud SDKs' own source, and a tenth of the docstring
examples of numpy, pandas, scipy and scikit-learn. Packages: {licences}."""


def assign(seed: int = 0) -> dict[str, int]:
    """API id -> how often it is to occur: log-uniform in its class, classes dealt evenly over the number of required
    arguments.

    A hash, not the API, decides the class, so that frequency is not confounded with how hard an API is to call.
    """
    counts: dict[str, int] = {}
    for provider in ("aws", "azure"):
        buckets = defaultdict(list)
        for spec in sorted(unambiguous(load_index()), key=lambda spec: stable_order(spec.id, seed)):
            if spec.provider == provider:
                buckets[min(len(spec.required), 5)].append(spec.id)
        for frequency, (low, high) in RANGES.items():
            left = ([api for api in buckets[n] if api not in counts] for n in sorted(buckets))
            in_turn = filter(None, chain.from_iterable(zip_longest(*left)))
            for api in list(islice(in_turn, POOLS[frequency][provider])):
                drawn = Random(f"count {seed} {api}").uniform(math.log(low), math.log(high + 1))
                counts[api] = min(high, max(low, int(math.exp(drawn))))
    return counts


def plain(text: str) -> str:
    """The words alone, whatever their case and punctuation, with a space before and behind each."""
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


@cache
def benchmark_comments() -> list[str]:
    return [plain(task.comment) for task in load_tasks()]


def reserved(text: str) -> bool:
    """Whether a text holds the wording of a benchmark comment."""
    words = plain(text)
    return any(comment in words for comment in benchmark_comments())


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


def call(spec: ApiSpec, indent: str, rng: Random) -> str:
    """A valid invocation ``name(...)`` on one line or with one argument a line: all required arguments, sometimes one
    or two optional ones.
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
    inner = "".join(f"{indent}    {text},\n" for text in texts)
    return f"{spec.name}(\n{inner}{indent})"


def snippet(spec: ApiSpec, comment: str, rng: Random) -> tuple[str, str]:
    """(a snippet that ends with the call of an API, the call's indentation): the benchmark's own layout in 6 of 10
    documents, else one of several other habits.
    """
    after = "\n" if rng.random() < 0.7 else f"\n{rng.choice(TAILS)}\n"
    style, indent, head, made = rng.random(), "", imports(spec), construction(spec)
    if style < 0.6:
        before = task_prompt(spec, comment)
    elif style < 0.75:
        variable = rng.choice(("result", "response", "out"))
        before = f"{head}\n{made}# {comment}\n{variable} = client."
    elif style < 0.9:
        indent, name = "    ", rng.choice(("main", "handler", "run", "task"))
        body = f"    # {comment}\n    {rng.choice(('return ', 'response = '))}client."
        before = f"{head}\n{made}\n\ndef {name}():\n{body}"
    else:
        before = f"{head}import logging\n\n{made}\n# {comment}\nclient."
    return before + call(spec, indent, rng) + (after if style < 0.6 else "\n"), indent


def documentation(shown: Sequence[ApiSpec], texts: Mapping[str, str], rng: Random) -> str:
    """A docstring with the documentation of several APIs in one of the five augmentation designs."""
    (design,) = rng.choices(list(DESIGN_WEIGHTS), weights=list(DESIGN_WEIGHTS.values()))
    cut = {spec.id: texts[spec.id][: FULL_CHARACTERS // len(shown)] for spec in shown}
    return docstring(shown, design, cut)


def usage_documents(counts: Mapping[str, int], seed: int = 0) -> Iterator[tuple[str, str]]:
    """(document id, text): ``counts[api]`` documents for every API, each with one call, all different."""
    index = load_index()
    for api, count in sorted(counts.items()):
        spec, made, attempt = index.by_id[api], {}, 0
        methods = index.methods(spec.provider, spec.client, spec.service).values()
        others = [one for one in methods if one.operation and one.name != spec.name]
        while len(made) < count:
            made[_usage(spec, others, Random(f"usage {seed} {api} {attempt}"))] = None
            attempt += 1
        yield from ((f"{api}@{number}", text) for number, text in enumerate(made))


def _usage(spec: ApiSpec, others: Sequence[ApiSpec], rng: Random) -> str:
    """One document, half of the time below documentation: of this API, in 15 of 100 only of a neighbour, in 15 of two or
    three. Documentation that holds a benchmark comment's wording is shown without its description.
    """
    body, _ = snippet(spec, wording(spec, rng), rng)
    if rng.random() >= 0.5:
        return body
    draw, shown = rng.random(), [spec]
    if others and draw < 0.15:
        shown = [rng.choice(others)]
    elif others and draw < 0.3:
        shown += rng.sample(others, min(len(others), rng.choice((1, 2))))
        rng.shuffle(shown)
    text = documentation(shown, load_documentation(), rng)
    if reserved(text):
        text = docstring([replace(spec, description="")], "specification")
    return text + body


def wording(spec: ApiSpec, rng: Random) -> str:
    """A comment that says what the API is for and is none of the benchmark's, as people write it: with an opening, a
    purpose, or a word left out.
    """
    meaning = intent(spec.description)
    for _ in range(60):
        said = reword(meaning, rng, keep=0.15)
        if not reserved(said):
            break
    else:  # every plain wording is reserved: a longer one, which holds none of them
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
    """Invents APIs that exist nowhere out of the words that real ones are made of."""

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
        """A pronounceable word that exists nowhere."""
        syllables = (
            rng.choice("bcdfghklmnprstvz") + rng.choice("aeiou")
            for _ in range(rng.choice((2, 3, 3)))
        )
        return "".join(syllables) + rng.choice(("", "n", "r", "x"))

    def noun(self, rng: Random) -> str:
        return self.word(rng) if rng.random() < 0.12 else rng.choice(self.nouns)

    def invent(self, rng: Random, home: tuple[str, ...] = ()) -> ApiSpec:
        """An API with 0 to 6 required arguments: in ``home`` (provider, service, client, module), else in a real or an
        invented service.
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
        required = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 6))
        total, arguments = required + rng.choice((0, 0, 1, 2, 3, 5)), []
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
        """The documentation of an API and its call; or of two or three APIs of one service, of which one or all are
        called.
        """
        several, shown = rng.random() < 0.35, [spec]
        if several:
            home = (spec.provider, spec.service, spec.client, spec.module)
            shown += [self.invent(rng, home) for _ in range(rng.choice((1, 2)))]
            rng.shuffle(shown)
        body, indent = snippet(spec, hint(spec, several, rng), rng)
        if several and "return client." not in body and rng.random() < 0.6:
            for other in (one for one in shown if one is not spec):
                body += f"\n{indent}# {hint(other, several, rng)}\n"
                body += f"{indent}response = client.{call(other, indent, rng)}\n"
        return documentation(shown, {one.id: page(one) for one in shown}, rng) + body


def hint(spec: ApiSpec, several: bool, rng: Random) -> str:
    """A comment: mostly bland; where several APIs are documented, close to the right one's description."""
    if not several and rng.random() < 0.65:
        return rng.choice(BLAND)
    verb, *nouns = spec.name.split("_")
    named = " ".join(nouns if several or len(nouns) < 2 else nouns[1:])
    action = rng.choice(VERBS[verb])
    return f"{action.capitalize()} {rng.choice(('the', 'a', 'this', 'our', 'one'))} {named}"


def page(spec: ApiSpec) -> str:
    """Documentation in the manner of boto3's own pages: description, request syntax, parameters."""
    syntax = ",\n".join(f"      {p.name}='{p.type}'" for p in spec.parameters)
    request = f"  response = client.{spec.name}(" + f"\n{syntax}\n  " * bool(syntax) + ")"
    listed = "\n\n".join(
        f":type {p.name}: {p.type}\n:param {p.name}:{' [REQUIRED]' if p.required else ''}\n\n"
        f"  The {' '.join(words(p.name))}."
        for p in spec.parameters
    )
    head = f"{spec.description}\n\nSee also: AWS API Documentation\n\nRequest Syntax"
    return f"{head}\n\n{request}\n\n{listed}\n\n:rtype: dict"


def invented_documents(count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """(document id, text) of at most ``count`` documents, each about an API that occurs in no other call."""
    inventor, used = Inventor(), set()
    for number in range(count):
        rng = Random(f"invented {seed} {number}")
        spec = inventor.invent(rng)
        while spec.name in used:
            spec = inventor.invent(rng)
        used.add(spec.name)
        if not reserved(text := inventor.document(spec, rng)):
            yield f"invented/{number}", text


def documents(seed: int = 0) -> Iterator[tuple[str, str]]:
    """(id, text) of the whole corpus in a fixed order. No text holds the wording of a benchmark comment."""
    yield from (one for one in package_documents(PACKAGE_CHARACTERS) if not reserved(one[1]))
    yield from usage_documents(assign(seed), seed)
    yield from invented_documents(N_INVENTED, seed)


def train(sizes: Sequence[str], out: Path, epochs: int = 1, seed: int = 0) -> Iterator[Path]:
    """Build the corpus and train models of these sizes on it: folders in ``out``.

    The documentation of an invented API is random words: it is read, not learned.
    """
    from lookuplab.mini import training

    found = list(tqdm(documents(seed), "corpus", unit=" documents", mininterval=1))
    tokenizer, texts = training.train_tokenizer(text for _, text in found[::3]), []
    for name, text in found:
        at = text.index('"""', 3) + 4 if name.startswith("invented/") else 0
        texts += [text[:at], text[at:] + tokenizer.eos_token]
    ids = tokenizer(texts, verbose=False)["input_ids"]
    examples = [
        (read, written[: training.LONG - len(read)])
        for read, written in zip(ids[::2], ids[1::2], strict=True)
    ]
    about = ABOUT.format(held_out=", ".join(HELD_OUT_PACKAGES), licences=licences())
    for size in sizes:
        recipe = training.Recipe(size, epochs, seed, packed=True)
        work = paths.RUNS / "train" / size
        training.pretrain(examples, tokenizer, recipe, work, out / size, about)
        yield out / size
