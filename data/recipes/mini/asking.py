"""Mini models that ask for documentation: adapters that write a mark before the name of an API that
they do not know (data/mini/ASKING.md).

Their training data depend on the answers of their base models, which STEP corpus generates. STEP
train needs only its file and the base models.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random
from typing import Literal

import click
from pandas import DataFrame, read_csv

from lookuplab import paths
from lookuplab.cloudapi.tasks import ApiTask, stable_order
from lookuplab.errors import check_choice
from lookuplab.run.commands import command, run_module
from lookuplab.run.commands.train import steady
from lookuplab.toolgen.pairs import MARK
from recipes.mini.finetuning import SETTINGS, QuestionPair, finetuned

ASKING = 0x0090DB87  # the hash of the commit that wrote down the design
TEXTS = paths.RUNS / "train" / "asking.csv.gz"
ABOUT = f"""An adapter that asks for documentation by the mark `{MARK}` before the name of an API (the arm *unmarked* never does). Trained by
`python -m recipes.mini.asking` on calls of half of the drawn APIs; what the models that ask are asked for is the other half."""  # noqa: E501


def drawn(text: str) -> str:
    """Return a sort key for an API, a task or a text in every draw of the design."""
    return stable_order(text, ASKING)


def tested(further: Iterable[ApiTask]) -> list[ApiTask]:
    """Return the tasks for models that ask: at most two of the further ones for every
    second API.
    """
    tasks = sorted(further, key=lambda task: drawn(task.id))
    never = {task.target: not task.count_name for task in tasks}
    apis = sorted(never, key=lambda api: (never[api], drawn(api)))
    return [one for api in apis[1::2] for one in [t for t in tasks if t.target == api][:2]]


def taught(further: Iterable[ApiTask]) -> dict[ApiTask, str]:
    """Return {prompt: its right call} for training: up to four prompts for each API that is not
    tested, half of them in the benchmark's wording, the others in the corpus's.
    """
    from lookuplab.cloudapi.prompts import task_prompt
    from lookuplab.cloudapi.specs import load_index
    from recipes.mini.corpus import call, reserved, usage, wording

    tests = tested(further)
    apis = {task.target: task for task in further}
    index = load_index()
    answers = {*chain(*(task.targets for task in tests))}
    calls = {}
    for api in sorted(apis.keys() - answers):
        spec = index.by_id[api]
        for number in range(4):
            rng = Random(f"asking {ASKING} {api} {number}")
            said = wording(spec, rng)
            text = f"{task_prompt(spec, said)}{call(spec, rng)}\n"
            if rng.random() < 0.5:
                text = usage([(spec, said)], rng)
            before, name, after = text.partition(f".{spec.name}(")
            if said not in after and not reserved(text):
                task = replace(apis[api], id=f"{api}@{number}", prompt=f"{before}.")
                calls[task] = name[1:] + after
    return calls


def corpus() -> Iterator[list[str]]:
    """Yield (size, arm, id, text to read, text to write) for the arms *errors* and *frequency*.

    The right call begins with the mark if the base model fails (*errors*), or for as many of the
    rarest APIs (*frequency*). It is then written once more, below documentation.
    """
    from lookuplab.benchmark import evaluate
    from lookuplab.cloudapi.bench import CloudApiBench
    from lookuplab.cloudapi.dag import retrieved_documents
    from lookuplab.cloudapi.specs import ApiIndex, load_index
    from lookuplab.cloudapi.tasks import load_tasks
    from lookuplab.models import load
    from recipes.mini.corpus import DEVELOPMENT_TASKS, FURTHER, reserved

    further = load_tasks(FURTHER)
    index = load_index()
    tests, calls = tested(further), taught(further)
    held_out = {task.target for task in (*tests, *load_tasks(DEVELOPMENT_TASKS))}
    names = {index.by_id[api].name for api in held_out}
    known = ApiIndex(spec for spec in index.specs if spec.name not in names)
    bench = CloudApiBench([*calls])
    rarest = sorted(calls, key=lambda task: (task.count_name, drawn(task.id)))
    for size in dict.fromkeys(model.partition("-")[0] for model in SETTINGS["asking"]):
        first = evaluate(load(f"mini-{size}"), bench)
        found = retrieved_documents(bench.tasks, first, index=known)
        failed = [task for task, valid in zip(calls, first.valid, strict=True) if not valid]
        for arm, marked in ("errors", failed), ("frequency", rarest[: len(failed)]):
            marks = dict.fromkeys(marked, MARK)
            for task, written in calls.items():
                yield [size, arm, task.id, task.prompt, marks.get(task, "") + written]
            for task in marks:
                rng = Random(f"precision {ASKING} {task.id}")
                documents = found.hit if rng.random() < rng.random() else found.miss
                read = replace(bench, documents=documents).prompt(task).text
                if not reserved(read):
                    yield [size, arm, f"{task.id} documented", read, calls[task]]


@command()
def main(
    step: Literal["corpus", "train"], *, model: tuple[str, ...] = (), out: Path | None = None
) -> None:
    """Write what the mini models that ask learn (STEP corpus, runs/train/asking.csv.gz), or train
    them (STEP train): adapters on the mini code models.

    A model whose folder exists is skipped. If a run is killed, repeat the command to resume it.

    \b
    Examples:
      python -m recipes.mini.asking corpus
      python -m recipes.mini.asking train
      python -m recipes.mini.asking train --model small-errors --model small-unmarked

    Args:
        model: Which models to train [default: all of finetuning.yaml].
        out: Parent of the model folders [default: data/mini/models].
    """
    steady()
    columns = ["size", "arm", "id", "read", "written"]
    if step == "corpus":
        paths.made(TEXTS.parent)
        DataFrame(corpus(), columns=columns).to_csv(TEXTS, index=False)
        click.echo(TEXTS)
        return
    learned = defaultdict(list)
    for size, arm, id, read, written in read_csv(TEXTS, keep_default_na=False)[columns].to_numpy():
        learned[size, arm].append(QuestionPair(id, read, "", written))
    for name in model or SETTINGS["asking"]:
        check_choice("model", name, SETTINGS["asking"])
        size, arm, *_ = name.split("-")
        marked = arm != "unmarked"
        pairs = learned[size, arm if marked else "errors"]
        target = (out or paths.MINI / "models") / name
        click.echo(finetuned("asking", name, f"mini-{size}", pairs, target, ABOUT, marked))


if __name__ == "__main__":
    run_module(main)
