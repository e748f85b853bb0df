"""Tests which held-out functions are selected, and that each has one row. An answer is judged only
once, and its verdict does not depend on the other models that are judged with it.
"""

from collections import Counter
from types import SimpleNamespace

import pytest
from doors import refused
from scripted_model import END, wanting

from lookuplab.benchmark import evaluate
from lookuplab.toolgen import evaluation
from lookuplab.toolgen.evaluation import ToolGen, held_out_functions, judged_all
from lookuplab.toolgen.generation import ToolModel, ToolUse

MODULE = '''from helpers import helper


class Box:
    """A box."""

    def __init__(self, size):
        self.size = size

    def grow(self, by):
        """Grow it by some more in {name}."""
        self.size = helper(self.size) + by
        return self.size


def double(x):
    """Twice of that number in {name}."""
    y = helper(x)
    return y + y
'''
HELPERS = """def helper(x):
    return x
"""


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory):
    """Let the tests of this module share one store of judgements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOKUPLAB_STORE", str(tmp_path_factory.mktemp("store") / "c.sqlite"))
        yield


def judgements(predictions):
    texts = {one.id: text for one, text in predictions.items()}
    return judged_all(list(predictions), {"": texts}, workers=1)[""]


@pytest.fixture(scope="module")
def repositories(tmp_path_factory):
    found = [tmp_path_factory.mktemp(name, numbered=False) for name in ("one", "two")]
    for root in found:
        (root / "boxes.py").write_text(MODULE.format(name=root.name))
        (root / "helpers.py").write_text(HELPERS)
    return found


@pytest.fixture(scope="module")
def predictions(repositories):
    """Return {function: predicted body}. In the first repository, the prediction is the original
    body; in the second, it uses a name that does not exist.
    """
    broken = {False: "    return nothere(x)", True: "    return self.zzz"}
    return {
        one: broken["self" in one.signature] if one.repository == "two" else one.body
        for one in held_out_functions(repositories)
    }


@pytest.fixture(scope="module")
def frames(predictions):
    """Return the frames of two models. Two worker processes judge both models in one call."""
    texts = {"base": {one.id: one.body for one in predictions}}
    texts["toolgen"] = {one.id: text for one, text in predictions.items()}
    return judged_all(list(predictions), texts, workers=2)


def test_a_limit_is_spread_in_proportion_but_for_the_least_and_a_larger_one_only_adds():
    sizes = {"a": 90, "b": 30, "c": 4}
    taken = []
    found = {a: [SimpleNamespace(id=f"{a}{i}") for i in range(n)] for a, n in sizes.items()}
    for limit, shares in (3, [1, 1, 1]), (40, [27, 9, 4]), (None, [90, 30, 4]):
        ids = [one.id for one in evaluation.sample(found, limit)]
        assert [*Counter(id[0] for id in ids).values()] == shares and {*taken} <= {*ids}
        taken = ids
    assert ids == [one.id for own in found.values() for one in own]


def test_a_limit_below_one_and_no_functions_are_user_errors(repositories):
    for found, limit in ({"r": []}, None), ({"r": repositories}, 0):
        with refused("no usable function with a docstring in r "):
            evaluation.sample(found, limit)
    with refused(r"4 function: more than 128 model tokens; .* larger"):
        held_out_functions(repositories, count_tokens=lambda _: 999)
    with refused("no functions are selected"):
        judged_all([], {})


def test_a_row_holds_what_became_of_its_function(frames, predictions):
    base, frame = frames.values()
    assert base.exact_match.all() and base.passed.all()
    assert list(frame.id) == [one.id for one in predictions]
    fields = "cluster exact_match passed failures next_identifier prefix dependencies covered"
    assert list(frame[fields.split()].itertuples(index=False, name=None)) == [
        ("one", True, True, "", True, 1, 2, 2),
        ("one", True, True, "", True, 1, 1, 1),
        ("two", False, False, "E1101", True, 0, 2, 0),  # only ``self`` is right
        ("two", False, False, "E0602", False, 0, 1, 0),
    ]


def test_a_change_elsewhere_in_the_repository_is_judged_again(tmp_path):
    (tmp_path / "boxes.py").write_text(MODULE.format(name="here"))
    *_, double = held_out_functions([tmp_path])
    for text, passed in (HELPERS, False), ("class helper:\n    thing = 1\n", True):
        (tmp_path / "helpers.py").write_text(text)
        assert [*judgements({double: "    return helper.thing"}).passed] == [passed]


def test_a_model_is_evaluated_through_the_contract(tmp_path, functions, tool):
    label = functions[1]
    model = wanting(tmp_path, label, "    ", "return ", "self", END)
    tooled = ToolModel(model, [label], tool, ToolUse("mark"))
    (row,) = evaluate(tooled, ToolGen([label]), store=False, progress=False).itertuples()
    assert (row.id, row.cluster) == (label.id, label.repository)
    assert (row.predicted, row.passed, row.lost) == ("        return self", True, "")
