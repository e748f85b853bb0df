"""Calls and exceptions as rows."""

import copy
from dataclasses import replace

import pytest
from scripted_model import END, scripted

from lookuplab.toolgen.call_rows import call_rows
from lookuplab.toolgen.files import Repository
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.generation import generate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.pairs import prompt_text
from lookuplab.toolgen.tool_use import ToolUse

BOX = '''class Box:
    def __init__(self):
        self.size = 1

    def grow(self):
        """Grow by one step."""
        self.size += 1
        return self.size
'''


@pytest.fixture(scope="module")
def tool():
    with JediTool(1) as tool:
        yield tool


@pytest.fixture(scope="module")
def written(tmp_path_factory, tool):
    root = tmp_path_factory.mktemp("boxes")
    (root / "box.py").write_text(BOX)
    functions = extract(Repository("boxes", root)).functions
    prompt = prompt_text(functions[0], "decoder")
    script = [{text: 0.8} for text in ("    ", MARK, "self", ".", MARK, "size", END)]
    model = scripted(tmp_path_factory.mktemp("model"), script=script, prompt=prompt)
    return generate(model, functions, tool, store=False, progress=False)


def test_calls_are_counted_and_none_is_an_exception(written, tool):
    rows = call_rows({("m", "toolgen"): written}, tool, progress=False)
    assert [(row["metric"], row["value"], row["n"]) for row in rows] == [
        ("calls", 2, 1), ("calls_per_function", 2, 1), ("not_offered_calls", 0, 2)]


def test_a_name_that_was_not_offered_is_counted(written, tool):
    first, second = written[0].calls
    changed = generate_like(written, calls=(first, replace(second, chosen="nothere")))
    rows = call_rows({("m", "toolgen"): changed}, tool, progress=False)
    assert [row["value"] for row in rows if row["metric"] == "not_offered_calls"] == [1]


def test_a_model_that_never_asks_has_no_rows(written, tool):
    alone = generate_like(written, calls=())
    alone.use = ToolUse(None)
    assert call_rows({("m", "base"): alone}, tool) == []


def generate_like(written, **changes):
    """The same run with one answer that differs in some field."""
    other = copy.copy(written)
    other[:] = [replace(written[0], **changes)]
    return other
