"""Generation of functions with the completion tool (paper, Section III-C): Algorithm 2 for many
functions at once, and a record of the tool's questions, suggestions and the model's choices.

The rows of a batch belong to functions of different files and repositories. While the model reads
the token that triggered a question, the question is answered in the background, by one of several
processes.
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
from lookuplab.work.progress import say

# the package's 128 tokens of code, plus marks
FUNCTION_DECODING = Decoding(max_new_tokens=192)


@dataclass(eq=False)
class ToolModel:
    """A local model with the tool, as a ``models.Model``, so that ``complete`` can store, resume
    and batch.

    It answers the prompts of ``prompts`` for ``functions``. Functions for which a question to Jedi
    was lost twice have no answer and are in ``lost``. Raises UserError for a model behind an
    endpoint, and if marks are the trigger but the model has none.
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
                f"{self.name}: an endpoint cannot ask a tool between two tokens; use a local model"
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
        """The model's identity, and everything that changes the tool's answers, except the
        repository's content, which is part of a prompt's ``place``.
        """
        tool = f"{python_sources.identity('jedi', 'parso')}, answers {TOOL_VERSION}"
        return {**self.model.identity, "tool": tool, "tool use": str(self.use)}

    def prompts(self) -> list[Prompt]:
        """Return the prompt for each function. Its id is the function's id."""
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
        """Yield batches of answers. If the tool is used, their records are
        ``tool_use.Question``s.
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
        """Yield the log-probabilities of given continuations, which need no tool."""
        return self.model.score(pairs)


@dataclass(frozen=True)
class Generations:
    """The functions that ``model`` generated, by id. There is no completion if the prompt does not
    fit into the context, or if a question to Jedi was lost.
    """

    model: ToolModel
    completions: Mapping[str, Completion]

    @property
    def predictions(self) -> dict[str, str]:
        """{function's id: a body or a whole ``def`` without marks}; "" without a completion."""
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
    """Generate every function from its docstring and signature, at its place in the file, in the
    order of ``functions``.

    Answers are stored and resumed as in ``models.complete``; if a repository's Python files change,
    its functions are generated again. A function whose prompt does not fit into the model's context
    has no completion. Neither has a function for which a question to Jedi is lost twice; a warning
    says so.
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
            f"answer ({', '.join(sorted(tooled.lost))}): a question to Jedi was lost twice; see to "
            "less other work, and run it again: only they are asked"
        )
        others = [prompt for prompt in prompts if prompt.id not in tooled.lost]
        completions = complete(tooled, others, decoding, store, progress)
    return Generations(tooled, {completion.id: completion for completion in completions})
