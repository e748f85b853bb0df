"""Generates functions with the completion tool (paper, Section III-C).

``ToolConstraint`` is Algorithm 3 for one row of a batch, that is, for one function that the model
is writing. A row is unconstrained until the tool is called. The tool's suggestions become a trie of
tokens, and the model must choose among the paths in this trie. After the chosen name, the row is
unconstrained again. The model may therefore continue a chosen ``foo`` to ``foobar``, which was not
offered; Algorithm 3 allows this, and so do the replication packages. With the rule ``boundary``,
the name must be followed by a *break*, a token that cannot continue an identifier. If there are no
suggestions, because the list is empty or the call failed, the row continues unconstrained. The mark
adds no text to the answer. If the tool had no suggestions after a mark, the next token may not be a
mark again, because the same question would get the same answer.

``generate`` is Algorithm 2, for many functions at once. The rows of a batch may belong to functions
of different files and repositories. When the model has written a token that triggers the tool, one
of several processes answers the tool's question, while the model already processes this token. The
record of a row contains the questions to the tool, its suggestions and the model's choices.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lookuplab import python_sources
from lookuplab.errors import UserError, check_choice
from lookuplab.models import Completion, Decoding, Prompt
from lookuplab.models.completions import Requests, StoreOrPath, complete
from lookuplab.models.local import LocalModel
from lookuplab.models.tokens import TAIL, UNFINISHED, NameTries, Trie, decode
from lookuplab.toolgen.analysers import show_to_new_workers
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_tool import (
    TOOL_VERSION,
    JediTool,
    ToolAnswer,
    ask_tool,
    ends_after_dot,
    suggestions,
)
from lookuplab.toolgen.marking import NEVER_MARKED
from lookuplab.toolgen.rules import MARK, NEVER, PAPER_RULES, ModelKind, Rules, prompt_text
from lookuplab.work import say

if TYPE_CHECKING:
    import torch

# 1. The tool as a constraint on one row


@dataclass(frozen=True)
class ToolUse:
    """Says when the tool is called (``trigger``) and which ``rules`` apply: the paper's, a
    package's, or a variation such as ``dataclasses.replace(PAPER_RULES, ...)``.

    With the ``trigger`` "mark", the tool is called where the model writes the mark. With "dot", the
    tool is called after a dot that follows an expression; this is monitor-guided decoding, which
    works with any model and needs no fine-tuning. With None, the tool is never called. Raises
    UserError for any other trigger. If the trigger is not "mark", the model may not write the mark.
    Monitor-guided decoding constrains the model until it writes a break, a token that cannot
    continue an identifier. For "dot", the ``name_end_rule`` is therefore always "break", and
    ``boundary`` is True: a break must follow the name.

    The ``rules`` decide how the tool is called (``jedi_tool.unsaved_file``), how the prompt is
    written (``rules.prompt_text``), and which names are offered to the model. The packages offer
    all texts that Jedi would insert, including ``name=``. package-2023 leaves out the words of
    ``marking.NEVER_MARKED``; package-2024 keeps these words, but offers nothing if there are no
    other words.
    """

    trigger: Literal["mark", "dot"] | None = "mark"
    rules: Rules = PAPER_RULES

    def __post_init__(self) -> None:
        check_choice("trigger", self.trigger, ("mark", "dot", None))
        if self.trigger == "dot":
            rules = replace(self.rules, name_end_rule="break", boundary=True)
            object.__setattr__(self, "rules", rules)

    def __str__(self) -> str:
        """Return the trigger and the rules as a text for the keys of stored answers. The rules
        ``given_signature`` and ``boundary`` are mentioned only if they are False.
        """
        text = (
            f"trigger {self.trigger}, variant {self.rules}, "
            f"gate {float(self.rules.min_mark_probability)}, ends {self.rules.name_end_rule}"
        )
        for name in ("given_signature", "boundary"):
            if not getattr(self.rules, name):
                text += f", {name} False"
        return text

    def constraint(self, *of_row: Any) -> "ToolConstraint":
        """Return the constraint on one row. ``of_row`` are the other arguments of ToolConstraint:
        vocabulary, before and ask.
        """
        return ToolConstraint(self, *of_row)


def role_of(name: str) -> tuple[str, str]:
    """Return the pair (role, condition) that stands for a model in tables: ("gpt", "toolgen") for
    the model's name ``gpt-toolgen``. A name that ends with neither ``-toolgen`` nor ``-base`` has
    the condition "base".
    """
    role, _, condition = name.rpartition("-")
    return (role, condition) if condition in ("base", "toolgen") else (name, "base")


class Vocabulary(NameTries):
    """The vocabulary of one model, shared by the constraints of all of its rows. ``mark`` is the
    mark's id, or None if the tokenizer has no mark.
    """

    @cached_property
    def mark(self) -> int | None:
        return self.tokenizer.get_added_vocab().get(MARK)

    def piece(self, token: int) -> str:
        """Return the text that a token adds when it follows other text.

        The text is "" for ids that the tokenizer does not have; a model's vocabulary may be padded
        with such ids.
        """
        return self.texts[token] if token < len(self.texts) else ""

    def spellings(
        self, last: int, names: Sequence[str], begun: str
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return two lists of token paths. Each path completes one of the suggested ``names``. A
        path in the first list ends with the name; the last token of a path in the second list also
        contains a character after the name. ``begun`` is the part of a name that is already
        written; names that do not begin with this part are left out.

        ``last`` is the row's last token. After a mark, a name's tokens do not depend on the text
        before the mark, just as in training.
        """
        # "x." stands for the row's text before the mark, which has no effect on the name's tokens
        alone = self.tokenizer("x.", add_special_tokens=False)["input_ids"]
        tail = (*alone, last) if last == self.mark else (last,)
        rests = [name[len(begun) :] for name in names if name.startswith(begun)]
        paths, closed, _ = self.paths(tail, [rest for rest in rests if rest])
        return ([[], *paths] if "" in rests else paths), closed


