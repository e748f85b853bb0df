"""Tests Algorithms 2 and 3. Each test sets the model's probabilities and the tool's suggestions."""

from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest
from doors import refused
from scripted_model import END, scripted

from lookuplab.models import Decoding, Prompt
from lookuplab.toolgen.generation import ToolUse, Vocabulary
from lookuplab.toolgen.jedi_tool import ToolAnswer, ends_after_dot
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.rules import PACKAGE_RULES, PAPER_RULES, RULES, rules_of
from lookuplab_notebooks.toolgen.doubt import doubting
from lookuplab_notebooks.toolgen.tool_calls import with_threshold

ASKED = {"=": {MARK: 0.9}}  # the mark is the first token


def by(rules=PAPER_RULES, **changes):
    return ToolUse(rules=replace(rules, **changes))


@pytest.fixture
def write(tmp_path):
    """Return a function that lets a model write after the prompt "=". ``table`` has the model's
    probabilities (see ``scripted``), and ``answers`` are the tool's answers in the order of its
    calls. The result has the text, the questions to the tool and the number of marks.
    """

    def written(table, use, *answers, **options):
        model = scripted(tmp_path, table, **options)
        vocabulary = Vocabulary(model.tokenizer, model.end_of_text)
        asked = []
        given = iter(answers)

        def ask(text):
            asked.append(text)
            names = tuple(next(given))
            answer = Future()
            answer.set_result(ToolAnswer(names, names))
            return answer

        def constrain(_, before):
            return use.constraint(vocabulary, before, ask)

        asked_for = [(Prompt("p", "="), 0)]
        ((done,),) = model.generate(asked_for, Decoding(max_new_tokens=20), constrain)
        marks = done.token_ids.count(vocabulary.mark)
        return SimpleNamespace(text=done.text, asked=asked, marks=marks)

    return written


@pytest.mark.parametrize("rules", RULES.values(), ids=str)
@pytest.mark.parametrize(("threshold", "asked"), [(0.39, [""]), (0.5, [])])
def test_below_the_threshold_no_mark_is_written_but_by_the_package_only_the_question_is_left_out(
    write, threshold, asked, rules
):
    """By the package's rules, a mark below the threshold is written, but the tool is not asked. No
    second mark follows, although a mark is the most probable token there.
    """
    table = {"=": {MARK: 0.4, "x": 0.3}, MARK: {MARK: 0.5, "bar": 0.3, "foo": 0.1, "baz": 0.05}}
    written = write(table, by(rules, min_mark_probability=threshold), ["foo", "baz"])
    free = "bar" if rules.is_package else "x"
    assert (written.text, written.asked) == ("foo" if asked else free, asked)
    assert written.marks == len(asked or ["bar"] * rules.is_package)


@pytest.mark.parametrize("use", [ToolUse(None), with_threshold(1)], ids=str)
def test_where_the_tool_is_never_called_no_mark_is_written(write, use):
    written = write({"=": {MARK: 0.9, "x": 0.05}}, use)
    assert (written.text, written.asked, written.marks) == ("x", [], 0)


@pytest.mark.parametrize("offered", ["alpha=", "lambda", "__doc__", "'key'"])
def test_the_package_offers_all_that_jedi_would_insert_unless_it_skips_it_all(write, offered):
    table = ASKED | {MARK: {"x": 0.6, offered: 0.3}}
    package = ToolUse(rules=PACKAGE_RULES)
    assert write(table, package, [offered, "name"]).text == offered
    skipped = offered in ("lambda", "__doc__")
    assert write(table, package, [offered]).text == ("x" if skipped else offered)


@pytest.mark.parametrize(
    ("rule", "longer", "text"),
    [("first", 0.3, "foo("), ("break", 0.3, "foo_bar("), ("break", 0.2, "foo(")],
)
def test_where_a_name_ends_that_begins_another(write, rule, longer, text):
    table = {MARK: {"foo": 0.5}, "foo": {"_bar": longer, "(": 0.25}, "_bar": {"(": 0.9}}
    use = by(name_end_rule=rule, boundary=True)
    assert write(ASKED | table, use, ["foo", "foo_bar"]).text == text


@pytest.mark.parametrize(("longer", "text"), [(0.49, "ab("), (0.5, "abc(")])
def test_the_mean_is_taken_over_all_tokens_of_the_name_forced_ones_included(write, longer, text):
    """The tokens "a" and "b" of the name "ab" have the mean probability (.9 + .1) / 2 = .5."""
    ends = {"c": longer, "(": 0.99 - longer}
    table = {MARK: {"a": 0.9}, "a": {"b": 0.1}, "b": ends, "c": {"(": 0.9}}
    use = by(PACKAGE_RULES, min_mark_probability=0)
    assert write(ASKED | table, use, ["ab", "abc"]).text == text


