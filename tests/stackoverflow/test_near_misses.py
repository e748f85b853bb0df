"""Near misses of real models: the draw, single edits, and the agreement of readers and rules."""

import ast
from pathlib import Path

import pandas as pd
import pytest
import written_problems as written

from lookuplab.models.store import hashed
from lookuplab.stackoverflow.ds1000 import load_problems
from lookuplab.stackoverflow.grader import Grader
from lookuplab_notebooks.published import near_agreement as agreement
from lookuplab_notebooks.published import near_draw, near_rules, single_edits

WANTED = "result = f(a, key=abs)[::-1]\n"


@pytest.fixture
def problem(written_file):
    return lambda reference: load_problems(written_file(written.record(reference=reference)))[0]


def test_the_draw_is_the_first_of_each_stratum_by_hash_and_keeps_families_together(written_file):
    numbers = range(1, 31)
    records = [written.record(n, origin=(n + 1) // 2, library="Scipy") for n in numbers]
    problems = load_problems(written_file(*records))
    failed = [(model, str(n)) for n in numbers for model in ("a", "b")]
    found = near_draw.drawn(problems, failed)
    first = sorted(numbers, key=lambda n: hashed(f"near miss b {n}"))[:4]
    assert {*found.problem_id[found.model == "b"]} == {*first}
    assert (found.population == 30).all() and len(found) == 8
    assert (found.groupby("cluster").half.nunique() == 1).all()


@pytest.mark.parametrize(
    ("answer", "edit"),
    [
        ("result = f(a, key=abs)", "result = f(a, key=abs)[::-1]"),
        ("result = f(a)[::-1]", "result = f(a, key=abs)[::-1]"),
        ("result = f(key=abs)[::-1]", "result = f(a, key=abs)[::-1]"),
        ("result = g(a, key=abs)[::-1]", "result = f(a, key=abs)[::-1]"),
        ("result = f(a, key=abs)[::1]", "result = f(a, key=abs)[::-1]"),
        ("print(f(a, key=abs)[::-1])", "result = f(a, key=abs)[::-1]"),
        ("x = f(a, key=abs)[::-1]", "x = f(a, key=abs)[::-1]\nresult = x"),
        ("result = f(a, key=abs)[::-1].values", "result = f(a, key=abs)[::-1]"),
        ("def g(x):\n    return x", "def g(x):\n    return x\nresult = g(x)"),
        ("result = f(a, key=abs)[::-1", "result = f(a, key=abs)[::-1]"),
        ("```python\nresult = 1\n```", "\nresult = 1\n"),
    ],
)
def test_one_edit_of_an_answer(problem, answer, edit):
    assert edit in single_edits.single_edits(problem(WANTED), answer, 10**6)


def test_no_edit_writes_the_whole_reference(problem):
    """Only one of them is as near as that: ``x`` has everything but the reference's value."""
    edits = single_edits.single_edits(problem(WANTED), "result = x", 10**6)
    assert WANTED.strip() not in edits and all(ast.parse(edit) for edit in edits)


@pytest.mark.parametrize(
    ("answer", "apart"),
    [
        ("import g\nresult = f(a, key=abs)[::-1]", False),  # equal, but for what does not count
        ("result = f(a, key=abs)[::2]", True),
        ("result = f(a, key=abs)", True),
        ("result = f(key=abs)[::-1]", True),
        ("result = f(b, key=abs)[::2]", False),
        ("result = (", False),
    ],
)
def test_one_edit_of_the_tree(problem, answer, apart):
    assert near_rules.one_edit_apart(problem(WANTED), answer) is apart


def test_the_first_edit_that_passes_is_found_by_running(problem):
    one = problem(written.REFERENCE)
    pairs = [(one, "result = max(numbers) + min(numbers)"), (one, "result = sum(numbers)")]
    first, second = near_rules.passing_edits(pairs, Grader(store=False, workers=1), 40)
    turned = single_edits.single_edits(*pairs[0])[first - 1]
    assert turned == "result = max(numbers) - min(numbers)" and second == 0


@pytest.mark.parametrize("reference", ["np.argsort(a)[-N:][::-1]", "np.flip(np.argsort(a))[:N]"])
def test_what_is_right_but_for_its_order_is_near_like_the_papers_printed_example(
    written_file, reference
):
    """A task of the example's kind in words of ours: where the N largest are, largest first."""
    context = written.CONTEXT.replace("import json", "import numpy as np").replace(
        "numbers = test_input", "a, N = np.array(test_input), 2"
    )
    context = context.replace(
        "max(data) - min(data)", "sorted(range(len(data)), key=lambda n: -data[n])[:2]"
    ).replace("result == ans", "list(result) == list(ans)")
    record = written.record(int(near_draw.PRINTED), context, f"result = {reference}\n")
    (one,) = load_problems(written_file(record | {"origin": near_draw.PRINTED}))
    nobody = pd.DataFrame(columns=["model", "problem_id"])
    grader = Grader(store=False, workers=1)
    found = near_rules.judged(nobody, {one.id: one}, Path(), grader, single_edits.MOST)
    assert [*found.today] == [0] and found.run[0] > 0


def test_the_chosen_rule_calls_the_papers_printed_example_near():
    frame = agreement.labelled()
    rows = pd.DataFrame(agreement.agreement_rows(frame[frame.half == "develop"]))
    best = rows[rows.metric.eq("kappa") & rows.condition.str.endswith("/develop")]
    best = best.loc[best.value.idxmax(), "condition"].removesuffix("/develop")
    assert best in frame.attrs["candidates"] and "today" not in frame.attrs["candidates"]


def test_the_instrument_is_worth_the_weaker_of_readers_and_rule():
    rows = [("readers", 0.7), ("a/develop", 0.1), ("a/held-out", 0.9), ("b/held-out", 0.2)]
    table = pd.DataFrame(rows, columns=["condition", "value"]).assign(metric="kappa")
    weaker = agreement.weaker_link(table, "a")
    assert (weaker["condition"], weaker["value"]) == ("instrument", 0.7)
    assert agreement.weaker_link(table, "b")["value"] == 0.2


def test_kappa_and_weighted_share_are_those_computed_by_hand():
    """Of four answers both call one near, one reader two: chance agrees in half of them."""
    first, second = pd.Series([1, 1, 0, 0], dtype=bool), pd.Series([1, 0, 0, 0], dtype=bool)
    found = agreement.kappa(first, second, pd.Series(range(4)))
    assert found.value == pytest.approx((0.75 - 0.5) / (1 - 0.5)) and found.n == 4
    frame = pd.DataFrame({"model": "m", "library": ["a", "a", "b", "b"], "problem_id": range(4)})
    frame = frame.assign(population=[30, 30, 10, 10], cluster=range(4))
    assert agreement.share(first, frame).value == pytest.approx(30 / 40)
    assert agreement.part(first, second, frame.cluster).value == 0.5


def test_only_a_rule_that_calls_the_example_near_can_be_chosen():
    rows = [("a/develop", 0.9), ("b/develop", 0.5), ("c/develop", 0.5), ("c/held-out", 0.95)]
    table = pd.DataFrame(rows, columns=["condition", "value"]).assign(metric="kappa")
    assert agreement.chosen(table, ["b", "c"]) == "b"
