"""The completion tool survives what Jedi does not: calls that hang, crash or fail cost one worker
and are counted. And what a worker keeps between questions changes no answer.
"""

import parso
import pytest

from lookuplab.toolgen import jedi_worker
from lookuplab.toolgen.functions import extract, locate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.marking import buffer_at, candidates

TEXT = "class A:\n    def __init__(self):\n        self.field = 1\n\n    def f(self, n):\n        self."
PLACE = "module.py", TEXT, 6, 13


@pytest.fixture
def one():
    with JediTool(1) as one:
        yield one


def worker_of(tool):
    [worker] = tool._free
    return worker


@pytest.fixture
def asked(monkeypatch):
    """The columns of the questions that reach a worker."""
    columns, ask = [], JediTool._asked
    monkeypatch.setattr(
        JediTool, "_asked", lambda *call: columns.append(call[-1]["column"]) or ask(*call)
    )
    return columns


def test_an_unsaved_buffer_is_completed_and_edits_are_seen(one, tmp_path):
    (tmp_path / "other.py").write_text("def helper(alpha): pass\n")
    names = one.complete(tmp_path, *PLACE).names
    assert "field" in names and "f" in names
    edited = TEXT.replace("field", "renamed")
    names = one.complete(tmp_path, "module.py", edited, 6, 13).names
    assert "renamed" in names and "field" not in names
    assert "helper" in one.complete(tmp_path, "module.py", "import other\nother.", 2, 6).names


def test_asking_for_one_name_finds_it_exactly_when_the_full_answer_holds_it(one, tmp_path):
    hidden = "self.field = 1\n        self.__hidden = 2"
    text = TEXT.replace("self.field = 1", hidden) + "\n"
    full = one.complete(tmp_path, "module.py", text, 7, 13).names
    for name in ("field", "f", "__hidden", "n", "A", "missing", "__init__", "__class__"):
        found = one.complete(tmp_path, "module.py", text, 7, 13, wanted=name).names
        assert (name in found) == (name in full), name


