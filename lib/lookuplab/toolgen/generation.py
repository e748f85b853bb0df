"""Generation of functions with the completion tool (paper, Section III-C). Algorithm 2 runs for
many functions at once, and records the questions to the tool, its suggestions and the model's
choices.

The rows of a batch belong to functions of different files and repositories. When a token triggers a
question, one of several processes answers the question in the background, while the model reads the
token.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from lookuplab import python_sources
from lookuplab.errors import UserError
from lookuplab.models import Completion, Decoding, Prompt
from lookuplab.models.completions import Requests, StoreOrPath, complete
from lookuplab.models.local import LocalModel
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_tool import TOOL_VERSION, JediTool, ask_tool, content
from lookuplab.toolgen.jedi_worker import ToolAnswer
from lookuplab.toolgen.pairs import kind_of, prompt_text
from lookuplab.toolgen.tool_use import ToolConstraint, ToolUse, Vocabulary
from lookuplab.work import say

# 128 tokens of code, the longest function that the package uses, plus room for marks
FUNCTION_DECODING = Decoding(max_new_tokens=192)


@dataclass(eq=False)
class ToolModel:
    """A local model that calls the tool while it writes. It is a ``models.Model``, so that
    ``complete`` can batch, store and resume its answers.

    It answers only the prompts that ``prompts`` makes from ``functions``. If a question to Jedi is
    lost twice, the function has no answer and its id is in ``lost``. Raises UserError for a model
    behind an endpoint, and if the trigger is the mark but the model's vocabulary has no mark.
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
        self.kind = kind_of(self.model.config)
        self.tokenizer = self.model.tokenizer
        self.vocabulary = Vocabulary(self.tokenizer, self.model.end_of_text)
        if self.use.trigger == "mark" and self.vocabulary.mark is None:
            raise UserError(
                f"{self.name} has no mark in its vocabulary; fine-tune it on marked functions "
                "(lookuplab train toolgen), or set the trigger to 'dot'"
            )

    @cached_property
    def identity(self) -> dict[str, str]:
        """The identity of the model and of the tool: everything that can change an answer, except
        the content of the repository, which is part of a prompt's ``place``.
        """
        tool = f"{python_sources.identity('jedi', 'parso')}, answers {TOOL_VERSION}"
        return {**self.model.identity, "tool": tool, "tool use": str(self.use)}

    def prompts(self) -> list[Prompt]:
        """Return one prompt for each function, with the function's id."""
        contents = {root: content(root) for root in {function.root for function in self.functions}}
        return [
            Prompt(
                function.id,
                prompt_text(function, self.kind, self.use.rules),
                place=f"{function.id} in {contents[function.root]}",
            )
            for function in self.functions
        ]

    def generate(self, requests: Requests, decoding: Decoding) -> Iterator[list[Completion]]:
        """Yield batches of answers. The record of an answer lists the questions that were put to
        the tool, as in ``tool_use.Question``.
        """
        by_id = {function.id: function for function in self.functions}

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
    """The functions that ``model`` generated: ``completions`` is {function's id: completion}. A
    function has no completion if its prompt does not fit into the model's context, or if a question
    to Jedi was lost.
    """

    model: ToolModel
    completions: Mapping[str, Completion]

    @property
    def predictions(self) -> dict[str, str]:
        """{function's id: its generated body or whole ``def``, without marks}. The text is "" for a
        function without a completion.
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
    """Generate every function from its docstring and signature, with the tool working at the
    function's place in its file.

    Answers are stored and resumed as in ``models.complete``; if a repository's Python files change,
    its functions are generated again. A function has no completion if its prompt does not fit into
    the model's context, or if a question to Jedi is lost twice; the latter prints a warning.
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
            f"answer ({', '.join(sorted(tooled.lost))}): a question to Jedi was lost twice; run "
            "less else on this machine, and run it again: only these functions are generated"
        )
        others = [prompt for prompt in prompts if prompt.id not in tooled.lost]
        completions = complete(tooled, others, decoding, store, progress)
    return Generations(tooled, {completion.id: completion for completion in completions})
