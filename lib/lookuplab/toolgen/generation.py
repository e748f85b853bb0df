"""Functions written with the completion tool at hand (paper, Section III-C): Algorithm 2 for many functions at once.

The rows of a batch belong to functions of different files and repositories. A row asks the tool in the background while
the model reads the token that triggered it, and the answers of all rows come from several processes.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from lookuplab import python_sources
from lookuplab.errors import UserError
from lookuplab.models.complete import Store, complete
from lookuplab.models.local import LocalModel
from lookuplab.models.tokens import encode
from lookuplab.models.types import Completion, Decoding, Prompt
from lookuplab.toolgen import jedi_tool
from lookuplab.toolgen.calls import Call, NotOffered, calls, not_offered
from lookuplab.toolgen.caret import ask, suggestions
from lookuplab.toolgen.files import python_files
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.pairs import kind_of, prompt_text
from lookuplab.toolgen.tool_use import ToolConstraint, ToolUse, Vocabulary

DECODING = Decoding(max_new_tokens=192)  # the package's 128 tokens of code, and the marks between them


@dataclass(frozen=True)
class Generated:
    """One answer. ``prediction`` is a body or a whole ``def`` without marks, as ``lookuplab score toolgen`` takes it;
    ``calls`` are the questions to the tool and what was chosen. A function that was left out has "", no completion, and
    the reason in ``failure``."""

    function: Function
    prediction: str
    completion: Completion | None
    calls: tuple[Call, ...] = ()
    failure: str = ""


class Generations(list):
    """A list of Generated, with the ``kind`` and ``vocabulary`` of the model and the ``use`` of the tool that made it.

    ``outcomes`` counts what came of the questions of this run: "answered", "no suggestions", or a failure. Answers from
    the store asked nothing.
    """

    def __init__(self, generated: Sequence[Generated], model: "ToolModel") -> None:
        super().__init__(generated)
        self.kind, self.vocabulary, self.use = model.kind, model.vocabulary, model.use
        self.outcomes = Counter(model.outcomes)

    @property
    def predictions(self) -> dict[str, str]:
        """Function id -> prediction, as ``evaluation.judged`` takes them."""
        return {one.function.id: one.prediction for one in self}


@dataclass
class ToolModel:
    """A local model with the tool at hand: a ``models.types.Model``, so that ``complete`` stores, resumes and batches.

    It answers the prompts of ``prompt`` for ``functions``. ``outcomes`` is extended by every call to the tool.
    UserError for a trigger by marks and a model without one.
    """

    model: LocalModel
    functions: Sequence[Function]
    tool: JediTool
    use: ToolUse = ToolUse()
    outcomes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._by_id = {function.id: function for function in self.functions}
        if self.use.trigger == "mark" and self.vocabulary.mark is None:
            raise UserError(f"{self.name} has no mark in its vocabulary; fine-tune it on marked functions (lookuplab "
                            "train toolgen), or set the trigger to 'dot'")

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def kind(self) -> str:
        """Which of ``pairs.KINDS`` the model is."""
        return kind_of(self.model.module.config)

    @cached_property
    def identity(self) -> dict[str, str]:
        """The model's, and what changes the tool's answers. The repository's content is part of a prompt's place."""
        use = ", ".join(f"{name} {value}" for name, value in asdict(self.use).items())
        tool = f"{python_sources.identity('jedi', 'parso')}, answers {jedi_tool.VERSION}"
        return {**self.model.identity, "tool": tool, "tool use": use}

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.model.tokenizer, self.model.end_of_text())

    def prompts(self) -> list[Prompt]:
        """What the model is asked for each function; a prompt's id is the function's."""
        content = {root: content_hash(root) for root in {function.root for function in self.functions}}
        return [Prompt(one.id, prompt_text(one, self.kind),
                       place=f"{one.id} in {content[one.root]}") for one in self.functions]

    def generate(self, requests: Sequence[tuple[Prompt, int]], decoding: Decoding) -> Iterator[list[Completion]]:
        with ThreadPoolExecutor(len(self.tool.workers)) as threads:
            def constrain(prompt: Prompt, before: list[int]) -> ToolConstraint | None:
                if self.use.trigger is None and self.vocabulary.mark is None:
                    return None
                return self.constraint(self._by_id[prompt.id], before, threads)

            yield from self.model.generate(requests, decoding, constrain)

    def constraint(self, function: Function, before: Sequence[int], threads: ThreadPoolExecutor) -> ToolConstraint:
        """What rules the row of a function; ``before`` are the tokens that the row continues."""
        def ask(written: str) -> Future[tuple[str, ...]]:
            return threads.submit(self._suggestions, function, written)

        return ToolConstraint(self.use, self.vocabulary, before, ask)

    def _suggestions(self, function: Function, written: str) -> tuple[str, ...]:
        answer = ask(self.tool, function, written, self.kind, self.use.variant)
        names = suggestions(answer, self.use.trigger)
        self.outcomes.append(answer.failure or ("answered" if names else "no suggestions"))
        return names


def generate(model: LocalModel, functions: Sequence[Function], tool: JediTool, use: ToolUse = ToolUse(),
             decoding: Decoding = DECODING, store: Store = None, progress: bool = True) -> Generations:
    """Write every function anew, given its docstring and signature, in its place; in the order of ``functions``.

    Stored and resumed as in ``models.complete.complete``; a change in a repository's Python files asks for its
    functions again. A function whose prompt does not fit into the model's context is left out with the reason.
    """
    tooled = ToolModel(model, functions, tool, use)
    prompts = tooled.prompts()
    failures = _too_long(model, prompts)
    asked = [prompt for prompt in prompts if prompt.id not in failures]
    done = {answer.id: answer for answer in complete(tooled, asked, decoding, store, progress)} if asked else {}
    found = []
    for function in functions:
        if function.id in failures:
            found.append(Generated(function, "", None, failure=failures[function.id]))
        else:
            answer = done[function.id]
            asked_at = tuple(calls(answer, use.trigger, tooled.vocabulary))
            found.append(Generated(function, answer.text, answer, asked_at))
    return Generations(found, tooled)


def check_suggestions(generated: Generations, tool: JediTool, progress: bool = True) -> list[NotOffered]:
    """Was every chosen name offered where it was chosen? Asks the tool at each call; returns the exceptions.

    Independent of decoding: places and names are found in the answers' text.
    """
    asked = [(one.function, call) for one in generated for call in one.calls]
    return not_offered(asked, tool, generated.kind, generated.use, generated.vocabulary, progress)


def _too_long(model: LocalModel, prompts: list[Prompt]) -> dict[str, str]:
    """{prompt id: why} of those that leave no room for an answer."""
    if model.context is None or not prompts:
        return {}
    ids = encode(model.tokenizer, [prompt.text for prompt in prompts], True, not model.module.config.is_encoder_decoder)
    return {prompt.id: f"prompt has {len(row)} tokens, the model's context is {model.context}"
            for prompt, row in zip(prompts, ids, strict=True) if len(row) >= model.context}


def content_hash(root: Path) -> str:
    """sha256 over the names and bytes of a repository's Python files."""
    digest = hashlib.sha256()
    for path in python_files(root, Counter()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:32]
