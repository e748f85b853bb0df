"""Makes the rows of the notebooks fig1_perplexity and fig7a_retriever_precision, which show the
effect of a retriever's precision (paper, Figures 1 and 7a).
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pandas import DataFrame

from lookuplab.cloudapi.bench import Documents
from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import Rows, by_class, expected, outcome, policy_rows, rows_of
from lookuplab.cloudapi.specs import load_index
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.models import Completion
from lookuplab.scoring.rates import averages, of_change
from lookuplab_notebooks.cloudapibench.passes_compared import compared_rows


def perplexity_rows(
    first: DataFrame, scored: Mapping[str, Sequence[Completion]], precision: float
) -> Rows:
    """Return the rows of Figure 1 (right): the ``perplexity`` of the correct names, with conditions
    ``<prompt>/<class>``.

    The perplexity is exp of the mean negative log-probability of the names' tokens. The ``n`` of a
    row is the number of names. ``scored`` maps each of the prompts *base*, *hit* and *miss* to the
    scored names of all tasks (results of ``models.score``), in the order of ``first``. *dag* is
    computed as a mixture of *hit* and *miss* at the ``precision`` (percent). The mixture is exact,
    because the mean log-probability is linear in the precision. ``log_perplexity_change`` is the
    logarithm of the perplexity minus the logarithm of *base*'s perplexity on the same names.
    """
    surprise = {
        name: -np.array([math.fsum(one.token_logprobs) for one in completions])
        for name, completions in scored.items()
    }
    surprise["dag"] = expected(surprise["hit"], surprise["miss"], precision)
    numbers = {("perplexity", name): values for name, values in surprise.items()}
    for name in ("hit", "miss", "dag"):
        numbers["log_perplexity_change", name] = surprise[name] - surprise["base"]
    tokens = np.array([[len(one.tokens)] for one in scored["base"]])
    rates = {}
    for label, mask in by_class(first).items():
        for (metric, name), values in numbers.items():
            (mean,) = averages(values[mask, None], first.cluster[mask], tokens[mask])
            if metric == "perplexity":
                value, low, high = map(math.exp, (mean.value, mean.low, mean.high))
                mean = replace(mean, value=value, low=low, high=high)
            rates[f"{name}/{label}", metric] = replace(mean, n=int(mask.sum()))
    return rows_of(first, rates)


def break_even_rows(passes: Passes) -> Rows:
    """Return rows ``break_even/<class>``: the precision (percent) from which retrieval is at least
    as good as no retrieval.

    The expected validity is a straight line, from ``miss`` at a precision of 0 to ``hit`` at 100.
    The value is the precision at which this line meets the base model's validity. A value above 100
    means that no retriever is good enough, and a value below 0 that every retriever is good enough.
    Values are limited to -100 to 300. If the line does not rise, the value is -100 if hits are at
    least as good as the base model, and 300 if they are worse.

    The interval contains the precisions that the data do not rule out. At these precisions, the
    interval of the paired change from the base model contains 0.
    """
    first = passes.first
    rows = {}
    grid = np.arange(-100, 301)
    base, miss, hit = (
        frame.valid.to_numpy(dtype=float) for frame in (first, passes.miss, passes.hit)
    )
    lost, rise = base - miss, hit - miss
    changes = np.outer(rise, grid) / 100 - lost[:, None]
    for name, mask in by_class(first).items():
        needed = 100 * lost[mask].sum()
        gained = rise[mask].sum()
        at = needed / gained if gained > 0 else 300 if needed > 100 * gained else -100
        at = min(max(at, -100), 300)
        means = averages(changes[mask], first.cluster[mask], kind=of_change)
        low = min([300, *grid[[mean.high >= 0 for mean in means]]])
        high = min([300, *grid[[mean.low >= 0 for mean in means]]])
        number = replace(means[0], value=at, low=min(at, low), high=max(at, high))
        rows[f"break_even/{name}", "precision_percent"] = number
    return rows_of(first, rows)


def precision_rows(passes: Passes, precisions: Sequence[float], seed: int = 0) -> Rows:
    """Return the rows of Figure 7a, in which documentation is always retrieved. For each precision,
    in percent, these are the rows that ``policy_rows`` returns, under the conditions
    ``precision_<x>/<class>``. Further rows give the paired change from the first precision to the
    last.
    """
    always = np.full(len(passes.first), True)
    ways = {}
    rows = []
    for x in precisions:
        name = f"precision_{x:g}"
        ways[name] = outcome(passes, always, x)
        rows += policy_rows(passes, name, always, x, seed)
    if names := list(ways):
        rows += compared_rows(passes.first, ways, [(names[-1], names[0])])
    # ``triggered_percent`` says nothing here: it is always 100
    return [line for line in rows if line["metric"] != "triggered_percent"]


def random_documents(tasks: Sequence[ApiTask], k: int, seed: int = 0) -> Documents:
    """Return, for each task, k different APIs drawn at random from the whole index. None of them is
    an acceptable answer, so these documents are always wrong: a control for retrieval.

    Each task has its own seed, so a task's documents are the same in every subset of the tasks. A
    larger k only appends documents.
    """
    ids = sorted(spec.id for spec in load_index().operations)
    shown = {}
    for task in tasks:
        generator = random.Random(f"{seed} {task.id}")
        drawn: list[str] = []
        while len(drawn) < k:
            api = generator.choice(ids)
            if api not in (*task.targets, *drawn):
                drawn.append(api)
        shown[task.id] = tuple(drawn)
    return shown