def test_a_parameter_is_known_from_callers_in_the_repository_and_not_from_beside_it(one, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    text = "def inside(thing):\n    pass\n\ndef outside(thing):\n    thing."
    (package / "caller.py").write_text("from package.module import inside\ninside('')\n")
    (tmp_path / "beside.py").write_text("from package.module import outside\noutside('')\n")
    assert "upper" not in one.complete(package, "module.py", text, 5, 10).names
    swapped = text.replace("inside", "_").replace("outside", "inside")
    assert "upper" in one.complete(package, "module.py", swapped, 5, 10).names


def test_a_call_that_takes_too_long_is_given_up_and_its_worker_goes_on(one, tmp_path):
    for name in ("first", "second"):
        code = "".join(f"def {name}_{n}(a, b=[{n}]):\n    return a\n" for n in range(2000))
        (tmp_path / f"{name}.py").write_text(code)
    text = "import first\nimport second\nsecond."
    one.complete(tmp_path, "module.py", "import first\nfirst.", 2, 6)
    channel, one.time_limit = worker_of(one).channel, 0.01
    assert one.complete(tmp_path, "module.py", text, 3, 7).failure == "timed out"
    one.time_limit = 20
    assert "second_1999" in one.complete(tmp_path, "module.py", text, 3, 7).names
    assert worker_of(one).channel is channel and one.failures == {"timed out": 2}


@pytest.mark.parametrize(
    ("code", "failure", "limit"),
    [("os.abort()", "crashed", 20), ("time.sleep(60)", "timed out", 0.2)],
)
def test_a_module_that_ends_or_stops_the_process_is_counted_and_the_next_call_has_a_new_one(
    one, tmp_path, monkeypatch, code, failure, limit
):
    (tmp_path / "gi.py").write_text(f"import os, time\n{code}\n")  # Jedi imports this one
    monkeypatch.setenv("LOOKUPLAB_SOURCES", str(tmp_path))
    one.time_limit = limit
    answer = one.complete(tmp_path, "module.py", "import gi\ngi.", 2, 3)
    assert (answer.failure, one.failures) == (failure, {failure: 2})
    one.time_limit = 20
    assert "x" in one.complete(tmp_path, "module.py", "x = 1\n", 2, 0).names


def test_an_error_of_jedi_is_an_answer_and_the_process_stays(one, tmp_path):
    assert one.complete(tmp_path, "module.py", "x = 1\n", 99, 0).failure == (
        "error in Jedi: ValueError"
    )
    channel = worker_of(one).channel
    assert "x" in one.complete(tmp_path, "module.py", "x = 1\n", 2, 0).names
    assert worker_of(one).channel is channel and one.failures == {"error in Jedi: ValueError": 1}


def test_what_jedi_has_answered_the_next_tool_need_not_ask(tmp_path, asked):
    answers = []
    for store in (tmp_path / "kept.sqlite", tmp_path / "kept.sqlite", False):
        with JediTool(1, store=store) as tool:
            answers += [tool.complete(tmp_path, *PLACE) for _ in range(2)]
    assert asked == [13, 13] and "field" in answers[0].names and len(set(answers)) == 1


def test_another_file_in_the_repository_asks_again(tmp_path, asked):
    for name in ("alpha", "beta"):
        (tmp_path / "other.py").write_text(f"{name} = 1\n")
        with JediTool(1, store=tmp_path / "kept.sqlite") as tool:
            found = tool.complete(tmp_path, "module.py", "import other\nother.", 2, 6)
            assert name in found.names
    assert asked == [6, 6]


CODE = """class A:
    if True:
        def a(self):
            def inner(): return one
            return inner

    async def b(self): self.two = 2

def c(): return three
x = [y for y in c()]
"""


def test_names_of_an_edited_file_are_those_of_a_file_parsed_anew(tmp_path):
    def names(module, used):
        return [(key, [name.start_pos for name in found]) for key, found in used(module).items()]

    lines = CODE.splitlines(keepends=True)
    edits = [lines[:n] + ["        new = old\n"] + lines[n + 1 :] for n in range(len(lines))]
    grammar = parso.load_grammar()
    for edit in [lines, *edits, lines]:
        for text in ("".join(edit), CODE):
            module = grammar.parse(text, path=tmp_path / "module.py", diff_cache=True)
            plain = names(grammar.parse(text), parso.python.tree.Module.get_used_names)
            assert names(module, jedi_worker.used_names) == plain, text


BRANCHES = """import os, sys
if sys.version_info >= (3, 99):
    value_new = 1
else:
    value_old = 2
try:
    import nowhere as value_tried
except ImportError:
    value_failed = None
if False:
    def value_never(): pass
value_old = value_both = 1
def f(value_argument):
    if value_argument:
        value_both = 3
        return value_
    while value_argument:
        value_late = 4
    %s
"""


def equals_plain_jedi(tool, *place):
    """The worker's answer, asked twice, equals that of Jedi without what ``install`` changes."""
    root, *caret = place
    plain = jedi_worker.completions(str(root), *caret)
    for limit in (20, 21):
        tool.time_limit = limit
        question = dict(zip(("file", "text", "line", "column"), caret, strict=True))
        found = tool._asked({**question, "root": str(root), "limit": limit})
        assert [list(pair) for pair in zip(found.names, found.inserted, strict=True)] == plain
    return found


@pytest.mark.parametrize("ends", ["value_", "os.", "os.path.", "", "f("])
def test_names_in_branches_are_those_of_plain_jedi(one, tmp_path, ends):
    text = BRANCHES % ends
    equals_plain_jedi(one, tmp_path, "a.py", text, text.count("\n"), 4 + len(ends))


def test_answers_about_real_functions_are_those_of_plain_jedi(one):
    repository = locate("click")
    files = ("parser.py", "_textwrap.py")
    functions = [f for f in extract(repository).functions if f.file in files][:2]
    asked = [(f, token) for f in functions for token in list(candidates(f))[::4]]
    assert len(asked) >= 4
    for function, token in asked:
        text = buffer_at(function.lines(), function, token)
        place = repository.root, function.file, text, token.line, token.column
        full = equals_plain_jedi(one, *place)
        single = one.complete(*place, wanted=token.text)
        assert (token.text in single.names) == (token.text in full.names)


TYPES = "from typing import Union\n\ndef first(x):\n    return x\n\nText = Union[str, bytes]\n"
USER = "from kinds import Text\n\ndef use(url: Text):\n    url.\n"


def test_a_buffer_stands_for_its_file_in_no_question_about_another(tmp_path, one):
    """``first`` is being written: its unfinished text takes what follows with it, for its own
    question alone.
    """
    (tmp_path / "kinds.py").write_text(TYPES)
    (tmp_path / "user.py").write_text(USER.replace("url.", "pass"))
    half, answers = TYPES.replace("return x", "return (x."), []
    for end in ("", "\n", "\n\n"):
        answers.append(one.complete(tmp_path, "user.py", USER + end, 4, 8))
        one.complete(tmp_path, "kinds.py", half + end, 4, 14)
    assert "encode" in answers[0].names and len(set(answers)) == 1


def test_the_next_question_about_a_buffer_parses_what_has_changed(tmp_path):
    trees = []
    for text in (TYPES, TYPES.replace("return x", "return (x.")):
        with jedi_worker.script(str(tmp_path), "kinds.py", text) as script:
            trees.append(script._module_node)
    assert trees[0] is trees[1]
