"""Asking a model with retrieved examples, within a token budget (paper, Sections 3 and 4).

The prompt and the completion share the budget. What does not fit is cut "from the retrieved description and code, in
that order"; "in rare cases where the prompt itself exceeds the token budget", the paper removes "a minimal number of
tokens from the prompt". The paper leaves three things open. Here the lowest-ranked example is cut first; a description
or code loses its end; a problem loses its beginning, because its end says where the answer goes.
"""

import random
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lookuplab.errors import UserError
from lookuplab.models import Decoding, Prompt
from lookuplab.models.complete import Store, complete
from lookuplab.models.load import load, mini_models
from lookuplab.retrieval.rankers import Ranker
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import CHAT, STOP, Problem, indented, solution_of
from lookuplab.stackoverflow.grader import Answer, Grader, environment, grade

SPARE = 40  # snippets beyond those shown, because some may give the answer away
TRIMS = ("description-first", "question-first")
TEMPLATE = "Problem:\n{description}\nA:\n<code>\n{code}\n</code>\n\n"  # the form of DS-1000's completion prompts
# Section 4.3: "500 to 600"
DECODING = Decoding(max_new_tokens=600, temperature=0.2, top_p=0.95, n=5, stop=STOP)


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
    trim: str = TRIMS[0],
    shortened: bool = False,
) -> Trimmed:
    """The ``examples`` (given best first) and then the ``problem``, cut so that ``max_new_tokens`` more fit into
    ``budget``.

    The best example comes last, next to the problem; an example whose description and code are both gone is left out.
    trim: "description-first" is the paper's (descriptions, then code, then the problem); "question-first" cuts the
    problem before the examples, for comparison. shortened: the prompt is no longer than it would be without its
    descriptions, so "description-first" loses exactly these, and "question-first" as many tokens of the problem. Raises
    UserError if the budget has no room for a prompt.
    """
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

    def tokens(*changes: tuple) -> int:
        return len(tokenizer(text(parts | dict(changes)), verbose=False)["input_ids"])

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
    """Answers by problem and sample, and the prompts used."""

    answers: list[Answer]
    prompts: dict[str, Trimmed]


def look_up(
    ranker: Ranker, snippets: Sequence[Snippet], problems: Sequence[Problem], k: int
) -> dict[str, list[Snippet]]:
    """Problem id -> the ``k`` snippets that rank best for its question, best first, without any that give the answer
    away.
    """
    known = {snippet.id: snippet for snippet in snippets}
    ranked = ranker.rank({problem.id: problem.question for problem in problems}, k + SPARE)
    return fair({one.id: map(known.get, ranked[one.id]) for one in problems}, problems, k)


def fair(
    found: Mapping[str, Iterable[Snippet]], problems: Sequence[Problem], k: int
) -> dict[str, list[Snippet]]:
    """Leave-one-out: problem id -> the first ``k`` snippets found for it that do not give it away."""
    listed = {one.id: [*found[one.id]] for one in problems}
    hidden = giving_away({snippet for every in listed.values() for snippet in every}, problems)
    return {
        id: [one for one in every if one.id not in hidden[id]][:k] for id, every in listed.items()
    }


def giving_away(snippets: Iterable[Snippet], problems: Sequence[Problem]) -> dict[str, set[str]]:
    """Problem id -> ids of the snippets that contain one of its expressions, white space apart."""
    codes = {one.id: "".join(one.code.split()) for one in snippets}
    hidden = {}
    for problem in problems:
        secrets = ["".join(one.split()) for one in problem.expressions]
        hidden[problem.id] = {
            id for id, code in codes.items() if any(secret in code for secret in secrets)
        }
    return hidden


def gold(
    snippets: Sequence[Snippet], problems: Sequence[Problem], k: int
) -> dict[str, list[Snippet]]:
    """Problem id -> at most ``k`` snippets of the object that it is about: the most that retrieval can give.

    There are none for a problem that names no object, such as those of DS-1000.
    """
    own = defaultdict(list)
    for snippet in snippets:
        own[object_of(snippet)].append(snippet)
    return fair({one.id: own[one.object] * bool(one.object) for one in problems}, problems, k)


