"""Tests generation with the real Jedi on small repositories: the paper's Figure 4, stored answers,
calls that fail, and bad input. Answers must equal those of a slow, literal implementation.
"""

from dataclasses import replace
from unittest.mock import patch

import pandas as pd
import pytest
from doors import refused
from scripted_model import BASE, CONTAINER, END, scripted, wanting

from lookuplab.models import Decoding
from lookuplab.models.local import LocalModel
from lookuplab.models.store import CompletionStore
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.generation import Generations, ToolUse, generate
from lookuplab.toolgen.jedi_tool import JediTool, ToolAnswer, suggestions, unsaved_file
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.rules import RULES
from lookuplab_notebooks.performance.literal import Writer
from lookuplab_notebooks.toolgen.tool_calls import (
    call_rows,
    offer_rows,
    questions_of,
    removal_rows,
)


def write(model, functions, tool, use=ToolUse(), store=False, tokens=192):
    return generate(model, functions, tool, use, Decoding(tokens), store, progress=False)


def text_of(done):
    """Return the predicted text of the only function."""
    [text] = done.predictions.values()
    return text


def test_figure_4_is_written_with_jedi_s_names_where_the_model_prefers_invented_ones(
    tmp_path, functions, tool
):
    tokens = "    ", "for ", "update ", "in ", {MARK: 0.6}, {"changes": 0.7, "updates": 0.2}, ":\n"
    tokens += "        ", "self", ".", MARK, {"_updates": 0.7, "_registered_updates": 0.2}, "."
    tokens += MARK, {"append": 0.7, "add": 0.2}, "(", MARK, {"change": 0.7, "update": 0.2}, ")", END
    done = write(wanting(tmp_path, functions[0], *tokens), functions[:1], tool)
    lines = "    for update in updates:", "        self._registered_updates.add(update)"
    assert text_of(done) == "\n".join(lines)
    asked = questions_of(done)
    assert list(asked.chosen) == ["updates", "_registered_updates", "add", "update"]
    # only ``updates`` is in the original body, ``return None if updates else self``
    assert list(asked.right) == [True, False, False, False]
    assert list(asked.probability) == pytest.approx([0.6, 0.8, 0.8, 0.8])
    assert asked.offered.all() and (asked.names > 0).all() and not asked.failure.any()


def test_a_name_that_jedi_did_not_offer_is_counted(tmp_path, functions, tool):
    model = wanting(tmp_path, functions[0], "    ", MARK, "self", ".", MARK, "name", END)
    done = write(model, functions[:1], tool)
    [(id, own)] = done.completions.items()
    changed = Generations(done.model, {id: replace(own, text="    self.nothere")})
    assert list(questions_of(changed).chosen) == ["self", "nothere"]
    for made, missing in (done, 0), (changed, 1):
        rows = [(row["value"], row["n"]) for row in call_rows({("m", "x"): made})]
        # Four rows: calls in all functions, calls per function, calls after which the model wrote a
        # name that was not offered, and failed calls.
        assert rows == [(2, 1), (2, 1), (missing, 2), (0, 2)]
    # the value is in percent of the calls that Jedi answered
    assert offer_rows({("m", "x"): done})[0]["value"] == 100


def test_a_question_that_is_lost_twice_costs_one_function_and_an_error_of_jedi_s_leaves_it_free(
    tmp_path, functions, capsys
):
    model = wanting(tmp_path, functions[0], "    ", "self", ".", MARK, "nothere", END)
    error = "error in Jedi: KeyError"
    failures = ["timed out"]  # only the first question times out

    def complete(*_):
        return ToolAnswer(failure=failures.pop() if failures else error)

    with patch.object(JediTool, "complete", complete):
        done = write(model, functions, JediTool(1), store=tmp_path / "s.sqlite")
        [lost] = done.model.lost
        assert {*done.completions} == {one.id for one in functions} - {lost} and len(functions) > 1
        assert done.predictions[lost] == ""
        assert f"1 of {len(functions)} functions have no answer ({lost})" in capsys.readouterr().err
        again = write(model, functions, JediTool(1), store=tmp_path / "s.sqlite")
    assert {*again.completions} == {one.id for one in functions} and not again.model.lost
    assert {*questions_of(again).failure} == {error}
    assert again.predictions[functions[0].id] == "    self.nothere"


