"""The code models' training corpus, and the models that learn it.

Part (a) is the source of Python packages. Part (b) are usage documents of real cloud APIs, each API exactly as often as
a hash decided: a randomised experiment that no paper could run. Part (c) are documents about invented APIs, each used
once and always documented. Nothing about those can be memorised, so the only way to lower the loss on their calls is to
copy names and arguments from the documentation; without them a small model does not learn to use documentation at all.
"""

import keyword
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count as count_from
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.cloudapi.augmentation import docstring
from lookuplab.cloudapi.benchmark import load_tasks, stable_order, unambiguous
from lookuplab.cloudapi.comments import VERBS, intent, reword
from lookuplab.cloudapi.prompts import construction, imports, task_prompt
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter, load_documentation, load_index
from lookuplab.mini.packages import HELD_OUT_PACKAGES, licences, package_documents
from lookuplab.stackoverflow.corpus import records, write

WORK = paths.RUNS / "train"
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
model saw each API is known exactly. Parts (a) Python packages, (b) usage of real cloud APIs, (c) invented APIs: {parts}
documents. Not in it: the wording of benchmark comments, the packages {held_out}, the cloud SDKs' own source, and a tenth
of the docstring examples of numpy, pandas, scipy and scikit-learn. Packages: {licences}."""


def assign(
    index: ApiIndex, seed: int = 0, pools: dict[str, dict[str, int]] = POOLS
) -> dict[str, int]:
    """API id -> how often it is to occur: log-uniform in its class, classes dealt evenly over the number of required
    arguments.

    A hash, not the API, decides the class, so that frequency is not confounded with how hard an API is to call.
    """
    counts: dict[str, int] = {}
    for provider in ("aws", "azure"):
        by_required = defaultdict(list)
        for spec in sorted(unambiguous(index), key=lambda spec: stable_order(spec.id, seed)):
            if spec.provider == provider:
                by_required[min(len(spec.required), 5)].append(spec.id)
        buckets = [by_required[key] for key in sorted(by_required)]
        for frequency, (low, high) in RANGES.items():
            dealt = 0
            while dealt < pools[frequency][provider] and any(buckets):
                for bucket in filter(None, buckets):
                    if dealt == pools[frequency][provider]:
                        break
                    api, dealt = bucket.pop(0), dealt + 1
                    drawn = random.Random(f"count {seed} {api}").uniform(
                        math.log(low), math.log(high + 1)
                    )
                    counts[api] = min(high, max(low, int(math.exp(drawn))))
    return counts


class Reserved:
    """Says whether a text holds the wording of a benchmark comment, whatever its case and punctuation."""

    def __init__(self, comments: Iterable[str]):
        self.comments = {_plain(comment) for comment in comments}

    def found_in(self, text: str) -> bool:
        plain = _plain(text)
        return any(comment in plain for comment in self.comments)


def _plain(text: str) -> str:
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


def words(name: str) -> list[str]:
    """The words of an identifier in any case style: ``LifecycleHookName`` -> lifecycle, hook, name."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def value(parameter: Parameter, rng: random.Random) -> str:
    """A plausible argument, as a developer's example would have it; strings are named after their parameter."""
    parts = words(parameter.name)
    kebab, snake = "-".join(parts), "_".join(parts)
    snake += "_value" if keyword.iskeyword(snake) else ""
    match parameter.type:
        case "integer" | "long":
            return rng.choice(("1", "10", "100", "5"))
        case "boolean":
            return rng.choice(("True", "False"))
        case "float" | "double":
            return rng.choice(("0.5", "1.0"))
        case "list":
            return f'["my-{kebab}"]' if rng.random() < 0.7 else snake
        case "structure" | "map":
            return '{"key": "value"}' if rng.random() < 0.6 else snake
        case "blob":
            return 'b"data"'
        case "timestamp":
            return '"2024-01-01"'
    return f'"my-{kebab}"' if rng.random() < 0.75 else snake


