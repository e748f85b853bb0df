"""Local models: stopping while decoding, sampling, memory, context, and clear errors."""

import functools
import math
import shutil
from collections import Counter

import pytest
import tiny_chain
import torch
from tiny_architectures import CONTEXT, save

from lookuplab.errors import UserError
from lookuplab.models.decode import choose
from lookuplab.models.first_call import first_call
from lookuplab.models.load import load
from lookuplab.models.local import load_local
from lookuplab.models.types import Decoding, Prompt

PROMPTS = [Prompt(f"p{i}", f"import boto3\n# call {i * 'again '}\nresponse = client.") for i in range(9)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save(tmp_path_factory.mktemp("llama"), "llama")


@pytest.fixture
def model(folder):
    return load_local(folder, batch_size=4)


def answers(model, decoding, prompts=PROMPTS):
    requests = [(prompt, sample) for prompt in prompts for sample in range(decoding.n)]
    return {(done.id, done.sample): done for batch in model.generate(requests, decoding) for done in batch}


def record_rows(model, fail_above=math.inf):
    """Note the rows of every forward pass; more than ``fail_above`` rows do not fit into memory."""
    rows, forward = [], model.module.forward

    @functools.wraps(forward)
    def recorded(*args, **kwargs):
        rows.append(kwargs["input_ids"].shape[0])
        if rows[-1] > fail_above:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return forward(*args, **kwargs)

    model.module.forward = recorded
    return rows


def test_a_stop_string_ends_a_row_with_the_token_that_completes_it(model):
    free = answers(model, Decoding(max_new_tokens=20))
    for key, whole in free.items():
        stop = "".join(whole.tokens[4:6])
        if stop:
            prompt = next(p for p in PROMPTS if p.id == key[0])
            done = answers(model, Decoding(max_new_tokens=20, stop=("never written", stop)), [prompt])[key]
            assert done.token_ids == whole.token_ids[: len(done.token_ids)]
            assert done.finish_reason == "stop" and stop in done.text
            assert stop not in "".join(done.tokens[:-1])


def test_first_call_ends_a_row_as_soon_as_the_rest_cannot_matter(model):
    free = answers(model, Decoding(max_new_tokens=40))
    stopped = answers(model, Decoding(max_new_tokens=40, stop_rule="first_call"))
    assert "stop" in {done.finish_reason for done in stopped.values()}
    for key, done in stopped.items():
        assert done.token_ids == free[key].token_ids[: len(done.token_ids)]
        assert first_call(done.text).over == (done.finish_reason == "stop")
        assert not first_call("".join(done.tokens[:-1])).over


def test_finished_rows_leave_the_batch(folder):
    model = load_local(folder, batch_size=64)
    rows = record_rows(model)
    done = answers(model, Decoding(max_new_tokens=40, stop_rule="first_call"))
    assert len(rows) == max(len(completion.tokens) for completion in done.values())
    assert rows[0] == len(PROMPTS) and rows[-1] < rows[0]
    assert rows == sorted(rows, reverse=True)


def test_samples_of_one_prompt_are_prefilled_once(folder):
    model = load_local(folder, batch_size=64)
    rows = record_rows(model)
    done = answers(model, Decoding(max_new_tokens=3, n=5, temperature=1.0), PROMPTS[:2])
    assert rows[0] == 2 and rows[1] == 10
    assert len({done["p0", sample].token_ids for sample in range(5)}) > 1


def test_samples_depend_on_seed_prompt_and_index_only(folder):
    decoding = Decoding(max_new_tokens=8, n=3, temperature=1.0, seed=5)
    together = answers(load_local(folder, batch_size=64), decoding)
    for prompt in reversed(PROMPTS):
        alone = answers(load_local(folder, batch_size=2), decoding, [prompt])
        assert all(together[key].token_ids == done.token_ids for key, done in alone.items())
    other = answers(load_local(folder), Decoding(max_new_tokens=8, n=3, temperature=1.0, seed=6))
    assert any(together[key].token_ids != other[key].token_ids for key in other)


def test_sampling_follows_temperature_and_top_p():
    logits = torch.log(torch.tensor([[0.1, 0.5, 0.15, 0.25]])).repeat(4000, 1)
    chance = (torch.arange(4000) + 0.5) / 4000
    drawn = Counter(choose(logits, chance, Decoding(temperature=1.0))[0].tolist())
    assert drawn == {0: 400, 1: 2000, 2: 600, 3: 1000}
    drawn = Counter(choose(logits, chance, Decoding(temperature=1.0, top_p=0.7))[0].tolist())
    assert set(drawn) == {1, 3} and drawn[1] == pytest.approx(4000 * 2 / 3, abs=1)
    drawn = Counter(choose(logits, chance, Decoding(temperature=0.5))[0].tolist())
    assert drawn[1] == pytest.approx(4000 * 0.25 / 0.345, abs=1)
    token, logprob, _ = choose(logits[:1], chance[:1], Decoding(temperature=0.5))
    assert logprob.item() == pytest.approx(math.log([0.1, 0.5, 0.15, 0.25][token]))  # always at temperature 1


@pytest.mark.parametrize(("decoding", "chance", "expected"), [
    (Decoding(), None, math.log(2)),  # 0.5 to 0.25
    (Decoding(temperature=1.0), 0.25, 0.15),  # in [0.1, 0.6)
    (Decoding(temperature=1.0), 0.55, 0.05),
    (Decoding(temperature=1.0, top_p=0.76), 0.3, 0.01),  # 0.5 + 0.25 is not yet 0.76, so 0.15 is in; 0.75 was near
])
def test_the_margin_is_the_distance_to_another_choice(decoding, chance, expected):
    logits = torch.log(torch.tensor([[0.1, 0.5, 0.15, 0.25]]))
    margin = choose(logits, None if chance is None else torch.tensor([chance]), decoding)[2]
    assert margin.item() == pytest.approx(expected, abs=1e-6)


def test_what_is_masked_is_no_near_choice():
    logits = torch.log(torch.tensor([[0.1, 0.5, 0.15, 0.25]]))
    masked = logits.masked_fill(torch.tensor([[False, False, False, True]]), -math.inf)
    assert choose(logits, None, Decoding(), masked)[2].item() == pytest.approx(math.log(0.5 / 0.15))


def test_an_answer_s_margin_is_its_narrowest_choice(tmp_path):
    chain = {"a": {"b": 0.6, "c": 0.4}, "b": {"a": 0.51, "c": 0.49}, "c": {"$": 1.0}}
    model = load_local(tiny_chain.save(tmp_path, chain), context=64)
    (one,) = answers(model, Decoding(max_new_tokens=1), [Prompt("p", "a")]).values()
    assert (one.text, one.margin) == ("b", pytest.approx(math.log(0.6 / 0.4), abs=1e-5))
    (one,) = answers(model, Decoding(max_new_tokens=3), [Prompt("p", "a")]).values()
    assert (one.text, one.margin) == ("bab", pytest.approx(math.log(0.51 / 0.49), abs=1e-5))


def test_out_of_memory_halves_the_batch_and_changes_no_answer(folder):
    expected = answers(load_local(folder, batch_size=64), Decoding(max_new_tokens=6))
    model = load_local(folder, batch_size=64)
    rows = record_rows(model, fail_above=3)
    done = answers(model, Decoding(max_new_tokens=6))
    assert {key: c.token_ids for key, c in done.items()} == {key: c.token_ids for key, c in expected.items()}
    assert [n for n in rows if n > 3] == [9, 4] and model.batch.rows == 2


def test_out_of_memory_with_one_row_is_a_clear_error(model):
    record_rows(model, fail_above=0)
    with pytest.raises(UserError, match="not enough memory for a single prompt"):
        answers(model, Decoding(max_new_tokens=2))


def test_other_errors_are_not_taken_for_a_lack_of_memory(model):
    def broken(*args, **kwargs):
        raise RuntimeError("a real bug")

    model.module.forward = functools.wraps(model.module.forward)(broken)
    with pytest.raises(RuntimeError, match="a real bug"):
        answers(model, Decoding(max_new_tokens=2))


def test_batches_hold_prompts_of_similar_length_in_a_fixed_order(model):
    requests = [(prompt, 0) for prompt in PROMPTS]
    batches = [[c.id for c in batch] for batch in model.generate(requests, Decoding(max_new_tokens=2))]
    again = [[c.id for c in batch] for batch in model.generate(requests[::-1], Decoding(max_new_tokens=2))]
    assert batches == again == [["p8", "p7", "p6", "p5"], ["p4", "p3", "p2", "p1"], ["p0"]]


def test_a_prompt_longer_than_the_context_is_an_error(model):
    long = Prompt("too-long", "x = 1\n" * CONTEXT)
    with pytest.raises(UserError, match="prompt 'too-long' has .* tokens and the model's context is 96"):
        answers(model, Decoding(max_new_tokens=4), [PROMPTS[0], long])


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_named_truncation_policy_cuts_and_records(model, side):
    text = "".join(f"name{i} = {i}\n" for i in range(60))
    ids = model.tokenizer(text)["input_ids"]
    kept = ids[-CONTEXT + 10 :] if side == "left" else ids[: CONTEXT - 10]
    decoding = Decoding(max_new_tokens=10, truncation=side)
    done = answers(model, decoding, [Prompt("long", text)])["long", 0]
    same = answers(model, decoding, [Prompt("cut", model.tokenizer.decode(kept))])["cut", 0]
    assert (done.prompt_tokens, done.prompt_dropped) == (CONTEXT - 10, len(ids) - CONTEXT + 10)
    assert done.token_ids == same.token_ids and same.prompt_dropped == 0


def test_truncation_keeps_the_begin_of_text_token():
    from lookuplab.models.tokens import fit

    left = fit("p", [0, 11, 12, 13, 14], 5, Decoding(max_new_tokens=2, truncation="left"), keep={0})
    right = fit("p", [0, 11, 12, 13, 1], 5, Decoding(max_new_tokens=2, truncation="right"), keep={0, 1})
    assert (left.ids, left.dropped) == ([0, 13, 14], 2)
    assert (right.ids, right.dropped) == ([0, 11, 1], 2)


def test_an_empty_prompt_begins_with_the_begin_of_text_token(model):
    assert answers(model, Decoding(max_new_tokens=2), [Prompt("empty", "")])["empty", 0].prompt_tokens == 1


def test_a_system_prompt_goes_through_the_chat_template(folder):
    model = load_local(folder)
    model.tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    decoding = Decoding(max_new_tokens=4)
    asked = answers(model, decoding, [Prompt("p", "client.", system="Be short.")])["p", 0]
    spelled = answers(model, decoding, [Prompt("p", "<system>Be short.<user>client.<assistant>")])["p", 0]
    assert asked.token_ids == spelled.token_ids and asked.prompt_tokens == spelled.prompt_tokens


def test_chat_behind_a_name_asks_every_prompt_through_the_chat_template(folder):
    model = load(f"{folder}#chat")
    assert model.chat is True and model.identity["chat"].startswith("always listing1")
    assert load(str(folder)).chat is None


def test_an_unknown_stop_rule_or_an_empty_stop_string_is_refused(model):
    with pytest.raises(UserError, match="no stop rule is named 'first_cal'; there are: first_call"):
        answers(model, Decoding(stop_rule="first_cal"))
    with pytest.raises(UserError, match="empty stop string"):
        answers(model, Decoding(stop=("",)))


def test_identity_is_the_content_of_the_folder_and_not_its_place(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "a copy with spaces")
    for note in ("README.md", "card.json", "log.csv"):
        (copy / note).write_text("says how it was made")
    assert load(str(copy)).identity == load_local(folder).identity
    assert load(str(copy), dtype="bfloat16").identity != load_local(folder).identity
    (copy / "tokenizer_config.json").write_text((copy / "tokenizer_config.json").read_text() + "\n")
    assert load(str(copy)).identity != load_local(folder).identity


def test_an_adapter_changes_answers_and_identity(folder, tmp_path):
    from peft import LoraConfig

    plain = load_local(folder)
    expected = answers(plain, Decoding(max_new_tokens=6))
    identity = plain.identity
    plain.module.add_adapter(LoraConfig(target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    plain.module.save_pretrained(tmp_path / "adapter")
    adapted = load_local(folder, adapter=str(tmp_path / "adapter"))
    done = answers(adapted, Decoding(max_new_tokens=6))
    assert {**identity, "adapter": adapted.identity["adapter"]} == adapted.identity
    assert any(done[key].token_ids != expected[key].token_ids for key in done)


def test_an_adapter_that_is_nowhere_is_a_clear_error(folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="cannot load adapter owner/nowhere"):
        load(str(folder), adapter="owner/nowhere")


def without(folder, tmp_path, pattern):
    copy = shutil.copytree(folder, tmp_path / "copy")
    for file in copy.glob(pattern):
        file.unlink()
    return str(copy)


@pytest.mark.parametrize(("missing", "message"), [
    ("tokenizer*", "has no usable tokenizer .no such files"),
    ("tokenizer.json", "has no usable tokenizer"),
    ("config.json", "holds no checkpoint"),
    ("*.safetensors", "cannot load model"),
])
def test_an_incomplete_checkpoint_is_a_clear_error(folder, tmp_path, missing, message):
    with pytest.raises(UserError, match=message) as raised:
        load(without(folder, tmp_path, missing))
    assert "\n" not in str(raised.value)


def test_a_checkpoint_that_lacks_weights_is_refused(folder, tmp_path):
    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(folder, tmp_path / "copy")
    weights = load_file(copy / "model.safetensors")
    weights.pop("model.norm.weight")
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match="lacks weights .model.norm.weight"):
        load(str(copy))


def test_a_model_that_is_nowhere_is_a_clear_error(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name, message in [(str(tmp_path / "nothing"), "no checkpoint folder"), ("./nothing", "no checkpoint folder"),
                          ("owner/never-there-q", "cannot load model owner/never-there-q")]:
        with pytest.raises(UserError, match=message) as raised:
            load(name)
        assert "\n" not in str(raised.value)


def test_unknown_and_impossible_options_are_refused(folder):
    with pytest.raises(UserError, match="unknown option 'batchsize'"):
        load(str(folder), batchsize=3)
    with pytest.raises(UserError, match="dtype is 'float8'"):
        load(str(folder), dtype="float8")
    with pytest.raises(UserError, match="batch_size is 0"):
        load(str(folder), batch_size=0)


def test_an_address_is_a_remote_model():
    assert type(load("http://127.0.0.1:9/v1#m")).__name__ == "RemoteModel"


def test_a_mini_model_answers_to_its_short_name(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("lookuplab.paths.MINI", tmp_path)
    with pytest.raises(UserError, match="no mini model 'mini-small'; there is none yet"):
        load("mini-small")
    shutil.copytree(folder, tmp_path / "models" / "small")
    assert load("mini-small").name == "mini-small" and load("mini-small").identity == load_local(folder).identity
    with pytest.raises(UserError, match="no mini model 'mini-huge'; there are mini-small"):
        load("mini-huge")
