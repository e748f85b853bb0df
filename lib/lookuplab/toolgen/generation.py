"""Generating functions with the completion tool (paper, Section III-C): Algorithm 2 for many
functions at once, and a record of what was asked, offered and chosen.

The rows of a batch belong to functions of different files and repositories. A row asks the tool in
the background while the model reads the token that triggered the question, and several processes
answer the questions of all rows.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from typing import NamedTuple

import pandas as pd

from lookuplab import python_sources
from lookuplab.errors import UserError
from lookuplab.models import Completion, Decoding, Prompt
from lookuplab.models.completions import Store, complete
from lookuplab.models.local import CPU_TOKENS, LocalModel
from lookuplab.scoring.calibration import auroc_interval
from lookuplab.scoring.rates import average, bare_row, paired_difference, rate, row
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_tool import TOOL_VERSION, JediTool, ask_tool
from lookuplab.toolgen.pairs import kind_of, prompt_text
from lookuplab.toolgen.rules import PAPER_RULES, Rules
from lookuplab.toolgen.similarity import identifiers
from lookuplab.toolgen.tables import repository_rows
from lookuplab.toolgen.tool_use import NEVER, Question, ToolConstraint, ToolUse, Vocabulary

Requests = Sequence[tuple[Prompt, int]]  # with the number of the sample
DECODING = Decoding(max_new_tokens=192)  # the package's 128 tokens of code, plus marks


class Generated(NamedTuple):
    """One function and its answer, which is None if the prompt does not fit into the model's
    context.
    """

    function: Function
    completion: Completion | None

    @property
    def prediction(self) -> str:
        """A body or a whole ``def`` without marks, as ``lookuplab score toolgen`` takes it."""
        return self.completion.text if self.completion else ""


class ToolModel:
    """A local model with the tool, as a ``models.Model``, so that ``complete`` can store, resume
    and batch.

    It answers the prompts of ``prompts`` for ``functions``. Raises UserError for a model behind an
    endpoint, and if marks are the trigger but the model has none.
    """

    def __init__(
        self,
        model: LocalModel,
        functions: Sequence[Function],
        tool: JediTool,
        use: ToolUse = ToolUse(),
    ) -> None:
        if not isinstance(model, LocalModel):
            raise UserError(
                f"{model.name}: an endpoint cannot ask a tool between two tokens; use a local model"
            )
        self.model, self.functions, self.tool, self.use = model, functions, tool, use
        self.name = model.name
        self.kind = kind_of(model.config)  # one of ``pairs.KINDS``
        self.vocabulary = Vocabulary(model.tokenizer, model.end_of_text)
        if use.trigger == "mark" and self.vocabulary.mark is None:
            raise UserError(
                f"{self.name} has no mark in its vocabulary; fine-tune it on marked functions "
                "(lookuplab train toolgen), or set the trigger to 'dot'"
            )

    def __reduce__(self) -> tuple:
        return type(self), (self.model, self.functions, self.tool, self.use)

    @cached_property
    def identity(self) -> dict[str, str]:
        """The model's identity, and whatever changes the tool's answers.

        The repository's content is part of a prompt's ``place``.
        """
        tool = f"{python_sources.identity('jedi', 'parso')}, answers {TOOL_VERSION}"
        return {**self.model.identity, "tool": tool, "tool use": str(self.use)}

    def prompts(self) -> list[Prompt]:
        """The prompt for each function; a prompt's id is the function's."""
        roots = {one.root for one in self.functions}
        content = {root: self.tool.content(root) for root in roots}
        return [
            Prompt(
                one.id,
                prompt_text(one, self.kind, self.use.rules),
                place=f"{one.id} in {content[one.root]}",
            )
            for one in self.functions
        ]

    def generate(self, requests: Requests, decoding: Decoding) -> Iterator[list[Completion]]:
        """The answers; if the tool is used, their records are ``tool_use.Question``s."""
        by_id = {function.id: function for function in self.functions}

        def constrain(prompt, before):
            def asked(written):
                question = by_id[prompt.id], written, self.kind, self.use.rules
                return threads.submit(ask_tool, self.tool, *question)

            return ToolConstraint(self.use, self.vocabulary, before, asked)

        with ThreadPoolExecutor(self.tool.workers) as threads, ThreadPoolExecutor(2) as writers:
            turns = self._turns(requests)
            batches = [self.model.generate(turn, decoding, constrain) for turn in turns]
            waiting = {writers.submit(next, each, None): each for each in batches}
            while waiting:
                done = next(as_completed(waiting))
                each = waiting.pop(done)
                if batch := done.result():
                    waiting[writers.submit(next, each, None)] = each
                    yield batch

    def _turns(self, requests: Requests) -> Sequence[Sequence]:
        """On a CPU, the requests in two parts, so that the model can work on one while the other
        waits for the tool.

        The batches that the model would form from all requests go to the two parts in turn. With
        one sample per prompt, the model forms the same batches from the parts, so no answer
        changes. Otherwise its batches may differ, and with them the last digits of
        log-probabilities.
        """
        if self.model.module.device.type != "cpu":
            return [requests]
        size = {prompt.id: len(self.model.prompt_ids(prompt.text)) for prompt, _ in requests}
        left = sorted(requests, key=lambda request: (-size[request[0].id], request[0].id))
        now, then = [], []
        while left:
            rows = max(1, min(self.model.batch_size, CPU_TOKENS // size[left[0][0].id]))
            now += left[:rows]
            now, then, left = then, now, left[rows:]
        return now, then


class Generations(list):
    """A list of Generated, with the ``model`` (and tool) that made it."""

    def __init__(self, generated: Sequence[Generated], model: ToolModel) -> None:
        super().__init__(generated)
        self.model = model

    @property
    def predictions(self) -> dict[str, str]:
        """Function id -> prediction, as ``evaluation.judged_all`` takes them."""
        return {one.function.id: one.prediction for one in self}

    @cached_property
    def questions(self) -> pd.DataFrame:
        """One row for each question to the tool, as recorded while the answers were written.

        Columns: ``id``, ``repository``; ``probability`` of the token that triggered the question;
        ``failure`` of the call, or ""; ``names``, how many suggestions begin with what was already
        written; ``chosen``, the name that the answer has there, "" for none; ``offered``, whether
        that name was offered, or the answer was not constrained (no suggestion begins that way, or
        none can be spelled in the model's tokens); ``right``, whether the original's body contains
        that name anywhere, since positions cannot be compared once the two differ.
        """
        rows = []
        for one in self:
            answer, wanted = one.completion, set(identifiers(one.function.body))
            for question in (Question(**asked) for asked in answer.record) if answer else ():
                start = len("".join(answer.tokens[: question.step + 1]))
                rest = re.match(r"\w*", answer.text[start:])[0]
                chosen = question.begun + rest
                names = [name for name in question.offered if name.startswith(question.begun)]
                names = [re.match(r"\w*", name)[0] for name in names]  # not the = of ``name=``
                cut = answer.finish_reason == "length" and start + len(rest) == len(answer.text)
                offered = chosen in names or not question.choices
                offered |= cut and any(name.startswith(chosen) for name in names)
                sure = math.exp(answer.token_logprobs[question.step])
                place = one.function.id, one.function.repository, sure, question.failure
                rows.append((*place, len(names), chosen, offered, chosen in wanted))
        columns = "id repository probability failure names chosen offered right"
        return pd.DataFrame(rows, columns=columns.split())


Written = Mapping[tuple[str, str], Generations]  # (model, condition) -> what it wrote


def generate(
    model: LocalModel,
    functions: Sequence[Function],
    tool: JediTool,
    use: ToolUse = ToolUse(),
    decoding: Decoding = DECODING,
    store: Store = None,
    progress: bool = True,
) -> Generations:
    """Write every function anew, given its docstring and signature, in its place; in the order of
    ``functions``.

    Answers are stored and resumed as in ``models.complete``; if a repository's Python
    files change, its functions are generated again. A function whose prompt does not fit into the
    model's context gets no answer.
    """
    tooled, context = ToolModel(model, functions, tool, use), model.context or math.inf
    prompts = [one for one in tooled.prompts() if len(model.prompt_ids(one.text)) < context]
    done = {one.id: one for one in complete(tooled, prompts, decoding, store, progress)}
    return Generations([Generated(one, done.get(one.id)) for one in functions], tooled)


def call_rows(written: Written) -> list[dict]:
    """For each (model, condition) that used the tool, how often it was called.

    ``calls`` of all functions; ``calls_per_function`` with its interval over repositories;
    ``not_offered_calls``, where the chosen name was not among those that the tool offered; and
    ``failed_calls``, which got no answer; the last two out of ``n`` calls.
    """
    rows = []
    for key, generated in _with_tool(written):
        functions, asked = generated.model.functions, generated.questions
        calls = _counts([one.id for one in functions], asked)
        each = average(calls, [one.repository for one in functions])
        wrong, failed = len(asked) - asked.offered.sum(), (asked.failure != "").sum()
        rows += [
            bare_row(*key, "calls", len(asked), len(functions)),
            row(*key, "calls_per_function", each),
            bare_row(*key, "not_offered_calls", wrong, len(asked)),
            bare_row(*key, "failed_calls", failed, len(asked)),
        ]
    return rows


def offer_rows(written: Written) -> list[dict]:
    """For each (model, condition) that used the tool, what it offered.

    ``answered_percent`` is the share of the calls at which at least one name could be chosen, and
    ``names_per_call`` the mean number of names at these calls. Both have intervals over
    repositories.
    """
    rows = []
    for key, generated in _with_tool(written):
        asked = generated.questions
        if len(asked):
            share = rate(asked.names > 0, asked.repository)
            rows.append(row(*key, "answered_percent", share.percent()))
        if len(some := asked[asked.names > 0]):
            rows.append(row(*key, "names_per_call", average(some.names, some.repository)))
    return rows


def _with_tool(written: Written) -> list[tuple]:
    return [(key, generated) for key, generated in written.items() if generated.model.use.trigger]


def gated(gate: float, rules: Rules = PAPER_RULES) -> ToolUse:
    """The rules with a different gate on the mark (the replication package's
    ``lsp_conf``).

    A gate of 1 or more means "never".
    """
    return ToolUse("mark", rules, gate if gate < 1 else NEVER)


def gate_rows(
    model: str, frames: Mapping[float, pd.DataFrame], asked: Mapping[float, pd.DataFrame]
) -> list[dict]:
    """One model's Table III at each gate, with ``editsim_percent``, ``calls_per_function`` and
    ``calls_percent`` of the calls at the first gate.

    ``frames`` are as from ``evaluation.judged_all``, ``asked`` as from ``Generations.questions``.
    Conditions are
    ``gate_<number>``, and ``gate_<number> - gate_<first>`` for changes from the first gate, over
    the same functions.
    """
    first, *others = frames
    names = {gate: f"gate_{gate:g}" for gate in frames}
    known = repository_rows(
        {(model, names[gate]): frame for gate, frame in frames.items()}, base=names[first]
    )
    rows = [each for each in known if "_relative_" not in each["metric"]]
    calls = {gate: _counts(frame.id, asked[gate]) for gate, frame in frames.items()}
    texts, total = {gate: one.edit_similarity for gate, one in frames.items()}, len(asked[first])
    where = frames[first].cluster
    for gate, name in names.items():
        rows.append(row(model, name, "editsim_percent", rate(texts[gate], where).percent()))
        rows.append(row(model, name, "calls_per_function", average(calls[gate], where)))
        if total:
            share = 100 * len(asked[gate]) / total
            rows.append(bare_row(model, name, "calls_percent", share, total))
    for gate in others:
        condition = f"{names[gate]} - {names[first]}"
        similarity = paired_difference(texts[first], texts[gate], where).percent()
        more = average(calls[gate] - calls[first], where)
        rows.append(row(model, condition, "editsim_change_points", similarity))
        rows.append(row(model, condition, "calls_per_function_change", more))
    return rows


def removal_rows(model: str, asked: pd.DataFrame, gates: Sequence[float]) -> list[dict]:
    """For answers generated without a gate: which of their questions to the tool each gate would
    keep.

    ``kept_right_percent`` and ``kept_wrong_percent`` are the shares of calls with right and with
    wrong names that are kept, ``right_percent`` is the share of right names among the kept calls.
    Under ``marks``, ``auroc`` is how often a right call's mark is more probable than a wrong one's.

    This is exact for the first call that a gate removes from an answer; after it the answer might
    have continued differently.
    """
    rows, right = [], asked.right.astype(bool)
    for gate in gates:
        kept = asked.probability >= gated(gate).gate
        shares = {"kept_right": kept[right], "kept_wrong": kept[~right], "right": right[kept]}
        for name, flags in shares.items():
            if len(flags):
                share = rate(flags, asked.repository[flags.index]).percent()
                rows.append(row(model, f"gate_{gate:g}", f"{name}_percent", share))
    auroc = auroc_interval(right, asked.probability, asked.repository)
    if not math.isnan(auroc.value):
        rows.append(row(model, "marks", "auroc", auroc))
    return rows


def _counts(ids: Sequence[str], asked: pd.DataFrame) -> pd.Series:
    """How often the tool was asked for each function."""
    return pd.Series(ids).map(asked.id.value_counts()).fillna(0)