def call(spec: ApiSpec, indent: str, rng: random.Random) -> str:
    """A valid invocation ``name(...)`` on one line or with one argument a line: all required arguments, sometimes one
    or two optional ones.
    """
    optional = [p for p in spec.parameters if not p.required and not p.kind.startswith("VAR_")]
    required = [p for p in spec.parameters if p.required]
    chosen = list(required)
    if optional and rng.random() < 0.2:
        chosen += rng.sample(optional, min(len(optional), rng.choice((1, 1, 2))))
    values = [value(p, rng) for p in chosen]
    positional = (
        spec.provider == "azure"
        and rng.random() < 0.15
        and all(p.kind == "POSITIONAL_OR_KEYWORD" for p in required)
    )
    texts = [
        text if positional and p.required else f"{p.name}={text}"
        for p, text in zip(chosen, values, strict=True)
    ]
    if len(texts) <= 1 or rng.random() < 0.4:
        return f"{spec.name}({', '.join(texts)})"
    inner = "".join(f"{indent}    {text},\n" for text in texts)
    return f"{spec.name}(\n{inner}{indent})"


def layout(spec: ApiSpec, comment: str, rng: random.Random) -> tuple[str, str, str]:
    """(everything up to the API's name, indentation of the call, what follows it): the benchmark's own layout in 6 of 10
    documents, else one of several other habits.
    """
    after = "\n" if rng.random() < 0.7 else f"\n{rng.choice(TAILS)}\n"
    style = rng.random()
    head, made = imports(spec), construction(spec)
    if style < 0.6:
        return task_prompt(spec, comment), "", after
    if style < 0.75:
        variable = rng.choice(("result", "response", "out"))
        return f"{head}\n{made}# {comment}\n{variable} = client.", "", "\n"
    if style < 0.9:
        define = f"def {rng.choice(('main', 'handler', 'run', 'task'))}():\n"
        body = f"    # {comment}\n    {rng.choice(('return ', 'response = '))}client."
        return f"{head}\n{made}\n\n{define}{body}", "    ", "\n"
    return f"{head}import logging\n\n{made}\n# {comment}\nclient.", "", "\n"


