"""Corpus part (c): documents about invented APIs, each used once and always documented.

Nothing about an invented API can be memorised, so the only way to lower the loss on its call is to copy its name and
arguments from the documentation. Without this part a small model does not learn to use documentation at all.
"""

import keyword
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookuplab.cloudapi.augmentation import docstring
from lookuplab.cloudapi.comments import VERBS
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter
from lookuplab.mini.calls import call, layout, words
from lookuplab.mini.documents import FULL_CHARACTERS, choose_design
from lookuplab.mini.reserved import Reserved

# Comments that say nothing about the API's name: the name has to come from the documentation.
BLAND = (
    "Do the step described above", "Call the API", "Make the request", "Use the documented operation",
    "Carry out the next step", "Perform the action", "Call the service as documented", "Invoke the operation",
    "Run the step", "Send the request",
    "Handle the ticket", "Finish this part of the job", "Do what the caller asked for", "Prepare the environment",
    "Do the work",
)
TYPES = ("string",) * 20 + ("integer", "boolean", "list", "structure", "map", "timestamp", "blob")
CASES = ("camel", "lower_camel", "snake")


@dataclass(frozen=True)
class Vocabulary:
    """The words that real APIs are made of, and the places that they live in."""

    verbs: tuple[str, ...]
    nouns: tuple[str, ...]
    argument_words: tuple[str, ...]
    homes: tuple[tuple[str, str, str, str], ...]  # provider, service, client, module
    names: frozenset[str]

    @classmethod
    def of(cls, index: ApiIndex) -> "Vocabulary":
        verbs, nouns, argument_words, homes = set(), set(), set(), set()
        for spec in index.specs:
            parts = spec.name.split("_")
            verbs.add(parts[0])
            nouns.update(part for part in parts[1:] if part.isalpha() and len(part) > 2)
            required = (word for p in spec.parameters if p.required for word in words(p.name))
            argument_words.update(word for word in required if word.isalpha() and len(word) > 1)
            homes.add((spec.provider, spec.service, spec.client, spec.module))
        return cls(tuple(sorted(v for v in verbs if v in VERBS)), tuple(sorted(nouns)), tuple(sorted(argument_words)),
                   tuple(sorted(homes)), frozenset(spec.name for spec in index.specs))


def spell(parts: Sequence[str], case: str) -> str:
    """Words as one identifier in CamelCase, lowerCamel or snake_case."""
    if case == "snake":
        return "_".join(parts)
    camel = "".join(part.capitalize() for part in parts)
    return camel if case == "camel" else parts[0] + camel[len(parts[0]) :]


def pseudo_word(rng: random.Random) -> str:
    """A pronounceable word that exists nowhere."""
    syllables = (rng.choice("bcdfghklmnprstvz") + rng.choice("aeiou") for _ in range(rng.choice((2, 3, 3))))
    return "".join(syllables) + rng.choice(("", "n", "r", "x"))


def invent(vocabulary: Vocabulary, rng: random.Random, home: tuple[str, str, str, str] | None = None) -> ApiSpec:
    """An API that exists nowhere, in a real or an invented service, with 0 to 6 required arguments."""
    provider, service, client, module = home or rng.choice(vocabulary.homes)
    if home is None and provider == "aws" and rng.random() < 0.4:
        service = client = "-".join(pseudo_word(rng) for _ in range(rng.choice((1, 1, 2))))

    def noun() -> str:
        return pseudo_word(rng) if rng.random() < 0.12 else rng.choice(vocabulary.nouns)

    name = ""
    while not name or name in vocabulary.names:
        name = "_".join([rng.choice(vocabulary.verbs), *(noun() for _ in range(rng.choice((1, 2, 2, 3, 3, 4))))])
    case = "snake" if provider == "azure" else rng.choice(CASES[:2])
    n_required, n_optional = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 6)), rng.choice((0, 0, 1, 2, 3, 5))
    names: dict[str, None] = {}
    while len(names) < n_required + n_optional:
        parts = [noun() if rng.random() < 0.3 else rng.choice(vocabulary.argument_words)
                 for _ in range(rng.choice((1, 2, 2, 3)))]
        argument = spell(parts, case)
        if not keyword.iskeyword(argument):
            names[argument] = None
    kind = "POSITIONAL_OR_KEYWORD" if provider == "azure" else "KEYWORD_ONLY"
    parameters = [Parameter(n, kind if i < n_required else "KEYWORD_ONLY", i < n_required, rng.choice(TYPES))
                  for i, n in enumerate(names)]
    return ApiSpec(provider, service, client, name, tuple(parameters), description=_describe(name, rng), module=module)


