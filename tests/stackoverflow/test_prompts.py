"""Examples before a problem and the budget, counted with a real tokenizer of whole words."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lookuplab.errors import UserError
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.prompts import BUDGETS, Trim, prompt

PROBLEM = "p1 p2 p3 p4 answer"  # 5 tokens


@pytest.fixture(scope="module")
def tokenizer():
    """One token a word, as long as it is parted by white space; unknown words are tokens too."""
    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")


def snippet(name: str, description: int = 3, code: int = 4) -> Snippet:
    return Snippet(name, " ".join(f"{name}d{n}" for n in range(description)),
                   " ".join(f"{name}c{n}" for n in range(code)), "", "")


EXAMPLES = [snippet("a"), snippet("b"), snippet("c")]  # 3 + 4 tokens each, 4 for the frame
WHOLE = 3 * 11 + 5


def made(tokenizer, room: int, examples=EXAMPLES, **changes):
    return prompt(PROBLEM, examples, room + 10, 10, tokenizer, **changes)


def test_the_best_example_stands_next_to_the_problem(tokenizer):
    done = made(tokenizer, WHOLE)
    assert done.examples == ("c", "b", "a") and done.trims == () and done.tokens == WHOLE
    assert done.text.startswith("Problem:\ncd0 cd1 cd2\nA:\n<code>\ncc0 cc1 cc2 cc3\n</code>\n\nProblem:\nbd0")
    assert done.text.endswith("ac3\n</code>\n\n" + PROBLEM)


def test_the_order_is_a_parameter(tokenizer):
    assert made(tokenizer, WHOLE, order="rank").examples == ("a", "b", "c")
    orders = {made(tokenizer, WHOLE, order="random", seed=seed).examples for seed in range(30)}
    assert len(orders) == 6
    assert made(tokenizer, WHOLE, order="random", seed=1) == made(tokenizer, WHOLE, order="random", seed=1)


def test_no_example_leaves_the_problem_as_it_is(tokenizer):
    assert made(tokenizer, 5, examples=[]).text == PROBLEM


def test_the_last_description_gives_first_and_no_more_than_needed(tokenizer):
    assert made(tokenizer, WHOLE - 2).trims == (Trim("description", "c", 2, 1),)
    done = made(tokenizer, WHOLE - 4)
    assert done.trims == (Trim("description", "c", 3, 0), Trim("description", "b", 1, 2))
    assert done.tokens == WHOLE - 4 and "bd1" in done.text and "bd2" not in done.text


def test_code_gives_when_all_descriptions_are_gone_and_an_empty_example_goes(tokenizer):
    done = made(tokenizer, WHOLE - 9 - 1)
    assert done.trims[-1] == Trim("code", "c", 1, 3) and [one.part for one in done.trims[:3]] == ["description"] * 3
    done = made(tokenizer, WHOLE - 9 - 6)  # without c's code its frame of 4 tokens goes too: 2 more than were needed
    assert done.examples == ("b", "a") and done.trims[-1] == Trim("code", "c", 4, 0)
    assert done.tokens == WHOLE - 9 - 8


def test_the_problem_gives_last_and_from_its_beginning(tokenizer):
    done = made(tokenizer, 3)
    assert done.text == "p3 p4 answer" and done.examples == ()
    assert done.trims[-1] == Trim("question", "", 2, 3) and len(done.trims) == 7


def test_the_problem_gives_first_where_that_is_asked_for(tokenizer):
    done = made(tokenizer, WHOLE - 2, trim="question-first")
    assert done.trims == (Trim("question", "", 2, 3),) and done.examples == ("c", "b", "a")


def test_a_problem_over_the_budget_is_refused_where_it_must_not_be_cut(tokenizer):
    with pytest.raises(UserError, match="the problem alone has 5 tokens, more than the 4 that a budget of 14 leaves"):
        made(tokenizer, 4, trim="examples-only")
    assert made(tokenizer, 5, trim="examples-only").text == PROBLEM


@pytest.mark.parametrize("trim", ["description-first", "question-first"])
def test_every_budget_is_kept(tokenizer, trim):
    for room in range(1, WHOLE + 1):
        done = made(tokenizer, room, trim=trim)
        assert done.text.endswith("answer")
        assert done.tokens <= room and len(done.text.split()) == done.tokens
        removed = sum(one.removed for one in done.trims)
        assert removed + done.tokens + 4 * (3 - len(done.examples)) == WHOLE


@pytest.mark.parametrize(("changes", "said"), [
    ({"order": "best"}, "order 'best'"), ({"trim": "all"}, "trim 'all'"), ({"room": 0}, "budget of 10 tokens"),
    ({"examples": [*EXAMPLES, snippet("d")]}, "4 examples"),
])
def test_a_wrong_choice_is_one_clear_line(tokenizer, changes, said):
    with pytest.raises(UserError, match=said):
        made(tokenizer, **{"room": WHOLE} | changes)


def test_the_budgets_are_those_of_the_paper():
    assert sorted(BUDGETS.values()) == [1600, 2049, 4097]
