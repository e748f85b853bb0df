"""The replication package's metrics on 30 functions, against an independent reading of its definitions.

The functions are real; what was "generated" is the original, another function's body, a name that nobody defined, a
text that ends in the middle, a missing body. Nothing of the kit computes what is expected: texts by hand, n-grams by
their own loop, keys by walking over the text, pylint once over thirty files that lie on the disk.
"""

import json
import math
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lookuplab import python_sources
from lookuplab.toolgen.evaluation import Task, judge
from lookuplab.toolgen.functions import Filters, extract, locate
from lookuplab.toolgen.tables import repository_rows, similarity_rows

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


def test_bleu_4_of_the_corpus(frame, compared):
    expected, lengths = 0.0, [0, 0]
    for order in (1, 2, 3, 4):
        hits = grams = 0
        for pair in compared:
            found, wanted = (
                [tuple(words[i : i + order]) for i in range(len(words) - order + 1)]
                for words in map(str.split, pair)
            )
            grams += len(found)
            for gram in found:
                if gram in wanted:
                    wanted.remove(gram)
                    hits += 1
        expected += math.log((hits + 1) / (grams + 1)) / 4
    lengths = [sum(len(text.split()) for text in side) for side in zip(*compared, strict=True)]
    penalty = min(0.0, 1 - lengths[1] / lengths[0])
    rows = {
        row["metric"]: row["value"] for row in similarity_rows({("m", "x"): frame}, {}, "package")
    }
    assert rows["bleu4"] == pytest.approx(math.exp(expected + penalty))


def common(first, second):
    """The length of the longest common subsequence."""
    row = [0] * (len(second) + 1)
    for one in first:
        diagonal = 0
        for at, other in enumerate(second, 1):
            diagonal, row[at] = row[at], diagonal + 1 if one == other else max(row[at], row[at - 1])
    return row[-1]


def test_edit_similarity_in_whole_percents(frame, compared):
    for pair, found in zip(compared, frame.edit_similarity, strict=True):
        first, second = (" ".join(text.split()) for text in pair)
        ratio = 2 * common(first, second) / (len(first) + len(second))
        assert found == round(ratio, 2)


def word(character):
    return character.isalnum() or character == "_"


def followed(rest, what):
    """Whether words lie between here and ``what``, or nothing."""
    for at in range(len(rest)):
        if rest.startswith(what, at):
            between = rest[:at].rstrip()
            spaced = what == "=" or rest[:at] != between
            if spaced and (not between or (not word(rest[0]) and word(between[-1]))):
                return True
    return False


def local(key, plain):
    """Assigned, or bound by as, for or import, as far as the package sees that."""
    name = key.partition(".")[0]
    for text, lead, what in (
        (name, "", "="),
        (name, "as", ":"),
        (name, "for", "in"),
        (key, "from", "import"),
    ):
        for at in range(len(plain)):
            before, rest = plain[:at], plain[at + len(text) :]
            if (
                plain.startswith(text, at)
                and before[-1:].isspace()
                and before.rstrip().endswith(lead)
            ):
                if rest.lstrip().startswith(":") if what == ":" else followed(rest, what):
                    return True
    return False


def keys(marked, signature):
    """Marked words with the word before their dot, from left to right, no character used twice."""
    plain = marked.replace(f" {MARK} ", "").replace(f" {MARK}", "")
    free, found = 0, set()
    for start in (at for at in range(len(marked)) if marked.startswith(MARK, at)):
        end = first = start + len(MARK)
        while end < len(marked) and word(marked[end]):
            end += 1
        if end == first or marked[end : end + 1] in (".", "="):
            continue
        name = re.findall(r"(\w+)\.$", marked[free:start])
        left = start - len("".join(name)) - bool(name)
        if name and left - 1 < free:
            name, left = [], start
        if left - 1 < free or word(marked[left - 1]):
            continue
        key = ".".join([*name, marked[first:end]])
        blank = len(marked[end:]) - len(marked[end:].lstrip())
        free = end + blank
        free += (
            0
            if blank
            and marked[free : free + 1] in (".", "=")
            or word(marked[free : free + 1] or "_")
            else 1
        )
        parameter = (
            "." not in key and key in "".join(c if word(c) else " " for c in signature).split()
        )
        if not parameter and not local(key, plain):
            found.add(key)
    return found


def test_coverage_of_marked_words(frame, cases, compared):
    for (one, prediction, marked), (predicted, _), row in zip(
        cases, compared, frame.itertuples(), strict=True
    ):
        wanted = keys(texts(one, marked, prediction)[1], one.signature)
        spots = {
            key: [at for at in range(len(predicted)) if predicted.startswith(key, at)]
            for key in wanted
        }
        hits = [
            key
            for key, found in spots.items()
            if any(
                not word(predicted[at - 1]) and not word((predicted + " ")[at + len(key)])
                for at in found
            )
        ]
        assert (row.dependencies, row.covered) == (len(wanted), len(hits)), one.id
    rows = repository_rows({("m", "x"): frame})
    [pooled] = [row for row in rows if row["metric"] == "depcov_percent"]
    assert pooled["value"] == pytest.approx(100 * frame.covered.sum() / frame.dependencies.sum())


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