def _describe(name: str, rng: random.Random) -> str:
    """A description that uses a synonym for the verb and the name's nouns."""
    verb, *nouns = name.split("_")
    action = rng.choice(VERBS.get(verb, (verb,)))
    what = rng.choice(("the {}", "a {}", "the specified {}", "one or more {} entries", "information about the {}",
                       "an existing {}"))
    where = rng.choice(("", "", " for the account", " in the current region", " that you own",
                        " of the specified resource"))
    return f"{action.capitalize()} {what.format(' '.join(nouns))}{where}."


def full_text(spec: ApiSpec) -> str:
    """Documentation in the manner of boto3's own pages: description, request syntax, parameters."""
    syntax = ",\n".join(f"      {p.name}='{p.type}'" for p in spec.parameters)
    request = f"  response = client.{spec.name}(\n{syntax}\n  )" if syntax else f"  response = client.{spec.name}()"
    listed = "\n\n".join(
        f":type {p.name}: {p.type}\n:param {p.name}:{' [REQUIRED]' if p.required else ''}\n\n"
        f"  The {' '.join(words(p.name))}."
        for p in spec.parameters)
    head = f"{spec.description}\n\nSee also: AWS API Documentation\n\nRequest Syntax"
    return f"{head}\n\n{request}\n\n{listed}\n\n:rtype: dict"


def _comment(spec: ApiSpec, several: bool, rng: random.Random) -> str:
    """Mostly bland; where several APIs are documented, close to the right one's description."""
    if not several and rng.random() < 0.65:
        return rng.choice(BLAND)
    verb, *nouns = spec.name.split("_")
    shown = nouns if several or len(nouns) < 2 else nouns[1:]
    action = rng.choice(VERBS.get(verb, (verb,)))
    return f"{action.capitalize()} {rng.choice(('the', 'a', 'this', 'our', 'one'))} {' '.join(shown)}"


def invented_documents(index: ApiIndex, count: int, reserved: Reserved, seed: int = 0) -> Iterator[tuple[str, str]]:
    """(document id, text) of ``count`` documents, each about an API that occurs in no other call."""
    vocabulary, used = Vocabulary.of(index), set()
    for number in range(count):
        rng = random.Random(f"invented {seed} {number}")
        spec = invent(vocabulary, rng)
        while spec.name in used:
            spec = invent(vocabulary, rng)
        used.add(spec.name)
        text = _document(spec, vocabulary, rng)
        if not reserved.found_in(text):
            yield f"invented/{number}", text


def _document(spec: ApiSpec, vocabulary: Vocabulary, rng: random.Random) -> str:
    """One API and its call; or two or three APIs of one service, of which one or all are called."""
    several = rng.random() < 0.35
    shown = [spec]
    if several:
        home = (spec.provider, spec.service, spec.client, spec.module)
        shown += [invent(vocabulary, rng, home) for _ in range(rng.choice((1, 2)))]
        rng.shuffle(shown)
    place = layout(spec, _comment(spec, several, rng), rng)
    texts = {s.id: full_text(s)[: FULL_CHARACTERS // len(shown)] for s in shown}
    body = place.before + call(spec, place.indent, rng) + place.after
    if several and place.resumable and rng.random() < 0.6:
        for other in (s for s in shown if s is not spec):
            body += f"\n{place.indent}# {_comment(other, several, rng)}\n"
            body += f"{place.indent}response = client.{call(other, place.indent, rng)}\n"
    return docstring(shown, choose_design(rng), texts) + body