@dataclass
class Question:
    """One question to the tool, as it is kept in the record of a row.

    - ``step``: the index, from 0, of the answer's token after which the tool was called.
    - ``begun``: the part of a name that the model had already written there.
    - ``offered``: the names that the tool suggested.
    - ``failure``: why the call failed, or "".
    - ``choices``: a pair for each token that was restricted to the offered names. The pair is (ids
      of the tokens that continue a name, whether the name could end there). There are no pairs if
      no offered name begins with ``begun`` and can be written in tokens.
    """

    step: int
    begun: str
    offered: tuple[str, ...] = ()
    failure: str = ""
    choices: tuple[tuple[list[int], bool], ...] = ()


@dataclass
class ToolConstraint:
    """The constraint on one row of a batch (see ``models.tokens.Constraint``).

    ``before`` are the tokens that the row continues, or [] if the row begins a new text. ``ask`` is
    a function that calls the tool: it takes the text of the generated function so far, without
    marks, and returns a future of the tool's answer.
    """

    asks: ClassVar[bool] = True
    use: ToolUse
    vocabulary: Vocabulary
    before: Sequence[int]
    ask: Callable[[str], Future[ToolAnswer]]
    tokens: tuple[int, ...] = ()
    questions: list[Question] = field(default_factory=list)
    # the pending answer, if the tool was called after the last token
    pending: Future[ToolAnswer] | None = None
    # the current node in the trie of the suggestions; None if any token may come next
    node: Trie | None = None
    # whether the last token was a mark or a dot to which the tool gave no suggestions; if so, the
    # next token must not be a mark
    unanswered: bool = False
    name_probabilities: tuple[float, ...] = ()  # the probabilities of the name's tokens so far

    def log(self) -> list[dict[str, Any]]:
        """Return the row's questions (see ``Question``) as dictionaries. Call this method when the
        row is complete.
        """
        self._collect()
        return [vars(question) for question in self.questions]

    def restrict(self, logits: "torch.Tensor") -> "tuple[torch.Tensor, float] | None":
        self._collect()
        rules = self.use.rules
        mark = self.vocabulary.mark
        margin = math.inf
        if self.node is not None:
            tokens, may_end = self._choices(self.node)
            # the name continues if the probability of the next token is at least the mean
            # probability of the name's tokens so far
            if tokens and may_end and rules.name_end_rule == "mean":
                probability = _probability(logits, tokens)
                mean = math.fsum(self.name_probabilities) / max(1, len(self.name_probabilities))
                tokens, may_end = (tokens, False) if probability >= mean else ([], True)
                margin = abs(probability - mean)
            if tokens or rules.boundary:
                return self.vocabulary.only(logits, tokens, may_end), margin
            self.node = None
        forbidden = self.unanswered or self.use.trigger != "mark"
        threshold = NEVER if forbidden else rules.min_mark_probability
        if mark is None or threshold <= 0:
            return None if margin == math.inf else (logits, margin)
        probability = _probability(logits, [mark])
        # by a package's rules, a mark below the threshold may be written, but then ``push`` does
        # not call the tool
        if probability < threshold and (forbidden or not rules.is_package):
            logits = logits.clone()
            logits[mark] = -math.inf
        return logits, min(margin, abs(probability - threshold))

    def push(self, token: int, logprob: float) -> None:
        rules = self.use.rules
        trigger = self.use.trigger
        probability = math.exp(logprob)
        self.tokens += (token,)
        self.unanswered = False
        if self.node is not None:
            self.questions[-1].choices += (self._choices(self.node),)
            self.node = self.node.get(token)
            if self.node is not None and not self.node.closed:
                self.name_probabilities += (probability,)
                first = rules.name_end_rule == "first"
                ended = self.node.terminal and (first or not self.node)
                # with ``boundary``, the row stays restricted until the break after the name
                if rules.boundary or not ended:
                    return
            # the name has ended: this token completes it, is a break, or contains a break
            self.node = None
        if trigger == "mark" and token == self.vocabulary.mark:
            self.unanswered = rules.is_package and probability < rules.min_mark_probability
            if not self.unanswered:
                self._ask()
        elif trigger == "dot" and re.search(r"\.\w*\Z", self.vocabulary.piece(token)):
            self._ask()

    def text(self) -> str:
        """Return the function so far, without marks."""
        tail = list(self.before[-TAIL:])
        start, whole = decode(self.vocabulary.tokenizer, [tail, [*tail, *self.tokens]])
        return whole[len(start) :]

    def _ask(self) -> None:
        """Call the tool after the last token, if a name can follow there."""
        text = self.text()
        if self.use.trigger == "dot" and not ends_after_dot(text):
            return
        # the tool cannot be called between two tokens that spell one character together
        self.unanswered = text.endswith(UNFINISHED)
        if not self.unanswered:
            self.questions.append(Question(len(self.tokens) - 1, re.split(r"\W", text)[-1]))
            self.pending = self.ask(text)

    def _collect(self) -> None:
        """If an answer is pending, wait for the answer and restrict the row to the suggestions."""
        if self.pending is None:
            return
        question = self.questions[-1]
        rules = self.use.rules
        answer = self.pending.result()
        self.pending = None
        question.failure = answer.failure
        if not rules.is_package or self.use.trigger == "dot":
            question.offered = suggestions(answer, self.use.trigger)
        else:
            inserted = [text.strip() for text in answer.inserted if text.strip()]
            if rules.is_package_2023:
                inserted = [text for text in inserted if text not in NEVER_MARKED]
            if not NEVER_MARKED.issuperset(inserted):
                question.offered = tuple(question.begun + text for text in inserted)
        self._begin_name(self.tokens[-1], question.offered, question.begun)

    def _begin_name(self, last: int, names: Sequence[str], begun: str) -> None:
        """Restrict the row to ``names``. The beginning ``begun`` of the name is already written.
        ``last`` is the row's last token.
        """
        boundary = self.use.rules.boundary
        paths, closed = self.vocabulary.spellings(last, names, begun)
        self.node = Trie.of(paths, closed if boundary else ()) if paths else None
        if self.node is not None and not boundary and not self._choices(self.node)[0]:
            self.node = None  # the part of the name that was already written is a complete name
        self.unanswered = self.node is None
        self.name_probabilities = ()

    def _choices(self, node: Trie) -> tuple[list[int], bool]:
        """Return the tokens that may follow at ``node``, and whether the name may end there."""
        over = node.terminal and self.use.rules.name_end_rule == "first"
        return [] if over else sorted(node), node.terminal


