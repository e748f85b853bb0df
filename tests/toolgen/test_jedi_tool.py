"""Tests that the completion tool answers as plain Jedi does, whatever it was asked before. The kit
changes Jedi only in the tool's worker processes.
"""

import os

import pytest

from lookuplab.toolgen import jedi_tool
from lookuplab.toolgen.functions import extract, locate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.marking import buffer_at, candidates

TEXT = """class A:
    def __init__(self):
        self.field = self.__hidden = 1

    def f(self, n):
        self.
"""


INHERITS = """class Base:
    size = 1
    def area(self): return 2

class Shape(Base):
    def f(self, n):
        _
    def _
"""


@pytest.mark.parametrize("place", [(TEXT, 6, 13), (INHERITS, 7, 8), (INHERITS, 8, 8)])
def test_asking_for_one_name_finds_it_exactly_when_the_full_answer_holds_it(tool, tmp_path, place):
    place = tmp_path, "module.py", *place
    full = tool.complete(*place).names
    for name in "field f __hidden n A missing __init__ __class__ size area".split():
        found = tool.complete(*place, wanted=name).names
        assert (name in found) == (name in full), name


def test_a_parameter_is_known_from_callers_in_the_repository_and_not_from_beside_it(tool, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    for folder, known in (package, True), (tmp_path, False):
        name = folder.name.replace("-", "_")
        (folder / "caller.py").write_text(f"from package.module import {name}\n{name}('')\n")
        answer = tool.complete(package, "module.py", f"def {name}(thing):\n    thing.", 2, 10)
        assert ("upper" in answer.names) == known


def test_a_call_has_the_parameters_of_its_own_function_whatever_was_called_there_before(
    tool, tmp_path
):
    for function, parameter in ("first", "alpha="), ("other", "beta="):
        text = f"def first(alpha): 0\ndef other(beta): 0\n{function}(\n    _"
        names = tool.complete(tmp_path, "module.py", text, 4, 4).names
        assert {parameter} == {"alpha=", "beta="}.intersection(names)


def test_answers_about_real_functions_are_those_of_plain_jedi():
    """Each question is asked twice. Both answers must equal the answer of Jedi without the changes
    that ``install`` makes in workers.
    """
    repository = locate("click")
    found = extract(repository, files=[repository / "_textwrap.py", repository / "parser.py"])
    for function in found.functions[:2]:
        for token in list(candidates(function))[1::8]:
            text = buffer_at(function.lines(), function, token)
            place = repository, function.file, text, token.line, token.column
            plain = jedi_tool.completions(*place)
            assert plain.names and [JediTool().complete(*place) for _ in range(2)] == [plain] * 2


REPEATABLE = """
import sys
from pathlib import Path
from types import SimpleNamespace
from jedi.inference.base_value import ValueSet
from lookuplab.toolgen import jedi_tool

jedi_tool.install()
both = ValueSet([5, 3]) | ValueSet.from_sets([ValueSet([9, 5]), ValueSet([1])])
assert list(both) == [5, 3, 9, 1] and list(both & ValueSet([1, 9])) == [9, 1]
assert both == ValueSet([1, 9, 5, 3]) and hash(both) == hash(ValueSet([1, 9, 5, 3]))
state = SimpleNamespace(project=SimpleNamespace(path=Path(sys.argv[1])))
for one in jedi_tool.references._find_project_modules(state, []):
    print(one.path.name)
"""


def test_values_and_files_of_jedi_come_in_an_order_of_their_own(tmp_path, run_python):
    """In plain Jedi, the order of values depends on their hashes, and so on memory addresses. The
    order of files depends on the order of a folder's entries on the disk.
    """
    names = [f"{hash(n) % 1000:03}.py" for n in map(str, range(40))]
    for name in names:
        (tmp_path / name).touch()
    assert run_python(REPEATABLE, tmp_path).split() == sorted(set(names))


IMPORTS = """
import sys
import jedi.inference, jedi.api, parso.cache
from jedi.inference import base_value, filters, flow_analysis, imports, references, utils
from jedi.inference.value import dynamic_arrays

parts = base_value, dynamic_arrays, filters, flow_analysis, imports, references, utils
parts += filters._AbstractUsedNamesFilter, parso.cache
before = [dict(vars(one)) for one in parts]
import lookuplab.toolgen.evaluation  # and all others, but for the training
assert "lookuplab.toolgen.jedi_tool" in sys.modules
for one, then in zip(parts, before):
    print(*(name for name, value in vars(one).items() if then.get(name) is not value), end="")
assert type(base_value.NO_VALUES._set) is frozenset
"""


def test_importing_the_package_leaves_jedi_as_it_is(run_python):
    """In a notebook's process, Jedi also completes what the user types."""
    assert run_python(IMPORTS) == ""


@pytest.mark.parametrize("home", ["/dev/null", "read-only"])
def test_a_home_that_cannot_be_written_changes_no_answer(tmp_path, run_python, home):
    """Jedi would store syntax trees in the home folder."""
    (tmp_path / "module.py").write_text("import json\n")
    (tmp_path / "read-only").mkdir(mode=0o500)
    code = (
        "import sys; from pathlib import Path\nfrom lookuplab.toolgen.jedi_tool import JediTool\n"
        "print(JediTool(1).complete(Path(sys.argv[1]), 'module.py', 'import json\\njson.', 2, 5))"
    )
    place = {"HOME": str(tmp_path / home), "XDG_CACHE_HOME": str(tmp_path / home)}
    said = run_python(code, tmp_path, env=os.environ | place)
    assert "'dumps'" in said and "failure=''" in said
    assert not [*(tmp_path / "read-only").iterdir()]
