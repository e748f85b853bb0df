"""``figures/<profile>/answers.csv.gz``: the answers that the notebooks of a reproduction used, and no others."""

from pathlib import Path

import pytest

from lookuplab.runner import answers

ASKS = """\
import sys
sys.path.insert(0, {folder!r})
from toy_model import ToyModel, many_prompts
from lookuplab.models import Decoding, complete
_ = complete(ToyModel(), many_prompts({count}), Decoding())"""


@pytest.fixture
def asks(kit):
    """Adds a notebook that asks the toy model so many prompts."""
    folder = str(Path(__file__).parents[1] / "models")
    return lambda name, count, paper="demo": kit.notebook(name, ASKS.format(folder=folder, count=count), paper=paper)


def used(kit) -> list[tuple[str, str]]:
    content = (kit.root / "figures/mini/answers.csv.gz").read_bytes()
    return [(row[-1], row[1]) for row in answers.read(content)]


def test_a_second_run_writes_the_same_bytes_whatever_else_is_in_the_store(kit, asks):
    asks("one", 2)
    assert kit.call("reproduce")[0] == 0
    first = (kit.root / "figures/mini/answers.csv.gz").read_bytes()
    asks("one", 5)
    assert kit.call("run", "one")[0] == 0
    asks("one", 2)
    assert kit.call("reproduce")[0] == 0
    assert (kit.root / "figures/mini/answers.csv.gz").read_bytes() == first
    assert used(kit) == [("demo/one", "task/0"), ("demo/one", "task/1")]


def test_a_notebook_that_runs_on_demand_is_not_in_it_and_another_paper_stays_in_it(kit, asks):
    asks("one", 1)
    asks("two", 1, paper="other")
    asks("speed", 9, paper="performance")
    (kit.root / "notebooks/order.yaml").write_text("manual: [performance/speed]")
    for paper in ((), ("demo",), ("performance",)):
        assert kit.call("reproduce", *paper)[0] == 0
    assert used(kit) == [("demo/one", "task/0"), ("other/two", "task/0")]
