"""Algorithms 2 and 3 on models whose probabilities are known, with given suggestions."""

from concurrent.futures import Future

import pytest
from scripted_model import END, scripted

from lookuplab.errors import UserError
from lookuplab.models import Decoding, Prompt
from lookuplab.toolgen.jedi_tool import Answer, behind_a_dot
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.tool_use import ToolConstraint, ToolUse, Vocabulary

PACKAGE = ToolUse(variant="package")


class Writer:
    """Writes behind the prompt "="; the tool's answers are given in the order of the calls."""

    def __init__(self, model, use, *answers):
        self.asked, answers = [], iter(answers)
        vocabulary = Vocabulary(model.tokenizer, model.end_of_text)

        def ask(text):
            self.asked.append(text)
            answer = Future()
            answer.set_result(Answer(tuple(next(answers))))
            return answer

        def constrain(prompt, before):
            return ToolConstraint(use, vocabulary, before, ask)

        ((done,),) = model.generate([(Prompt("p", "="), 0)], Decoding(max_new_tokens=20), constrain)
        self.text, self.pieces = done.text, list(done.tokens)
        self.ids, self.finish_reason = list(done.token_ids), done.finish_reason
        self.marks = self.ids.count(vocabulary.mark)


def test_the_best_suggestion_is_chosen_where_the_model_prefers_a_name_that_is_none(tmp_path):
    model = scripted(
        tmp_path, {"=": {MARK: 0.9}, MARK: {"bar": 0.7, "foo": 0.2, "baz": 0.05}, "foo": {END: 0.9}}
    )
    written = Writer(model, ToolUse(), ["foo", "baz"])
    assert (written.text, written.asked, written.finish_reason) == ("foo", [""], "eos")


@pytest.mark.parametrize(
    ("gate", "text", "asked"),
    [(0.5, "x", []), (0.39, "foo", [""]), (0.0, "foo", [""]), (1.5, "x", [])],
)
def test_a_mark_below_the_gate_is_not_written_and_calls_nothing(tmp_path, gate, text, asked):
    model = scripted(
        tmp_path,
        {"=": {MARK: 0.4, "x": 0.3}, MARK: {"foo": 0.9}, "foo": {END: 0.9}, "x": {END: 0.9}},
    )
    written = Writer(model, ToolUse(gate=gate), ["foo"])
    assert (written.text, written.asked, written.marks) == (text, asked, len(asked))


def test_the_end_of_text_inside_the_trie_waits_for_the_name(tmp_path):
    model = scripted(
        tmp_path, {"=": {MARK: 0.9}, MARK: {"foo": 0.9}, "foo": {END: 0.9}, "_bar": {END: 0.9}}
    )
    written = Writer(model, ToolUse(), ["foo_bar"])
    assert written.pieces == ["", "foo", "_bar", ""] and written.finish_reason == "eos"


def test_a_second_call_gets_the_text_without_marks(tmp_path):
    model = scripted(
        tmp_path,
        {
            "=": {"self.": 0.9},
            "self.": {MARK: 0.9},
            MARK: {"foo": 0.5, "bar": 0.3},
            "foo": {".": 0.9},
            ".": {MARK: 0.9},
            "bar": {END: 0.9},
        },
    )
    written = Writer(model, ToolUse(), ["foo"], ["bar"])
    assert written.asked == ["self.", "self.foo."]
    assert (written.text, written.marks) == ("self.foo.bar", 2)


@pytest.mark.parametrize(
    ("ends", "longer", "text"),
    [
        ("first", 0.9, "foo("),
        ("mean", 0.5, "foo_bar("),
        ("mean", 0.49, "foo("),
        ("mean", 0.9, "foo_bar("),
        ("break", 0.3, "foo_bar("),
        ("break", 0.2, "foo("),
    ],
)
def test_where_a_name_ends_that_begins_another(tmp_path, ends, longer, text):
    """P(foo) = .5: the mean rule goes on with a child of at least .5, even where a break is more probable."""
    model = scripted(
        tmp_path,
        {
            "=": {MARK: 0.9},
            MARK: {"foo": 0.5},
            "foo": {"_bar": longer, "(": 0.25 if longer < 0.75 else 0.05},
            "_bar": {"(": 0.9},
            "(": {END: 0.9},
        },
    )
    assert Writer(model, ToolUse(ends=ends), ["foo", "foo_bar"]).text == text


def test_the_mean_is_taken_over_all_tokens_of_the_name_forced_ones_included(tmp_path):
    table = {
        "=": {MARK: 0.9},
        MARK: {"a": 0.9},
        "a": {"b": 0.1},
        "b": {"c": 0.49, "(": 0.5},
        "c": {"(": 0.9},
        "(": {END: 0.9},
    }
    assert (
        Writer(scripted(tmp_path / "1", table), PACKAGE, ["ab", "abc"]).text == "ab("
    )  # (.9 + .1) / 2 > .49
    table["b"] = {"c": 0.5, "(": 0.49}
    assert Writer(scripted(tmp_path / "2", table), PACKAGE, ["ab", "abc"]).text == "abc("