def documentation(shown: Sequence[ApiSpec], texts: Mapping[str, str], rng: random.Random) -> str:
    """A docstring with the documentation of several APIs in one of the five augmentation designs."""
    design = rng.choices(list(DESIGN_WEIGHTS), weights=list(DESIGN_WEIGHTS.values()))[0]
    cut = {spec.id: texts[spec.id][: FULL_CHARACTERS // len(shown)] for spec in shown}
    return docstring(shown, design, cut)


def usage_documents(
    index: ApiIndex,
    counts: Mapping[str, int],
    texts: Mapping[str, str],
    reserved: Reserved,
    seed: int = 0,
) -> Iterator[tuple[str, str]]:
    """(document id, text): ``counts[api]`` documents for every API, each with one call, all different.

    ``texts``: API id -> full documentation.
    """
    for api, count in sorted(counts.items()):
        spec = index.by_id[api]
        methods = index.methods(spec.provider, spec.client, spec.service).values()
        others = [one for one in methods if one.operation and one.name != spec.name]
        made: dict[str, None] = {}
        for attempt in count_from():
            if len(made) == count:
                break
            rng = random.Random(f"usage {seed} {api} {attempt}")
            made[_usage(spec, others, texts, reserved, rng)] = None
        yield from ((f"{api}@{number}", text) for number, text in enumerate(made))


def _usage(
    spec: ApiSpec,
    others: Sequence[ApiSpec],
    texts: Mapping[str, str],
    reserved: Reserved,
    rng: random.Random,
) -> str:
    """One document, half of the time below documentation: of this API, in 15 of 100 only of a neighbour, in 15 of two or
    three. Documentation that holds a benchmark comment's wording is shown without its description.
    """
    before, indent, after = layout(spec, comment_for(spec, reserved, rng), rng)
    body = before + call(spec, indent, rng) + after
    if rng.random() >= 0.5:
        return body
    draw, shown = rng.random(), [spec]
    if others and draw < 0.15:
        shown = [rng.choice(others)]
    elif others and draw < 0.3:
        shown += rng.sample(others, min(len(others), rng.choice((1, 2))))
        rng.shuffle(shown)
    known = {one.id: texts.get(one.id, one.description) for one in shown}
    text = documentation(shown, known, rng)
    if reserved.found_in(text):
        text = docstring([replace(spec, description="")], "specification")
    return text + body


def comment_for(spec: ApiSpec, reserved: Reserved, rng: random.Random) -> str:
    """A wording of the API's intent that the benchmark does not use, as people write it: with an opening, a purpose, or a
    word left out.
    """
    meaning = intent(spec.description)
    for _ in range(60):
        wording = reword(meaning, rng, keep=0.15)
        if not reserved.found_in(wording):
            break
    else:  # every plain wording is reserved: a longer one, which holds none of them
        wording = f"{wording.split()[0]} what is needed of {' '.join(wording.split()[1:])}"
    comment, draw = wording[0].upper() + wording[1:], rng.random()
    if draw < 0.12:
        parts = comment.split()
        if len(parts) > 4:
            del parts[rng.randrange(1, len(parts))]
        comment = " ".join(parts)
    elif draw < 0.3:
        comment = f"{rng.choice(OPENINGS)} {wording[0].lower()}{wording[1:]}"
    elif draw < 0.5:
        comment += f" {rng.choice(PURPOSES)}"
    return wording if reserved.found_in(comment) else comment


def spell(parts: Sequence[str], case: str) -> str:
    """Words as one identifier in CamelCase, lowerCamel or snake_case."""
    if case == "snake":
        return "_".join(parts)
    camel = "".join(part.capitalize() for part in parts)
    return camel if case == "camel" else parts[0] + camel[len(parts[0]) :]


class Inventor:
    """Invents APIs that exist nowhere out of the words that real ones of ``index`` are made of."""

    def __init__(self, index: ApiIndex):
        self.names = {spec.name for spec in index.specs}
        named = [name.split("_") for name in self.names]
        arguments = {p.name for spec in index.specs for p in spec.parameters if p.required}
        self.verbs = sorted({parts[0] for parts in named} & set(VERBS))
        self.nouns = sorted({w for parts in named for w in parts[1:] if w.isalpha() and len(w) > 2})
        self.words = sorted(
            {w for name in arguments for w in words(name) if w.isalpha() and len(w) > 1}
        )
        self.homes = sorted({(s.provider, s.service, s.client, s.module) for s in index.specs})

    def invent(self, rng: random.Random, home: tuple[str, str, str, str] | None = None) -> ApiSpec:
        """An API in a real or an invented service, with 0 to 6 required arguments."""
        provider, service, client, module = home or rng.choice(self.homes)
        if home is None and provider == "aws" and rng.random() < 0.4:
            service = client = "-".join(_pseudo_word(rng) for _ in range(rng.choice((1, 1, 2))))

        def noun() -> str:
            return _pseudo_word(rng) if rng.random() < 0.12 else rng.choice(self.nouns)

        name = ""
        while not name or name in self.names:
            verb = rng.choice(self.verbs)
            name = "_".join([verb, *(noun() for _ in range(rng.choice((1, 2, 2, 3, 3, 4))))])
        case = "snake" if provider == "azure" else rng.choice(("camel", "lower_camel"))
        required = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 6))
        total = required + rng.choice((0, 0, 1, 2, 3, 5))
        names: dict[str, None] = {}
        while len(names) < total:
            parts = [
                noun() if rng.random() < 0.3 else rng.choice(self.words)
                for _ in range(rng.choice((1, 2, 2, 3)))
            ]
            if not keyword.iskeyword(argument := spell(parts, case)):
                names[argument] = None
        kind = "POSITIONAL_OR_KEYWORD" if provider == "azure" else "KEYWORD_ONLY"
        parameters = tuple(
            Parameter(n, kind if i < required else "KEYWORD_ONLY", i < required, rng.choice(TYPES))
            for i, n in enumerate(names)
        )
        verb, *nouns = name.split("_")
        action, what = rng.choice(VERBS[verb]), rng.choice(OBJECTS).format(" ".join(nouns))
        description = f"{action.capitalize()} {what}{rng.choice(PLACES)}."
        return ApiSpec(
            provider, service, client, name, parameters, description=description, module=module
        )

    def document(self, spec: ApiSpec, rng: random.Random) -> str:
        """The documentation of an API and its call; or of two or three APIs of one service, of which one or all are
        called.
        """
        several, shown = rng.random() < 0.35, [spec]
        if several:
            home = (spec.provider, spec.service, spec.client, spec.module)
            shown += [self.invent(rng, home) for _ in range(rng.choice((1, 2)))]
            rng.shuffle(shown)
        before, indent, after = layout(spec, _comment(spec, several, rng), rng)
        body = before + call(spec, indent, rng) + after
        if several and not before.endswith("return client.") and rng.random() < 0.6:
            for other in (one for one in shown if one is not spec):
                body += f"\n{indent}# {_comment(other, several, rng)}\n"
                body += f"{indent}response = client.{call(other, indent, rng)}\n"
        return documentation(shown, {one.id: full_text(one) for one in shown}, rng) + body


