"""``complete`` and ``score``: order, reuse, sharing, limits."""

import subprocess
import sys

import pytest
from toy_model import ToyModel, many_prompts

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.complete import complete, score
from lookuplab.models.store import CompletionStore
from lookuplab.models.types import Decoding, Prompt


@pytest.fixture
def store(tmp_path):
    with CompletionStore(tmp_path / "store.sqlite") as opened:
        yield opened


def test_answers_come_in_the_order_of_prompt_and_sample(store):
    answers = complete(ToyModel(), list(reversed(many_prompts(9))), Decoding(n=2, temperature=0.8), store)
    assert [(answer.id, answer.sample) for answer in answers] == [
        (f"task/{number}", sample) for number in range(8, -1, -1) for sample in (0, 1)]


def test_a_second_call_generates_nothing_and_answers_the_same(store):
    first, model = complete(ToyModel(), many_prompts(10), store=store), ToyModel()
    second = complete(model, many_prompts(10), store=store)
    assert (first.generated, first.reused, second.generated, second.reused) == (10, 0, 0, 10)
    assert (model.calls, second) == ([], first)


def test_only_what_is_missing_is_generated(store):
    complete(ToyModel(), many_prompts(6), store=store)
    model = ToyModel()
    complete(model, many_prompts(8), store=store)
    assert model.calls == [("task/6", 0), ("task/7", 0)]


def test_more_samples_keep_the_ones_that_exist(store):
    few = complete(ToyModel(), many_prompts(3), Decoding(n=2, temperature=1.0), store)
    model = ToyModel()
    many = complete(model, many_prompts(3), Decoding(n=5, temperature=1.0), store)
    assert len(model.calls) == 9 and [answer for answer in many if answer.sample < 2] == few


def test_equal_texts_share_a_greedy_answer_under_their_own_ids(store):
    model = ToyModel()
    first, second = complete(model, [Prompt("a", "x"), Prompt("b", "x")], store=store)
    assert len(model.calls) == 1 and (first.id, second.id) == ("a", "b") and first.text == second.text


def test_equal_texts_are_sampled_apart(store):
    model = ToyModel()
    first, second = complete(model, [Prompt("a", "x"), Prompt("b", "x")], Decoding(temperature=1.0), store)
    assert len(model.calls) == 2 and first.text != second.text


def test_another_model_does_not_reuse_answers(store):
    complete(ToyModel(), many_prompts(2), store=store)
    assert complete(ToyModel(identity={"name": "other"}), many_prompts(2), store=store).generated == 2


def test_a_prompt_id_that_occurs_twice_is_refused(store):
    for call in (lambda: complete(ToyModel(), [Prompt("a", "x"), Prompt("a", "y")], store=store),
                 lambda: score(ToyModel(), [(Prompt("a", "x"), "1"), (Prompt("a", "x"), "2")], store=store)):
        with pytest.raises(UserError, match="'a' occurs more than once"):
            call()


@pytest.mark.parametrize("decoding", [Decoding(n=0), Decoding(max_new_tokens=0), Decoding(temperature=-1),
                                      Decoding(top_p=0), Decoding(top_p=1.5)])
def test_decoding_out_of_range_is_refused(store, decoding):
    with pytest.raises(UserError, match="it must be"):
        complete(ToyModel(), many_prompts(1), decoding, store)


def test_scores_are_stored_apart_from_completions(store):
    pairs = [(prompt, " = 1") for prompt in many_prompts(5)]
    complete(ToyModel(), many_prompts(5), store=store)
    first, model = score(ToyModel(), pairs, store=store), ToyModel()
    assert first.generated == 5 and score(model, pairs, store=store) == first and model.calls == []
    assert score(model, [(pairs[0][0], " = 2")], store=store).generated == 1


def test_the_default_store_is_the_named_file_or_the_one_in_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "named.sqlite"))
    complete(ToyModel(), many_prompts(1))
    monkeypatch.delenv("LOOKUPLAB_STORE")
    monkeypatch.setattr(paths, "STORE", tmp_path / "runs" / "default.sqlite")
    complete(ToyModel(), many_prompts(1))
    assert (tmp_path / "named.sqlite").exists() and (tmp_path / "runs" / "default.sqlite").exists()


def test_without_a_store_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "STORE", tmp_path / "default.sqlite")
    monkeypatch.delenv("LOOKUPLAB_STORE", raising=False)
    assert complete(ToyModel(), many_prompts(3), store=False).generated == 3
    assert list(tmp_path.iterdir()) == []


def test_batches_that_came_before_a_failure_are_kept(store):
    class Failing(ToyModel):
        def generate(self, requests, decoding):
            batches = super().generate(requests, decoding)
            yield next(batches)
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        complete(Failing(), many_prompts(10), store=store)
    assert complete(ToyModel(), many_prompts(10), store=store).reused == 4


def test_a_model_that_forgets_a_request_is_noticed(store):
    class Forgetful(ToyModel):
        def generate(self, requests, decoding):
            yield from super().generate(requests[:-1], decoding)

    with pytest.raises(RuntimeError, match="left 1 of 3"):
        complete(Forgetful(), many_prompts(3), store=store)


def test_no_progress_is_shown_when_nothing_is_to_do_or_it_is_quick(store, capfd):
    complete(ToyModel(), many_prompts(3), store=store)
    complete(ToyModel(), many_prompts(3), store=store)
    assert capfd.readouterr().err == ""


def in_a_fresh_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.strip()


def test_importing_the_room_needs_no_heavy_library():
    assert in_a_fresh_process("import sys, lookuplab.models; sys.exit(','.join("
                              "{'torch', 'transformers', 'openai', 'pandas'} & set(sys.modules)))") == ""


def test_the_public_functions_win_over_the_modules_of_their_name():
    assert in_a_fresh_process("import lookuplab.models.complete, lookuplab.models.load\n"
                              "from lookuplab.models import RemoteModel, complete, load\n"
                              "assert all(map(callable, (RemoteModel, complete, load)))") == ""
