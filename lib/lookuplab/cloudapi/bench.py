"""Defines the benchmark CloudAPIBench: what a model reads, and how its completion is measured
(paper, Sections 2 and 4.2). Table 1 needs only this module. ``cloudapi.dag`` chooses the
documentation that later experiments put before the prompt.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Literal, Self

from lookuplab.benchmark import Benchmark
from lookuplab.cloudapi.first_call import (
    LISTING_1,
    FirstCall,
    call_extent,
    code_span,
    strip_backticks,
)
from lookuplab.cloudapi.prompts import ALL_DESIGNS, docstring
from lookuplab.cloudapi.specs import ApiIndex, load_index, texts_of
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.cloudapi.validity import FIRST_NAME, NONEXISTENT, judge_call
from lookuplab.errors import check_choice
from lookuplab.models import Completion, Decoding, Model, Prompt

# how `lookuplab view` says which documentation precedes a task's prompt
NO_DOCUMENT = "no document"
RIGHT_DOCUMENT, WRONG_DOCUMENT = "DAG, right document", "DAG, wrong document"
DESIGN = "description_specification"  # adopted in Section 3.2 for all later experiments
# task id -> ids of the APIs whose documentation precedes the prompt
Documents = Mapping[str, Sequence[str]]

# API invocation confidence says how sure a model was of the API's name (Section 4.2 and Figure 8).
# The paper uses the smallest probability among the name's tokens. Its ablation uses the mean, the
# product and the last token's probability instead. The minimum is not normalised by length: the
# more tokens a name has, the more likely it is that the model was unsure of one of them.

AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "minimum": min,
    "mean": statistics.fmean,
    "product": math.prod,
    "last": itemgetter(-1),
}


def shown_tokens(
    completion: Completion, code: str | None = None, after: int = 0
) -> list[tuple[str, float, bool]]:
    """Return the tokens that spell the API's name and up to ``after`` tokens that follow them, as
    in Figure 8. Each token is (text, probability, whether it counts for the confidence).

    The list is empty if the completion names no API. All parts of a dotted name count for the
    confidence. A token that is only "(" does not count; a token that ends the name and opens the
    call, such as ``t(``, does. ``code`` is the judged part of the completion: for a chat model, the
    text inside the backticks; by default, the whole completion.
    """
    written = "".join(completion.tokens)
    code = written if code is None else code
    call = call_extent(code)
    name = FIRST_NAME.match(code)
    if call.start is not None and call.paren is not None:
        # blanks before the "(" are not part of the name
        start = call.start
        stop = len(code[: call.paren].rstrip(" \t\f\\\n\r"))
    elif name:
        start, stop = name.span(1)
    else:
        return []
    # ``start`` and ``stop`` are positions in ``code``, but the positions of the tokens are in
    # ``written``
    offset = 0 if code == written else code_span(written)[0]
    shown = []
    end = 0
    for piece, logprob in zip(completion.tokens, completion.token_logprobs or (), strict=True):
        begin = end
        end += len(piece)
        if end > offset + start:
            counts = begin < offset + stop
            if not counts and (after := after - 1) < 0:
                break
            shown.append((piece, math.exp(logprob), counts))
    # tokens after the name that have no text, such as the end-of-text token, are not worth showing
    return [token for token in shown if token[0] or token[2]]


def confidence(completion: Completion, code: str | None = None) -> dict[str, float]:
    """Return {name of the aggregate: confidence from 0 to 1}.

    The confidence is NaN if the completion has no log-probabilities. It is 0 if the completion
    names no API, so that any threshold above 0 triggers retrieval.
    """
    if completion.token_logprobs is None:
        return dict.fromkeys(AGGREGATES, math.nan)
    probabilities = [probability for _, probability, _ in shown_tokens(completion, code)] or [0.0]
    # rounding errors can raise a probability slightly above 1
    return {name: min(1.0, of(probabilities)) for name, of in AGGREGATES.items()}


@dataclass
class CloudApiBench(Benchmark[ApiTask]):
    """The benchmark CloudAPIBench, or a benchmark of the same form about a Python package. A model
    completes each task once, greedily, up to the first call (Section 2.3). ``validity.judge_call``
    judges the completion. Intervals are clustered by API.

    - ``documents`` maps a task's id to the ids of the APIs whose documentation precedes the prompt.
      None stands for no documentation.
    - ``design`` says how the documentation is written. It is one of ``ALL_DESIGNS``.
    - ``index`` has all APIs that exist.
    - ``constrained`` (not in the paper): if true, the only API names that the model can write are
      those of the client's operations (``models.tokens``).
    - ``chat`` is set by ``for_model``. If it is true, the prompt asks for a call in backticks
      (Listing 1), and the backticks are removed before the call is judged.
    """

    tasks: Sequence[ApiTask]
    documents: Documents | None = None
    design: str = DESIGN
    index: ApiIndex = field(default_factory=load_index)
    max_new_tokens: int = 256
    constrained: bool = False
    chat: bool = False

    measures = ("valid", "valid_closed")
    by = "frequency"

    def __post_init__(self) -> None:
        check_choice("augmentation design", self.design, ALL_DESIGNS)

    @property
    def decoding(self) -> Decoding:  # type: ignore[override]
        """Return how completions are generated: greedily, up to the first call.

        Answers of chat models have no stop rule, because they begin with backticks or words, and
        the rule would end an answer there. If there are documents, a prompt that is too long is
        truncated on the left, so that the code at its end stays whole.
        """
        rule = None if self.chat else FirstCall
        cut: Literal["left"] | None = None if self.documents is None else "left"
        return Decoding(self.max_new_tokens, stop_rule=rule, truncation=cut)

    def for_model(self, model: Model) -> Self:
        return replace(self, chat=bool(model.chat))

    def prompt(self, task: ApiTask) -> Prompt:
        text = task.prompt
        if self.documents is not None:
            specs = [self.index.by_id[api] for api in self.documents[task.id]]
            text = docstring(specs, self.design, texts_of(self.design, self.index)) + text
        names = operations(task, self.index) if self.constrained else None
        return Prompt(task.id, text, LISTING_1 if self.chat else None, names)

    def code(self, completion: Completion) -> str:
        """Return the part of a completion that is judged."""
        return strip_backticks(completion.text) if self.chat else completion.text

    def judge(self, task: ApiTask, completion: Completion) -> dict[str, Any]:
        """Return the judgement of one completion: the task's ``provider`` and ``frequency``; the
        fields of ``validity.CallJudgement``; ``exists``, which is True if the client has a method
        with the invoked name; the confidences ``minimum``, ``mean``, ``product`` and ``last``; and
        the numbers of tokens ``prompt_tokens``, ``prompt_dropped`` (cut from the prompt) and
        ``new_tokens``.
        """
        code = self.code(completion)
        place = task.provider, task.client, task.service
        judgement = judge_call(code, task.targets, self.index, *place)
        return {
            "provider": task.provider,
            "frequency": task.frequency,
            **vars(judgement),
            "exists": judgement.category != NONEXISTENT,
            **confidence(completion, code),
            "prompt_tokens": completion.prompt_tokens,
            "prompt_dropped": completion.prompt_dropped,
            "new_tokens": len(completion.tokens),
        }

    def cluster(self, task: ApiTask) -> str:
        return task.target

    def condition(self, task: ApiTask) -> str:
        words = [NO_DOCUMENT]
        if self.documents is not None:
            shown = self.documents[task.id]
            words = [RIGHT_DOCUMENT if {*shown} & {*task.targets} else WRONG_DOCUMENT]
            words += [f"{len(shown)} documents"] * (len(shown) > 1)
            words += [self.design.replace("_", " ")] * (self.design != DESIGN)
        return ", ".join([*words, *["constrained"] * self.constrained])


def operations(task: ApiTask, index: ApiIndex) -> tuple[str, ...]:
    """Return the names of all API operations of the task's client, sorted."""
    methods = index.methods(task.provider, task.client, task.service)
    return tuple(sorted(name for name, spec in methods.items() if spec.operation))
