"""Makes prompts with retrieved examples, within a token budget (paper, Sections 3 and 4).

The prompt and the completion share the budget. Text that does not fit is cut "from the retrieved
description and code, in that order"; "in rare cases where the prompt itself exceeds the token
budget", the paper removes "a minimal number of tokens from the prompt". The paper leaves three
things open. We cut the lowest-ranked example first. We cut descriptions and code at the end. We cut
a problem at the beginning, because its end says where the answer goes.
"""

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, Self

from lookuplab.benchmark import Benchmark
from lookuplab.errors import UserError, check_choice
from lookuplab.models import Completion, Decoding, Model, Prompt
from lookuplab.models.tokens import token_spans
from lookuplab.retrieval.rankers import Ranker
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import CHAT, STOP, Problem, indented, solution_of
from lookuplab.stackoverflow.grader import Grader, verdicts

SPARE = 40  # extra snippets to retrieve, to replace those that give the answer away
TRIMS = ("description-first", "question-first")
Trim = Literal["description-first", "question-first"]
# an example in the form of DS-1000's completion prompts
TEMPLATE = "Problem:\n{description}\nA:\n<code>\n{code}\n</code>\n\n"
# the paper generates "500 to 600" tokens (Section 4.3)
DS1000_DECODING = Decoding(max_new_tokens=600, temperature=0.2, top_p=0.95, n=5, stop=STOP)
Matches = Mapping[str, Sequence[Snippet]]  # problem id -> snippets, best first


@dataclass(frozen=True)
class Trimmed:
    """A prompt: its text, its length in tokens, and how much was cut.

    ``lost`` is {part: number of tokens that were cut}. The parts are the "description" and the
    "code" of all examples together, and the "question".
    """

    text: str
    tokens: int
    lost: dict[str, int]


def trimmed_prompt(
    problem: str,
    examples: Sequence[Snippet],
    budget: int,
    max_new_tokens: int,
    tokenizer: Any,
    trim: Trim = "description-first",
    shortened: bool = False,
) -> Trimmed:
    """Return a prompt of ``examples`` followed by the ``problem``, cut so that ``max_new_tokens``
    more tokens fit into ``budget``.

    ``examples`` are given best first. In the prompt the best one comes last, next to the problem.
    An example whose description and code are cut completely is left out.

    ``trim`` is the order in which texts are cut. "description-first" is the paper's order
    (descriptions, then code, then the problem). "question-first" cuts the problem before the
    examples, for comparison.

    If ``shortened`` is true, the prompt is at most as long as the same prompt without descriptions.
    If that length fits into the budget, "description-first" cuts exactly the descriptions, and
    "question-first" cuts as many tokens from the problem instead.

    Raises UserError if the budget has no room for a prompt.
    """
    check_choice("trim", trim, TRIMS)
    if (room := budget - max_new_tokens) < 1:
        raise UserError(
            f"a budget of {budget} tokens leaves no room for a prompt and {max_new_tokens} "
            "new tokens: raise the budget"
        )
    question = ("question", "")
    shown = examples[::-1]
    parts = {
        (part, snippet.id): getattr(snippet, part)
        for part in ("description", "code")
        for snippet in shown
    }
    order = [question, *parts] if trim == "question-first" else [*parts, question]
    parts[question] = problem
    lost = dict.fromkeys(("description", "code", "question"), 0)

    def text(parts: Mapping[tuple[str, str], str]) -> str:
        pairs = [(parts["description", snippet.id], parts["code", snippet.id]) for snippet in shown]
        frames = [TEMPLATE.format(description=one, code=code) for one, code in pairs if one or code]
        return "".join(frames) + parts[question]

    @cache
    def count_tokens(text: str) -> int:
        return len(tokenizer(text, verbose=False)["input_ids"])

    def tokens(changes: dict[tuple[str, str], str]) -> int:
        return count_tokens(text(parts | changes))

    if shortened:
        room = min(room, tokens({step: "" for step in order if step[0] == "description"}))
    for step in order:
        whole = parts[step]
        if tokens({}) <= room:
            break
        _, spans = token_spans(tokenizer, whole)
        # the versions of this text after all possible cuts, from the shortest to the longest
        if step == question:  # keep at least the problem's last token
            shorter = [{step: whole[begin:]} for begin, _ in spans[:0:-1]]
        else:
            shorter = [{step: whole[:end]} for _, end in [(0, 0), *spans][:-1]]
        if shorter:
            # the longest version that fits, or else the shortest version
            fitting = bisect(shorter[1:], room, key=tokens)
            parts |= shorter[fitting]
            lost[step[0]] += len(shorter) - fitting
    return Trimmed(text(parts), tokens({}), lost)


