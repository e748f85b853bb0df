"""Compares every instrument of measurement with a better-informed reference: one row per case, as
``published/instruments.ipynb`` counts them.

The cases are texts that real models wrote, published by others. Rows hold ids and numbers, no text.
To generate them again (a few minutes; ``nltk`` for BLEU, ``codebleu`` and pylint are needed):

    lookuplab data get ds1000 ds1000-answers
    export PYTHONHASHSEED=0  # codebleu's data flow depends on it
    python -m lookuplab_notebooks.published.instrument_rows PROBLEMS ANSWERS GORILLA CALLS OUTPUT

with the problems, the folder of the authors' answers (``MODEL-answers.jsonl``, and
``verdicts-MODEL.jsonl`` of ``lookuplab score ds1000``), the folder of Gorilla's responses, the
folder of calls labelled by the SDKs (``capi_*.jsonl``).
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markdown_it import MarkdownIt
from sklearn.metrics import roc_auc_score

from lookuplab.benchmark import evaluate
from lookuplab.cloudapi.bench import CloudApiBench
from lookuplab.cloudapi.first_call import call_extent, strip_backticks
from lookuplab.cloudapi.specs import INDEX, load_index
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab.cloudapi.validity import judge_call
from lookuplab.errors import UNPARSABLE
from lookuplab.models import load
from lookuplab.models.store import hashed
from lookuplab.scoring.calibration import auroc_interval, ece_interval
from lookuplab.stackoverflow.ds1000 import (
    INSERT,
    Problem,
    load_problems,
    solution_of,
    template,
)
from lookuplab.toolgen.insertion import function_of, location_of
from lookuplab.toolgen.similarity import COMPONENTS, bleu, bleu_counts, code_bleu_counts, components
from lookuplab.toolgen.success import CHECKS, messages_of

Row = dict[str, Any]
# the models whose answers DS-1000's authors published
MODELS = (
    "codex002",
    "gpt-3.5-turbo-0613",
    "gpt-3.5-turbo-0125",
    "gpt-4-0613",
    "gpt-4-turbo-2024-04-09",
    "gpt-4o-2024-08-06",
)
PAIRS = 1000  # pairs of answer and reference whose similarity is computed in two ways
ANSWERS = 50  # answers for pylint: so many that pass, and so many that end in a name error
LINE = re.compile(r"<<<api_call>>>: *(.*?)(?:,? *\n?<<<|\"?\Z)", re.DOTALL)


def row(instrument: str, against: str, id: str, difference: float) -> Row:
    """Return one case. ``difference`` is 0 if instrument and reference agree, 1 if they do not, or
    the distance of two numbers.
    """
    return {
        "instrument": instrument,
        "against": against,
        "id": id,
        "difference": round(float(difference), 9),
    }


def fences(texts: Iterable[tuple[str, str]]) -> Iterator[Row]:
    """Yield a comparison of the code in an answer with the last fenced block with content that a
    Markdown parser finds.
    """
    for id, text in texts:
        blocks = [each.content for each in MarkdownIt().parse(text) if each.type == "fence"]
        blocks = [*filter(str.strip, blocks)]
        if blocks:
            same = strip_backticks(text).strip() == blocks[-1].strip()
            yield row("code in a chat answer", "markdown-it, last fence", id, not same)


def calls(texts: Iterable[tuple[str, str]]) -> Iterator[Row]:
    """Yield a comparison of the end of a call followed by words with the line that Gorilla's format
    gives it, if that line is one call.
    """
    for id, text in texts:
        if not (line := LINE.search(text)) or not is_call(line[1].strip()):
            continue
        found = text[line.start(1) :]
        same = statements(found[: call_extent(found).end]) == statements(line[1])
        yield row("end of a call", "Gorilla's line of the call", id, not same)


def is_call(text: str) -> bool:
    """Return whether a text is one call of a dotted name."""
    try:
        node = ast.parse(text, mode="eval").body
    except UNPARSABLE:
        return False
    return isinstance(node, ast.Call) and not any(
        isinstance(each, ast.Call | ast.Subscript) for each in ast.walk(node.func)
    )


def bodies(texts: Iterable[tuple[str, str]]) -> Iterator[Row]:
    """Yield a comparison of a function's body, in a chat answer with a fence or words around it,
    with the code that DS-1000's authors cut out of it, if that parses. Answers with DS-1000's own
    tags are left out, because ToolGen's prompts ask for no tags.
    """
    place = location_of("def f(df):\n    pass", 1)
    for id, text in texts:
        cut = solution_of(text)
        tagged = re.search("</?code>|END SOLUTION", text)
        if tagged or text.strip() == cut.strip() or not (wanted := statements(cut)):
            continue
        same = statements(function_of(place, text)[1]) == wanted
        yield row("body in a chat answer", "the authors' cut", id, not same)


def statements(code: str) -> str:
    """Return the syntax tree, as text, of code that parses at the margin or in a function,
    else "".
    """
    try:
        tree = ast.parse(f"if 1:\n{textwrap.indent(textwrap.dedent(code), ' ')}")
    except UNPARSABLE:
        return ""
    return ast.dump(tree)


def similarities(pairs: Iterable[tuple[str, str, str]]) -> Iterator[Row]:
    """Yield comparisons of CodeBLEU's components with the package ``codebleu``, and of BLEU with
    nltk's with the same smoothing, pair by pair (id, answer, reference) and for the corpus.

    If a text is too short for an n-gram, nltk counts one; and whatever the smoothing, it gives 0 to
    a pair without a common word. Such pairs are left out of the comparison.
    """
    from codebleu import calc_codebleu
    from nltk.translate.bleu_score import Fraction, corpus_bleu

    def smoothed(p_n: list[Any], **_: Any) -> list[Any]:
        return [Fraction(p.numerator + 1, p.denominator + 1, _normalize=False) for p in p_n]

    pairs = [each for each in pairs if each[1].strip()]
    for corpus in [*([pair] for pair in pairs), pairs]:
        id = corpus[0][0] if len(corpus) == 1 else "corpus"
        theirs = calc_codebleu([each[2] for each in corpus], [each[1] for each in corpus], "python")
        counts = np.sum([code_bleu_counts(*each[1:]) for each in corpus], axis=0)
        ours = np.nan_to_num(components(counts))
        for name, value in zip(COMPONENTS, ours, strict=True):
            apart = abs(value - theirs[f"{name}_match_score"])
            yield row(f"CodeBLEU, {name}", "codebleu", id, apart)
        words = [(answer.split(), wanted.split()) for _, answer, wanted in corpus]
        words = [each for each in words if len(each[0]) > 3 and {*each[0]} & {*each[1]}]
        if words:
            mine = bleu(np.sum([bleu_counts(*each) for each in words], axis=0))
            wanted = [[reference] for _, reference in words]
            other = corpus_bleu(wanted, [each for each, _ in words], smoothing_function=smoothed)
            yield row("BLEU-4", "nltk", id, abs(float(mine) - float(other)))


def errors(answers: list[tuple[str, Problem, str, str]]) -> Iterator[Row]:
    """Yield comparisons of pylint's verdict on an answer in a function: this kit's warm process
    with pylint's own command, and the verdict with the result of running the answer ((id, problem,
    answer, error)).
    """
    with tempfile.TemporaryDirectory() as folder:
        texts = {}
        for at, (_, problem, answer, _) in enumerate(answers):
            code = template(problem.context).replace(INSERT, answer)
            texts[f"answer_{at}.py"] = f"def f(test_input):\n{textwrap.indent(code, '    ')}\n"
        for name, text in texts.items():
            Path(folder, name).write_text(text, "utf-8")
        enabled = f"--enable={','.join(CHECKS)}"
        code = "import sys; from pylint.lint import Run\n"
        code += "from lookuplab.toolgen.success import Linter\n"
        code += "Run.LinterClass = Linter; Run(sys.argv[1:])"  # it reads the pinned sources, too
        command = [sys.executable, "-c", code, "--rcfile=/dev/null", "--disable=all", enabled]
        command += ["--output-format=json", *texts]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        messages = json.loads(run.stdout[run.stdout.index("[") :])
        theirs = {(each["path"], each["message-id"]) for each in messages}
        for (name, text), (id, _, _, error) in zip(texts.items(), answers, strict=True):
            lines = 1, text.count("\n") + 1
            found = messages_of(Path(folder), name, text, lines)
            mine = {check for check, *_ in found} & {*CHECKS}
            other = {check for path, check in theirs if path == name}
            yield row("pylint's verdict", "pylint's command", id, bool(mine) != bool(other))
            kind = error.partition(":")[0]
            if not error:
                yield row("pylint on answers that pass", "their test", id, bool(mine))
            elif kind in ("NameError", "SyntaxError", "IndentationError"):
                yield row(
                    "pylint on answers that end in NameError or SyntaxError",
                    "their run",
                    id,
                    not mine,
                )
            elif kind == "AttributeError":
                yield row("pylint on answers that end in AttributeError", "their run", id, not mine)


def validity(files: Iterable[Path]) -> Iterator[Row]:
    """Yield a comparison of a call's category with the label that follows from the SDK's reaction
    to it.
    """
    index = load_index(INDEX)
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            case = json.loads(line)
            targets = case["target"] if isinstance(case["target"], list) else [case["target"]]
            place = case["provider"], case["client"], case["service"]
            mine = judge_call(case["candidate"], targets, index, *place)
            same = mine.category == case["category"]
            yield row("validity of a call", f"the SDKs ({file.stem})", str(case["id"]), not same)


def calibration() -> Iterator[Row]:
    """Yield comparisons of AUROC with scikit-learn's and of ECE with numpy's bins, for the mini
    models' answers.
    """
    tasks = load_tasks("data/mini/cloudapi/tasks.jsonl")
    for name in ("mini-small", "mini-medium", "mini-large"):
        frame = evaluate(load(name), CloudApiBench(tasks))
        right, sure = frame.valid.to_numpy(bool), frame.minimum.to_numpy(float)
        apart = auroc_interval(right, sure, frame.cluster).value - roc_auc_score(right, sure)
        yield row("AUROC", "scikit-learn", name, abs(apart))
        order = np.argsort(sure, kind="stable")
        edges = np.linspace(0, len(order), 11).round().astype(int)
        parts = [order[start:end] for start, end in pairwise(edges)]
        theirs = sum(abs((right[part] - sure[part]).sum()) for part in parts) / len(order)
        mine = ece_interval(right, sure, frame.cluster).value
        yield row("ECE, ten bins of equal mass", "numpy", name, abs(mine - theirs))


def published_answers(folder: Path, model: str) -> dict[str, str]:
    """Return {problem's id: a model's answer}, from a file of DS-1000's authors."""
    texts = {}
    for line in (folder / f"{model}-answers.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        code = record["code"]
        texts[str(record["metadata"]["problem_id"])] = code[0] if isinstance(code, list) else code
    return texts


def verdicts(folder: Path, model: str) -> list[tuple[str, bool | None, str]]:
    """Return (problem's id, whether the answer passed or None, error) of a model's answers."""
    lines = (folder / f"verdicts-{model}.jsonl").read_text("utf-8").splitlines()
    each = map(json.loads, lines)
    return [(str(one["problem_id"]), one["passed"], one["error"]) for one in each]


def all_rows(problems: Path, answers: Path, gorilla: Path, labelled: Path) -> Iterator[Row]:
    """Yield the rows of every instrument."""
    by_id = {problem.id: problem for problem in load_problems(problems)}
    written = {model: published_answers(answers, model) for model in MODELS}
    texts = [
        (f"{model} {id}", text)
        for model, of_model in written.items()
        for id, text in of_model.items()
    ]
    yield from bodies(texts)
    files = [file for file in sorted(gorilla.rglob("*.jsonl")) if "RT_0_shot" not in file.name]
    responses = []
    for file in files:
        for line in map(json.loads, file.read_text("utf-8").splitlines()):
            text = line["text"].replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')
            text = text.removesuffix('"')  # a trace of how the answers were saved
            responses.append((f"{file.stem} {line['question_id']}", text))
    yield from calls(responses)
    yield from fences([*texts, *responses])
    drawn = sorted((id for id, _ in texts), key=lambda id: hashed(f"similarity {id}"))[:PAIRS]
    chosen = {id: solution_of(written[id.split()[0]][id.split()[1]]) for id in drawn}
    pairs = [(id, code, by_id[id.split()[1]].reference) for id, code in chosen.items()]
    yield from similarities(pairs)
    judged = []
    for model in written:
        for id, passed, error in verdicts(answers, model):
            if passed is not None:
                judged.append((f"{model} {id}", error))
    judged.sort(key=lambda each: hashed(f"errors {each[0]}"))
    rare = [each for each in judged if each[1].startswith(("NameE", "SyntaxE", "Inden", "Attri"))]
    asked = [*[each for each in judged if not each[1]][:ANSWERS], *rare[:ANSWERS]]
    yield from errors(
        [
            (id, by_id[id.split()[1]], solution_of(written[id.split()[0]][id.split()[1]]), error)
            for id, error in asked
        ]
    )
    yield from validity(sorted(labelled.glob("capi_*.jsonl")))
    yield from calibration()


if __name__ == "__main__":
    *given, output = map(Path, sys.argv[1:])
    same_bytes: Any = {"method": "gzip", "mtime": 0}
    table = pd.DataFrame(all_rows(*given))
    table.to_csv(output, index=False, lineterminator="\n", compression=same_bytes)
