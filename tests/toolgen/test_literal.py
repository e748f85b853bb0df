"""The literal reading and the kit's way have equal results: tokens and verdicts; ``test_jedi_tool``
compares Jedi's answers."""

import pytest
from literal import Writer, verdicts
from tool_calls import questions_of

from lookuplab.benchmark import judged, written
from lookuplab.models import Decoding
from lookuplab.models.local import LocalModel
from lookuplab.toolgen.evaluation import ToolGen
from lookuplab.toolgen.generation import generate
from lookuplab.toolgen.tool_use import ToolUse


@pytest.mark.parametrize("marking_model", ["gpt2", "llama"], indirect=True)
def test_the_same_tokens(marking_model, functions, tool):
    """Of a random model that writes many marks; calls without suggestions are among them."""
    model = LocalModel(str(marking_model))
    ours = generate(
        model, functions, tool, ToolUse(), Decoding(max_new_tokens=40), store=False, progress=False
    )
    writer = Writer(model)
    for function in functions:
        assert writer.write(function, 40) == list(ours.completions[function.id].token_ids)
    assert (questions_of(ours).chosen != "").sum() > 3


def test_the_same_verdicts_and_the_repository_is_left_alone(functions):
    bodies = [
        "    self._registered_updates.add(updates)",
        "    self.nothere()",
        "    return (hight",
    ]
    pairs = [(one, written(one.id, body)) for one, body in zip(functions, bodies, strict=True)]
    before = [(one.root / one.file).read_text() for one in functions]
    found = list(verdicts(pairs))
    assert list(judged(ToolGen(functions, store=":memory:"), pairs).messages) == found
    assert [not one for one in found] == [True, False, False]
    assert [(one.root / one.file).read_text() for one in functions] == before
