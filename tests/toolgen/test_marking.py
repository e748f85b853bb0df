"""Algorithm 1 on the paper's figure and on cases worked out by hand; with the real Jedi."""

from pathlib import Path

import jedi
import pytest

from lookuplab.toolgen.files import Repository, locate, parse
from lookuplab.toolgen.filters import Filters
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.jedi_tool import Answer, JediTool
from lookuplab.toolgen.jedi_worker import Repository as Project
from lookuplab.toolgen.marking import buffer_at, candidates, mark

LOOSE = Filters(min_docstring_words=1, min_lines=1)


@pytest.fixture(scope="module")
def tool():
    with JediTool(1) as tool:
        yield tool


def marked(folder, text, tool, variant="paper"):
    (folder / "module.py").write_text(text, encoding="utf-8")
    lines = parse(folder / "module.py", LOOSE).lines
    functions = [f for f in extract(Repository("repo", folder), LOOSE).functions if f.file == "module.py"]
    return [mark(function, lines, tool, variant) for function in functions]


def body(folder, text, tool):
    [one] = marked(folder, text, tool)
    assert not one.failures
    return one.body


def test_figure_4(tmp_path, tool):
    base = "class Base:\n    def __init__(self):\n        self._registered_updates = set()\n"
    (tmp_path / "base.py").write_text(base)
    text = ('from base import Base\n\nclass Layer(Base):\n    def register_updates(self, *updates):\n'
            '        """Register updates that are executed."""\n        for update in updates:\n'
            '            self._registered_updates.add(update)\n')
    assert body(tmp_path, text, tool) == ("    for update in <COMP>updates:\n"
                                          "        self.<COMP>_registered_updates.<COMP>add(<COMP>update)")


@pytest.mark.parametrize(("arguments", "code", "expected"), [
    ("e", "raise ValueError(str(e))", "raise ValueError(str(<COMP>e))"),
    ("n", "for i in range(n): pass", "for i in range(<COMP>n): pass"),
    ("n", "n.foo()", "<COMP>n.foo()"),
    ("n", "return n.__dict__", "return <COMP>n.__dict__"),
    ("n", "größe = n; return größe", "größe = <COMP>n; return <COMP>größe"),
    ("n", 's = """n\n  n"""; return n + s', 's = """n\n  n"""; return <COMP>n + <COMP>s'),
    ("n", "d = {'n': 1}; return d['n']", "d = {'n': 1}; return <COMP>d['n']"),
    ("n", "return helper(alpha=n)", "return <COMP>helper(<COMP>alpha=<COMP>n)"),
])
def test_marks_of_one_statement(tmp_path, tool, arguments, code, expected):
    text = f"def helper(alpha):\n    return 1\n\ndef f({arguments}):\n    '''Doc.'''\n    {code}\n"
    assert body(tmp_path, text, tool) == "    " + expected


def test_a_name_that_only_the_rest_of_the_function_defines_is_not_offered(tmp_path, tool):
    text = "class A:\n    def f(self, n):\n        '''Doc.'''\n        self.later = n\n        return self.later\n"
    assert body(tmp_path, text, tool) == "    self.later = <COMP>n\n    return self.<COMP>later"


def test_identical_copies_are_marked_each_at_its_own_place(tmp_path, tool):
    copy = "    def f(self, n):\n        '''Doc {}.'''\n        return n\n"
    first, second = marked(tmp_path, f"class A:\n{copy.format(1)}\nclass B:\n{copy.format(2)}", tool)
    assert (first.marks, second.marks) == (((4, 15),), ((9, 15),))


def test_tabs_and_windows_line_ends_shift_no_mark(tmp_path, tool):
    text = ('class A:\r\n\tdef f(self, n):\r\n\t\t"""Doc."""\r\n'
            '\t\tm = (n, """\r\n n""", n,\r\n\t\t\tn)\r\n\t\treturn m\r\n')
    assert body(tmp_path, text, tool) == (
        '\tm = (<COMP>n, """\n n""", <COMP>n,\n\t\t<COMP>n)\n\treturn <COMP>m')


def test_the_packages_variant_marks_signatures_and_no_local_name_at_a_statements_start(tmp_path, tool):
    text = "SIZE = 1\n\ndef f(n=SIZE):\n    '''Doc.'''\n    n.foo()\n    return n\n"
    [paper], [package] = marked(tmp_path, text, tool), marked(tmp_path, text, tool, "package")
    assert paper.signature == "def f(n=SIZE):" and package.signature == "def f(n=<COMP>SIZE):"
    assert paper.body.startswith("    <COMP>n.foo()") and package.body == "    n.foo()\n    return <COMP>n"


class Literal:
    """The literal reading: one new script for each position, all completions, Jedi's own defaults."""

    def complete(self, root, file, text, line, column, wanted=None):
        script = jedi.Script(text, path=Path(root) / file, project=Project(str(root)))
        found = script.complete(line, column)
        return Answer(tuple(one.name for one in found), tuple(one.complete for one in found))


def test_marks_equal_those_of_the_literal_reading_on_real_functions(tool):
    repository = locate("click")
    functions = [f for f in extract(repository).functions if f.file in ("_utils.py", "globals.py", "_textwrap.py")]
    assert len(functions) >= 4
    for function in functions:
        lines = parse(repository.root / function.file, Filters()).lines
        assert mark(function, lines, tool).marks == mark(function, lines, Literal()).marks, function.id


def test_the_buffer_holds_the_file_without_the_rest_of_the_function(tmp_path):
    (tmp_path / "m.py").write_text("def f(a):\n    '''Doc.'''\n    b = a\n    return b\n\nx = 1\n")
    [function] = extract(Repository("repo", tmp_path), LOOSE).functions
    lines = parse(tmp_path / "m.py", LOOSE).lines
    first, second, _ = candidates(function)
    assert buffer_at(lines, function, first) == "def f(a):\n    '''Doc.'''\n    _\n\nx = 1\n"
    assert buffer_at(lines, function, second) == "def f(a):\n    '''Doc.'''\n    b = _\n\nx = 1\n"