def _pseudo_word(rng: random.Random) -> str:
    """A pronounceable word that exists nowhere."""
    syllables = (
        rng.choice("bcdfghklmnprstvz") + rng.choice("aeiou") for _ in range(rng.choice((2, 3, 3)))
    )
    return "".join(syllables) + rng.choice(("", "n", "r", "x"))


def _comment(spec: ApiSpec, several: bool, rng: random.Random) -> str:
    """Mostly bland; where several APIs are documented, close to the right one's description."""
    if not several and rng.random() < 0.65:
        return rng.choice(BLAND)
    verb, *nouns = spec.name.split("_")
    shown = nouns if several or len(nouns) < 2 else nouns[1:]
    action = rng.choice(VERBS[verb])
    return (
        f"{action.capitalize()} {rng.choice(('the', 'a', 'this', 'our', 'one'))} {' '.join(shown)}"
    )


def full_text(spec: ApiSpec) -> str:
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


def invented_documents(
    index: ApiIndex, count: int, reserved: Reserved, seed: int = 0
) -> Iterator[tuple[str, str]]:
    """(document id, text) of ``count`` documents, each about an API that occurs in no other call."""
    inventor, used = Inventor(index), set()
    for number in range(count):
        rng = random.Random(f"invented {seed} {number}")
        spec = inventor.invent(rng)
        while spec.name in used:
            spec = inventor.invent(rng)
        used.add(spec.name)
        if not reserved.found_in(text := inventor.document(spec, rng)):
            yield f"invented/{number}", text


def documents(seed: int = 0) -> Iterator[dict[str, str]]:
    """The whole corpus in a fixed order, ``{part, id, text}``. No text holds the wording of a benchmark comment."""
    index, reserved = load_index(), Reserved(task.comment for task in load_tasks())
    sources = {
        "a": (
            one for one in package_documents(PACKAGE_CHARACTERS) if not reserved.found_in(one[1])
        ),
        "b": usage_documents(index, assign(index, seed), load_documentation(), reserved, seed),
        "c": invented_documents(index, N_INVENTED, reserved, seed),
    }
    for part, found in sources.items():
        yield from ({"part": part, "id": name, "text": text} for name, text in found)


def prepare(folder: Path, seed: int) -> None:
    """Write the documents and the tokenizer into ``folder``, unless they are there for this seed."""
    from accelerate import PartialState

    from lookuplab.mini.training import train_tokenizer

    file = folder / f"documents-{seed}.jsonl.gz"
    with PartialState().main_process_first():
        if file.exists():
            return
        write(file, list(tqdm(documents(seed), "corpus", unit=" documents", mininterval=1)))
        texts = (one["text"] for _, one in records(file))
        train_tokenizer(
            text for number, text in enumerate(texts) if number % 3 == 0
        ).save_pretrained(folder / f"tokenizer-{seed}")


def train(size: str, folder: Path, out: Path, work: Path, epochs: int = 1, seed: int = 0) -> dict:
    """Train one size on the corpus in ``folder`` and write the model folder ``out``; returns the card's facts.

    The documentation of an invented API is random words: it is read, not learned.
    """
    from transformers import PreTrainedTokenizerFast

    from lookuplab.mini import training

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder / f"tokenizer-{seed}")
    parts, texts = Counter(), []
    for _, one in records(folder / f"documents-{seed}.jsonl.gz"):
        parts[one["part"]] += 1
        invented = one["part"] == "c" and one["text"].startswith('"""')
        at = one["text"].find('"""', 3) + 4 if invented else 0
        texts += [one["text"][:at], one["text"][at:] + tokenizer.eos_token]
    ids = tokenizer(texts, verbose=False)["input_ids"]
    examples = [
        (read, written[: training.LONG - len(read)])
        for read, written in zip(*[iter(ids)] * 2, strict=True)
    ]
    recipe = training.Recipe(size, epochs, seed, packed=True)
    about = ABOUT.format(
        parts=dict(parts), held_out=", ".join(HELD_OUT_PACKAGES), licences=licences()
    )
    return training.pretrain(examples, tokenizer, recipe, work, out, about)
