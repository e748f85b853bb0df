"""API invocation confidence: how sure a model was of the API's name (paper, Section 4.2 and Figure 8).

The paper takes the *minimum* probability over the name's tokens; mean, product and the last token are its ablation.
Not normalised by length: a name of many tokens has more chances to contain an uncertain one.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate

from lookuplab.cloudapi.validity import FIRST_NAME
from lookuplab.errors import UserError
from lookuplab.models.chat import code_span
from lookuplab.models.first_call import first_call
from lookuplab.models.types import Completion

AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "minimum": min,
    "mean": lambda probabilities: sum(probabilities) / len(probabilities),
    "product": math.prod,
    "last": lambda probabilities: probabilities[-1],
}


def name_span(code: str) -> tuple[int, int] | None:
    """Where the invoked API's name begins and ends in the code after ``client.``; None where nothing is named.

    A dotted name counts as a whole; blanks between the name and its "(" do not belong to it.
    """
    found = first_call(code)
    if found.paren is not None:
        return found.start, len(code[: found.paren].rstrip(" \t\f\\\n\r"))
    named = FIRST_NAME.match(code)
    return named.span(1) if named else None


def name_tokens(completion: Completion, code: str | None = None) -> list[tuple[str, float]]:
    """(piece, probability) of every token that overlaps the API's name, in order (the table in Figure 8).

    ``code`` as in ``name_places``. Raises UserError for a completion without log-probabilities.
    """
    places = name_places(completion, code)
    return [(completion.tokens[at], math.exp(completion.token_logprobs[at])) for at in places]


def name_places(completion: Completion, code: str | None = None) -> range:
    """Which tokens overlap the API's name; none where no API is named.

    A token that is only "(" is not among them; one that ends the name and opens the call, such as ``t(``, is. ``code``
    is the part of the completion that is judged, for chat models the inside of the backticks; by default all of it.
    Raises UserError for a completion without log-probabilities.
    """
    if completion.token_logprobs is None:
        raise UserError(f"no log-probabilities for {completion.id!r}: confidence needs a local model, or an endpoint "
                        "that gives them (vLLM does)")
    written = "".join(completion.tokens)
    span = name_span(written if code is None else code)
    if span is None:
        return range(0)
    begin = 0 if code in (None, written) else code_span(written)[0]
    ends = list(accumulate(map(len, completion.tokens)))  # behind each token; one that spells nothing has no length
    return range(bisect_right(ends, begin + span[0]), bisect_left(ends, begin + span[1]) + 1)


def confidence(completion: Completion, code: str | None = None) -> dict[str, float]:
    """All aggregates by name, each from 0 to 1; 0 where no API is named, so that any threshold asks for help."""
    probabilities = [probability for _, probability in name_tokens(completion, code)]
    return {name: min(1.0, of(probabilities)) if probabilities else 0.0 for name, of in AGGREGATES.items()}