def _probability(logits: "torch.Tensor", tokens: list[int]) -> float:
    """Return the highest probability among ``tokens``."""
    return (logits[tokens].max() - logits.logsumexp(-1)).exp().item()


# 2. Many functions at once

# functions have at most 128 tokens of code by default (``Filters``); the rest is room for marks
FUNCTION_DECODING = Decoding(max_new_tokens=192)


@dataclass(eq=False)
class ToolModel:
    """A local model that calls the tool while it writes. This class is a ``models.Model``, so
    ``complete`` can batch, store and resume the answers.

    The model answers only the prompts that ``prompts`` makes from ``functions``. If Jedi twice
    fails to answer a question about a function, the function has no answer, and its id is in
    ``lost``. Raises UserError for a model behind an endpoint, and if the trigger is the mark but
    the model's vocabulary has no mark.
    """

    model: LocalModel
    functions: Sequence[Function]
    tool: JediTool
    use: ToolUse

    def __post_init__(self) -> None:
        self.name = self.model.name
        self.chat = self.model.chat
        self.lost = set[str]()
        if not isinstance(self.model, LocalModel):
            raise UserError(
                f"{self.name}: an endpoint cannot call a tool between two tokens; use a local model"
            )
        self.kind: ModelKind = "decoder" if self.model.causal else "encoder-decoder"
        self.tokenizer = self.model.tokenizer
        self.vocabulary = Vocabulary(self.tokenizer, self.model.end_of_text)
        if self.use.trigger == "mark" and self.vocabulary.mark is None:
            raise UserError(
                f"{self.name} has no mark in its vocabulary; fine-tune it on marked functions "
                "(lookuplab train toolgen), or set the trigger to 'dot'"
            )

    @cached_property
    def identity(self) -> dict[str, str]:
        """Return what identifies the model and the tool in keys of stored answers: everything that
        can change an answer, except the repository's content, which is in ``Prompt.place``.
        """
        tool = f"{python_sources.identity('jedi', 'parso')}, answers {TOOL_VERSION}"
        return {**self.model.identity, "tool": tool, "tool use": str(self.use)}

    def prompts(self) -> list[Prompt]:
        """Return one prompt for each function, with the function's id."""
        return [
            Prompt(
                function.id,
                prompt_text(function, self.kind, self.use.rules),
                place=f"{function.id} in {self.tool.content_digest(function.root)}",
            )
            for function in self.functions
        ]

    def generate(self, requests: Requests, decoding: Decoding) -> Iterator[list[Completion]]:
        """Yield batches of answers. The record of an answer lists the questions that were put to
        the tool. Each of them has the fields of ``Question``.
        """
        by_id = {function.id: function for function in self.functions}
        show_to_new_workers(function.root for function in self.functions)

        def constrain(prompt: Prompt, before: Sequence[int]) -> ToolConstraint:
            def request(written: str) -> Future[ToolAnswer]:
                function = by_id[prompt.id]
                return threads.submit(
                    ask_tool, self.tool, function, written, self.kind, self.use.rules
                )

            return self.use.constraint(self.vocabulary, before, request)

        left = {(prompt.id, sample) for prompt, sample in requests}
        with ThreadPoolExecutor(self.tool.workers) as threads:
            for batch in self.model.generate(requests, decoding, constrain):
                left -= {(one.id, one.sample) for one in batch}
                yield batch
        self.lost |= {id for id, _ in left}

    def score(self, pairs: Sequence[tuple[Prompt, str]]) -> Iterator[list[Completion]]:
        """Yield the given continuations with their log-probabilities. The tool is not called."""
        return self.model.score(pairs)


