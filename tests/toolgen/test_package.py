"""The replication package's metrics on 30 functions, against an independent reading of its definitions.

The functions are real; what was "generated" is the original, another function's body, a name that nobody defined, a text that
ends in the middle, a missing body. Texts are worked out without the kit, and pylint reads thirty files that lie on the disk.
"""

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lookuplab import python_sources
from lookuplab.toolgen.dependencies import package_coverage
from lookuplab.toolgen.evaluation import Task, judge
from lookuplab.toolgen.functions import Filters, extract, locate
from lookuplab.toolgen.similarity import edit_similarity

MARK = "<COMP>"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy, so that pylint's files may be put beside its own."""
    folder = tmp_path_factory.mktemp("sources")
    return Path(shutil.copytree(python_sources.folder() / "pluggy", folder / "pluggy"))


@pytest.fixture(scope="module")
def functions(package):
    found = extract(locate(str(package)), Filters(variant="package", min_lines=2)).functions
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


def test_signature_docstring_and_body_are_compared_without_comments_and_literals(frame, compared):
    """Edit similarity is in whole percents."""
    assert list(zip(frame.predicted, frame.wanted, strict=True)) == compared
    percents = [round(edit_similarity(*pair)) for pair in compared]
    assert list(100 * frame.edit_similarity) == pytest.approx(percents)


@pytest.mark.parametrize(
    ("marked", "prediction", "dependencies", "covered"),
    [
        ("return os.<COMP>getcwd()", "return os.getcwd()", 1, 1),  # a library's
        ("return <COMP>x + <COMP>y", "return x + y", 1, 1),  # x is a parameter
        ("return <COMP>help(1)", "return helper(1)", 1, 0),
        ("<COMP>self.<COMP>size", "self.size", 1, 1),  # what a dot follows is no key
        ("y = 1\n    return <COMP>y", "y", 0, 0),
        ("<COMP>y == 1", "y", 0, 0),  # == is taken for an assignment
        ("with a as y:\n    return <COMP>y", "y", 0, 0),
        ("return (<COMP>a(<COMP>b))", "a(b)", 1, 1),  # b lies between two brackets
        ("for <COMP>y in z:\n    pass", "y", 1, 1),  # the mark takes the blank before it along
    ],
)
def test_coverage_is_of_marked_words_that_do_not_look_local(
    marked, prediction, dependencies, covered
):
    found = package_coverage("    " + marked, "def f(x):", "    " + prediction)
    assert found == {"dependencies": dependencies, "covered": covered}


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
