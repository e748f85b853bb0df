"""Tests the rows about several trainings of one model, and the committed rows."""

import pandas as pd
import pytest

from lookuplab import paths
from lookuplab.cloudapi.tasks import ApiTask, load_tasks
from lookuplab.results.artifact import read_csv
from lookuplab_notebooks.seeds.seed_rows import gain_rows, rate_rows, trainings

ROWS = paths.DATA / "seeds" / "rows.csv.gz"
KEY = ["model", "condition", "metric"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return the trainings of two sizes on four tasks with four APIs. The three trainings of
    mini-small make 1, 2 and 3 valid calls, and the only training of mini-medium makes 4. With the
    specification, every training makes 4.
    """
    calls = {"small,0": "1000", "small,1": "1100", "small,2": "1110", "medium,0": "1111"}
    lines = [
        f"{one},t{at},{valid},1,1" for one, all in calls.items() for at, valid in enumerate(all)
    ]
    file = tmp_path_factory.mktemp("seeds") / "rows.csv"
    head = "size,seed,id,base,specification,description_specification"
    file.write_text("\n".join([head, *lines]))
    home = "aws", "s3", "s3"
    tasks = [ApiTask(f"t{at}", "", "", (f"a{at}",), *home, "low", 0, 0, 0) for at in range(4)]
    return trainings(file, {task.id: task for task in tasks})


def values(rows):
    return pd.DataFrame(rows).set_index(KEY).value


def test_steps_are_of_pairs_of_trainings_and_of_means_over_seeds(found):
    rates = values(rate_rows(found))
    assert rates["mini-small seed 1", "low", "valid_percent"] == 50
    assert rates["mini-medium seed 0 - mini-small seed 2", "all", "valid_change_points"] == 25
    # the means over seeds are 100 and 50
    assert rates["mini", "medium/all - small/all", "valid_change_points"] == 50


def test_the_spread_is_between_trainings_of_a_size_with_several(found):
    rates, gains = values(rate_rows(found)), values(gain_rows(found))
    # the standard deviation of 25, 50 and 75 points
    assert rates["mini-small", "all", "valid_sd_points"] == pytest.approx(25)
    assert gains["mini-small", "specification", "gain_sd_points"] == pytest.approx(25)
    assert "mini-medium" not in rates.index.get_level_values("model")


def test_the_committed_trainings_of_seed_0_have_the_rates_of_table_1_and_of_figure_6():
    found = trainings(ROWS, {task.id: task for task in load_tasks()})
    first = {size: frames[:1] for size, frames in found.items()}
    for rows, name in (rate_rows, "table1_base_models"), (gain_rows, "fig6_augmentation_designs"):
        table = read_csv(paths.FIGURES / "mini" / "cloudapibench" / f"{name}.csv")
        ours = pd.DataFrame(rows(first))
        ours = ours[ours.model.str.endswith(" seed 0") & ours.metric.eq("valid_percent")]
        ours = ours.assign(model=ours.model.str.removesuffix(" seed 0"))
        both = ours.merge(table, on=KEY, validate="one_to_one")
        assert len(both) == len(ours) >= 12
        assert both.value_x.to_numpy() == pytest.approx(both.value_y, rel=1e-5)
