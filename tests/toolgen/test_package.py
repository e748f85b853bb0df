"""The replication package's metrics on 30 functions, against another reading of its definitions.

The functions are real; what was "generated" is the original, another function's body, a name that nobody defined, a
text that ends in the middle, a missing body. Texts are made by hand, pylint reads thirty files that lie on the disk.
"""

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lookuplab import python_sources
from lookuplab.toolgen.dependencies import package_coverage
from lookuplab.toolgen.evaluation import Task, judge
from lookuplab.toolgen.functions import Filters, extract, locate
from lookuplab.toolgen.similarity import bleu, bleu_counts, edit_similarity
from lookuplab.toolgen.tables import similarity_rows

MARK = "<COMP>"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy, so that pylint's files may be put beside its own."""
    folder = tmp_path_factory.mktemp("sources")
    return Path(shutil.copytree(python_sources.folder() / "pluggy", folder / "pluggy"))


@pytest.fixture(scope="module")
def functions(package):
    found = extract(locate(str(package)), Filters(variant="package")).functions
    return found[:30]


@pytest.fixture(scope="module")
def cases(functions):
    """(function, prediction, body of the reference with marks before some of its words)."""
    made = []
    for number, one in enumerate(functions):
        chance = random.Random(number)
        lines = one.body.split("\n")
        indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        prediction = [
            one.body,
            functions[number - 1].body,
            f"{indent}return nothere(self.zzz)",
            one.body[: len(one.body) // 2] + " (",
            f"{one.signature}\n{one.body}\n{indent}x = 'it' + \"is\"",
        ][number % 5]
        marked = bare(one.body)
        words = [found.start() for found in re.finditer(r"(?<![\w'\"])[a-zA-Z_]", marked)]
        for at in sorted(chance.sample(words, len(words) // 2), reverse=True):
            marked = marked[:at] + MARK + marked[at:]
        made.append((one, prediction, marked))
    return made


@pytest.fixture(scope="module")
def frame(cases):
    tasks = [
        Task(one.id, one.root, one.file, one.line, prediction, marked)
        for one, prediction, marked in cases
    ]
    return judge(tasks, "package", store=":memory:")


def emptied(text, quotes="'\""):
    """Nothing is left between two equal quotes of a line; both become single ones."""
    for quote in quotes:
        lines = []
        for line in text.split("\n"):
            done, *rest = line.split(quote)
            while len(rest) > 1:
                _, after, *rest = rest
                done += "''" + after
            lines.append(done + "".join(quote + part for part in rest))
        text = "\n".join(lines)
    return text.strip()


def bare(text):
    """Without comments; no literal of these functions has a #."""
    lines = [line.partition("#")[0] for line in text.split("\n")]
    return "\n".join(line for line in lines if line.strip())


def texts(one, body, prediction):
    """What is compared; of a whole function without its docstring."""
    if prediction.startswith("def"):
        return emptied(prediction), emptied(f"{bare(one.signature)}\n{bare(body)}")
    head = f"{bare(one.signature)}\n'''{one.docstring}'''\n"
    return emptied(head + prediction), emptied(head + bare(body))


@pytest.fixture(scope="module")
def compared(cases):
    return [texts(one, one.body, prediction) for one, prediction, _ in cases]


def test_there_are_30_functions_and_each_kind_of_answer(functions, frame):
    assert len(functions) == 30 and frame.exact_match.sum() == 5  # and one with a comment
    assert 6 <= frame.passed.sum() <= 18 and frame.covered.sum() > 10


def test_the_texts_that_are_compared(frame, compared):
    """Up to white space, at which no metric looks."""
    for *found, wanted in zip(frame.predicted, frame.wanted, compared, strict=True):
        assert [text.split() for text in found] == [text.split() for text in wanted]


def test_the_similarity_is_that_of_these_texts_in_words_and_whole_percents(frame, compared):
    found = [round(edit_similarity(*pair) / 100, 2) for pair in compared]
    assert list(frame.edit_similarity) == found
    counts = [bleu_counts(*map(str.split, pair)) for pair in compared]
    rows = similarity_rows({("m", "x"): frame}, {}, "package")
    [bleu4] = [row["value"] for row in rows if row["metric"] == "bleu4"]
    assert bleu4 == pytest.approx(bleu(np.sum(counts, axis=0)))


@pytest.mark.parametrize(
    ("marked", "prediction", "expected"),
    [
        ("return self.*size", "return self.size", (1, 1)),
        ("return self.*size", "return itself.size", (1, 0)),  # within a longer word
        ("return os.path.*join(text, *flag)", "path.join(flag)", (2, 2)),  # libraries' names count
        ("return *size.real", "size", (0, 0)),  # a dot follows
        ("return foo(*bar(*baz))", "bar", (1, 1)),  # the second key's bracket belongs to the first
        ("call(*n)", "n", (0, 0)),  # a parameter
        ("value = 1\nreturn *value", "value", (0, 0)),
        ("value == 1\nreturn *value", "value", (0, 0)),  # taken for an assignment
        ("for one in *items: f(*one)", "one", (1, 0)),
        ("with f() as file: g(*file)", "file", (0, 0)),
        ("from os import path\nreturn *path", "path", (1, 1)),
        ("pass", "pass", (0, 0)),
    ],
)
def test_keys_are_marked_words_that_do_not_look_like_local_names(marked, prediction, expected):
    found = package_coverage(f" {marked.replace('*', MARK)}", "def f(n):", prediction)
    assert (found["dependencies"], found["covered"]) == expected


def test_coverage_is_that_of_the_marked_reference(frame, cases, compared):
    for (one, prediction, marked), (predicted, _), row in zip(
        cases, compared, frame.itertuples(), strict=True
    ):
        found = package_coverage(texts(one, marked, prediction)[1], one.signature, predicted)
        assert (row.dependencies, row.covered) == (found["dependencies"], found["covered"])


def test_lint_verdicts_within_the_window(frame, cases):
    """pylint reads thirty files beside the originals; two lines behind a function are its own, too."""
    windows = {}
    for number, (one, prediction, _) in enumerate(cases):
        lines, place = one.lines(), one.root / Path(one.file).with_name(f"case{number}.py")
        whole = prediction.startswith("def")
        begin = one.line if whole else one.body_line
        new = [one.indent * bool(line) + line for line in prediction.split("\n")]
        lines[begin - 1 : one.end_line] = [line + "\n" for line in new]
        place.write_text("".join(lines))
        windows[place.name] = range(one.line, begin + len(new) + 2)
    options = ["--rcfile=", "--disable=all", "--enable=E0001,E0602,E1101", "-f", "json"]
    command = [sys.executable, "-m", "pylint", *options, *windows]
    done = subprocess.run(command, cwd=cases[0][0].root, capture_output=True, text=True)
    failed = {
        said["path"] for said in json.loads(done.stdout) if said["line"] in windows[said["path"]]
    }
    assert [name not in failed for name in windows] == list(frame.passed)
