"""Functions written with the completion tool at hand (paper, Section III-C): Algorithm 2 for many
functions at once; and what was asked, offered and chosen meanwhile.

The rows of a batch belong to functions of different files and repositories. A row asks the tool in
the background while the model reads the token that triggered it, and the answers of all rows come
from several processes.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from lookuplab import python_sources
from lookuplab.errors import UserError
from lookuplab.models.complete import Store, complete
from lookuplab.models.local import LocalModel
from lookuplab.models.types import Completion, Decoding, Prompt
from lookuplab.scoring.calibration import auroc_interval
from lookuplab.scoring.rates import average, bare_row, paired_difference, rate, row
from lookuplab.toolgen.functions import Function, python_files
from lookuplab.toolgen.jedi_tool import VERSION, Answer, JediTool, ask
from lookuplab.toolgen.pairs import kind_of, prompt_text
from lookuplab.toolgen.similarity import identifiers
from lookuplab.toolgen.tables import BASE, repository_rows
from lookuplab.toolgen.tool_use import NEVER, Step, ToolConstraint, ToolUse, Vocabulary

DECODING = Decoding(max_new_tokens=192)  # the package's 128 tokens of code, and marks between them


@dataclass(frozen=True)
class Generated:
    """One answer. ``prediction`` is a body or a whole ``def`` without marks, as ``lookuplab score
    toolgen`` takes it. A function that was left out has "", no completion, and the reason in
    ``failure``.
    """

    function: Function
    prediction: str
    completion: Completion | None
    failure: str = ""


@dataclass
class ToolModel:
    """A local model with the tool at hand: a ``models.types.Model``, so that ``complete`` stores,
    resumes and batches. It answers the prompts of ``prompts`` for ``functions``.

    UserError for a trigger by marks and a model without one.
    """

    model: LocalModel
    functions: Sequence[Function]
    tool: JediTool
    use: ToolUse = ToolUse()
    rules: dict[str, ToolConstraint] = field(default_factory=dict)  # of the rows that were written

    def __post_init__(self) -> None:
        self.name = self.model.name
        self.kind = kind_of(self.model.config)  # one of ``pairs.KINDS``
        self.vocabulary = Vocabulary(self.model.tokenizer, self.model.end_of_text)
        self._by_id = {function.id: function for function in self.functions}
        if self.use.trigger == "mark" and self.vocabulary.mark is None:
            raise UserError(
                f"{self.name} has no mark in its vocabulary; fine-tune it on marked functions "
                "(lookuplab train toolgen), or set the trigger to 'dot'"
            )

    @cached_property
    def identity(self) -> dict[str, str]:
        """The model's, and what changes the tool's answers. The repository's content is part of a
        prompt's place.
        """
        use = ", ".join(f"{name} {value}" for name, value in asdict(self.use).items())
        tool = f"{python_sources.identity('jedi', 'parso')}, answers {VERSION}"
        return {**self.model.identity, "tool": tool, "tool use": use}

    def prompts(self) -> list[Prompt]:
        """What the model is asked for each function; a prompt's id is the function's."""
        content = {root: content_hash(root) for root in {one.root for one in self.functions}}
        return [
            Prompt(
                one.id,
                prompt_text(one, self.kind),
                place=f"{one.id} in {content[one.root]}",
            )
            for one in self.functions
        ]

    def generate(
        self, requests: Sequence[tuple[Prompt, int]], decoding: Decoding
    ) -> Iterator[list[Completion]]:
        def constrain(prompt: Prompt, before: list[int]) -> ToolConstraint | None:
            if self.use.trigger is None and self.vocabulary.mark is None:
                return None
            self.rules[prompt.id] = self._rule(prompt.id, before, threads)
            return self.rules[prompt.id]

        with ThreadPoolExecutor(self.tool.workers) as threads:
            yield from self.model.generate(requests, decoding, constrain)

    def steps(self, answer: Completion, tool: JediTool | None = None) -> list[Step]:
        """What happened in the row of an answer. Of one that was not written just now, but came
        from the store or from another beam, it is followed through the same rules; ``tool`` is
        asked again then, and remembers its answers.
        """
        rule = self.rules.get(answer.id)
        if rule is None or [step.token for step in rule.steps] != list(answer.token_ids):
            self.tool, one = tool or self.tool, self._by_id[answer.id]
            text = prompt_text(one, self.kind)
            before = self.model.prompt_ids(text) if self.model.causal else []
            with ThreadPoolExecutor(1) as threads:
                rule = self._rule(answer.id, before, threads)
                for token, logprob in zip(answer.token_ids, answer.token_logprobs, strict=True):
                    rule.push(token, logprob)
        rule.choices()  # waits for the answer to the last question
        for step, text in zip(rule.steps, answer.tokens, strict=True):
            step.text = text
        return rule.steps

    def _rule(self, id: str, before: Sequence[int], threads: ThreadPoolExecutor) -> ToolConstraint:
        """What rules the row of a function; ``before`` are the tokens that the row continues."""

        def asked(written: str) -> Future[Answer]:
            function, use = self._by_id[id], self.use
            return threads.submit(ask, self.tool, function, written, self.kind, use.variant)

        return ToolConstraint(self.use, self.vocabulary, before, asked)


class Generations(list):
    """A list of Generated, and the ``model`` that made it, with the tool."""

    def __init__(self, generated: Sequence[Generated], model: ToolModel) -> None:
        super().__init__(generated)
        self.model = model

    @property
    def predictions(self) -> dict[str, str]:
        """Function id -> prediction, as ``evaluation.judged_all`` takes them."""
        return {one.function.id: one.prediction for one in self}

    def questions(self, tool: JediTool) -> pd.DataFrame:
        """One row for each question to the tool, recorded while the answers were written (see
        ``ToolModel.steps``).

        Columns: ``id``, ``repository``; ``step``, which token of the answer asked, from 0, and its
        ``probability``; ``before``, the text up to the caret, without marks; ``failure`` of the
        call, or ""; ``names``, how many began as what was written there; ``chosen``, the name that
        the answer has there, "" for none; ``offered``, whether it was, or no name could be held to
        (no suggestion begins so, or none can be spelled in the model's tokens); ``right``, whether
        the original's body has that name, wherever: where in it the answer stands cannot be said
        once the two differ.
        """
        rows, use, trie = [], self.model.use, self.model.vocabulary.trie
        for one in self:
            text, wanted = one.prediction, set(identifiers(one.function.body))
            steps = self.model.steps(one.completion, tool) if one.completion and use.trigger else []
            before = ""
            for at, step in enumerate(steps):
                before += step.text
                if not step.asked:
                    continue
                begun = re.search(r"\w*\Z", before)[0]
                rest = re.match(r"\w*", text[len(before) :])[0]
                chosen, fitting = begun + rest, [n for n in step.offered if n.startswith(begun)]
                cut = one.completion.finish_reason == "length" and before + rest == text
                offered = (
                    chosen in fitting
                    or cut
                    and any(name.startswith(chosen) for name in fitting)
                    or trie(step.token, fitting, begun) is None
                )
                place = one.function.id, one.function.repository, at, step.probability, before
                found = step.failure, len(fitting), chosen, offered, chosen in wanted
                rows.append(place + found)
        columns = "id repository step probability before failure names chosen offered right"
        return pd.DataFrame(rows, columns=columns.split())


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

    Stored and resumed as in ``models.complete.complete``; a change in a repository's Python files
    asks for its functions again. A function whose prompt does not fit into the model's context is
    left out with the reason.
    """
    tooled = ToolModel(model, functions, tool, use)
    prompts, failures = tooled.prompts(), {}
    if model.context is not None:
        ids = [model.prompt_ids(prompt.text) for prompt in prompts]
        failures = {
            prompt.id: f"prompt has {len(row)} tokens, the model's context is {model.context}"
            for prompt, row in zip(prompts, ids, strict=True)
            if len(row) >= model.context
        }
    asked = [prompt for prompt in prompts if prompt.id not in failures]
    done = {answer.id: answer for answer in complete(tooled, asked, decoding, store, progress)}
    return Generations(
        [
            Generated(one, "", None, failures[one.id])
            if one.id in failures
            else Generated(one, done[one.id].text, done[one.id])
            for one in functions
        ],
        tooled,
    )


def content_hash(root: Path) -> str:
    """sha256 over the names and bytes of a repository's Python files."""
    digest = hashlib.sha256()
    for path in python_files(root):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:32]


