"""Generation with real Jedi on little repositories: Figure 4, equality with plain decoding, the store, bad input."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from repositories import BASE, CONTAINER
from scripted_model import END, scripted

from lookuplab.errors import UserError
from lookuplab.models import Decoding
from lookuplab.models.local import LocalModel
from lookuplab.models.store import CompletionStore
from lookuplab.toolgen.evaluation import judged_all
from lookuplab.toolgen.functions import Repository, extract
from lookuplab.toolgen.generation import (
    ToolModel,
    call_rows,
    gate_rows,
    gated,
    generate,
    offer_rows,
    removal_rows,
)
from lookuplab.toolgen.jedi_tool import Answer, JediTool, suggestions, unsaved
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.pairs import prompt_text
from lookuplab.toolgen.tool_use import NEVER, ToolUse


def prompt_of(function):
    return prompt_text(function, "decoder")


def wants(*texts):
    """A script in which the model wants these tokens, one a step."""
    return [{text: 0.8} if isinstance(text, str) else text for text in texts]


def test_figure_4_is_written_with_jedi_s_names_where_the_model_prefers_invented_ones(
    tmp_path, functions, tool
):
    invented = {"_updates": 0.7, "_registered_updates": 0.2}
    script = wants(
        "    ",
        "for ",
        "update ",
        "in ",
        MARK,
        {"changes": 0.7, "updates": 0.2},
        ":\n",
        "        ",
        "self",
        ".",
        MARK,
        invented,
        ".",
        MARK,
        {"append": 0.7, "add": 0.2},
        "(",
        MARK,
        {"change": 0.7, "update": 0.2},
        ")",
        END,
    )
    model = scripted(tmp_path, script=script, prompt=prompt_of(functions[0]))
    done = generate(model, functions[:1], tool, store=False)
    assert (
        done[0].prediction
        == "    for update in updates:\n        self._registered_updates.add(update)"
    )
    asked = done.questions
    assert list(asked.chosen) == ["updates", "_registered_updates", "add", "update"]
    assert asked.offered.all() and (asked.names > 0).all() and not asked.failure.any()
    free = generate(model, functions[:1], tool, ToolUse("dot"), store=False)
    assert free[0].completion.token_ids != done[0].completion.token_ids


def test_a_name_that_jedi_did_not_offer_is_an_exception(tmp_path, functions, tool):
    script = wants("    ", MARK, "self", ".", MARK, "name", END)
    model = scripted(tmp_path, script=script, prompt=prompt_of(functions[0]))
    done = generate(model, functions[:1], tool, store=False)
    rows = call_rows({("m", "toolgen"): done})
    assert [(row["metric"], row["value"], row["n"]) for row in rows] == [
        ("calls", 2, 1),
        ("calls_per_function", 2, 1),
        ("not_offered_calls", 0, 2),
    ]
    done[0] = replace(done[0], completion=replace(done[0].completion, text="    self.nothere"))
    del done.questions
    found = done.questions
    assert list(found.chosen) == ["self", "nothere"] and list(found.offered) == [True, False]
    assert call_rows({("m", "toolgen"): done})[2]["value"] == 1
    free = {("m", "base"): generate(model, functions[:1], tool, ToolUse(None), store=False)}
    assert call_rows(free) == offer_rows(free) == []


def test_a_question_that_is_lost_twice_ends_the_run_and_an_error_of_jedi_s_leaves_the_row_free(
    tmp_path, functions, monkeypatch
):
    model = scripted(
        tmp_path,
        script=wants("    ", "self", ".", MARK, "nothere", END),
        prompt=prompt_of(functions[0]),
    )
    monkeypatch.setattr(JediTool, "_asked", lambda *_: Answer(failure="timed out"))
    with JediTool(1) as late, pytest.raises(UserError, match="timed out twice"):
        generate(model, functions[:1], late, store=False)
    monkeypatch.setattr(JediTool, "_asked", lambda *_: Answer(failure="error in Jedi: KeyError"))
    with JediTool(1) as failing:
        done = generate(model, functions[:1], failing, store=False)
        assert list(done.questions.failure) == ["error in Jedi: KeyError"]
    assert done[0].prediction == "    self.nothere"


def eight(functions):
    """Eight functions with prompts of different length."""
    return [
        replace(
            function, id=f"{function.id} {i}", docstring=" ".join([function.docstring] * (i + 1))
        )
        for i, function in enumerate((functions * 3)[:8])
    ]


def plain_greedy(module, ids, mark, steps):
    """A full forward pass a token, the mark left out."""
    answer, end = [], module.generation_config.eos_token_id
    while len(answer) < steps and end not in answer:
        if module.config.is_encoder_decoder:
            start = [module.config.decoder_start_token_id]
            logits = module(input_ids=ids, decoder_input_ids=torch.tensor([start + answer])).logits[
                0, -1
            ]
        else:
            logits = module(
                input_ids=torch.cat([ids, torch.tensor([answer], dtype=torch.long)], 1)
            ).logits[0, -1]
        logits[mark] = -torch.inf
        answer.append(logits.argmax().item())
    return answer


def test_with_marks_disabled_decoding_is_plain_greedy_generation(marking_model, functions, tool):
    """At batch size 1 and 8, with a cache (ours, Transformers') and without."""
    asked, decoding = eight(functions), Decoding(max_new_tokens=16)
    one, full = (LocalModel(str(marking_model), batch_size=size) for size in (1, 8))
    answers = [
        generate(model, asked, tool, use, decoding, store=False, progress=False)
        for model, use in (
            (one, ToolUse(gate=1.5)),
            (full, ToolUse(gate=1.5)),
            (full, ToolUse(None)),
        )
    ]
    tooled, module = ToolModel(one, asked, tool), one.module
    mark = tooled.vocabulary.mark
    with torch.inference_mode():
        for i, prompt in enumerate(tooled.prompts()):
            ids = one.tokenizer(prompt.text, return_tensors="pt")["input_ids"]
            expected = plain_greedy(module, ids, mark, 16)
            theirs = module.generate(
                ids, max_new_tokens=16, do_sample=False, suppress_tokens=[mark]
            )[0].tolist()
            assert theirs[1 if module.config.is_encoder_decoder else ids.shape[1] :] == expected
            assert [list(done[i].completion.token_ids) for done in answers] == [expected] * 3
    assert answers[0].questions.empty


@pytest.mark.parametrize(
    "use", [ToolUse(), ToolUse(variant="package", gate=0)], ids=["paper", "package"]
)
def test_rows_of_different_repositories_share_a_batch_and_choose_what_is_offered(
    marking_model, functions, tool, use
):
    asked, decoding = eight(functions)[:5], Decoding(max_new_tokens=24)
    together, alone = (
        generate(
            LocalModel(str(marking_model), batch_size=size),
            asked,
            tool,
            use,
            decoding,
            store=False,
            progress=False,
        )
        for size in (5, 1)
    )
    assert [done.completion.token_ids for done in together] == [
        done.completion.token_ids for done in alone
    ]
    asked = together.questions
    pd.testing.assert_frame_equal(asked, alone.questions)
    assert (asked.chosen != "").sum() > 3
    assert asked.offered.all() and (asked.names > 0).sum() > 3


def test_a_question_that_was_answered_is_not_asked_again(tmp_path, functions):
    model = scripted(
        tmp_path,
        script=wants("    ", "self", ".", MARK, "label", END),
        prompt=prompt_of(functions[0]),
    )
    with JediTool(1) as one:
        first = generate(model, functions[:1], one, store=False)
        one._asked = None  # asked now, it would fail
        assert generate(model, functions[:1], one, store=False)[0] == first[0]


def test_a_second_run_takes_all_from_the_store_until_the_repository_changes(tmp_path, tool):
    root = tmp_path / "repository"
    root.mkdir()
    (root / "container.py").write_text(CONTAINER.replace("from base import Base", BASE))
    one = extract(Repository("one", root)).functions[0]
    script = wants("    ", "self", ".", MARK, {"name": 0.6, "_registered_updates": 0.3}, END)
    model = scripted(tmp_path / "model", script=script, prompt=prompt_of(one))
    with CompletionStore(":memory:") as store:
        first = generate(model, [one], tool, store=store)
        passes = model.work.passes
        again = generate(model, [one], tool, store=store)
        assert (first[0].prediction, again[0]) == ("    self.name", first[0])
        pd.testing.assert_frame_equal(again.questions, first.questions)
        assert model.work.passes == passes
        (root / "container.py").write_text(
            (root / "container.py").read_text().replace("self.name", "self.title")
        )
        changed = generate(model, [one], tool, store=store)
        assert changed[0].prediction == "    self._registered_updates"
        assert model.work.passes > passes
        store.db.execute("UPDATE completions SET json = json_remove(json, '$.record')")
        older = generate(model, [one], tool, store=store)  # of before there were records
        pd.testing.assert_frame_equal(older.questions, changed.questions)


def test_the_same_prompt_in_two_places_has_two_answers(tmp_path, tool):
    found = []
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(
            f'{name} = 1\n\n\ndef get():\n    """Get the value there."""\n'
            f"    value = {name}\n    return value\n"
        )
        found += extract(Repository(name, tmp_path / name)).functions
    script = wants("    ", "return ", MARK, {"left": 0.4, "right": 0.3}, END)
    model = scripted(tmp_path / "model", script=script, prompt=prompt_of(found[0]))
    with CompletionStore(":memory:") as store:
        done = generate(model, found, tool, store=store)
    assert [one.prediction for one in done] == ["    return left", "    return right"]


def test_a_docstring_that_overflows_the_context_is_left_out_and_the_run_goes_on(
    tmp_path, functions, tool
):
    model = scripted(tmp_path, {"\n": {END: 0.9}}, context=120)
    long = replace(functions[0], docstring="word " * 100)
    done = generate(model, [long, functions[1]], tool, store=False)
    assert (done[0].prediction, done[0].completion) == ("", None)
    assert done[0].failure == "prompt has 549 tokens, the model's context is 120"
    assert done[1].completion.finish_reason == "eos" and not done[1].failure


def test_a_model_without_a_mark_is_refused_unless_dots_are_the_trigger(tmp_path, functions, tool):
    model = scripted(tmp_path, {"\n": {END: 0.9}}, mark=False)
    with pytest.raises(UserError, match="no mark in its vocabulary"):
        ToolModel(model, functions, tool)
    assert (
        generate(model, functions, tool, ToolUse("dot"), store=False)[0].completion.finish_reason
        == "eos"
    )


def test_a_body_is_inserted_behind_signature_and_docstring_and_the_caret_follows_it(functions):
    lines = CONTAINER.splitlines(keepends=True)
    text, line, column = unsaved(
        lines, functions[1], "    label = self.name\n    return self.", "decoder"
    )
    above, below = CONTAINER.split("        label = self.name\n        return label\n")
    assert text == above + "        label = self.name\n        return self._\n" + below
    assert text.split("\n")[line - 1][:column] == "        return self."
    assert (
        unsaved(lines, functions[1], "    a", "decoder", "package")[0]
        == above + "        a\n" + below
    )


@pytest.mark.parametrize(
    ("written", "inserted", "caret"),
    [
        ("def la", "    def la", "    def la"),
        ("", "    ", "    "),
        (
            "def label(self):\n    return self.",
            '    def label(self):\n        """Name of this container."""\n        return self.',
            "        return self.",
        ),
        (
            "def other(self, a):\n    return a.",
            "    def other(self, a):\n        return a.",
            "        return a.",
        ),
    ],
)
def test_a_definition_stands_in_the_place_of_the_function(functions, written, inserted, caret):
    text, line, column = unsaved(
        CONTAINER.splitlines(keepends=True), functions[1], written, "encoder-decoder"
    )
    above = CONTAINER.partition("    def label")[0]
    assert text == above + inserted + "_\n"
    assert text.split("\n")[line - 1][:column] == caret


def test_suggestions_are_identifiers_without_keywords_and_dunders_of_marks(functions):
    answer = Answer(("if", "alpha=", "__init__", "__x", "'key'", "len", "match"))
    assert suggestions(answer) == ("alpha", "__x", "len", "match")
    assert suggestions(answer, "dot") == ("alpha", "__init__", "__x", "len", "match")


def test_names_that_begin_as_what_is_written_are_counted_once(tmp_path):
    (tmp_path / "box.py").write_text(
        BOX.replace("def __init__", "__slots__ = ('size',)\n    def __init__")
    )
    one = extract(Repository("boxes", tmp_path)).functions
    script = wants("    ", "by", ".", "x", " + ", "self", ".gr", "ow", END)
    model = scripted(tmp_path / "model", script=script, prompt=prompt_of(one[0]), mark=False)
    with JediTool(1) as tool:
        done = generate(model, one, tool, ToolUse("dot"), store=False, progress=False)
        assert list(done.questions.names) == [0, 1]
        rows = offer_rows({("m", "monitor"): done})
    assert [(row["metric"], row["value"], row["n"]) for row in rows] == [
        ("answered_percent", 50, 2),
        ("names_per_call", 1, 1),
    ]


BOX = '''class Box:
    def __init__(self):
        self.size = 1
        self.other = 2

    def grow(self):
        """Grow by one step."""
        return self.size
'''


def test_a_gate_removes_calls_and_the_rows_say_what_changes(tmp_path, monkeypatch, tool):
    """At the gates 0, 0.7 and never: two marks of probability 0.6 and 0.8 without a gate."""
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "completions.sqlite"))
    (tmp_path / "boxes").mkdir()
    (tmp_path / "boxes" / "box.py").write_text(BOX)
    one = extract(Repository("boxes", tmp_path / "boxes")).functions
    script = [
        {"    ": 0.9},
        {MARK: 0.6, "s": 0.1},
        {"self": 0.9},
        {".": 0.9},
        {MARK: 0.8},
        {"other": 0.9, "size": 0.05},
        {END: 0.9},
    ]
    model = scripted(tmp_path / "model", script=script, prompt=prompt_of(one[0]))
    written = {
        gate: generate(model, one, tool, gated(gate), store=False) for gate in (0.0, 0.7, 1.0)
    }
    asked = {gate: answers.questions for gate, answers in written.items()}
    assert asked[0.0].probability.tolist() == pytest.approx([0.6, 0.8])
    assert asked[0.0].chosen.tolist() == ["self", "other"] and asked[0.0].right.tolist() == [
        True,
        False,
    ]
    texts = {gate: answers.predictions for gate, answers in written.items()}
    frames = judged_all(one, texts, workers=1)
    found = {
        (row["condition"], row["metric"]): row["value"] for row in gate_rows("m", frames, asked)
    }
    assert [found[f"gate_{gate}", "calls_per_function"] for gate in ("0", "0.7", "1")] == [2, 1, 0]
    assert [found[f"gate_{gate}", "calls_percent"] for gate in ("0", "0.7", "1")] == [100, 50, 0]
    assert found["gate_0.7 - gate_0", "calls_per_function_change"] == -1
    assert found["gate_1 - gate_0", "editsim_change_points"] == pytest.approx(
        found["gate_1", "editsim_percent"] - found["gate_0", "editsim_percent"]
    )
    assert found["gate_0", "succrate_percent"] == 100
    assert not [condition for condition, _ in found if "base" in condition]


def test_what_a_gate_leaves_of_right_and_wrong_calls():
    calls = pd.DataFrame(
        {
            "repository": ["a", "a", "b", "b"],
            "probability": [0.9, 0.5, 0.7, 0.3],
            "right": [True, True, False, False],
        }
    )
    rows = removal_rows("m", calls, [0.0, 0.6, 1.0])
    found = {(row["condition"], row["metric"]): row["value"] for row in rows}
    assert found == {
        ("gate_0", "kept_right_percent"): 100,
        ("gate_0", "kept_wrong_percent"): 100,
        ("gate_0", "right_percent"): 50,
        ("gate_0.6", "kept_right_percent"): 50,
        ("gate_0.6", "kept_wrong_percent"): 50,
        ("gate_0.6", "right_percent"): 50,
        ("gate_1", "kept_right_percent"): 0,
        ("gate_1", "kept_wrong_percent"): 0,
        ("marks", "auroc"): 0.75,
    }
    assert (gated(1).gate, gated(0.8).gate, gated(0.8, "package").ends) == (NEVER, 0.8, "mean")