@dataclass(frozen=True)
class Generations:
    """The functions that ``model`` generated. ``completions`` is {function's id: completion}. A
    function has no completion if its prompt does not fit into the model's context, or if Jedi twice
    failed to answer a question.
    """

    model: ToolModel
    completions: Mapping[str, Completion]

    @property
    def predictions(self) -> dict[str, str]:
        """Return {function's id: its generated body or whole ``def``, without marks}. The text is
        "" for a function without a completion.
        """
        made = self.completions
        ids = [function.id for function in self.model.functions]
        return {id: made[id].text if id in made else "" for id in ids}


def generate(
    model: LocalModel,
    functions: Sequence[Function],
    tool: JediTool,
    use: ToolUse = ToolUse(),
    decoding: Decoding = FUNCTION_DECODING,
    store: StoreOrPath = None,
    progress: bool = True,
) -> Generations:
    """Generate every function from its docstring and signature. The tool completes names at the
    function's place in its file.

    Answers are stored and resumed as in ``models.complete``; if a repository's Python files change,
    its functions are generated again. A function has no completion if its prompt does not fit into
    the model's context, or if Jedi twice fails to answer a question. A warning then names
    the function.
    """
    tooled = ToolModel(model, functions, tool, use)
    context = model.context or math.inf
    prompts = [
        prompt for prompt in tooled.prompts() if len(model.prompt_ids(prompt.text)) < context
    ]
    try:
        completions = complete(tooled, prompts, decoding, store, progress)
    except UserError:
        if not tooled.lost:
            raise
        say(
            f"warning: {model.name}: {len(tooled.lost)} of {len(prompts)} functions have no "
            f"answer ({', '.join(sorted(tooled.lost))}): a question to Jedi was lost twice; stop "
            "other programs on this machine, and run it again: only these functions are generated"
        )
        others = [prompt for prompt in prompts if prompt.id not in tooled.lost]
        completions = complete(tooled, others, decoding, store, progress)
    return Generations(tooled, {completion.id: completion for completion in completions})
