"""Asking a model with retrieved examples, within a token budget (paper, Sections 3 and 4).

The prompt and the completion share the budget. What does not fit is cut "from the retrieved
description and code, in that order"; "in rare cases where the prompt itself exceeds the token
budget", the paper removes "a minimal number of tokens from the prompt". The paper leaves three
things open. Here the lowest-ranked example is cut first; a description or code loses its end; a
problem loses its beginning, because its end says where the answer goes.
"""

import random
from bisect import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

from lookuplab.errors import UserError, check_choice
from lookuplab.models import Decoding, Prompt, complete, load
from lookuplab.models.names import mini_models
from lookuplab.retrieval.rankers import Ranker
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import CHAT, STOP, Problem, indented, solution_of
from lookuplab.stackoverflow.grader import Answer, Grader, environment, grade

SPARE = 40  # snippets beyond those shown, because some may give the answer away
TRIMS = ("description-first", "question-first")
TEMPLATE = "Problem:\n{description}\nA:\n<code>\n{code}\n</code>\n\n"  # the form of DS-1000's completion prompts
# Section 4.3: "500 to 600"
DECODING = Decoding(max_new_tokens=600, temperature=0.2, top_p=0.95, n=5, stop=STOP)
Found = Mapping[str, Sequence[Snippet]]  # problem id -> snippets, best first


@dataclass(frozen=True)
class Trimmed:
    """A prompt: its text, its length in tokens, and what was cut.

    lost: the numbers of tokens that were cut from the descriptions, the code and the question.
    """

    text: str
    tokens: int
    lost: dict[str, int]


def prompt(
    problem: str,
    examples: Sequence[Snippet],
    budget: int,
    max_new_tokens: int,
    tokenizer,
    trim: Literal["description-first", "question-first"] = "description-first",
    shortened: bool = False,
) -> Trimmed:
    """The ``examples`` (given best first) and then the ``problem``, cut so that ``max_new_tokens``
    more fit into ``budget``.

    The best example comes last, next to the problem; an example whose description and code are both
    gone is left out.
    trim: "description-first" is the paper's (descriptions, then code, then the problem);
    "question-first" cuts the problem before the examples, for comparison. shortened: the prompt is
    no longer than it would be without its descriptions, so "description-first" loses exactly these,
    and "question-first" as many tokens of the problem. Raises UserError if the budget has no room
    for a prompt.
    """
    check_choice("trim", trim, TRIMS)
    if (room := budget - max_new_tokens) < 1:
        raise UserError(
            f"no prompt of a budget of {budget} tokens fits beside {max_new_tokens} new ones: raise it"
        )
    question, shown = ("question", ""), examples[::-1]
    parts = {
        (part, one.id): getattr(one, part) for part in ("description", "code") for one in shown
    }
    order = [question, *parts] if trim == TRIMS[1] else [*parts, question]  # in which they are cut
    parts[question], lost = problem, dict.fromkeys(("description", "code", "question"), 0)

    def text(parts: Mapping) -> str:
        pairs = [(parts["description", one.id], parts["code", one.id]) for one in shown]
        frames = [TEMPLATE.format(description=one, code=code) for one, code in pairs if one or code]
        return "".join(frames) + parts[question]

    counted = cache(lambda text: len(tokenizer(text, verbose=False)["input_ids"]))

    def tokens(*changes: tuple) -> int:
        return counted(text(parts | dict(changes)))

    if shortened:
        room = min(room, tokens(*((step, "") for step in order if step[0] == "description")))
    how = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
    for step in order:
        whole = parts[step]
        if tokens() <= room:
            break
        spans = tokenizer(whole, **how)["offset_mapping"]
        if step == question:  # its last tokens, one at least
            shorter = [whole[begin:] for begin, _ in spans[:0:-1]]
        else:
            shorter = [whole[:end] for _, end in [(0, 0), *spans][:-1]]
        if shorter:
            fitting = bisect(shorter[1:], room, key=lambda part, step=step: tokens((step, part)))
            parts[step] = shorter[fitting]
            lost[step[0]] += len(shorter) - fitting
    return Trimmed(text(parts), tokens(), lost)


@dataclass(frozen=True)
class Asked:
    """Judged answers by problem and sample, and the prompts used."""

    answers: list[Answer]
    prompts: dict[str, Trimmed]


def look_up(
    ranker: Ranker, snippets: Sequence[Snippet], problems: Sequence[Problem], k: int
) -> Found:
    """The ``k`` snippets that rank best for each problem's question, without any that give the
    answer away.
    """
    known = {snippet.id: snippet for snippet in snippets}
    ranked = ranker.rank({problem.id: problem.question for problem in problems}, k + SPARE)
    return fair({id: [known[one] for one in ids] for id, ids in ranked.items()}, problems, k)


