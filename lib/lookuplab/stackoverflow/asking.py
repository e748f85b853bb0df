"""A model asked with retrieved examples, within a token budget (paper, Sections 3 and 4).

The prompt and the completion share the budget. What does not fit is cut "from the retrieved description and code, in
that order"; "in rare cases where the prompt itself exceeds the token budget", the paper removes "a minimal number of
tokens from the prompt". Three things it leaves open, as they are here: the example that was ranked last gives first; a
description and code lose their end; a problem loses its beginning, because its end says where the answer goes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lookuplab.errors import UserError
from lookuplab.models.complete import Store, complete
from lookuplab.models.load import load, mini_models
from lookuplab.models.types import Decoding, Prompt
from lookuplab.retrieval.rankers import Ranker
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import STOP, Problem, indented, solution_of
from lookuplab.stackoverflow.grader import Answer, Grader, Verdict, environment, grade

TRIMS = ("description-first", "question-first")
TEMPLATE = "Problem:\n{description}\nA:\n<code>\n{code}\n</code>\n\n"  # the form of DS-1000's completion prompts
DECODING = Decoding(
    max_new_tokens=600, temperature=0.2, top_p=0.95, n=5, stop=STOP
)  # Section 4.3: "500 to 600"


@dataclass(frozen=True)
class Trimmed:
    """A prompt: its text, its length in tokens, the snippets shown from first to last, and what was cut.

    lost: (description, code or question; the snippet's id, "" for the question) -> the tokens that it lost.
    """

    text: str
    tokens: int
    examples: tuple[str, ...]
    lost: dict[tuple[str, str], int]


def prompt(
    problem: str,
    examples: Sequence[Snippet],
    budget: int,
    max_new_tokens: int,
    tokenizer,
    trim: str = TRIMS[0],
) -> Trimmed:
    """``problem`` behind ``examples`` (best first), cut so that ``max_new_tokens`` more fit into ``budget``.

    The best example stands last, next to the problem; one whose description and code are gone is left out. trim:
    "description-first" is the paper's (descriptions, then code, then the problem); "question-first" cuts the problem
    before the examples, for comparison. Raises UserError for another trim and a budget without room.
    """
    if not 0 < max_new_tokens < budget or trim not in TRIMS:
        raise UserError(
            f"no prompt of a budget of {budget} tokens beside {max_new_tokens} new ones, cut {trim!r}; raise the "
            f"budget, and trim by one of {', '.join(TRIMS)}"
        )
    question = ("question", "")
    steps = [(part, one.id) for part in ("description", "code") for one in reversed(examples)]
    parts = {
        (part, one.id): getattr(one, part) for part in ("description", "code") for one in examples
    }
    parts[question], lost = problem, {}
    steps.insert(0 if trim == TRIMS[1] else len(steps), question)

    def shown() -> list[str]:
        return [
            one.id
            for one in reversed(examples)
            if parts["description", one.id] or parts["code", one.id]
        ]

    def text() -> str:
        frames = [
            TEMPLATE.format(description=parts["description", one], code=parts["code", one])
            for one in shown()
        ]
        return "".join(frames) + parts[question]

    def tokens() -> int:
        return len(tokenizer(text(), verbose=False)["input_ids"])

    for step in steps:
        if tokens() <= budget - max_new_tokens:
            break
        whole = parts[step]
        spans = tokenizer(
            whole, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )["offset_mapping"]
        low, high = (
            int(step == question),
            len(spans),
        )  # tokens kept: the fewest (a problem keeps one), and too many
        while low < high:
            kept = (low + high) // 2
            some = (
                whole[spans[-kept][0] :] if step == question else whole[: spans[kept - 1][1]]
            )  # a problem's end stays
            parts[step] = some if kept else ""
            if kept == low == high - 1:
                break
            low, high = (kept, high) if tokens() <= budget - max_new_tokens else (low, kept)
        if low < len(spans):
            lost[step] = len(spans) - low
    return Trimmed(text(), tokens(), tuple(shown()), lost)


@dataclass(frozen=True)
class Asked:
    """Answers by problem and sample, the prompts that they were asked with, and whether they passed."""

    answers: list[Answer]
    prompts: dict[str, Trimmed]
    verdicts: list[Verdict] = field(default_factory=list)


def look_up(
    ranker: Ranker, snippets: Sequence[Snippet], problems: Sequence[Problem], k: int
) -> dict[str, tuple[Snippet, ...]]:
    """Problem id -> the ``k`` snippets that rank best for its question, best first."""
    known = {snippet.id: snippet for snippet in snippets}
    ranked = ranker.rank({problem.id: problem.question for problem in problems}, k)
    return {problem: tuple(known[one] for one in ids) for problem, ids in ranked.items()}


def ask(
    model,
    problems: Sequence[Problem],
    found: Mapping[str, Sequence[Snippet]],
    examples: int,
    budget: int,
    decoding: Decoding = DECODING,
    trim: str = TRIMS[0],
    store: Store = None,
) -> Asked:
    """Ask for every problem with its first ``examples`` of ``found``, within ``budget`` tokens of the model's own.

    ``trim`` as in ``prompt``. Each prompt has its problem's id whatever
    stands before the problem, so that sample i with two examples is drawn with the seed of sample i without any.
    """
    known, new = {problem.id: problem for problem in problems}, decoding.max_new_tokens
    made = {
        one: prompt(
            problem.prompt,
            found[one][:examples] if examples else (),
            budget,
            new,
            model.tokenizer,
            trim,
        )
        for one, problem in known.items()
    }
    done = complete(
        model, [Prompt(one, trimmed.text) for one, trimmed in made.items()], decoding, store
    )
    answers = [
        Answer(one.id, one.sample, indented(known[one.id], solution_of(one.text))) for one in done
    ]
    return Asked(answers, made)


@dataclass
class Trial:
    """Models asked the same problems in several ways, and their answers judged: what the figures are made of.

    asked: (model, way) -> answers with their verdicts. ``names`` and ``identities`` of the models, in their order.
    """

    problems: Sequence[Problem]
    found: Mapping[str, Sequence[Snippet]]
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

    def account(self, names: Sequence[str] = ()) -> dict[str, object]:
        """What ``Artifact.save`` says of the numbers of these models, by default of all."""
        models = [self.identities[name] for name in names or self.names]
        return {
            "models": models,
            "seeds": {"samples": self.decoding.seed},
            "parameters": self.grader.conditions,
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
    """Ask each model each way, a name for options of ``ask``, and run the answers.

    python: a name for ``grader.environment``. sandbox as in ``execution.server.choose``; the kit's own models may do
    without one.
    """
    grader = Grader(environment(python), sandbox, own=set(models) <= set(mini_models()))
    trial = Trial(
        problems, found, grader, replace(DECODING, n=samples, max_new_tokens=max_new_tokens)
    )
    for name in models:  # one at a time: large models do not fit side by side
        model = load(name)
        trial.identities[model.name] = model.identity
        for way, options in ways.items():
            trial.asked[model.name, way] = ask(
                model, problems, found, decoding=trial.decoding, **options
            )
    for key, one in trial.asked.items():
        trial.asked[key] = replace(one, verdicts=grade(problems, one.answers, grader))
    return trial