def object_of(snippet: Snippet) -> str:
    """The documented object of a snippet of the mini corpus."""
    return snippet.id.rpartition("#")[0]


def hits(found: Mapping[str, Sequence[Snippet]], problems: Sequence[Problem], k: int) -> list[str]:
    """For each problem, "hit" if one of its first ``k`` snippets is of its own object, else "miss"; "" without an
    object.
    """
    shown = {one.id: [*map(object_of, found[one.id][:k])] for one in problems}
    return [one.object and ("hit" if one.object in shown[one.id] else "miss") for one in problems]


def at_random(
    snippets: Sequence[Snippet], problems: Sequence[Problem], k: int
) -> dict[str, list[Snippet]]:
    """Problem id -> ``k`` snippets drawn by a generator seeded with that id: the control in which nothing
    is looked up.
    """
    ordered = sorted(snippets, key=lambda one: one.id)
    size = min(k + SPARE, len(ordered))
    drawn = {one.id: random.Random(one.id).sample(ordered, size) for one in problems}
    return fair(drawn, problems, k)


def ask(
    model,
    problems: Sequence[Problem],
    found: Mapping[str, Sequence[Snippet]],
    examples: int,
    budget: int,
    decoding: Decoding = DECODING,
    store: Store = None,
    **cut,
) -> Asked:
    """Ask the model every problem, with the first ``examples`` of its ``found`` snippets, within ``budget`` model
    tokens.

    ``cut``: the options of ``prompt``. A chat model gets DS-1000's instruction for such models (``CHAT``). Each prompt
    has its problem's id, whatever precedes the problem, so that sample i with two examples is drawn with the same seed
    as sample i without any.
    """
    known, chat = {problem.id: problem for problem in problems}, CHAT if model.chat else None
    room = budget - (len(model.tokenizer(chat)["input_ids"]) if chat else 0)
    made = {
        one: prompt(
            problem.prompt,
            found[one][:examples] if examples else [],
            room,
            decoding.max_new_tokens,
            model.tokenizer,
            **cut,
        )
        for one, problem in known.items()
    }
    prompts = [Prompt(one, trimmed.text, chat) for one, trimmed in made.items()]
    done = complete(model, prompts, decoding, store)
    variant = "repaired" if chat else "official"
    answers = [
        Answer(one.id, one.sample, indented(known[one.id], solution_of(one.text, variant)))
        for one in done
    ]
    return Asked(answers, made)


@dataclass
class Trial:
    """The judged answers of models that were asked the same problems in several ways: the data behind the figures.

    asked: (model, way) -> answers with their verdicts. identities: the models' identities by name, in their order.
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


def ask_and_run(
    models: Sequence[str],
    problems: Sequence[Problem],
    found: Mapping[str, Sequence[Snippet]],
    ways: Mapping[object, dict],
    samples: int,
    max_new_tokens: int,
    python: str = "",
    sandbox: str = "",
) -> Trial:
    """Ask each model in each way and run the answers.

    ways: name -> options of ``ask`` (which may include a different ``found``). python: as in ``grader.environment``.
    sandbox: as in ``execution.server.choose``; the kit's own models may run without one.
    """
    grader = Grader(environment(python), sandbox, own=set(models) <= set(mini_models()))
    trial = Trial(grader, replace(DECODING, n=samples, max_new_tokens=max_new_tokens))
    for name in models:  # one after the other: large models do not fit together
        model = load(name)
        trial.identities[model.name] = model.identity
        for way, options in ways.items():
            options = {"found": found, "decoding": trial.decoding, **options}
            trial.asked[model.name, way] = ask(model, problems, **options)
    for key, one in trial.asked.items():
        trial.asked[key] = replace(one, answers=grade(problems, one.answers, grader))
    return trial
