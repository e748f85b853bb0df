"""Constrained ways to answer, with a model that calls what it reads and that can be held to given names."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reading_model import ReadingModel

from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.constrained import (
    becomes_rows, constrainable, outcome_rows, outcomes, replay, rescued, ways,
)
from lookuplab.cloudapi.dag import Passes, passes
from lookuplab.cloudapi.policies import Way, compared_rows, once
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec
from lookuplab.errors import UserError
from lookuplab.models import Decoding, Prompt, complete
from lookuplab.models.local import load_local

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
import tiny_checkpoint  # noqa: E402

NAMES = ("delete_object", "get_object", "list_objects", "put_object")
INDEX = ApiIndex([ApiSpec("aws", "s3", "s3", name, ()) for name in NAMES])


class BoundModel(ReadingModel):
    """Held to choices that do not hold its name, it writes the first of them that ends with the same word."""

    def generate(self, requests, decoding):
        for prompt, sample in requests:
            for [done] in super().generate([(prompt, sample)], decoding):
                name = done.tokens[0]
                if prompt.choices and name not in prompt.choices:
                    name = next((other for other in prompt.choices if other.split("_")[1] == name.split("_")[1]),
                                prompt.choices[0])
                yield [replace(done, text=name + "()", tokens=(name, "()"))]


def task(name, frequency):
    return Task(f"{name}#1", f"# do it: {name[::-1]}\nclient.", "", (f"aws/s3.s3.{name}",), "aws", "s3", "s3",
                frequency, 0, 0, 0)


TASKS = [task("put_object", "high"), task("list_objects", "low"), task("get_object", "low")]
MEMORY = {"put_object#1": "put_object", "list_objects#1": "show_objects", "get_object#1": "fetch_object"}
OPTIONS = {"store": False, "index": INDEX}


@pytest.fixture(scope="module")
def every():
    model = BoundModel(MEMORY)
    return ways(model, TASKS, passes(model, TASKS, **OPTIONS), threshold=0, **OPTIONS)  # retrieves for unknown names


def frame(*categories):
    return pd.DataFrame({"model": "m", "task": [f"t{i}" for i in range(len(categories))], "api": list(categories),
                         "frequency": "low", "category": categories, "valid": [c == "valid" for c in categories]})


def values(rows):
    return {(row["condition"], row["metric"]): row["value"] for row in rows}


def test_the_four_outcomes_of_every_way_and_class_add_up_to_100(every):
    found = values(outcome_rows(every, 30))
    kinds = ("valid", "invalid_usage", "incorrect_existing", "nonexistent")
    for condition in {condition for condition, _ in found}:
        assert sum(found[condition, f"{kind}_percent"] for kind in kinds) == pytest.approx(100)


def test_shares_are_expectations_over_which_tasks_are_hits():
    way = Way(Passes(1, frame("nonexistent", "valid"), frame("valid", "nonexistent"),
                     frame("invalid_usage", "nonexistent"), np.zeros(2, dtype=bool)), np.array([True, False]))
    shares = outcomes(way, 25)
    assert shares["valid"].tolist() == [0.25, 1] and shares["invalid_usage"].tolist() == [0.75, 0]
    assert shares["nonexistent"].tolist() == [0, 0]
    assert outcomes(way, np.array([True, True]))["valid"].tolist() == [1, 1]


@pytest.mark.parametrize("way", ["constrained", "dag_plus_plus_constrained"])
def test_a_constrained_way_invokes_nothing_that_does_not_exist(every, way):
    assert values(outcome_rows(every))[f"{way}/all", "nonexistent_percent"] == 0


def test_the_constraint_changes_only_names_that_do_not_exist(every):
    free, bound = every["base"].passes.first, every["constrained"].passes.first
    assert list(bound.name) == ["put_object", "list_objects", "delete_object"]
    assert list(free.name == bound.name) == [True, False, False]


def test_what_the_invented_names_become_is_a_share_of_those_alone(every):
    found = values(becomes_rows(every["base"].passes.first, every["constrained"].passes.first))
    assert found["constrained/low", "becomes_valid_percent"] == found["constrained/all", "becomes_valid_percent"] == 50
    assert found["constrained/all", "becomes_incorrect_existing_percent"] == 50
    assert ("constrained/high", "becomes_valid_percent") not in found
    assert found["constrained/all", "renamed_existing_percent"] == 0


def test_names_are_constrained_where_dag_plus_plus_retrieves_and_with_its_documents(every):
    free, held = every["dag_plus_plus"], every["dag_plus_plus_constrained"]
    assert held.retrieve.tolist() == free.retrieve.tolist() == [False, True, True]
    for old, new in ((free.passes.hit, held.passes.hit), (free.passes.miss, held.passes.miss)):
        assert new.task.tolist() == old.task.tolist() and list(new.columns) == list(old.columns)
        assert new.prompt_tokens.tolist() == old.prompt_tokens.tolist()
        assert new.iloc[0].equals(old.iloc[0]) and set(new.name[1:]) <= set(NAMES)


def test_pairs_count_what_only_one_of_two_ways_gets_right(every):
    rows = compared_rows(every, [("constrained", "base")])
    found = values(rows)
    where = "constrained/low - base/low"
    assert found[where, "valid_change_points"] == 50
    assert (found[where, "gained_tasks"], found[where, "lost_tasks"], found[where, "p"]) == (1, 0, 1)


def test_a_single_pass_reads_no_documentation():
    way = once(frame("valid", "nonexistent"))
    assert not way.retrieve.any() and outcomes(way, 100)["valid"].tolist() == [1, 0]


def test_the_task_to_look_at_is_an_invented_name_that_became_valid():
    free = frame("valid", "nonexistent", "nonexistent")
    assert rescued(free, frame("valid", "invalid_usage", "valid")) == 2
    assert rescued(free, frame("valid", "invalid_usage", "invalid_usage")) == 1
    assert rescued(frame("valid"), frame("valid")) == 0


def test_endpoints_and_chat_models_are_left_out_and_nothing_else_is_one_clear_line():
    assert constrainable(["mini-small", "openai:gpt", "folder#chat", "http://host/v1#m"]) == ["mini-small"]
    with pytest.raises(UserError, match="openai:gpt"):
        constrainable(["openai:gpt"])


def test_a_replay_shows_every_token_of_the_name_and_how_many_could_stand_there(tmp_path):
    model = load_local(tiny_checkpoint.save(tmp_path))
    names = ("put_object", "put_objects", "wait")
    [done] = complete(model, [Prompt("a", "client.", choices=names)], Decoding(max_new_tokens=30), store=False)
    found = replay(model, "client.", names, done)
    written = "".join(found.piece)
    assert written.startswith(names) and (found.allowed >= 1).all() and found.probability.between(0, 1).all()
    assert (found.allowed[found.forced] == 1).all()
    spelled = "".join(found.piece[:-1])
    assert spelled in names or written.rstrip("(") in names
