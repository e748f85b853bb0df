"""What a worker keeps between questions changes no answer: names, tree and completions are those of a fresh script."""

import subprocess
import sys
from types import SimpleNamespace

import jedi
import parso
import pytest
from jedi.inference import references
from parso.python import diff

from lookuplab.toolgen import jedi_kept, jedi_worker
from lookuplab.toolgen.files import locate, parse
from lookuplab.toolgen.filters import Filters
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.jedi_tool import Worker
from lookuplab.toolgen.marking import buffer_at, candidates

CODE = """class A:
    if True:
        def a(self):
            def inner(): return one
            return inner

    async def b(self): self.two = 2

def c(): return three
x = [y for y in c()]
"""


@pytest.fixture
def kept(monkeypatch):
    for owner, name in [(diff, "difflib"), (parso.python.tree.Module, "get_used_names"),
                        (jedi.inference.filters._AbstractUsedNamesFilter, "values"),
                        (jedi.inference.filters.ParserTreeFilter, "_check_flows"),
                        (jedi.inference.flow_analysis, "_check_if"),
                        (references, "_find_project_modules"), (references, "_check_fs")]:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    jedi_kept.install()


def names(module):
    return [(key, [name.start_pos for name in found]) for key, found in module.get_used_names().items()]


@pytest.mark.parametrize(("old", "new"), [
    ("", ""), ("", "ab"), ("ab", ""), ("ab", "ab"), ("abc", "axc"), ("abc", "ac"), ("ac", "abc"), ("aaa", "aa"),
    ("abcdef", "abxdyf"), ("abab", "ab"),
])
def test_the_comparison_leads_from_the_old_version_to_the_new_one(old, new):
    made, at, left = "", 0, 0
    for tag, i, j, k, m in jedi_kept.Matcher(None, list(old), list(new)).get_opcodes():
        assert (i, k) == (at, left)
        assert (tag == "equal") == (old[i:j] == new[k:m])
        made, at, left = made + (old[i:j] if tag == "equal" else new[k:m]), j, m
    assert (made, at, left) == (new, len(old), len(new))


def test_names_of_an_edited_file_are_those_of_a_file_parsed_anew(kept, tmp_path):
    lines = CODE.splitlines(keepends=True)
    edits = [lines[:n] + ["        new = old\n"] + lines[n + 1:] for n in range(len(lines))] + [lines]
    grammar = parso.load_grammar()
    for edit in [lines, *edits]:
        for text in ("".join(edit), CODE):
            module = grammar.parse(text, path=tmp_path / "module.py", diff_cache=True)
            assert names(module) == names(grammar.parse(text)), text


def test_answers_are_those_of_plain_jedi(tmp_path):
    repository = locate("click")
    functions = [f for f in extract(repository).functions if f.file in ("parser.py", "_textwrap.py")][:2]
    asked = [(f, t) for f in functions for t in list(candidates(f))[::4]]
    assert len(asked) >= 4
    worker = Worker()
    for function, token in asked:
        text = buffer_at(parse(repository.root / function.file, Filters()).lines, function, token)
        place = str(repository.root), function.file, text, token.line, token.column
        plain = jedi_worker.completions(*place)
        found = worker.complete(*place)
        assert [list(pair) for pair in zip(found.names, found.inserted, strict=True)] == plain, (function.id, token)
        one = worker.complete(*place, wanted=token.text)
        assert (token.text in one.names) == (token.text in found.names)
    worker.close()


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


@pytest.mark.parametrize("ends", ["value_", "os.", "os.path.", "", "f("])
def test_names_in_branches_are_those_of_plain_jedi(tmp_path, ends):
    text = BRANCHES % ends
    line, column = text.count("\n"), 4 + len(ends)
    worker, place = Worker(), (str(tmp_path), "a.py", text, line, column)
    plain = jedi_worker.completions(*place)
    for _ in range(2):
        found = worker.complete(*place)
        assert [list(pair) for pair in zip(found.names, found.inserted, strict=True)] == plain
    worker.close()


def test_the_projects_files_are_listed_once_and_without_those_that_are_asked_for(kept, tmp_path):
    for name in ("a.py", "b.py", "c.txt"):
        (tmp_path / name).write_text("word = 1\n")
    known = SimpleNamespace(py__file__=lambda: tmp_path / "a.py")
    state = SimpleNamespace(project=SimpleNamespace(path=tmp_path))
    assert [file.path.name for file in references._find_project_modules(state, [known])] == ["b.py"]
    assert {file.path.name for file in references._find_project_modules(state, [])} == {"a.py", "b.py"}


def test_nothing_is_replaced_by_the_import_alone():
    code = ("from parso.python import diff, tree; before = diff.difflib, tree.Module.get_used_names\n"
            "import lookuplab.toolgen.jedi_kept\n"
            "assert before == (diff.difflib, tree.Module.get_used_names)")
    subprocess.run([sys.executable, "-c", code], check=True)


TYPES = "from typing import Union\n\ndef first(x):\n    return x\n\nText = Union[str, bytes]\n"
USER = "from kinds import Text\n\ndef use(url: Text):\n    url.\n"


def test_a_buffer_stands_for_its_file_in_no_question_about_another(tmp_path):
    """``first`` is being written: its unfinished text takes what follows with it, for its own question alone."""
    (tmp_path / "kinds.py").write_text(TYPES)
    (tmp_path / "user.py").write_text(USER.replace("url.", "pass"))
    half = TYPES.replace("return x", "return (x.")
    worker = Worker()
    try:
        alone = worker.complete(tmp_path, "user.py", USER, 4, 8)
        for _ in range(2):
            worker.complete(tmp_path, "kinds.py", half, 4, 14)
            assert worker.complete(tmp_path, "user.py", USER, 4, 8) == alone
        assert "encode" in alone.names
    finally:
        worker.close()


def test_the_next_question_about_a_buffer_parses_what_has_changed(tmp_path):
    (tmp_path / "kinds.py").write_text(TYPES)
    trees = []
    for text in (TYPES, TYPES.replace("return x", "return (x.")):
        with jedi_kept.buffer(tmp_path / "kinds.py"):
            trees.append(jedi.Script(text, path=tmp_path / "kinds.py")._module_node)
    assert trees[0] is trees[1]


def test_a_question_that_fails_leaves_no_tree_behind(tmp_path):
    path = tmp_path / "kinds.py"
    with pytest.raises(RecursionError), jedi_kept.buffer(path):
        jedi.Script(TYPES, path=path)
        raise RecursionError
    assert path not in jedi_kept._buffers
    assert all(path not in known for known in parso.cache.parser_cache.values())
