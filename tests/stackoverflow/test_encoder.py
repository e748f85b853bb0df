"""Tests that the sentence encoder learns from titles of duplicate questions."""

import pytest

from lookuplab.stackoverflow.corpus import CORPUS_FOLDER
from lookuplab_notebooks.stackoverflow import tune_encoder as encoder


def test_a_killed_run_goes_on_with_the_same_batches(tmp_path, monkeypatch, written_file):
    lines = [f'["sort {n} rows", "sort {n} rows", "order {n} lines"]' for n in range(8)]
    pairs = encoder.read_duplicates(written_file(*lines))
    recipe = encoder.Recipe(steps=3, learning_rate=0.01, batch_size=6, validation=2)

    def tuned(name: str) -> bytes:
        base = str(CORPUS_FOLDER / "encoder")
        card = encoder.tune(base, pairs, tmp_path / name, recipe, tmp_path / "work", 1)
        assert card["validation_loss"] < card["validation_loss_before"]
        return (tmp_path / name / "model.safetensors").read_bytes()

    def kill(*given, **_):
        assert given[2].global_step < 2

    monkeypatch.setattr(encoder.Milestones, "on_step_begin", kill)
    with pytest.raises(AssertionError):
        tuned("killed")
    monkeypatch.undo()
    assert [*tmp_path.glob("work/*/checkpoint-2/complete")]
    assert tuned("killed") == tuned("whole")