@dataclass
class Ds1000Bench(Benchmark[Problem]):
    """The benchmark DS-1000, or other problems in its form. The prompts may contain retrieved
    examples. A solution is judged by running it against the problem's test. Intervals are clustered
    by origin problem.

    - ``matches`` has the retrieved snippets of each problem. In the prompt, the first ``examples``
      of these snippets precede the problem.
    - ``budget`` is the number of tokens that prompt and completion may have together.
    - ``trim`` and ``shortened`` are as in ``trimmed_prompt``.
    - ``variant`` says how code is cut out of a completion (``ds1000.solution_of``).
    - ``indent`` says whether code at the left margin is moved to the indentation that the problem
      needs.
    - ``tokenizer`` and ``chat`` are set by ``for_model``. A chat model gets DS-1000's instruction
      for such models (``CHAT``), and its variant is "repaired".
    """

    tasks: Sequence[Problem]
    grader: Grader = field(default_factory=Grader)
    decoding: Decoding = DS1000_DECODING
    matches: Matches = field(default_factory=dict)
    examples: int = 0
    budget: int = 2048
    trim: Trim = "description-first"
    shortened: bool = False
    variant: Literal["official", "repaired"] = "official"
    indent: bool = True
    tokenizer: Any = None
    chat: bool = False
    _prompts: dict[str, Trimmed] = field(default_factory=dict, init=False, repr=False)

    measures = ("passed",)
    by = "library"

    def for_model(self, model: Model) -> Self:
        chat = bool(model.chat)
        variant = "repaired" if chat else self.variant
        return replace(self, tokenizer=model.tokenizer, chat=chat, variant=variant)

    def prompt(self, task: Problem) -> Prompt:
        """Return the problem, preceded by its examples, within the budget.

        The prompt's id is the problem's id, whatever precedes the problem. Sample i of a problem
        therefore has the same seed with and without examples.
        """
        return Prompt(task.id, self._trim(task).text, CHAT if self.chat else None)

    def _trim(self, task: Problem) -> Trimmed:
        """Return the prompt and how much the budget cut from it. The result is cached."""
        if task.id not in self._prompts:
            room = self.budget - (len(self.tokenizer(CHAT)["input_ids"]) if self.chat else 0)
            shown = self.matches[task.id][: self.examples] if self.examples else []
            limits = room, self.decoding.max_new_tokens, self.tokenizer
            trimmed = trimmed_prompt(task.prompt, shown, *limits, self.trim, self.shortened)
            self._prompts[task.id] = trimmed
        return self._prompts[task.id]

    def judge(self, task: Problem, completion: Completion) -> dict[str, Any]:
        return self.judge_all([(task, completion)])[0]

    def judge_all(self, pairs: Sequence[tuple[Problem, Completion]]) -> list[dict[str, Any]]:
        """Return a row for each completion: the problem's ``library``; ``solution``, the code that
        ran; ``passed``, which is None if the solution cannot be judged here; and ``error``, which
        is one line, or "" if the solution passed. If the benchmark has a ``tokenizer``, a row also
        has ``prompt_tokens``, and the numbers of tokens that were cut to stay within the budget:
        ``description_lost``, ``code_lost`` and ``question_lost``.
        """
        solutions = []
        for task, completion in pairs:
            code = solution_of(completion.text, self.variant)
            solutions.append((task, indented(task, code) if self.indent else code))
        rows = []
        outcomes = verdicts(solutions, self.grader)
        for (task, code), outcome in zip(solutions, outcomes, strict=True):
            passed = outcome.passed if outcome.judged else None
            row: dict[str, Any] = {"library": task.library, "solution": code, "passed": passed}
            row["error"] = outcome.error
            if self.tokenizer is not None:
                trimmed = self._trim(task)
                row["prompt_tokens"] = trimmed.tokens
                row |= {f"{part}_lost": count for part, count in trimmed.lost.items()}
            rows.append(row)
        return rows

    def cluster(self, task: Problem) -> str:
        return task.cluster


def look_up(
    ranker: Ranker, snippets: Sequence[Snippet], problems: Sequence[Problem], k: int
) -> Matches:
    """Return, for each problem's question, the ``k`` best-ranked snippets that do not give the
    answer away.
    """
    by_id = {snippet.id: snippet for snippet in snippets}
    ranked = ranker.rank({problem.id: problem.question for problem in problems}, k + SPARE)
    matches = {problem: [by_id[id] for id in ids] for problem, ids in ranked.items()}
    return without_answers(matches, problems, k)


def without_answers(matches: Matches, problems: Sequence[Problem], k: int) -> Matches:
    """Return the first ``k`` matches of each problem that do not give its answer away
    (leave-one-out).
    """
    return {
        problem.id: [match for match in matches[problem.id] if not gives_away(match, problem)][:k]
        for problem in problems
    }


def gives_away(snippet: Snippet, problem: Problem) -> bool:
    """Return whether a snippet contains one of the problem's ``expressions``, which give the answer
    away. White space is ignored.
    """
    code = _without_spaces(snippet.code)
    return any(_without_spaces(expression) in code for expression in problem.expressions)


@cache
def _without_spaces(code: str) -> str:
    return "".join(code.split())


def object_of(snippet: Snippet) -> str:
    """Return the object that a snippet of the mini corpus documents: ``numpy.clip`` for the id
    ``numpy.clip#2``.
    """
    return snippet.id.rpartition("#")[0]
