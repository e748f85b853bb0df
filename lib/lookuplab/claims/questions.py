"""What a claim asks of an artifact: one number, or two, against a bound, for every model it speaks of."""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lookuplab.claims.file import Claim

_SIZES = ["tiny", "small", "base", "medium", "large", "xl"]
_SENSES = {"at_least": ">=", "at_most": "<="}


@dataclass(frozen=True)
class Question:
    """Is ``first`` (minus ``second``) > >= <= or == ``bound``?

    Both are (model, condition); ``subject`` is the model, or the family of sizes, that is asked about.
    """

    subject: str
    first: tuple[str, str]
    second: tuple[str, str] | None
    sense: str
    bound: float

    def __str__(self) -> str:
        """``low >= 50``, ``high - low > 0``, or ``mini-large - mini-small > 0`` where the models differ."""
        (model, condition), second = self.first, self.second
        if second is None:
            left = condition
        elif second[0] == model:
            left = f"{condition} - {second[1]}"
        else:
            left = f"{model} - {second[0]}"
        return f"{left} {self.sense} {self.bound:g}"


def questions(claim: Claim, models: list[str]) -> Iterator[Question]:
    """What the claim's test asks, model by model, or along the sizes where sizes are compared."""
    test, families = claim.test, by_family(models)
    asked = [members[-1] for members in families.values()] if claim.models == "largest" else models
    match test["kind"]:
        case "monotone" if isinstance(test["over"], dict):
            yield from _along_sizes(test["over"], models, test["direction"])
        case "monotone":
            for model in asked:
                yield from _steps(model, [(model, condition) for condition in test["over"]], test["direction"])
        case "greater":
            for model, left, right in itertools.product(asked, _listed(test["left"]), _listed(test["right"])):
                yield Question(model, (model, left), (model, right), ">", test.get("by", 0))
        case "equal":
            for model, (condition, expected) in itertools.product(asked, test["expected"].items()):
                yield Question(model, (model, condition), None, "==", expected)
        case kind:
            for model, condition in itertools.product(asked, test["conditions"]):
                yield Question(model, (model, condition), None, _SENSES[kind], test["bound"])


def by_family(models: Iterable[str]) -> dict[str, list[str]]:
    """Models that differ only in a size (``-3B``, ``-small``), small to large; without a size, a family of one."""
    families: dict[str, list[tuple[float, str]]] = {}
    for model in models:
        family, size = _family_and_size(model)
        families.setdefault(family, []).append((size or 0, model))
    return {family: [model for _, model in sorted(members)] for family, members in families.items()}


def _along_sizes(over: dict, models: list[str], direction: str) -> Iterator[Question]:
    """Inside each family; or across them, where models without a size are left out and equal sizes not compared."""
    if not over.get("across_families"):
        for family, members in by_family(models).items():
            yield from _steps(family, [(model, over["size"]) for model in members], direction)
        return
    sized = sorted((size, model) for model in models if (size := _family_and_size(model)[1]) is not None)
    for (size, model), (larger, next_model) in itertools.pairwise(sized):
        if size < larger:
            yield from _steps("all sizes", [(model, over["size"]), (next_model, over["size"])], direction)


def _steps(subject: str, ladder: list[tuple[str, str]], direction: str) -> Iterator[Question]:
    for before, after in itertools.pairwise(ladder):
        larger, smaller = (after, before) if direction == "increasing" else (before, after)
        yield Question(subject, larger, smaller, ">", 0)


def _family_and_size(model: str) -> tuple[str, float | None]:
    number = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])\b", model.lower())
    word = re.search(rf"\b({'|'.join(_SIZES)})\b", model.lower())
    if not (found := number or word):
        return model, None
    size = float(number[1]) * (1e9 if number[2] == "b" else 1e6) if number else float(_SIZES.index(word[1]))
    rest = model[: found.start()] + model[found.end() :]
    return re.sub(r"-\d+k\b", "", rest).strip("-_ "), size  # the Granite models end in their context, -2k to -8k


def _listed(conditions: str | list[str]) -> list[str]:
    return [conditions] if isinstance(conditions, str) else conditions
