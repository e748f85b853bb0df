"""The literal pipeline and the selection give the same answers; what each costs can be counted by hand."""

import numpy as np
import pytest
from reading_model import ReadingModel
from test_dag import INDEX, MEMORY, TASKS

from lookuplab.cloudapi.dag import passes
from lookuplab.cloudapi.literal import Cost, Point, cost_rows, metered, pipeline, points, selected
from lookuplab.errors import UserError
from lookuplab.models.store import CompletionStore
from lookuplab.models.types import Work


class WorkingModel(ReadingModel):
    """Counts as a local model does, one forward pass a request."""

    def __init__(self, memory):
        super().__init__(memory)
        self.work = Work()

    def generate(self, requests, decoding):
        for batch in super().generate(requests, decoding):
            self.work.passes += 1
            self.work.prompt_tokens += batch[0].prompt_tokens
            self.work.new_tokens += len(batch[0].tokens)
            yield batch


@pytest.fixture
def model():
    return WorkingModel(MEMORY)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_generated_anew_and_selected_a_point_is_the_same(model, seed):
    kit = {k: passes(model, TASKS, k, store=False, index=INDEX) for k in (1, 2)}
    for point in points([0, 30, 50, 100], [0, 0.5, 1], [1, 2]):
        again = pipeline(model, TASKS, point, seed, index=INDEX)
        assert again.valid.tolist() == selected(kit[point.k], point, seed).tolist(), point


def test_a_full_precision_answers_from_documents_that_contain_the_target(model):
    assert pipeline(model, TASKS, Point("figure_7a", precision=100), index=INDEX).valid.all()


@pytest.mark.parametrize("policy, again", [("base", 0), ("dag", 3), ("dag_index_lookup", 1)])
def test_a_point_costs_a_first_answer_of_every_task_and_a_second_of_every_triggered_one(model, policy, again):
    run = pipeline(model, TASKS, Point("table_2", policy), index=INDEX)  # one of the three invented its API
    assert (run.first.prompts, run.second.prompts) == (3, again)
    assert (run.first.forward_passes, run.second.forward_passes) == (3, again)
    assert run.first.new_tokens == 6 and len(model.asked) == 3 + again


def test_nothing_is_kept_between_points(model):
    for _ in range(2):
        pipeline(model, TASKS, Point("table_2", "base"), index=INDEX)
    assert len(model.asked) == 6


def test_the_points_are_those_of_two_figures_twice_three_policies_and_each_k():
    found = points(range(0, 101, 10), np.arange(101) / 100, (1, 2, 3, 5))
    assert len(found) == len(set(found)) == 11 + 101 + 3 + 3 + 4


def test_a_store_that_has_the_answers_costs_nothing_again(model, tmp_path):
    with CompletionStore(tmp_path / "answers.sqlite") as store:
        costs = [metered(model, lambda store: passes(model, TASKS, store=store, index=INDEX), store)[1]
                 for _ in range(2)]
    assert (costs[0].prompts, costs[1].prompts, costs[1].forward_passes) == (9, 0, 0)


def test_costs_add_up_and_a_ratio_needs_something_to_divide_by():
    whole = Cost(1, 2, 3, 4, 5.0) + Cost(9, 8, 7, 6, 5.0)
    assert whole == Cost(10, 10, 10, 10, 10.0)
    rows = {row["metric"]: row["value"] for row in cost_rows("m", "literal/all", whole, Cost(prompts=5), n=3)}
    assert rows["prompts"] == 10 and rows["prompts_ratio"] == 2 and "seconds_ratio" not in rows


def test_an_endpoint_has_no_forward_passes_to_count():
    with pytest.raises(UserError, match="local model"):
        pipeline(ReadingModel(MEMORY), TASKS, Point("table_2", "base"), index=INDEX)