def fair(found: Found, problems: Sequence[Problem], k: int) -> Found:
    """Leave-one-out: the first ``k`` snippets found for each problem that do not give it away."""
    return {
        problem.id: [one for one in found[problem.id] if not gives_away(one, problem)][:k]
        for problem in problems
    }


def gives_away(snippet: Snippet, problem: Problem) -> bool:
    """Whether a snippet contains one of a problem's expressions, white space apart."""
    code = _without_spaces(snippet.code)
    return any(_without_spaces(one) in code for one in problem.expressions)


@cache
def _without_spaces(code: str) -> str:
    return "".join(code.split())


def gold(snippets: Sequence[Snippet], problems: Sequence[Problem], k: int) -> Found:
    """At most ``k`` snippets of the object that each problem is about: the most that retrieval can
    give.

    There are none for a problem that names no object, such as those of DS-1000.
    """
    own = defaultdict(list)
    for snippet in snippets:
        own[object_of(snippet)].append(snippet)
    return fair({one.id: own[one.object] * bool(one.object) for one in problems}, problems, k)


def object_of(snippet: Snippet) -> str:
    """The documented object of a snippet of the mini corpus."""
    return snippet.id.rpartition("#")[0]


def hits(found: Found, problems: Sequence[Problem], k: int) -> list[str]:
    """For each problem, "hit" if one of its first ``k`` snippets is of its own object, else "miss";
    "" without an object.
    """
    shown = {one.id: [*map(object_of, found[one.id][:k])] for one in problems}
    return [one.object and ("hit" if one.object in shown[one.id] else "miss") for one in problems]


def at_random(snippets: Sequence[Snippet], problems: Sequence[Problem], k: int) -> Found:
    """``k`` snippets for each problem, drawn by a generator seeded with its id: the control in
    which nothing is looked up.
    """
    ordered = sorted(snippets, key=lambda one: one.id)
    size = min(k + SPARE, len(ordered))
    drawn = {one.id: random.Random(one.id).sample(ordered, size) for one in problems}
    return fair(drawn, problems, k)


@dataclass
class Trial:
    """The judged answers of models that were asked the same problems in several ways: the data
    behind the figures.

    asked: (model, way) -> answers with their verdicts. identities: the models' identities by name,
        in their order.
    """

    grader: Grader
    decoding: Decoding
    asked: dict[tuple, Asked] = field(default_factory=dict)
    identities: dict[str, dict] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return list(self.identities)

    @property
    def ks(self) -> list[int]:
        """The k of pass@k: one sample, and all of them."""
        return sorted({1, self.decoding.n})

    @property
    def account(self) -> dict[str, object]:
        """What ``Artifact.save`` records about the answers."""
        return {
            "models": self.identities.values(),
            "seeds": {"samples": self.decoding.seed},
            "parameters": {"grader": self.grader.conditions},
        }

    def ask(
        self, model, problems: Sequence[Problem], found: Found, examples: int, budget: int, **cut
    ) -> Asked:
        """Ask the model every problem, with the first ``examples`` of its ``found`` snippets,
        within ``budget`` model tokens, and run the answers.

        ``cut``: the options of ``prompt``. A chat model gets DS-1000's instruction for such models
        (``CHAT``). Each prompt has its problem's id, whatever precedes the problem, so that sample
        i with two examples is drawn with the same seed as sample i without any.
        """
        known, chat = {problem.id: problem for problem in problems}, CHAT if model.chat else None
        room = budget - (len(model.tokenizer(chat)["input_ids"]) if chat else 0)
        how = room, self.decoding.max_new_tokens, model.tokenizer
        made = {
            id: prompt(one.prompt, found[id][:examples] if examples else [], *how, **cut)
            for id, one in known.items()
        }
        prompts = [Prompt(id, trimmed.text, chat) for id, trimmed in made.items()]
        variant = "repaired" if chat else "official"
        answers = [
            Answer(one.id, one.sample, indented(known[one.id], solution_of(one.text, variant)))
            for one in complete(model, prompts, self.decoding)
        ]
        return Asked(grade(problems, answers, self.grader), made)


def ask_and_run(
    models: Sequence[str],
    problems: Sequence[Problem],
    found: Found,
    ways: Mapping[str, dict],
    samples: int,
    max_new_tokens: int,
    python: str = "",
    sandbox: str = "",
) -> Trial:
    """Ask each model in each way and run the answers.

    ways: name -> options of ``Trial.ask`` (which may include a different ``found``). python: as in
        ``grader.environment``.
    sandbox: as in ``execution.server.choose``; the kit's own models may run without one.
    """
    grader = Grader(environment(python), sandbox, own=set(models) <= set(mini_models()))
    trial = Trial(grader, replace(DECODING, n=samples, max_new_tokens=max_new_tokens))
    for name in models:  # one after the other: large models do not fit together
        model = load(name)
        trial.identities[model.name] = model.identity
        for way, options in ways.items():
            asked = trial.ask(model, problems, **{"found": found, **options})
            trial.asked[model.name, way] = asked
    return trial
