"""Examples before a problem within a budget, counted with a real tokenizer of whole words; models asked with them."""

import math

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lookuplab.errors import UserError
from lookuplab.models import load
from lookuplab.models.types import Decoding
from lookuplab.stackoverflow import asking
from lookuplab.stackoverflow.asking import prompt
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import load as load_problems
from lookuplab.stackoverflow.scores import trim_rows

PROBLEM = "p1 p2 p3 p4 answer"  # 5 tokens


@pytest.fixture(scope="module")
def tokenizer():
    """One token a word, as long as it is parted by white space; unknown words are tokens too."""
    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")


def snippet(name: str, description: int = 3, code: int = 4) -> Snippet:
    return Snippet(
        name,
        " ".join(f"{name}d{n}" for n in range(description)),
        " ".join(f"{name}c{n}" for n in range(code)),
        "",
        "",
    )


EXAMPLES = [snippet("a"), snippet("b"), snippet("c")]  # 3 + 4 tokens each, 4 for the frame
WHOLE = 3 * 11 + 5


def made(tokenizer, room: int, examples=EXAMPLES, **changes):
    return prompt(PROBLEM, examples, room + 10, 10, tokenizer, **changes)


def test_the_best_example_stands_next_to_the_problem(tokenizer):
    done = made(tokenizer, WHOLE)
    assert done.examples == ("c", "b", "a") and done.lost == {} and done.tokens == WHOLE
    assert done.text.startswith(
        "Problem:\ncd0 cd1 cd2\nA:\n<code>\ncc0 cc1 cc2 cc3\n</code>\n\nProblem:\nbd0"
    )
    assert done.text.endswith("ac3\n</code>\n\n" + PROBLEM)


def test_the_last_description_gives_first_and_no_more_than_needed(tokenizer):
    assert made(tokenizer, WHOLE - 2).lost == {("description", "c"): 2}
    done = made(tokenizer, WHOLE - 4)
    assert done.lost == {("description", "c"): 3, ("description", "b"): 1}
    assert done.tokens == WHOLE - 4 and "bd1" in done.text and "bd2" not in done.text


def test_code_gives_when_all_descriptions_are_gone_and_an_empty_example_goes(tokenizer):
    done = made(tokenizer, WHOLE - 9 - 1)
    assert (
        list(done.lost.items())[-1] == (("code", "c"), 1)
        and [one for one, _ in done.lost][:3] == ["description"] * 3
    )
    done = made(
        tokenizer, WHOLE - 9 - 6
    )  # without c's code its frame of 4 tokens goes too: 2 more than were needed
    assert done.examples == ("b", "a") and done.lost["code", "c"] == 4
    assert done.tokens == WHOLE - 9 - 8


def test_the_problem_gives_last_and_from_its_beginning(tokenizer):
    done = made(tokenizer, 3)
    assert done.text == "p3 p4 answer" and done.examples == ()
    assert done.lost["question", ""] == 2 and len(done.lost) == 7


def test_the_problem_gives_first_where_that_is_asked_for(tokenizer):
    done = made(tokenizer, WHOLE - 2, trim="question-first")
    assert done.lost == {("question", ""): 2} and done.examples == ("c", "b", "a")


@pytest.mark.parametrize("trim", ["description-first", "question-first"])
def test_every_budget_is_kept(tokenizer, trim):
    for room in range(1, WHOLE + 1):
        done = made(tokenizer, room, trim=trim)
        assert done.text.endswith("answer")
        assert done.tokens <= room and len(done.text.split()) == done.tokens
        removed = sum(done.lost.values())
        assert removed + done.tokens + 4 * (3 - len(done.examples)) == WHOLE


@pytest.mark.parametrize("changes", [{"trim": "all"}, {"room": 0}])
def test_a_wrong_choice_is_one_clear_line(tokenizer, changes):
    with pytest.raises(UserError, match="no prompt of a budget"):
        made(tokenizer, **{"room": WHOLE} | changes)


SNIPPETS = [
    Snippet(f"s{i}", f"Describe {word}.", f"result = {word}(numbers)", "mine", "MIT")
    for i, word in enumerate(("max", "min", "sum", "sorted"))
]
DECODING = Decoding(max_new_tokens=8, temperature=0.2, top_p=0.95, n=2)


@pytest.fixture
def problems(problems_file):
    return load_problems(problems_file())


@pytest.fixture(scope="module")
def model():
    return load("mini-small")


def found(problems):
    return {problem.id: SNIPPETS for problem in problems}


def test_without_examples_the_model_reads_the_problem_as_it_is(problems, model):
    asked = asking.ask(model, problems, {}, 0, 2000, DECODING, store=False)
    assert [asked.prompts[problem.id].text for problem in problems] == [
        problem.prompt for problem in problems
    ]
    assert [(a.problem_id, a.sample) for a in asked.answers] == [
        (p.id, s) for p in problems for s in range(2)
    ]


def test_a_sample_does_not_depend_on_what_else_is_asked(problems, model):
    every = asking.ask(model, problems, found(problems), 2, 2000, DECODING, store=False)
    alone = asking.ask(model, problems[1:2], found(problems), 2, 2000, DECODING, store=False)
    assert [a for a in every.answers if a.problem_id == problems[1].id] == alone.answers


def test_what_the_budget_cut_is_counted(problems, model):
    asked = asking.ask(model, problems, found(problems), 1, 2000, DECODING, store=False)
    rows = {row["metric"]: row["value"] for row in trim_rows(problems, asked, "m", "examples_1")}
    assert rows["code_cut_percent"] == rows["question_cut_tokens"] == 0
    assert math.isclose(
        rows["prompt_tokens"], sum(p.tokens for p in asked.prompts.values()) / len(problems)
    )
