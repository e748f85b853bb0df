"""Problems asked with retrieved examples: prompts, seeds, answers, gains."""

import math

import pytest
import written_problems as written

from lookuplab.errors import UserError
from lookuplab.models import load
from lookuplab.models.types import Decoding
from lookuplab.retrieval.rankers import Bm25
from lookuplab.stackoverflow import asking
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import load as load_problems
from lookuplab.stackoverflow.grader import Verdict

SNIPPETS = [Snippet(f"s{i}", f"Describe {word}.", f"result = {word}(numbers)", "mine", "MIT")
            for i, word in enumerate(("max", "min", "sum", "sorted"))]
DECODING = Decoding(max_new_tokens=8, temperature=0.2, top_p=0.95, n=2)


@pytest.fixture
def problems(problems_file):
    return load_problems(problems_file())


@pytest.fixture(scope="module")
def model():
    return load("mini-small")


def found(problems):
    return {problem.id: SNIPPETS for problem in problems}


def verdicts(**passed):
    return [Verdict(problem, sample, bool(one), "") for problem, values in passed.items() for sample, one in enumerate(values)]


def test_the_question_is_the_prompt_without_its_frame(problems):
    for problem in problems:
        question = asking.question_of(problem)
        assert question and question in problem.prompt and "<code>" not in question and not question.startswith("Problem:")


def test_without_examples_the_model_reads_the_problem_as_it_is(problems, model):
    asked = asking.ask(model, problems, {}, 0, 2000, DECODING, store=False, progress=False)
    assert [asked.prompts[problem.id].text for problem in problems] == [problem.prompt for problem in problems]
    assert [(a.problem_id, a.sample) for a in asked.answers] == [(p.id, s) for p in problems for s in range(2)]


def test_a_sample_does_not_depend_on_what_else_is_asked(problems, model):
    every = asking.ask(model, problems, found(problems), 2, 2000, DECODING, store=False, progress=False)
    alone = asking.ask(model, problems[1:2], found(problems), 2, 2000, DECODING, store=False, progress=False)
    assert [a for a in every.answers if a.problem_id == problems[1].id] == alone.answers


def test_the_best_example_stands_next_to_the_problem(problems, model):
    asked = asking.ask(model, problems, found(problems), 3, 2000, DECODING, store=False, progress=False)
    assert asked.prompts[problems[0].id].examples == ("s2", "s1", "s0")


def test_a_problem_over_the_budget_is_named(problems, model):
    with pytest.raises(UserError, match=f"^problem {problems[0].id}: .*tokens"):
        asking.ask(model, problems, {}, 0, 20, DECODING, trim="examples-only", store=False)


def test_snippets_are_answers_in_the_order_of_their_rank(problems):
    answers = asking.snippets_as_answers(found(problems), problems[:1])
    assert [(a.sample, a.solution) for a in answers] == [(i, one.code) for i, one in enumerate(SNIPPETS)]


def test_the_first_k_ranks_decide_and_no_later_one():
    given = verdicts(a=[0, 1, 0], b=[0, 0, 1], c=[0, 0, 0])
    assert asking.first_passes(given, 1) == {"a": False, "b": False, "c": False}
    assert asking.first_passes(given, 2) == {"a": True, "b": False, "c": False}


def test_rankers_find_snippets_for_questions(problems):
    ranker = Bm25({one.id: one.description.lower().strip(".").split() for one in SNIPPETS})
    ranker.rank = lambda queries, k: {one: ["s1", "s0"][:k] for one in queries}
    assert asking.look_up(ranker, SNIPPETS, problems, 2)[problems[0].id] == (SNIPPETS[1], SNIPPETS[0])


def test_a_gain_is_the_mean_difference_of_pass_at_k_in_points(problems):
    ids = [problem.id for problem in problems]
    before = verdicts(**dict(zip(ids, ([0, 0], [1, 0], [1, 1]))))
    after = verdicts(**dict(zip(ids, ([1, 0], [1, 1], [1, 1]))))
    first, second = asking.gain_rows(problems, before, after, [1, 2], "m", "examples_1")
    assert (first["value"], second["value"]) == (pytest.approx(100 / 3), pytest.approx(100 / 3))
    assert (first["metric"], first["n"]) == ("pass_at_1_gain_points", 3)


def test_what_the_budget_cut_is_counted(problems, model):
    asked = asking.ask(model, problems, found(problems), 1, 2000, DECODING, store=False, progress=False)
    rows = {row["metric"]: row["value"] for row in asking.trim_rows(problems, asked, "m", "examples_1")}
    assert rows["code_cut_percent"] == rows["question_cut_tokens"] == 0
    assert math.isclose(rows["prompt_tokens"], sum(p.tokens for p in asked.prompts.values()) / len(problems))