def call_rows(written: Mapping[tuple[str, str], Generations], tool: JediTool) -> list[dict]:
    """Per (model, condition) that used the tool: ``calls`` of all functions, ``calls_per_function``
    with its interval over repositories, and ``not_offered_calls``, names that were chosen where the
    tool offered others only, of ``n`` calls.
    """
    rows = []
    for (model, condition), generated in written.items():
        if generated.model.use.trigger is None:
            continue
        asked = generated.questions(tool)
        ids = pd.Series([one.function.id for one in generated])
        where = [one.function.repository for one in generated]
        exceptions = len(asked) - asked.offered.sum()
        rows += [
            bare_row(model, condition, "calls", len(asked), len(generated)),
            row(model, condition, "calls_per_function", average(_counts(ids, asked), where)),
            bare_row(model, condition, "not_offered_calls", exceptions, len(asked)),
        ]
    return rows


def offer_rows(written: Mapping[tuple[str, str], Generations], tool: JediTool) -> list[dict]:
    """Per (model, condition) that used the tool: ``answered_percent``, the share of the calls at
    which any name could be chosen, and ``names_per_call``, the mean number of names there. Both
    with intervals over repositories.
    """
    rows = []
    for key, generated in written.items():
        asked = generated.questions(tool)
        answered = asked[asked.names > 0]
        if len(asked):
            share = rate(asked.names > 0, asked.repository).percent()
            rows.append(row(*key, "answered_percent", share))
        if len(answered):
            number = average(answered.names, answered.repository)
            rows.append(row(*key, "names_per_call", number))
    return rows