@pytest.mark.parametrize("rule", ["first", "mean"])
def test_behind_a_name_comes_anything_and_with_a_boundary_what_cannot_continue_it(write, rule):
    table = {MARK: {"foo": 0.9}, "foo": {"bar": 0.6, MARK: 0.3, "(": 0.05}}
    assert write(ASKED | table, by(name_end_rule=rule), ["foo", "foo_"]).text == "foobar"
    assert write(ASKED | table, by(name_end_rule=rule, boundary=True), ["foo"]).text == "foo("


def test_stored_answers_are_keyed_by_what_was_asked_for_and_the_boundary_only_where_it_is_missing():
    assert str(ToolUse("dot")) == "trigger dot, variant paper, gate 0.0, ends break"
    bound = by(given_signature=False, boundary=True)
    assert str(bound) == "trigger mark, variant paper, gate 0.0, ends first, given_signature False"


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize(("threshold", "asked"), [(0.61, True), (0.59, False)])
def test_in_doubt_the_tool_is_asked_before_a_name_whose_first_token_is_improbable(
    write, threshold, asked, blank
):
    """The tool is never asked before a keyword, inside a name or after a name, even if the next
    token is improbable.
    """
    table = {"=": {"if": 0.4}, "if": {"(": 0.4}, "(": {blank + "x": 0.6, blank + "foo": 0.1}}
    table |= {name: {"y": 0.4, END: 0.2} for name in (blank + "x", blank + "foo")}
    written = write(table | {"y": {")": 0.4}}, doubting(threshold), ["foo"])
    assert written.asked == [f"if({blank}"] * asked
    assert written.text.startswith(f"if({blank}foo" if asked else f"if({blank}xy)")


BEGUN = {"=": {"x": 0.9}, "x": {MARK: 0.9}, MARK: {MARK: 0.6, "y": 0.3, "z": 0.05}}


@pytest.mark.parametrize(
    ("table", "answers", "text", "asked", "marks"),
    [
        # After a mark without suggestions, the next token is not a mark.
        (BEGUN | ASKED | {"y": {MARK: 0.5}}, [[], ["yz"]], "yz", ["", "y"], 2),
        (BEGUN, [["x"]], "xy", ["x"], 1),  # the name is already complete
        (BEGUN, [["xz", "y"]], "xz", ["x"], 1),
        (BEGUN, [["z"]], "xy", ["x"], 1),  # the suggestion does not begin with "x"
        (BEGUN | ASKED, [["名前", "z"]], "z", [""], 1),  # the tokenizer cannot spell a name
    ],
)
def test_a_mark_is_answered_with_the_rest_of_names_that_begin_as_the_text_ends(
    write, table, answers, text, asked, marks
):
    """If no suggestion begins with the end of the text, the model continues freely."""
    written = write(table, ToolUse(), *answers)
    assert (written.text, written.asked, written.marks) == (text, asked, marks)


@pytest.mark.parametrize(
    ("dot", "free", "names", "text"),
    [
        (".", "bar", ["foo", "foo_s", "baz"], "self.foo(bar"),
        ("._", "x", ["_foo", "add"], "self._foo(bar"),  # the dot's token also begins the name
    ],
)
def test_the_monitor_asks_behind_dots_and_leaves_the_rest_free(write, dot, free, names, text):
    table = {"=": {"self": 0.9}, "self": {dot: 0.9}, dot: {free: 0.6, "foo": 0.3}}
    table |= {"foo": {"s": 0.6, "(": 0.3}, "(": {"bar": 0.9}}
    written = write(table, ToolUse("dot"), names, mark=False)
    assert (written.text, written.asked) == (text, [f"self{dot}"])


ATTRIBUTES = (
    "self.",
    "f(x).",
    "'text'.",
    '"""doc\n""".',
    "x = {}.",
    "f'{a.b}'.",
    "x  # note\n(a).",
    "é.",
    "self.na",
    "'\\'' + a.",
    "r'\\d'.",
    "('''a'b''', c.",
)
NO_ATTRIBUTES = (
    "",
    "1_0.",
    "'self.",
    '"""a.',
    "x = 'a' # b.",
    "from .",
    "f'{self.",
    "return .",
    "'\\'.",
    "self.x ",
    "0x1f.",
    "x +.",
    "b'''it''s.",
)


@pytest.mark.parametrize(("texts", "begun"), [(ATTRIBUTES, True), (NO_ATTRIBUTES, False)])
def test_an_attribute_begins_behind_the_dot_of_an_expression(texts, begun):
    assert [text for text in texts if ends_after_dot(text) != begun] == []


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (lambda: ToolUse("dots"), "trigger is 'dots'; it must be dot, None, mark"),
        (lambda: by(name_end_rule="frist"), "rule is 'frist'; it must be first, break, mean"),
        (lambda: by(min_mark_probability=7), "is 7; it must be a probability, or 2.0 for never"),
        (
            lambda: rules_of("pakage"),
            "variant is 'pakage'; it must be package-2024, package-2023, paper",
        ),
    ],
)
def test_a_misspelt_rule_is_no_other_experiment(rules, message):
    with refused(message):
        rules()
