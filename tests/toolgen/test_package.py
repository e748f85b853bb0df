"""The replication package's metrics on 30 functions, against an independent reading of its definitions.

The functions are real; what was "generated" is the original, another function's body, a name that nobody defined, a
text that ends in the middle, a missing body. Nothing of the kit computes what is expected: texts and keys by hand,
pylint once over thirty files that lie on the disk.
"""

import json
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
    """(function, prediction, body of the reference with marks before its words)."""
    made = []
    for number, one in enumerate(functions):
        indent = re.match(r"\s*", one.body)[0]
        prediction = [
            one.body,
            functions[number - 1].body,
            f"{indent}return nothere(self.zzz)",
            one.body[: len(one.body) // 2] + " (",
            f"{one.signature}\n{one.body}\n{indent}x = 'it' + \"is\"",
        ][number % 5]
        marked = re.sub(r"(?<![\w'\"])(?=[a-zA-Z_])", MARK, bare(one.body))
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


def test_texts_are_those_that_the_package_compares(frame, compared):
    for pair, *found in zip(compared, frame.predicted, frame.wanted, strict=True):
        assert [text.split() for text in found] == [text.split() for text in pair]
    assert (frame.edit_similarity == frame.edit_similarity.round(2)).all(), "in whole percents"


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ("return self.<COMP>size + <COMP>len(1)", ["self.size", "len"]),
        ("foo.a.<COMP>b(c)", ["a.b"]),  # the last word before the dot
        ("return <COMP>foo(<COMP>bar(<COMP>baz))", ["foo", "baz"]),  # between two brackets
        ("return <COMP>x + self.<COMP>x", ["self.x"]),  # a parameter
        ("g(<COMP>key=1, <COMP>fold.read())", []),
        ("y = 1\n    return <COMP>y", []),
        ("if y == 1:\n        return <COMP>y", []),  # for the package an assignment
        ("for y in <COMP>ys:\n        <COMP>y(1)", ["ys"]),
        ("for <COMP>y in <COMP>ys: pass", ["y", "ys"]),  # the mark takes the blank along
        ("from z import b\n    return <COMP>z", []),
        ("with open(1) as y:\n        <COMP>y(1)", []),
        ("return 1", []),
    ],
)
def test_marked_words_that_do_not_look_local_are_dependencies(body, keys):
    found = package_coverage(f"def f(x):\n    {body}", "def f(x):", f"def f(x): {keys}")
    assert found == {"dependencies": len(keys), "covered": len(keys)}


def test_a_dependency_is_covered_by_the_whole_word():
    marked = "def f():\n    return <COMP>foo(self.<COMP>bar)"
    found = package_coverage(marked, "def f():", "def f(): return foobar(self.bar)")
    assert found == {"dependencies": 2, "covered": 1}


def test_coverage_is_of_the_texts_that_are_compared(frame, cases, compared):
    for (one, prediction, marked), (predicted, _), row in zip(
        cases, compared, frame.itertuples(), strict=True
    ):
        found = package_coverage(texts(one, marked, prediction)[1], one.signature, predicted)
        assert found == {"dependencies": row.dependencies, "covered": row.covered}, one.id


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
