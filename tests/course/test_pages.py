"""Pages under sliders: they move with the numbers, and show the same without a kernel."""

import re

import numpy as np
import pandas as pd
import pytest

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.explorer import policy_page, trigger_page
from lookuplab.errors import UserError
from lookuplab.sliders import slide, table

FIRST = pd.DataFrame(
    {
        "model": "m",
        "task": list("abcdef"),
        "api": list("ABCDEF"),
        "frequency": ["high"] * 3 + ["low"] * 3,
        "valid": [True, True, False, True, False, False],
        "minimum": [0.9, 0.6, 0.5, 0.3, 0.2, 0.1],
        "exists": True,
    }
)


def passes(hit: bool, miss: bool) -> Passes:
    return Passes(
        1,
        FIRST,
        FIRST.assign(valid=hit),
        FIRST.assign(valid=miss),
        np.zeros(len(FIRST), dtype=bool),
    )


def cells(page: str) -> list[list[str]]:
    return [
        re.findall(r"<td[^>]*>(.*?)</td>", row)
        for row in re.findall(r"<tr>(.*?)</tr>", page)
        if "<td" in row
    ]


def test_a_slider_redraws_the_page_with_its_number():
    box = slide(lambda a, b: f"{a} and {b}", a=(0, 1, 0.1, 0.2), b=(0, 100, 5, 50))
    first, second, shown = box.children
    assert shown.value == "0.2 and 50.0"
    first.value, second.value = 0.1 + 0.2, 75
    assert shown.value == "0.3 and 75.0"


def test_a_page_without_a_kernel_is_what_the_slider_begins_with():
    box = slide(lambda threshold: trigger_page(FIRST, threshold), threshold=(0, 1, 0.05, 0.4))
    assert box.children[-1].value == trigger_page(FIRST, 0.4)


def test_the_trigger_page_counts_invalid_calls_below_the_threshold_as_caught():
    rows = cells(trigger_page(FIRST, 0.55))
    caught = {name: (invalid.split(" ")[0], valid.split(" ")[0]) for name, invalid, valid in rows}
    assert caught == {"high": ("100%", "0%"), "low": ("100%", "100%"), "all": ("100%", "33%")}


def test_the_policy_page_mixes_hits_and_misses_by_the_precision():
    rows = {
        name: [number.split(" ")[0] for number in numbers]
        for name, *numbers in cells(policy_page(passes(hit=True, miss=False), 0.25, 40))
    }
    assert rows["base"] == ["0", "66.7", "33.3", "50.0"]
    assert rows["DAG"] == ["100", "40.0", "40.0", "40.0"]
    assert rows["DAG below 0.25"] == ["33", "66.7", "60.0", "63.3"]


@pytest.mark.parametrize(("threshold", "precision"), [(1.5, 50), (0.5, 150)])
def test_numbers_out_of_range_are_told(threshold, precision):
    with pytest.raises(UserError):
        policy_page(passes(True, False), threshold, precision)


def test_calls_without_confidences_are_told():
    with pytest.raises(UserError, match="confidence"):
        trigger_page(FIRST.assign(minimum=np.nan), 0.5)


def test_a_table_shows_code_as_code():
    assert "<td>&lt;COMP&gt;</td>" in table(["mark"], [["<COMP>"]])
