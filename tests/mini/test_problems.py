"""The mini benchmark: the committed file, and every step of its making on small cases."""

import gzip
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lookuplab.mini.docstrings import Documented
from lookuplab.mini.packages import held_out_example
from lookuplab.mini.problems import build, calls, drafts, perturbations, running, text, values
from lookuplab.mini.problems.examples import LIBRARIES, Example, examples, held_out_objects
from lookuplab.stackoverflow import ds1000
from lookuplab.stackoverflow.grader import Answer, Grader, grade

DS1000 = Path(__file__).resolve().parents[3] / "shared" / "data" / "ds1000_dev.jsonl.gz"
MEDIAN = Example(
    "numpy.median",
    "Numpy",
    0,
    ("import numpy as np",),
    ("a = np.array([[10, 7, 4], [3, 2, 1]])",),
    "np.median(a, axis=0)",
)


@pytest.fixture(scope="module")
def records():
    with gzip.open(build.PROBLEMS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def median():
    return perturbations.examine(MEDIAN)


def judge(record, answer):
    """Whether the record's own program takes an answer."""
    context = {}
    exec(record["code_context"], context)
    try:
        context["test_execution"](answer)
    except Exception:
        return False
    return True


def test_the_committed_file_loads_as_ds1000_does_and_is_large_enough(records):
    problems = ds1000.load(build.PROBLEMS)
    assert len(problems) == len(records) == sum(build.NUMBERS.values()) >= 200
    assert {problem.library for problem in problems} == set(LIBRARIES)
    kinds = [problem.perturbation for problem in problems]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == build.NUMBERS


def test_every_problem_is_of_a_held_out_object(records):
    assert all(held_out_example(record["metadata"]["object"]) for record in records)


def test_every_perturbation_names_its_rule_and_resolves_to_an_origin_of_its_object(records):
    facts = {
        (fact["library"], fact["library_problem_id"]): fact
        for fact in (r["metadata"] for r in records)
    }
    assert len(facts) == len(records)
    for (library, number), fact in facts.items():
        origin = facts[library, fact["perturbation_origin_id"]]
        assert origin["perturbation_type"] == "Origin" and origin["object"] == fact["object"]
        assert (fact["perturbation_type"] == "Origin") == (fact["rule"] == "") == (fact is origin)


def test_references_pass_and_nothing_none_and_the_first_value_fail(records):
    quick = [r for r in records if r["metadata"]["library"] in ("Numpy", "Pandas")][::6]
    for record in quick:
        context = {}
        exec(record["code_context"], context)
        assert judge(record, record["reference_code"])
        assert not judge(record, "pass") and not judge(record, "result = None")
        with pytest.raises(Exception):
            context["same"](*context["EXPECTED"])


def test_the_grader_agrees(records):
    problems = [p for p in ds1000.load(build.PROBLEMS) if p.library == "Numpy"][:3]
    answers = [
        Answer(p.id, sample, code)
        for p in problems
        for sample, code in enumerate((p.reference, "pass"))
    ]
    verdicts = grade(
        problems, answers, Grader(Path(sys.executable), store=False, progress=False, workers=1)
    )
    assert [verdict.passed for verdict in verdicts] == [True, False] * len(problems)


@pytest.mark.skipif(not DS1000.exists(), reason="needs the shared copy of DS-1000")
def test_no_line_is_one_of_ds1000(records):
    with gzip.open(DS1000, "rt", encoding="utf-8") as lines:
        theirs = {
            line.strip()
            for record in map(json.loads, lines)
            for line in record["prompt"].splitlines()
        }
    ours = {line.strip() for record in records for line in record["prompt"].splitlines()}
    shared = {line for line in ours & theirs if not line.startswith(("import ", "from "))}
    assert not {
        line for line in shared if len(re.findall("[A-Za-z]{3,}", line)) > 3
    }  # beyond numbers and short code


def test_an_example_keeps_the_statements_that_its_value_needs():
    text = """Sum.

    >>> import numpy as np
    >>> unused = 3
    >>> a = np.ones(3)
    >>> a[0] = 5
    >>> shown(a)
    7.0
    >>> other(a)
    1
    >>> shown(np.random.rand(3))
    0.1
    >>> print(shown(a))
    7.0
    """
    good, *reasons = [
        found
        for found in examples(Documented(("numpy.shown",), text), "Numpy")
        if not isinstance(found, str) or found in ("random", "only prints")
    ]
    setup = ("a = np.ones(3)", "a[0] = 5")
    assert good == Example("numpy.shown", "Numpy", 4, ("import numpy as np",), setup, "shown(a)")
    assert reasons == ["random", "only prints"]


def test_constants_become_variables_and_the_second_input_gives_another_value():
    draft, _ = drafts.origin(
        Example("numpy.average", "Numpy", 0, ("import numpy as np",), (), "np.average([1, 2, 6])")
    )
    (first, value), (second, other) = draft.cases
    assert draft.target == "np.average(a)" and first == "a = [1, 2, 6]"
    assert value == values.Literal("number", "3.0") and second.startswith(first) and other != value


@pytest.mark.parametrize(
    "setup, target, reason",
    [
        (("import warnings", "warnings.warn('old')"), "np.ones(2)", "warns"),
        (("open('there', 'w')",), "np.ones(2)", "does not run on its own"),
        (("while True: pass",), "np.ones(2)", "slow"),
        (("a = np.ones(2)",), "np.asarray(a)", "the set-up holds the value already"),
        (("a = np.ones(2)",), "np.ones_like(a)", "the set-up holds the value already"),
        (("a = np.arange(3)",), "np.shape(a)", "no other input gives another value"),
    ],
    ids=lambda part: str(part)[:40],
)
def test_what_is_no_problem_is_left_out_for_its_reason(
    setup, target, reason, monkeypatch, tmp_path
):
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    if "ones" in target and "a = np.ones(2)" not in setup:
        setup = (*setup, "a = np.ones(2)")
    with pytest.raises(drafts.Unfit, match=reason):
        drafts.origin(Example("numpy.x", "Numpy", 0, ("import numpy as np",), setup, target))


def test_an_example_runs_in_a_process_that_writes_and_connects_nowhere():
    lines = {"write": "f = open('x', 'w')", "connect": "s.connect(('127.0.0.1', 9))"}
    tried = [
        Example(
            "numpy.sum",
            "Numpy",
            0,
            ("import numpy as np", "import socket"),
            ("s = socket.socket()", line, "a = np.arange(3)"),
            "np.sum(a)",
        )
        for line in lines.values()
    ]
    assert list(running.examined(tried, progress=False)) == ["needs files or network"] * 2


def test_surface_keeps_the_values(median):
    origin, *others = median
    surface = [draft for draft in others if draft.perturbation == "Surface"]
    assert {draft.rule.partition(":")[0] for draft in surface} == {
        "reworded",
        "story around it",
        "renamed",
    }
    assert all([e for _, e in draft.cases] == [e for _, e in origin.cases] for draft in surface)
    assert len({text.prompt(draft) for draft in [origin, *surface]}) == 4


def test_semantic_asks_for_another_argument_and_another_value(median):
    origin, *others = median
    semantic = {draft.target: draft for draft in others if draft.perturbation == "Semantic"}
    assert semantic["np.median(a, axis=1)"].rule == "number changed: axis"
    first = semantic["np.median(a, axis=1)"].cases[0][1]
    assert first == values.Literal("array", "np.array([7.0, 2.0], dtype='float64')")
    assert all(draft.cases[0][1] != origin.cases[0][1] for draft in semantic.values())
    assert "`axis = 1`" in text.prompt(semantic["np.median(a, axis=1)"])


def test_difficult_rewrites_hide_the_call_repeat_it_and_go_on(median):
    rewritten = {draft.rule: draft for draft in median if draft.perturbation == "Difficult-Rewrite"}
    assert "np.median" in text.prompt(median[0]) and "np.median" not in text.prompt(
        rewritten["call not named"]
    )
    assert rewritten["then reversed"].target == "np.median(a, axis=0)[::-1]"
    each = rewritten["for each of a list"]
    assert each.target == "[np.median(item, axis=0) for item in inputs]"
    record = text.record(each)
    assert judge(record, record["reference_code"])
    assert not judge(record, "result = [np.median(a, axis=0)] * 2")


def test_renaming_leaves_strings_attributes_and_keywords():
    assert perturbations.renamed("f(a, a=a.a, b='a')", {"a": "x"}) == "f(x, a=x.a, b='a')"


def test_the_options_of_a_parameter_are_read_from_its_documentation():
    document = "Parameters\n----------\nmode : {'full', 'same'}, optional\n    What.\nother : int\n"
    assert (
        calls.options_of(document, "mode") == ["full", "same"]
        and calls.options_of(document, "other") == []
    )


@pytest.mark.parametrize(
    "value",
    [
        3,
        0.1,
        float("nan"),
        2 + 1j,
        np.float32(1.5),
        "a",
        (1, "b"),
        {"a": 1},
        [0.5, [1, 2]],
        (np.arange(2), 1.0),
        np.array([[1.0, np.nan]]),
        np.array(["a", "bc"]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        pd.Timestamp("2020-01-01"),
        pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None]),
        pd.Series([1, 2], index=["a", "b"], name="s"),
        pd.Series(["x", None]),
        pd.Series([True, None], dtype="boolean"),
        pd.DataFrame({"a": [1, 2], ("b", 1): [0.5, np.nan]}),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.Index([3, 1]),
        pd.date_range("2020", periods=2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_written_as_source_is_the_same_value(value):
    found = values.literal(value)
    values.same(found.kind, eval(found.source, values.namespace()), value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        object(),
        len,
        np.ma.array([1]),
        np.arange(10_000),
        "",
        pd.DataFrame(),
        np.longdouble(1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_a_short_source_has_none(value):
    assert values.literal(value) is None


@pytest.mark.parametrize(
    "kind, result, expected",
    [
        ("number", 1.1, 1.0),
        ("number", None, 1.0),
        ("number", [1.0], 1.0),
        ("array", np.ones(2), np.ones(3)),
        ("array", 1.0, np.ones(3)),
        ("array", np.array(["1"]), np.array([1])),
        ("sequence", (1.0,), (1.0, 2.0)),
        ("exact", ["a"], ("a",)),
        ("series", pd.Series([1]).to_frame(), pd.Series([1])),
        ("frame", pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
        ("index", pd.Index([2, 1]), pd.Index([1, 2])),
    ],
)
def test_another_value_is_told_apart(kind, result, expected):
    with pytest.raises(Exception):
        values.same(kind, result, expected)
    values.same(kind, expected, expected)


def test_problems_are_dealt_to_the_libraries_as_ds1000s():
    assert build.quota(732) == {"Pandas": 291, "Numpy": 220, "Scipy": 106, "Sklearn": 115}
    assert all(sum(build.quota(number).values()) == number for number in range(50))


def test_a_problem_that_a_wrong_answer_passes_is_found(median):
    record = text.record(median[0])
    assert running.faults(
        [
            (record, ["pass"]),
            (record, [record["reference_code"]]),
            ({**record, "reference_code": "result = 1"}, []),
        ]
    ) == ["", "a wrong answer passes", "gives another value in a second process"]


def test_the_same_records_give_the_same_bytes(tmp_path, records):
    for name in ("a.gz", "b.gz"):
        build.write(records[:3], tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_the_committed_problems_come_out_of_the_installed_examples(records):
    """One library's origins, from docstring to record: drafts of the same objects give the committed texts."""
    names = {r["metadata"]["object"] for r in records if r["metadata"]["library"] == "Numpy"}
    objects = {
        item.name: item for item in held_out_objects("Numpy") if item.name in sorted(names)[:5]
    }
    parsed = [
        e for item in objects.values() for e in examples(item, "Numpy") if isinstance(e, Example)
    ]
    made = {
        text.prompt(draft[0])
        for draft in map(perturbations.examine, parsed)
        if isinstance(draft, list)
    }
    committed = [
        r["prompt"]
        for r in records
        if r["metadata"]["object"] in objects and r["metadata"]["perturbation_type"] == "Origin"
    ]
    assert committed and set(committed) <= made
