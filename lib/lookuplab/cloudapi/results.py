"""From a model and the tasks to the rows of a table: the steps that CloudAPIBench's notebooks share.

Rows are dictionaries of the tidy schema: model, condition, metric, value, ci_low, ci_high, n. Intervals are clustered
by API, since up to three tasks ask for the same one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from lookuplab.cloudapi.benchmark import COMPOSITION, Task
from lookuplab.cloudapi.specs import ApiIndex, load_index
from lookuplab.cloudapi.validity import INCORRECT_EXISTING, INVALID_USAGE, NONEXISTENT, VALID, validity_table
from lookuplab.errors import UserError
from lookuplab.models import Decoding, Prompt, complete, score
from lookuplab.models.chat import strip_backticks
from lookuplab.models.types import Completion, Model
from lookuplab.scoring.perplexity import perplexity
from lookuplab.scoring.rates import Rate, rate
from lookuplab.scoring.rows import row

CLASSES = tuple(COMPOSITION)  # high, medium, low
FAILURES = (INCORRECT_EXISTING, INVALID_USAGE, NONEXISTENT)  # the order of Table 4


def answers(model: Model, tasks: Sequence[Task], max_new_tokens: int = 256, store=None, truncation: str | None = None,
            requires_logprobs: bool = False, choices: Mapping[str, tuple[str, ...]] | None = None,
            choices_below: float = 1.0) -> list[tuple[Completion, str]]:
    """Each task's greedy completion up to the first call (Section 2.3), and the code in it that is judged.

    The two differ for chat models, which Listing 1 asks for an answer in backticks. ``truncation`` and
    ``choices_below`` as in ``Decoding``; ``choices`` {task id: names} are the APIs that may be invoked, any without it.
    """
    if not tasks:
        raise UserError("there is no task to ask: check the parameters that choose tasks (limit, frequency)")
    chat = bool(getattr(model, "chat", None))  # no call begins at once then
    decoding = Decoding(max_new_tokens, stop_rule=None if chat else "first_call", truncation=truncation,
                        choices_below=choices_below)
    prompts = [Prompt(task.id, task.prompt, choices=(choices or {}).get(task.id)) for task in tasks]
    completions = complete(model, prompts, decoding, store=store, requires_logprobs=requires_logprobs)
    return [(done, strip_backticks(done.text) if chat else done.text) for done in completions]


def invoke(model: Model, tasks: Sequence[Task], max_new_tokens: int = 256, store=None,
           index: ApiIndex | None = None) -> pd.DataFrame:
    """Greedy completions up to the first call, judged: ``validity_table``'s columns and ``model`` (Section 2.3)."""
    answered = answers(model, tasks, max_new_tokens, store)
    return judged(model.name, [replace(done, text=code) for done, code in answered], tasks, index)


def judged(name: str, completions: Iterable, tasks: Sequence[Task], index: ApiIndex | None = None) -> pd.DataFrame:
    """``validity_table`` of one model's completions, with its name as a first column."""
    table = validity_table(completions, tasks, index or load_index())
    table.insert(0, "model", name)
    return table


def valid_rates(table: pd.DataFrame) -> list[dict]:
    """Valid API invocations (%) by model and frequency class and over all tasks, open and closed binding (Table 1)."""
    rows = []
    for model, of_model in table.groupby("model", sort=False):
        for condition in (*CLASSES, "all"):
            part = of_model if condition == "all" else of_model[of_model.frequency == condition]
            for metric, column in (("valid_percent", "valid"), ("valid_closed_percent", "valid_closed")):
                rows.append(row(model, condition, metric, rate(part[column], part.api).percent()))
    return rows


def failure_modes(table: pd.DataFrame, conditions: Sequence[str] = ("low",)) -> list[dict]:
    """Valid and invalid (%), and of the invalid ones the share of each failure category (Table 4)."""
    rows = []
    for model, of_model in table.groupby("model", sort=False):
        for condition in conditions:
            part = of_model[of_model.frequency == condition]
            invalid = part[part.category != VALID]
            rows.append(row(model, condition, "valid_percent", rate(part.valid, part.api).percent()))
            rows.append(row(model, condition, "invalid_percent", rate(~part.valid, part.api).percent()))
            for name in FAILURES:
                share = rate(invalid.category == name, invalid.api).percent()
                rows.append(row(model, condition, f"{name}_percent", share))
    return rows


def target_name(task: Task) -> str:
    """The name of the API asked for: what perplexity is measured on."""
    return task.target.rsplit(".", 1)[1]


def name_perplexity(model: Model, tasks: Sequence[Task], store=None, prefix: str = "") -> list[dict]:
    """Perplexity of the target API's name tokens given the prompt, by frequency class (Figure 1, right).

    ``prefix`` stands before the class in the condition, for prompts with documentation: ``dag/`` makes ``dag/high``.
    """
    pairs = [(Prompt(task.id, task.prompt), target_name(task)) for task in tasks]
    scored = {done.id: done for done in score(model, pairs, store=store)}
    rows = []
    for condition in CLASSES:
        part = [task for task in tasks if task.frequency == condition]
        if part:
            logprobs = [scored[task.id].token_logprobs for task in part]
            number = perplexity(logprobs, [task.target for task in part])
            rows.append(row(model.name, prefix + condition, "perplexity", number))
    return rows