def gated(gate: float, variant: str = "paper") -> ToolUse:
    """The variant's rules with another gate on the mark (the replication package's ``lsp_conf``);
    1 or more stands for "never".
    """
    return ToolUse("mark", variant, gate if gate < 1 else NEVER)


def gate_rows(
    model: str, frames: Mapping[float, pd.DataFrame], asked: Mapping[float, pd.DataFrame]
) -> list[dict]:
    """One model's Table III at each gate, with ``editsim_percent``, ``calls_per_function`` and
    ``calls_percent`` of those at the first gate; frames as of ``evaluation.judged_all``, questions as
    of ``Generations.questions``.

    Conditions are ``gate_<number>``, and ``gate_<number> - gate_<first>`` for what changes from the
    first gate, over the same functions.
    """
    first, *others = frames
    names = {gate: f"gate_{gate:g}" for gate in frames}
    known = repository_rows(
        {(model, BASE if gate == first else names[gate]): frame for gate, frame in frames.items()}
    )
    rows = [
        each | {"condition": re.sub(rf"\b{BASE}$", names[first], each["condition"])}
        for each in known
        if "_relative_" not in each["metric"]
    ]
    counts = {gate: _counts(frame.id, asked[gate]) for gate, frame in frames.items()}
    total = len(asked[first])
    for gate, frame in frames.items():
        similarity = rate(frame.edit_similarity, frame.repository).percent()
        calls = average(counts[gate], frame.repository)
        rows.append(row(model, names[gate], "editsim_percent", similarity))
        rows.append(row(model, names[gate], "calls_per_function", calls))
        if total:
            share = 100 * len(asked[gate]) / total
            rows.append(bare_row(model, names[gate], "calls_percent", share, total))
    for gate in others:
        where, condition = frames[gate].repository, f"{names[gate]} - {names[first]}"
        texts = (frames[each].edit_similarity for each in (first, gate))
        similarity = paired_difference(*texts, where).percent()
        calls = paired_difference(counts[first], counts[gate], where)
        rows.append(row(model, condition, "editsim_change_points", similarity))
        rows.append(row(model, condition, "calls_per_function_change", calls))
    return rows


def removal_rows(model: str, asked: pd.DataFrame, gates: Sequence[float]) -> list[dict]:
    """What each gate leaves of the questions of ungated answers: ``kept_right_percent`` and
    ``kept_wrong_percent`` of the calls with such names, ``right_percent`` of the calls that are
    kept. And, under ``marks``, ``auroc``: how often a right call's mark is more probable than a
    wrong one's.

    Exact for the first call that a gate removes from an answer; behind it the answer might have
    gone on otherwise.
    """
    rows, right = [], asked.right.astype(bool)
    for gate in gates:
        kept = asked.probability >= gated(gate).gate
        shares = {"kept_right": kept[right], "kept_wrong": kept[~right], "right": right[kept]}
        for name, flags in shares.items():
            if len(flags):
                share = rate(flags, asked.repository[flags.index]).percent()
                rows.append(row(model, f"gate_{gate:g}", f"{name}_percent", share))
    if right.any() and not right.all():
        auroc = auroc_interval(right, asked.probability, asked.repository)
        rows.append(row(model, "marks", "auroc", auroc))
    return rows


def _counts(ids: pd.Series, asked: pd.DataFrame) -> pd.Series:
    """How often the tool was asked for each function."""
    return ids.map(asked.id.value_counts()).fillna(0)
