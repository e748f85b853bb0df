"""What the tool offered where it was asked, counted by hand."""

import pytest
from scripted_model import END, scripted

from lookuplab.toolgen.files import Repository
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.generation import generate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.offers import offer_rows, offers
from lookuplab.toolgen.pairs import prompt_text
from lookuplab.toolgen.tool_use import ToolUse

BOX = '''class Box:
    __slots__ = ("size", "side")

    def grow(self, by):
        """Grow by one step."""
        self.size += by
        self.side = by
        return self.size
'''


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("boxes")
    (root / "box.py").write_text(BOX)
    functions = extract(Repository("boxes", root)).functions
    prompt = prompt_text(functions[0], "decoder")
    script = [{text: 0.8} for text in ("    ", "by", ".", "x", " + ", "self", ".gr", "ow", END)]
    model = scripted(tmp_path_factory.mktemp("model"), script=script, prompt=prompt, mark=False)
    with JediTool(1) as tool:
        return generate(model, functions, tool, ToolUse("dot"), store=False, progress=False)


def test_names_that_begin_as_what_is_written_are_counted_once(written):
    with JediTool(1) as tool:
        assert offers(written, tool) == [[0, 1]]
        rows = offer_rows({("m", "monitor"): written}, tool)
        assert [(row["metric"], row["value"], row["n"]) for row in rows] == [("answered_percent", 50, 2),
                                                                             ("names_per_call", 1, 1)]