def test_figure_5_leads_to_registered_updates(tmp_path):
    names = [
        "_registered_updates",
        "_registered_hooks",
        "_obj",
        "_up",
        "add",
        "add_update",
        "updates",
        "registered",
    ]
    model = scripted(
        tmp_path,
        {
            "=": {MARK: 0.9},
            MARK: {"_": 0.6, "add": 0.3},
            "_": {"up": 0.3, "register": 0.5, "obj": 0.1},
            "register": {"ed": 0.4, "(": 0.5},
            "ed": {"_": 0.9},
            "up": {"dates": 0.9},
            "dates": {END: 0.9},
        },
        pieces=["hooks"],
    )
    written = Writer(model, ToolUse(ends="break"), names)
    assert written.pieces == ["", "_", "register", "ed", "_", "up", "dates", ""]


def test_behind_a_name_comes_what_cannot_continue_it(tmp_path):
    model = scripted(
        tmp_path,
        {
            "=": {MARK: 0.9},
            MARK: {"foo": 0.9},
            "foo": {"bar": 0.6, MARK: 0.3, "(": 0.05},
            "(": {END: 0.9},
        },
    )
    assert Writer(model, ToolUse(), ["foo"]).text == "foo("


def test_without_suggestions_the_row_goes_on_freely_and_no_mark_follows_the_mark(tmp_path):
    model = scripted(
        tmp_path,
        {
            "=": {MARK: 0.9},
            MARK: {MARK: 0.6, "x": 0.3},
            "x": {MARK: 0.5, END: 0.4},
            "foo": {END: 0.9},
        },
    )
    written = Writer(model, ToolUse(), [], ["xfoo"])
    assert (written.text, written.asked, written.marks) == ("xfoo", ["", "x"], 2)


def test_a_name_that_was_begun_is_completed_and_one_that_does_not_fit_is_no_suggestion(tmp_path):
    model = scripted(
        tmp_path,
        {
            "=": {"reg": 0.9},
            "reg": {MARK: 0.9},
            MARK: {"x": 0.5, "ister": 0.3},
            "ister": {END: 0.9},
            "x": {END: 0.9},
        },
    )
    assert Writer(model, ToolUse(), ["register", "update"]).text == "register"
    assert Writer(model, ToolUse(), ["update"]).text == "regx"


def test_a_name_that_the_tokenizer_cannot_spell_is_left_out(tmp_path):
    model = scripted(tmp_path, {"=": {MARK: 0.9}, MARK: {"foo": 0.1}, "foo": {END: 0.9}})
    assert Writer(model, ToolUse(), ["名前", "foo"]).text == "foo"


def test_the_monitor_asks_behind_dots_and_leaves_the_rest_free(tmp_path):
    model = scripted(
        tmp_path,
        {
            "=": {"self": 0.9},
            "self": {".": 0.9},
            ".": {"bar": 0.6, "foo": 0.3},
            "foo": {"s": 0.6, "(": 0.3},
            "(": {"bar": 0.9},
            "bar": {END: 0.9},
        },
        mark=False,
    )
    written = Writer(model, ToolUse("dot"), ["foo", "foo_s", "baz"])
    assert (written.text, written.asked) == ("self.foo(bar", ["self."])


def test_the_monitor_goes_on_with_a_name_that_began_in_the_token_of_the_dot(tmp_path):
    model = scripted(
        tmp_path,
        {
            "=": {"self": 0.9},
            "self": {"._": 0.9},
            "._": {"x": 0.6, "register": 0.3},
            "x": {END: 0.9},
            "register": {END: 0.9},
        },
        mark=False,
    )
    written = Writer(model, ToolUse("dot"), ["_register", "add"])
    assert (written.text, written.asked) == ("self._register", ["self._"])


@pytest.mark.parametrize(
    "text",
    [
        "self.",
        "f(x).",
        "a[0].",
        "'text'.",
        '"""doc\n""".',
        "x = {}.",
        "None.",
        "f'{a.b}'.",
        "x  # note\n(a).",
        "x1.",
        "é.",
        "self._",
        "self.na",
        "'\\'' + a.",
        "r'\\d'.",
        "('''a'b''', c.",
    ],
)
def test_an_attribute_begins_here(text):
    assert behind_a_dot(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "1.",
        "1_0.",
        "x = .",
        "'self.",
        '"""a.',
        "# see a.",
        "x = 'a' # b.",
        "from .",
        "..",
        "...",
        "f'{self.",
        "return .",
        "'\\'.",
        "self.x ",
        "a.1",
        "0x1f.",
        "1e-5.",
        "x +.",
        "b'''it''s.",
    ],
)
def test_no_attribute_begins_here(text):
    assert not behind_a_dot(text)


def test_a_variant_that_does_not_exist_is_refused():
    with pytest.raises(UserError, match="variant is 'ours'; it must be paper or package"):
        ToolUse(variant="ours")
