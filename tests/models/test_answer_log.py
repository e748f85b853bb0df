"""The list of the answers that a notebook used."""

from dataclasses import replace

from toy_model import ToyModel, many_prompts

from lookuplab.models.answer_log import LOG, NEAR
from lookuplab.models.complete import complete, score
from lookuplab.models.types import Decoding


def lines(file) -> list[list[str]]:
    return [line.split(",") for line in file.read_text().splitlines()]


def test_a_line_names_model_prompt_and_sample_and_tells_a_margin_that_is_near(monkeypatch, tmp_path):
    monkeypatch.setenv(LOG, str(tmp_path / "log.csv"))
    monkeypatch.setattr(ToyModel, "answer", _with_margins(ToyModel.answer, {0: NEAR / 5, 1: NEAR, 2: None}))
    complete(ToyModel(), many_prompts(1), Decoding(n=3, temperature=1.0), store=False)
    rows = lines(tmp_path / "log.csv")
    assert [(*row[:3], row[-1]) for row in rows] == [
        ("toy", "task/0", "0", "2e-05"), ("toy", "task/0", "1", ""), ("toy", "task/0", "2", "")]
    assert len({row[3] for row in rows}) == 1 and len({row[4] for row in rows}) == 3


def _with_margins(answer, margins):
    return lambda self, prompt, sample, decoding: replace(answer(self, prompt, sample, decoding), margin=margins[sample])


def test_a_line_does_not_depend_on_the_versions_in_the_model_s_identity(monkeypatch, tmp_path):
    for name, identity in (("one", {"tool": "jedi 1"}), ("other", {"tool": "jedi 2"})):
        monkeypatch.setenv(LOG, str(tmp_path / name))
        complete(ToyModel(identity=identity), many_prompts(2), store=False)
    assert lines(tmp_path / "one") == lines(tmp_path / "other")


def test_another_prompt_and_another_decoding_are_other_questions(monkeypatch, tmp_path):
    monkeypatch.setenv(LOG, str(tmp_path / "log.csv"))
    complete(ToyModel(), many_prompts(2), store=False)
    complete(ToyModel(), many_prompts(1), Decoding(max_new_tokens=8), store=False)
    assert len({row[3] for row in lines(tmp_path / "log.csv")}) == 3


def test_scored_continuations_are_no_answers(monkeypatch, tmp_path):
    monkeypatch.setenv(LOG, str(tmp_path / "log.csv"))
    score(ToyModel(), [(prompt, "x") for prompt in many_prompts(2)], store=False)
    assert not (tmp_path / "log.csv").exists()