def test_the_literal_reading_writes_the_same_tokens(marking_model, functions, tool):
    """A random model writes many marks, and Jedi has no suggestions at some of them."""
    model = LocalModel(str(marking_model))
    ours = write(model, functions, tool, tokens=40)
    writer = Writer(model)
    for function in functions:
        assert writer.write(function, 40) == list(ours.completions[function.id].token_ids)
    assert (questions_of(ours).chosen != "").sum() > 3


def test_a_change_in_the_repository_asks_for_its_functions_again(tmp_path, tool):
    text = CONTAINER.replace("from base import Base", BASE)
    (file := tmp_path / "file.py").write_text(text)
    functions = extract(tmp_path).functions[:1]
    names = {"name": 0.6, "_registered_updates": 0.3}
    model = wanting(tmp_path, functions[0], "    ", "self", ".", MARK, names, END)
    with CompletionStore(":memory:") as store:
        first = write(model, functions, tool, store=store)
        file.write_text(text.replace("self.name", "self.title"))
        # a new tool, because the old one may have kept the file's old content
        changed = write(model, functions, JediTool(1), store=store)
    assert text_of(first) == "    self.name"
    assert text_of(changed) == "    self._registered_updates"


def test_a_prompt_that_overflows_the_context_is_left_out(tmp_path, functions, tool):
    model = scripted(tmp_path, {"\n": {END: 0.9}})
    model.context = 120
    long = replace(functions[0], docstring="word " * 100)
    done = write(model, [long, functions[1]], tool)
    assert done.predictions[long.id] == "" and [*done.completions] == [functions[1].id]


def test_a_model_without_a_mark_is_refused_unless_dots_are_the_trigger(tmp_path, functions, tool):
    model = scripted(tmp_path, {"\n": {END: 0.9}}, mark=False)
    with refused("no mark in its vocabulary"):
        write(model, functions, tool)
    assert write(model, functions, tool, ToolUse("dot")).completions


LABEL = '    def label(self):\n        """Name of this container."""\n'


@pytest.mark.parametrize(
    ("kind", "written", "inserted"),
    [
        ("decoder", "    a = 1\n    return self.", f"{LABEL}        a = 1\n        return self."),
        ("encoder-decoder", "def la", "    def la"),
        ("encoder-decoder", "def label(self):\n    return self.", f"{LABEL}        return self."),
        ("encoder-decoder", "def other(a):\n    return a", "    def other(a):\n        return a"),
    ],
)
def test_what_is_written_stands_in_the_place_of_the_function_and_the_caret_follows_it(
    functions, kind, written, inserted
):
    lines = [*CONTAINER.splitlines(keepends=True), "def below(): pass\n"]
    above = CONTAINER.partition("    def label")[0] + inserted
    for rules in RULES.values():
        text, *caret = unsaved_file(lines, functions[1], written, kind, rules)
        assert text == f"{above}{'' if rules.is_package else '_'}\n{lines[-1]}"
        assert caret == [above.count("\n") + 1, len(above.rpartition("\n")[2])]
        if kind != "decoder":  # the same text from a decoder that is not given the signature
            whole = replace(rules, given_signature=False)
            assert unsaved_file(lines, functions[1], written, "decoder", whole)[0] == text


def test_suggestions_are_identifiers_without_keywords_and_dunders_of_marks():
    answer = ToolAnswer(("if", "alpha=", "__init__", "__x", "'key'", "len", "match"))
    assert suggestions(answer) == ("alpha", "__x", "len", "match")
    assert suggestions(answer, "dot") == ("alpha", "__init__", "__x", "len", "match")


def test_what_a_gate_leaves_of_right_and_wrong_calls():
    calls = pd.DataFrame({"repository": list("aabb"), "right": [True, True, False, False]})
    rows = removal_rows("m", calls.assign(probability=[0.9, 0.5, 0.7, 0.3]), [0.0, 0.6, 1.0])
    # For each threshold, two or three percentages: of the right calls, how many are kept; of the
    # wrong calls, how many are kept; of the kept calls, how many are right (if any is kept).
    assert [row["value"] for row in rows] == [100, 100, 50, 50, 50, 50, 0, 0]
