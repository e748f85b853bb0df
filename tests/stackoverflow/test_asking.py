"""Tests how prompts with retrieved examples are cut to a token budget, and how models answer them.
Here a token is a word, so that tokens can be counted by eye.
"""

from dataclasses import replace

import pandas as pd
import pytest
import written_problems as written
from doors import refused
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lookuplab.models import Completion
from lookuplab.stackoverflow import asking
from lookuplab.stackoverflow.asking import trimmed_prompt
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import CHAT
from lookuplab.stackoverflow.grader import Grader
from lookuplab_notebooks.stackoverflow import trial
from lookuplab_notebooks.stackoverflow.further_rows import at_random, trim_rows

PROBLEM = "p1 p2 p3 p4 answer"  # 5 tokens


@pytest.fixture(scope="module")
def tokenizer():
    """Return a tokenizer that splits text at white space. Each word is a token, even if it is not
    in the vocabulary.
    """
    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")


def snippet(n):
    return Snippet(n, f"{n}d0 {n}d1 {n}d2", f"{n}c0 {n}c1 {n}c2 {n}c3")


EXAMPLES = [*map(snippet, "abc")]  # each has 3 + 4 tokens, and 4 more for its frame
WHOLE = 3 * 11 + 5


def made(tokenizer, room, **changes):
    return trimmed_prompt(PROBLEM, EXAMPLES, room + 10, 10, tokenizer, **changes)


# Each line has three fields: by how many tokens the prompt is too long, how many tokens are cut
# from (descriptions, code, problem), and how the cut prompt begins.
TRIMMED = """\
0 | (0, 0, 0) | Problem: cd0 cd1 cd2 A: <code> cc0 cc1 cc2 cc3 </code> Problem: bd0
2 | (2, 0, 0) | Problem: cd0 A:
4 | (4, 0, 0) | Problem: A: <code> cc0 cc1 cc2 cc3 </code> Problem: bd0 bd1 A:
10 | (9, 1, 0) | Problem: A: <code> cc0 cc1 cc2 </code> Problem: A: <code> bc0
15 | (9, 4, 0) | Problem: A: <code> bc0 bc1 bc2 bc3 </code>
35 | (9, 12, 2) | p3 p4 answer"""


def test_the_last_description_gives_first_then_code_and_the_problem_last(tokenizer):
    """If all of an example's code is cut, the 4 tokens of its frame are dropped, too: "Problem:",
    "A:", "<code>" and "</code>". So the prompt that is 15 tokens too long loses 9 + 4 + 4 = 17.
    """
    for less, lost, begins in (line.split(" | ") for line in TRIMMED.splitlines()):
        room = WHOLE - int(less)
        done = made(tokenizer, room)
        assert repr(tuple(done.lost.values())) == lost and done.tokens <= room
        assert " ".join(done.text.split()).startswith(begins)


def test_as_many_tokens_are_cut_from_the_question_as_the_descriptions_have(tokenizer):
    long = "q " * 20 + PROBLEM, EXAMPLES, 999, 10, tokenizer
    cut = [trimmed_prompt(*long, trim, shortened=True) for trim in asking.TRIMS]
    assert [tuple(one.lost.values()) for one in cut] == [(9, 0, 0), (0, 0, 9)]
    assert cut[0].tokens == cut[1].tokens == WHOLE + 20 - 9
    with refused("trim is 'questions-first'; it must be question-first, d"):
        trimmed_prompt(*long, "questions-first")


@pytest.mark.parametrize("trim", asking.TRIMS)
def test_every_budget_is_kept(tokenizer, trim):
    for room in range(1, WHOLE + 1):
        done = made(tokenizer, room, trim=trim)
        assert done.text.endswith("answer") and done.tokens == len(done.text.split()) <= room
        frames = 4 * (3 - done.text.count("Problem:"))
        assert sum(done.lost.values()) + done.tokens + frames == WHOLE


def test_a_budget_without_room_is_one_clear_line(tokenizer):
    with refused("a budget of 10 tokens leaves no room"):
        made(tokenizer, 0)


def test_random_examples_depend_on_the_problem_alone(problems):
    many = [*map(snippet, "abcdefgh")]
    drawn = at_random(many, problems, 2)
    assert drawn == at_random(many[::-1], problems[::-1], 2)
    assert all(len(set(found)) == 2 for found in drawn.values())


def test_a_first_snippet_of_the_right_object_is_a_hit(problems):
    own = [replace(snippet("a"), id="numpy.sort#1"), snippet("b")]
    objects = "numpy.sort", "numpy.dot", ""
    asked = [replace(one, object=name) for one, name in zip(problems, objects, strict=True)]
    found = trial.hits({one.id: own for one in asked}, asked, 1)
    assert [*found.values()] == ["hit", "miss", ""]


def test_what_the_budget_cut_is_counted_once_per_prompt():
    frame = pd.DataFrame({"id": [1, 2, 3, 1], "prompt_tokens": [40, 10, 10, 40]})
    frame = frame.assign(model="m", cluster="a", description_lost=[0, 3, 3, 0], question_lost=0)
    rows = trim_rows(frame.assign(code_lost=0), "examples_1")
    values = [round(row["value"], 1) for row in rows[:4]]
    assert values == [20, 66.7, 2, 0], "tokens; the share and tokens of descriptions; of code"


@pytest.mark.usefixtures("own_store")
def test_a_chat_model_is_told_ds1000s_text_and_its_fenced_answers_count(
    problems, tokenizer, scripted, monkeypatch
):
    fenced = f"```\n{written.REFERENCE}```\nThat is all."
    model = scripted(lambda *_: fenced, True, tokenizer)
    ways = {"alone": {}, "with": {"examples": 1}}
    monkeypatch.setattr(trial, "load", lambda _: model)
    asked = [model.name], problems[:1], {"1": EXAMPLES}, ways, 1, 64, Grader(sandbox="none")
    done = trial.evaluate_ways(*asked)
    assert [frame.passed.tolist() for frame in done.frames.values()] == [[True], [True]]
    alone, behind_one = model.asked
    assert alone.system == behind_one.system == CHAT and alone.text == problems[0].prompt
    assert behind_one.text.endswith("</code>\n\n" + alone.text)


def test_columns_of_a_judgement_do_not_depend_on_an_earlier_call(problems, tokenizer):
    [problem, *_] = problems
    answer = Completion(problem.id, 0, "", (), (), (), "stop", 0)
    for known, count in (None, 4), (tokenizer, 8):
        bench = asking.Ds1000Bench([problem], Grader(store=False, workers=1), tokenizer=known)
        first = bench.judge(problem, answer)
        if known:
            bench.prompt(problem)
        assert [*first] == [*bench.judge(problem, answer)] and len(first) == count
