"""Tests the explorer's page for a step of an answer, with the names that the trie allows there."""

from dataclasses import replace

import pytest
from scripted_model import END, wanting

from lookuplab.models import Decoding
from lookuplab.toolgen.marking import MARK
from lookuplab_notebooks.toolgen.explorer import page, walk

NAME = {"_invented": 0.6, "_register": 0.3}, {"ed": 0.9}, {"_updates": 0.9}


def test_a_page_shows_text_suggestions_and_trie_and_no_tags_of_the_code(tmp_path, functions, tool):
    """At step 4, the model alone would write an invented name."""
    function = replace(functions[1], docstring="Name of this <b>container</b>.")
    model = wanting(tmp_path, function, "    ", "self", ".", MARK, *NAME, "\n", END)
    walked = walk(model, function, tool, decoding=Decoding(12), store=False)
    assert walked.choices()[0] == 4 and walked.overruled() == [4]  # _invented was likelier
    assert walked.mark_probability(3) == pytest.approx(0.8, abs=1e-4)
    first, choice = page(walked, 0), page(walked, 4)
    assert "&lt;b&gt;container" in first and "<b>container" not in first
    assert "suggestions:" not in first
    assert f"<b>4 suggestions:</b> {', '.join(walked.steps[3].asked.offered)}</p>" in choice
    assert "&gt; 0.30 _register | ed | _updates\n" in choice
    assert "0.300 (in a suggestion)" in choice
