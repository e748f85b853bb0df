"""What a gate does to answers and calls, by hand."""

import pandas as pd
import pytest
from scripted_model import END, scripted

from lookuplab.toolgen.evaluation import judged_all
from lookuplab.toolgen.files import Repository
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.gates import gate_rows, gated, marks, removal_rows
from lookuplab.toolgen.generation import generate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.pairs import prompt_text
from lookuplab.toolgen.tool_use import NEVER

BOX = '''class Box:
    def __init__(self):
        self.size = 1
        self.other = 2

    def grow(self):
        """Grow by one step."""
        return self.size
'''


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    root = tmp_path_factory.mktemp("boxes")
    (root / "box.py").write_text(BOX)
    return extract(Repository("boxes", root)).functions


@pytest.fixture(scope="module")
def written(functions, tmp_path_factory):
    """At the gates 0, 0.7 and never: two marks of probability 0.6 and 0.8 without a gate."""
    prompt = prompt_text(functions[0], "decoder")
    script = [{"    ": 0.9}, {MARK: 0.6, "s": 0.1}, {"self": 0.9}, {".": 0.9}, {MARK: 0.8}, {"other": 0.9, "size": 0.05},
              {END: 0.9}]
    model = scripted(tmp_path_factory.mktemp("model"), script=script, prompt=prompt)
    with JediTool(1) as tool:
        return {gate: generate(model, functions, tool, gated(gate), store=False, progress=False)
                for gate in (0.0, 0.7, 1.0)}


def test_a_gate_of_one_is_never():
    assert (gated(1).gate, gated(0.8).gate, gated(0.8, "package").ends) == (NEVER, 0.8, "mean")


def test_each_call_has_the_probability_of_its_mark_and_is_right_where_the_original_has_its_name(written):
    calls = marks(written[0.0])
    assert calls.probability.tolist() == pytest.approx([0.6, 0.8])
    assert calls.chosen.tolist() == ["self", "other"] and calls.right.tolist() == [True, False]
    assert marks(written[1.0]).empty


def test_what_a_gate_leaves_of_right_and_wrong_calls():
    calls = pd.DataFrame({"repository": ["a", "a", "b", "b"], "probability": [0.9, 0.5, 0.7, 0.3],
                          "right": [True, True, False, False]})
    found = {(row["condition"], row["metric"]): row["value"] for row in removal_rows("m", calls, [0.0, 0.6, 1.0])}
    assert found == {("gate_0", "kept_right_percent"): 100, ("gate_0", "kept_wrong_percent"): 100,
                     ("gate_0", "right_percent"): 50, ("gate_0.6", "kept_right_percent"): 50,
                     ("gate_0.6", "kept_wrong_percent"): 50, ("gate_0.6", "right_percent"): 50,
                     ("gate_1", "kept_right_percent"): 0, ("gate_1", "kept_wrong_percent"): 0, ("marks", "auroc"): 0.75}


def test_the_rows_of_a_gate_and_what_changes_from_the_first(functions, written, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "completions.sqlite"))
    frames = judged_all(functions, {gate: found.predictions for gate, found in written.items()}, workers=1)
    found = {(row["condition"], row["metric"]): row["value"] for row in gate_rows("m", frames, written)}
    assert [found[f"gate_{gate}", "calls_per_function"] for gate in ("0", "0.7", "1")] == [2, 1, 0]
    assert [found[f"gate_{gate}", "calls_percent"] for gate in ("0", "0.7", "1")] == [100, 50, 0]
    assert found["gate_0.7 - gate_0", "calls_per_function_change"] == -1
    assert found["gate_1 - gate_0", "editsim_change_points"] == pytest.approx(
        found["gate_1", "editsim_percent"] - found["gate_0", "editsim_percent"])
    assert found["gate_0", "succrate_percent"] == 100
    assert not [condition for condition, _ in found if "base" in condition]
