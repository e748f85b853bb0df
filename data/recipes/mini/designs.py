"""Trains adapters with which the three mini code models can read a sixth design of documentation,
example code (data/mini/DESIGN.md).

Each training text is a call below documentation. The six designs have equal numbers of texts. The
called APIs are invented, or are real APIs that no task asks for.
"""

from pathlib import Path
from random import Random

import click

from lookuplab import paths
from lookuplab.cloudapi.prompts import ALL_DESIGNS, docstring
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index, texts_of
from lookuplab.run.commands import command, run_module
from lookuplab.run.commands.train import steady
from recipes.cloudapi.comments import intent
from recipes.mini import DRAW, order
from recipes.mini.corpus import (
    hint,
    inventor,
    page,
    pools,
    reserved,
    usage,
    wording,
)
from recipes.mini.finetuning import SETTINGS, QuestionPair, finetuned

TEXTS = 1_800
ABOUT = """An adapter that teaches the model to read example code. Trained by `python -m recipes.mini.designs` on an equal mixture of
six designs of documentation: the paper's five and one example of a call. Each text has one document, which is read, and a call of its API, which is
learned. Half of the APIs are invented; no task asks for any of the others."""  # noqa: E501  # the committed cards have these lines


def untested(index: ApiIndex) -> list[ApiSpec]:
    """Return the APIs that the training texts may call, in the order of a hash: the background
    APIs, and the APIs for which the SDK has an example. An API is left out if it has the name of an
    API that a task asks for.
    """
    drawn = pools()
    asked = {index.by_id[api].name for pool in ("asked", "development") for api in drawn[pool]}
    known = {*drawn["background"], *texts_of("example", index)}
    specs = (index.by_id[api] for api in sorted(known, key=order))
    return [spec for spec in specs if spec.name not in asked and intent(spec.description)]


def pairs() -> list[QuestionPair]:
    """Return the training pairs (documentation, code below it), up to TEXTS in number. Each design
    is equally frequent, and every second document is about an invented API. A pair is left out if
    its documentation contains the wording of a benchmark comment.
    """
    index, invent = load_index(), inventor()
    real = untested(index)
    learned = []
    for number in range(TEXTS):
        rng = Random(f"designs {DRAW} {number}")
        at, is_invented = divmod(number, 2)
        design = ALL_DESIGNS[at % len(ALL_DESIGNS)]
        spec = real[at % len(real)]
        texts = texts_of(design, index)
        if is_invented:
            spec = invent(rng)
            texts = {spec.id: page(spec)} if design == "full" else {}
        comment = hint(spec, False, rng) if is_invented else wording(spec, rng)
        read = docstring([spec], design, texts)
        written = usage([(spec, comment)], rng)
        if not reserved(read):
            learned.append(QuestionPair(f"{number} {design} {spec.id}", read, "", written))
    return learned


@command()
def main(*, size: tuple[str, ...] = (), out: Path | None = None) -> None:
    """Train the mini code models further, on six designs of documentation instead of five.

    The trained models are adapters. An adapter whose folder exists is skipped. If a run is killed,
    repeat the command to resume it.

    \b
    Examples:
      python -m recipes.mini.designs
      python -m recipes.mini.designs --size small --out runs/other

    Args:
        size: Which models to train further [default: small, medium and large].
        out: Parent of the model folders [default: data/mini/models].
    """
    steady()
    learned = pairs()
    for name in size or SETTINGS["designs"]:
        target = (out or paths.MINI / "models") / f"{name}-designs"
        click.echo(finetuned("designs", name, f"mini-{name}", learned, target, ABOUT))


if __name__ == "__main__":
    run_module(main)
