"""Trains the mini models that answer data-science questions. They are the mini code models,
fine-tuned on problems about *open* objects.

An object is open if no problem of test or development is about it. No answer calls an object that
is not open. The problems are made like those of the benchmark (``mini.problems``). Each prompt
shows zero to three retrieved snippets. The ranker and the rule that leaves out snippets with the
answer are the same as in the test.
"""

from itertools import chain

import click

from lookuplab import paths
from lookuplab.run.commands import command, run_module
from lookuplab.run.commands.train import steady
from lookuplab.stackoverflow import corpus, ds1000
from lookuplab.stackoverflow.asking import TEMPLATE, look_up, object_of
from lookuplab.stackoverflow.ranking import rankers
from recipes.mini import order
from recipes.mini.docstrings import examples_of
from recipes.mini.finetuning import SETTINGS, QuestionPair, finetuned
from recipes.mini.packages import EXAMPLE_PACKAGES, example_split
from recipes.mini.problems import DEVELOPMENT_PROBLEMS, PROBLEMS, called, examined

QUESTION_MODELS = paths.MINI / "questions"
# This many of the 7,551 open examples are run: the first in the order of a hash of their ids.
# Running them takes a quarter of an hour.
EXAMPLES = 4000
PER_EXAMPLE = 3  # at most this many problems per docstring example: the original and perturbations
RANKER = "ensemble-0.4"  # the same as in the test
MOST_SHOWN = 3  # prompts show 0, 1, 2 or 3 snippets before the problem, equally often
END = "\n</code>\n"  # ends an answer, as in DS-1000's prompts
ABOUT_QUESTION_MODELS = """It completes a prompt in DS-1000's form with one line that assigns `result`. Trained by
`python -m recipes.mini.questions` on problems made by rule from docstring examples of numpy, pandas, scipy and scikit-learn, behind no to
three retrieved snippets. Held out: the documented objects of the mini benchmark, calls of their names, and answers that are
one of its references."""  # noqa: E501  # these long lines are in the committed model cards


def pairs() -> list[QuestionPair]:
    """Return the training pairs (prompt, answer). Each open example gives its problem and up to two
    perturbations. A prompt has the snippets that the ensemble finds for the problem, best last, and
    then the problem.

    A problem is left out if its answer is a reference of the benchmark or calls a held-out name.
    The same versions of the libraries give the same pairs. The function takes a quarter of an hour.
    """
    held_out = chain(*map(ds1000.load_problems, (PROBLEMS, DEVELOPMENT_PROBLEMS)))
    references = {problem.reference.strip() for problem in held_out}
    problems = []
    opened = chain(*(examples_of(name, "training") for name in EXAMPLE_PACKAGES.values()))
    for made in examined(sorted(opened, key=lambda one: order(one.id))[:EXAMPLES]):
        made.sort(key=lambda one: (one.rule != "", order(one.id)))
        for one in made[:PER_EXAMPLE]:
            name = called(one.expressions[1]).rpartition(".")[2]
            is_open = example_split(f"{one.library}.{name}") == "training"
            if is_open and one.reference not in references:
                problems.append(one)
    snippets = [
        one for one in corpus.load_snippets("mini") if example_split(object_of(one)) == "training"
    ]
    ranker = rankers(
        snippets, corpus.CORPUS_FOLDER / "words", corpus.CORPUS_FOLDER / "encoder", [RANKER]
    )[RANKER]
    shown = look_up(ranker, snippets, problems, MOST_SHOWN)
    learned = []
    for problem in problems:
        found = shown[problem.id][: int(order(f"shown {problem.id}"), 16) % (MOST_SHOWN + 1)]
        before = "".join(TEMPLATE.format(**vars(snippet)) for snippet in reversed(found))
        question = before + problem.prompt
        reply = problem.reference + END
        learned.append(QuestionPair(problem.id, question, "", reply))
    return learned


@command()
def main() -> None:
    """Train the mini models that answer questions: adapters on the mini models of three sizes.

    They are fine-tuned on problems made from the docstring examples that the mini benchmark does
    not use.

    A step whose output exists is skipped: delete the output to repeat the step. If a run is killed,
    repeat the command to resume it.

    \b
    Example:
      python -m recipes.mini.questions
    """
    steady()
    learned = pairs()
    for size in SETTINGS["questions"]:
        target = QUESTION_MODELS / f"questions-{size}"
        model = finetuned("questions", size, f"mini-{size}", learned, target, ABOUT_QUESTION_MODELS)
        click.echo(model)


if __name__ == "__main__":
    run_module(main)
