"""Stepping through one answer: what a page shows, what the trie allowed, and the widgets that move."""

import pytest
from scripted_model import END, scripted

from lookuplab.models import Decoding
from lookuplab.toolgen.explorer import page, walk
from lookuplab.toolgen.functions import Repository, extract
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.pairs import prompt_text

CODE = '''class Container:
    def __init__(self):
        self._registered_updates = set()
        self.name = "base"

    def label(self):
        """Name of this <b>container</b>."""
        return self.name

    def other(self):
        """Name of another container."""
        return self.name
'''
WISHES = [
    "    ",
    "self",
    ".",
    MARK,
    {"_invented": 0.6, "_register": 0.3},
    {"ed": 0.9},
    {"_updates": 0.9},
    "\n",
    END,
]


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    """Of two functions; the first is written by a script in which the model prefers an invented name."""
    folder = tmp_path_factory.mktemp("explorer") / "one"
    folder.mkdir()
    (folder / "container.py").write_text(CODE)
    functions = extract(Repository("one", folder)).functions
    prompt = prompt_text(functions[0], "decoder")
    script = [{wish: 0.8} if isinstance(wish, str) else wish for wish in WISHES]
    model = scripted(folder.parent / "model", script=script, prompt=prompt)
    with JediTool(1) as tool:
        return [
            walk(model, function, tool, decoding=Decoding(max_new_tokens=12), store=False)
            for function in functions
        ]


def test_a_walk_has_the_free_models_probabilities_at_every_step(walks):
    walked = walks[0]
    assert walked.probabilities.shape[0] == len(walked.steps)
    assert (
        walked.mark_probability(3) == pytest.approx(0.8, abs=1e-4)
        and walked.mark_probability(0) < 0.01
    )
    for step, row in zip(walked.steps, walked.probabilities, strict=True):
        assert float(row[step.token]) == pytest.approx(step.probability, abs=1e-4)


def test_the_question_behind_a_choice_is_found(walks):
    steps = walks[0].steps
    assert [step.text for step in steps[4:7]] == ["_register", "ed", "_updates"]
    asked = [step.question and step.question.step for step in steps]
    assert asked == [None, None, None, 3, 3, 3, 3, 3, None]
    assert walks[0].choices()[0] == 4


def test_a_name_that_the_model_did_not_want_is_counted_as_overruled(walks):
    assert walks[0].overruled() == [4]  # _invented was likelier
    counts = walks[0].counts()
    assert (counts["tokens"], counts["marks"], counts["questions"], counts["overruled_tokens"]) == (
        9,
        1,
        1,
        1,
    )


def test_the_trie_shows_the_suggestions_and_the_chosen_path(walks):
    first, *others = walks[0].tree(3).splitlines()
    assert first == "> _register 0.30 | ed 0.90 | _updates 0.90" and len(others) == 3


def test_a_page_shows_text_suggestions_and_trie_and_no_tags_of_the_code(walks):
    first, choice = page(walks[0], 0), page(walks[0], 4)
    assert "&lt;b&gt;container" in first and "<b>container" not in first
    assert "suggestions:" not in first and "<img" not in first
    assert f"<b>4 suggestions:</b> {', '.join(walks[0].steps[3].asked.offered)}</p>" in choice
    assert (
        "&gt; _register 0.30" in choice
        and "0.300 (a suggestion's)" in choice
        and "_invented" in choice
    )
