"""Mini models that answer data-science questions: the mini code models, fine-tuned on problems of *open* objects.

The problems are made as those of the benchmark are (``mini.problems``), of the nine tenths of the documented objects
that it does not ask for. Half of the prompts show retrieved snippets, as the paper's do: half of these may be the
object's own example, the others not. So a model learns both to take a call over and to pass over what does not fit.
"""

import gzip
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from lookuplab import paths
from lookuplab.mini.packages import held_out_example
from lookuplab.mini.problems import examples
from lookuplab.mini.problems.build import PROBLEMS, order
from lookuplab.mini.problems.examples import Example
from lookuplab.toolgen.pairs import TextPair
from lookuplab.toolgen.finetuning import Recipe

WORK = paths.RUNS / "train" / "questions"
MODELS = paths.MINI / "questions"
EXAMPLES = 4000  # of 7,551 open ones are run, the first by a hash of their names: a quarter of an hour
PER_EXAMPLE = 3  # problems of one docstring example at most: itself and perturbations
SHOWN = (0, 0, 1, 2)  # snippets before a problem, equally often
END = "\n</code>\n"  # behind an answer, as DS-1000's prompts have it
ABOUT = """It completes a prompt in DS-1000's form with one line that assigns `result`. Trained by `lookuplab train
mini-questions` on problems made by rule from docstring examples of numpy, pandas, scipy and scikit-learn, half of them
behind retrieved snippets. Held out: every object that the mini benchmark asks for, and answers that are one of its
references."""
RATES = {"small": 5e-3, "medium": 4e-3, "large": 3e-3}  # the larger, the lower
SIZES = tuple(RATES)
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def recipe(size: str) -> Recipe:
    """LoRA on all projections: three whole models would not fit into the checkout's 60 MB."""
    return Recipe(epochs=1, learning_rate=RATES[size], batch_size=32, seed=0, lora_rank=16, lora_alpha=32,
                  lora_targets=PROJECTIONS, warmup_steps=0.05, schedule="linear", precision="bf16", max_tokens=700,
                  sampling="group_by_length")


def open_examples() -> list[Example]:
    """EXAMPLES examples of objects of which no name is held out, in the order of a hash."""
    found = [example for library, package in examples.LIBRARIES.items() for item in examples.documented(package)
             if ">>>" in item.text and not examples.PASSED_OVER & set(item.name.split("."))
             and not any(map(held_out_example, item.names))
             for example in examples.examples(item, library) if isinstance(example, Example)]
    return sorted(found, key=lambda example: order(example.id))[:EXAMPLES]


def families(folder: Path, progress: bool = True) -> Iterator[list[dict]]:
    """Of each open example that makes a problem: the problem and its perturbations, as ``{id, object, prompt, answer}``.

    Running them takes a quarter of an hour; they are kept in ``folder``, and a killed run goes on behind the last one.
    """
    from lookuplab.mini.problems import running, text

    folder.mkdir(parents=True, exist_ok=True)
    done, part = folder / "families.jsonl.gz", folder / "families.part.jsonl"
    if not done.exists():
        lines = [line for line in part.read_text().splitlines(True) if line.endswith("\n")] if part.exists() else []
        with part.open("w") as stream:
            stream.writelines(lines)
            for found in running.examined(open_examples()[len(lines):], progress):
                drafts = found if isinstance(found, list) else []
                records = [{"id": f"{draft.example} {draft.rule}", "object": draft.object, "prompt": text.prompt(draft),
                            "answer": f"result = {draft.target}"} for draft in drafts]
                stream.write(json.dumps(records) + "\n")
                stream.flush()
        partial = done.with_suffix(".part")
        partial.write_bytes(gzip.compress(part.read_bytes(), mtime=0))
        partial.rename(done)
        part.unlink()
    with gzip.open(done, "rt") as lines:
        yield from (family for line in lines if (family := json.loads(line)))


def pairs(folder: Path, progress: bool = True) -> list[TextPair]:
    """What the models learn; the same for the same versions of the libraries."""
    from lookuplab.retrieval.rankers import Bm25, query_words
    from lookuplab.stackoverflow import corpus, ds1000
    from lookuplab.stackoverflow.ds1000 import Problem

    references = {problem.reference.strip() for problem in ds1000.load(PROBLEMS)}
    chosen = [record for family in families(folder, progress) for record in _some(family)
              if record["answer"] not in references]
    snippets = {snippet.id: snippet for snippet in corpus.load("mini")}
    ranker = Bm25({name: query_words(one.description) for name, one in snippets.items()})
    questions = {record["id"]: Problem(record["id"], record["prompt"], "", "", "", "", "").question
                 for record in chosen}
    ranked = ranker.rank(questions, 8)
    made = []
    for record in chosen:
        found = [snippets[name] for name in ranked[record["id"]]]
        before = _before(record, found)
        made.append(TextPair(record["id"], before + record["prompt"], record["answer"] + END))
    return made


def _some(family: list[dict]) -> list[dict]:
    """The problem itself and a few perturbations, by a hash."""
    return [family[0], *sorted(family[1:], key=lambda record: order(record["id"]))[:PER_EXAMPLE - 1]]


def _before(record: dict, ranked: Sequence) -> str:
    """The snippets that a prompt begins with, the best one last."""
    from lookuplab.stackoverflow.asking import TEMPLATE

    dice = int(hashlib.sha256(record["id"].encode()).hexdigest(), 16)
    count, own = SHOWN[dice % len(SHOWN)], dice // len(SHOWN) % 2
    usable = (one for one in ranked if own or one.id.rpartition("#")[0] != record["object"])
    shown = list(itertools.islice(usable, count))
    return "".join(TEMPLATE.format(description=one.description, code=one.code) for one in reversed(shown))


def finetuned(learned: Sequence[TextPair], size: str, out: Path = MODELS, work: Path = WORK, progress: bool = True
              ) -> Path:
    """``out``/questions-SIZE, an adapter over the mini model of that size; a folder that stands is left alone."""
    from lookuplab.toolgen.finetuning import finetune

    target = out / f"questions-{size}"
    if not target.exists():
        finetune(f"mini-{size}", learned, target, recipe(size), marked=False, half=True, work=work / size, about=ABOUT,
                 licence="apache-2.0", progress=progress)
    return target
