"""Beyond the paper: look the name up while it is written, instead of DAG++'s second pass and in it.

The index that DAG++ asks *after* the first call can rule *while* the call's name is decoded: only names of the client
are left to choose from (``models.constraint``). Rows are those of ``cloudapi.results``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.dag import Passes, Shown, ask, documents
from lookuplab.cloudapi.policies import PRECISION, THRESHOLD, Way, by_class, once, outcome, triggered
from lookuplab.cloudapi.validity import CATEGORIES, NONEXISTENT
from lookuplab.errors import UserError
from lookuplab.models.constraint import NameTries
from lookuplab.models.load import CHAT, is_remote
from lookuplab.models.tokens import encode
from lookuplab.models.types import Completion, Model
from lookuplab.scoring.rates import estimate, rate
from lookuplab.scoring.rows import row

ALWAYS = 1.0  # the name is constrained however sure the model is


def constrainable(names: Sequence[str]) -> list[str]:
    """Those of the models whose first name can be constrained: they run here and continue the prompt.

    An endpoint does not let us choose among its tokens, a chat model's answer begins with words. UserError without any.
    """
    able = [name for name in names if not is_remote(name) and not name.endswith(CHAT)]
    if not able:
        raise UserError(f"none of the models ({', '.join(names)}) can be constrained: endpoints and chat models "
                        "cannot; name a local base model")
    return able


def ways(model: Model, tasks: Sequence[Task], free: Passes, threshold: float = THRESHOLD, **options) -> dict[str, Way]:
    """{name: way}: the base model and DAG++ as in the paper, and both with constrained names.

    ``free`` are ``dag.passes`` of the same tasks; ``options`` as in ``dag.ask``. Every task is asked once more without
    documentation, and those for which DAG++ retrieves with the same documents.
    """
    bound = ask(model, tasks, constrained_below=ALWAYS, **options)
    plus_plus = triggered(free.first, "dag_plus_plus", threshold)
    return {
        "base": once(free.first),
        "constrained": once(bound),
        "dag_plus_plus": Way(free, plus_plus),
        "dag_plus_plus_constrained": Way(_held(model, tasks, free, plus_plus, options), plus_plus),
    }


def _held(model: Model, tasks: Sequence[Task], free: Passes, retrieve: np.ndarray, options: dict) -> Passes:
    """``free`` with constrained names in the hit and miss answers of the tasks that ``retrieve``; the others' stay."""
    places = np.flatnonzero(retrieve)
    if not len(places):
        return free
    asked = [tasks[i] for i in places]
    hits, misses, _ = documents(asked, free.first.iloc[places], free.k, index=options.get("index"))

    def held(shown: Shown, old: pd.DataFrame) -> pd.DataFrame:
        new = ask(model, asked, shown, constrained_below=ALWAYS, **options).set_index(places)
        return pd.concat([old[~retrieve], new]).sort_index()

    return replace(free, hit=held(hits, free.hit), miss=held(misses, free.miss))


def outcomes(way: Way, hits: float | np.ndarray = PRECISION) -> dict[str, np.ndarray]:
    """{category: (tasks,) chance that the call is of it}, which add up to 1; ``hits`` as in ``policies.outcome``."""
    return {kind: outcome(way.passes, way.retrieve, hits, lambda frame: frame.category == kind) for kind in CATEGORIES}


def outcome_rows(every: Mapping[str, Way], precision: float = PRECISION) -> list[dict]:
    """Rows ``<way>/<class>``: the four outcomes in percent of all tasks, and ``triggered_percent``.

    All are exact expectations over which tasks are hits: ``valid_percent``, ``invalid_usage_percent``,
    ``incorrect_existing_percent`` and ``nonexistent_percent`` add up to 100.
    """
    rows = []
    for name, way in every.items():
        first, shares = way.passes.first, outcomes(way, precision)
        for condition, mask in by_class(first).items():
            numbers = {kind: estimate(values[mask], first.api[mask]) for kind, values in shares.items()}
            numbers["triggered"] = rate(way.retrieve[mask], first.api[mask])
            rows += [row(first.model.iloc[0], f"{name}/{condition}", f"{metric}_percent", number.percent())
                     for metric, number in numbers.items()]
    return rows


def becomes_rows(first: pd.DataFrame, bound: pd.DataFrame) -> list[dict]:
    """Rows ``constrained/<class>``: what the constraint made of the free names.

    ``becomes_<category>_percent``: of the calls whose free name does not exist. ``renamed_existing_percent``: how many
    of the other calls got another name. A class without such calls has no such rows.
    """
    rows, invented = [], (first.category == NONEXISTENT).to_numpy()
    renamed = (first.name != bound.name).to_numpy()
    for condition, mask in by_class(first).items():
        part, existed = bound[mask & invented], mask & ~invented
        numbers = {f"becomes_{kind}": rate(part.category == kind, part.api) for kind in CATEGORIES if len(part)}
        if existed.any():
            numbers["renamed_existing"] = rate(renamed[existed], first.api[existed])
        rows += [row(first.model.iloc[0], f"constrained/{condition}", f"{metric}_percent", number.percent())
                 for metric, number in numbers.items()]
    return rows


def rescued(first: pd.DataFrame, bound: pd.DataFrame) -> int:
    """The place of a task to look at: an invented name that the constraint made valid, else an invented one, else 0."""
    invented = (first.category == NONEXISTENT).to_numpy()
    for wanted in (invented & bound.valid.to_numpy(dtype=bool), invented):
        if wanted.any():
            return int(wanted.argmax())
    return 0


def replay(model, prompt: str, names: Sequence[str], answer: Completion) -> pd.DataFrame:
    """The name in an ``answer`` of a local model that was constrained to ``names``, token by token.

    One row a token, the one that ends the name last: ``piece``; ``probability`` that the free model gave it;
    ``allowed``, how many tokens could stand here; ``begin``, how some of them read (tokens that only end a name left
    out); ``forced``: a single one was left, so it was appended without asking the model.
    """
    causal = not model.module.config.is_encoder_decoder
    before = encode(model.tokenizer, [prompt], True, causal)[0] if causal else []
    tries = NameTries(model.tokenizer, frozenset())
    rule, ends = tries.constraint(before, tuple(sorted(set(names))), ALWAYS), set(tries.breaks.tolist())
    rows, forced = [], 0
    for piece, token, logprob in zip(answer.tokens, answer.token_ids, answer.token_logprobs, strict=True):
        allowed = rule.allowed()
        if allowed is None:
            break
        inside = [model.tokenizer.decode([i]) for i in allowed.tolist() if i not in ends]
        rows.append({"piece": piece, "probability": float(np.exp(logprob)), "allowed": len(allowed),
                     "begin": " ".join(inside[:8]) + (" ..." if len(inside) > 8 else ""), "forced": forced > 0})
        rule.push(token, logprob, masked=True)
        forced = max(forced - 1, 0) or len(rule.forced())
    return pd.DataFrame(rows)
