"""Mini models that answer data-science questions: the mini code models, fine-tuned on problems of *open* objects.

The problems are made as those of the benchmark are (``mini.problems``), of the nine tenths of the documented objects
that it does not ask for. Half of the prompts show retrieved snippets, as the paper's do: half of these may be the
object's own example, the others not. So a model learns both to take a call over and to pass over what does not fit.
"""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lookuplab import paths
from lookuplab.mini.examples import LIBRARIES, Example, examples, objects
from lookuplab.mini.problems import PROBLEMS, examined
from lookuplab.retrieval.rankers import Bm25, query_words
from lookuplab.stackoverflow import corpus, ds1000
from lookuplab.stackoverflow.asking import TEMPLATE
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import Problem
from lookuplab.toolgen.finetuning import Recipe
from lookuplab.toolgen.pairs import TextPair

WORK = paths.RUNS / "train" / "questions"
MODELS = paths.MINI / "questions"
# of 7,551 open ones are run, the first by a hash of their names: a quarter of an hour
EXAMPLES = 4000
PER_EXAMPLE = 3  # problems of one docstring example at most: itself and perturbations
SHOWN = (0, 0, 1, 2)  # snippets before a problem, equally often
END = "\n</code>\n"  # behind an answer, as DS-1000's prompts have it
ABOUT = """It completes a prompt in DS-1000's form with one line that assigns `result`. Trained by `lookuplab train
mini-questions` on problems made by rule from docstring examples of numpy, pandas, scipy and scikit-learn, half of them
behind retrieved snippets. Held out: every object that the mini benchmark asks for, and answers that are one of its
references."""
RATES = {"small": 5e-3, "medium": 4e-3, "large": 3e-3}  # the larger, the lower
# LoRA on all projections: three whole models would not fit into the checkout's 60 MB
RECIPE = Recipe(
    epochs=1,
    batch_size=32,
    seed=0,
    lora_rank=16,
    lora_alpha=32,
    lora_targets=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    warmup_steps=0.05,
    bf16=True,
    max_tokens=700,
    group_by_length=True,
)


def order(text: str) -> bytes:
    """A place in the selection that depends on the name alone."""
    return hashlib.sha256(text.encode()).digest()


def open_examples() -> list[Example]:
    """EXAMPLES examples of objects of which no name is held out, in the order of a hash."""
    items = ((item, library) for library in LIBRARIES for item in objects(library, held_out=False))
    found = [one for item, library in items for one in examples(item, library)]
    return sorted(found, key=lambda example: order(example.id))[:EXAMPLES]


def pairs() -> list[TextPair]:
    """What the models learn: of each open example the problem and a few perturbations, less the answers that are a
    reference of the benchmark, behind the snippets that BM25 finds for them, the best one last.

    The same for the same versions of the libraries; takes a quarter of an hour.
    """
    references = {problem.reference.strip() for problem in ds1000.load(PROBLEMS)}
    chosen = []
    for problems in examined(open_examples()):
        found = [one | {"id": f"{one['example']} {one['rule']}"} for one in problems]
        others = sorted(found[1:], key=lambda one: order(one["id"]))
        chosen += [*found[:1], *others[: PER_EXAMPLE - 1]]
    chosen = [one for one in chosen if one["reference_code"] not in references]
    snippets = {snippet.id: snippet for snippet in corpus.load("mini")}
    ranker = Bm25({name: query_words(one.description) for name, one in snippets.items()})
    asked = {one["id"]: Problem("", one["prompt"], *[""] * 5).question for one in chosen}
    ranked = ranker.rank(asked, 8)
    learned = []
    for one in chosen:
        shown = before(one, [snippets[name] for name in ranked[one["id"]]])
        learned.append(TextPair(one["id"], shown + one["prompt"], one["reference_code"] + END))
    return learned


def before(record: dict, ranked: Sequence[Snippet]) -> str:
    """The snippets that a prompt begins with."""
    dice = int(hashlib.sha256(record["id"].encode()).hexdigest(), 16)
    count, own = SHOWN[dice % len(SHOWN)], dice // len(SHOWN) % 2
    usable = (one for one in ranked if own or one.id.rpartition("#")[0] != record["object"])
    found = reversed(list(itertools.islice(usable, count)))
    return "".join(TEMPLATE.format(description=one.description, code=one.code) for one in found)


def train(sizes: Sequence[str], out: Path) -> Iterator[Path]:
    """``out``/questions-SIZE, an adapter over the mini model of that size, unless it is there."""
    from lookuplab.toolgen.finetuning import finetune

    learned = pairs()
    for size in sizes:
        target, recipe = out / f"questions-{size}", replace(RECIPE, learning_rate=RATES[size])
        kept = {"marked": False, "half": True, "work": WORK / size}
        if not target.exists():
            card = {"about": ABOUT, "licence": "apache-2.0"}
            finetune(f"mini-{size}", learned, target, recipe, **kept, **card)
        yield target
