"""Corpus part (b): usage documents of real APIs, each API exactly as often as its assigned count says."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count as count_from

from lookuplab.cloudapi.augmentation import docstring
from lookuplab.cloudapi.comments import Intent, intent, reword
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec
from lookuplab.mini.calls import call, decorate, layout
from lookuplab.mini.reserved import Reserved

DOCUMENTED = 0.5  # share of documents that begin with reference documentation
NEIGHBOUR = 0.15  # of those: share whose only documentation is another API's of the same client
SEVERAL = 0.15  # of those: share with two or three APIs' documentation, the right one among them
DESIGN_WEIGHTS = {"name": 10, "description": 10, "specification": 30, "description_specification": 38, "full": 12}
FULL_CHARACTERS = 1_200  # full documentation is cut here so that the call stays within a training sequence


def choose_design(rng: random.Random) -> str:
    """One of the five augmentation designs, the paper's favourites more often."""
    return rng.choices(list(DESIGN_WEIGHTS), weights=list(DESIGN_WEIGHTS.values()))[0]


def reference(target: ApiSpec, neighbours: Sequence[ApiSpec], documentation: Mapping[str, str],
              rng: random.Random) -> str:
    """A docstring with documentation of the target, of a neighbour instead, or of both in random order."""
    draw, others = rng.random(), list(neighbours)
    if others and draw < NEIGHBOUR:
        shown = [rng.choice(others)]
    elif others and draw < NEIGHBOUR + SEVERAL:
        shown = [target, *rng.sample(others, min(len(others), rng.choice((1, 2))))]
        rng.shuffle(shown)
    else:
        shown = [target]
    limit = FULL_CHARACTERS // len(shown)
    texts = {spec.id: documentation.get(spec.id, spec.description)[:limit] for spec in shown}
    return docstring(shown, choose_design(rng), texts)


def comment_for(spec: ApiSpec, meaning: Intent, reserved: Reserved, rng: random.Random) -> str:
    """A wording of the API's intent that the benchmark does not use, decorated."""
    for _ in range(60):
        wording = reword(meaning, rng, keep=0.15)
        if not reserved.found_in(wording):
            break
    else:  # every plain wording is reserved: a longer one, which holds none of them
        wording = f"{wording.split()[0]} what is needed of {' '.join(wording.split()[1:])}"
    decorated = decorate(wording[0].upper() + wording[1:], rng)
    return wording if reserved.found_in(decorated) else decorated


def usage_documents(index: ApiIndex, counts: Mapping[str, int], documentation: Mapping[str, str], reserved: Reserved,
                    seed: int = 0) -> Iterator[tuple[str, str]]:
    """(document id, text): ``counts[api]`` documents for every API, each with one call, all different."""
    for api, count in sorted((api, count) for api, count in counts.items() if count):
        spec = index.by_id[api]
        meaning = intent(spec.description)
        methods = index.methods(spec.provider, spec.client, spec.service)
        neighbours = [s for s in methods.values() if s.operation and s.name != spec.name]
        texts: dict[str, None] = {}
        for attempt in count_from(0):
            rng = random.Random(f"usage {seed} {api} {attempt}")
            texts[_usage(spec, meaning, neighbours, documentation, reserved, rng)] = None
            if len(texts) == count:
                break
        yield from ((f"{api}@{occurrence}", text) for occurrence, text in enumerate(texts))


def _usage(spec: ApiSpec, meaning: Intent, neighbours: Sequence[ApiSpec], documentation: Mapping[str, str],
           reserved: Reserved, rng: random.Random) -> str:
    """One document; documentation that holds a benchmark comment's wording is shown without its description."""
    place = layout(spec, comment_for(spec, meaning, reserved, rng), rng)
    body = place.before + call(spec, place.indent, rng) + place.after
    if rng.random() >= DOCUMENTED:
        return body
    text = reference(spec, neighbours, documentation, rng)
    if reserved.found_in(text):
        text = docstring([replace(spec, description="")], "specification")
    return text + body
