"""The literal reading and the kit's way write the same tokens; ``test_jedi_tool`` compares Jedi's
answers, ``test_success`` pylint's.
"""

import pytest
from literal import Writer
from tool_calls import questions_of

from lookuplab.models import Decoding
from lookuplab.models.local import LocalModel
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
