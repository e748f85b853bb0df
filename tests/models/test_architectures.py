"""Every architecture of the three papers: the kit's own loop says what Transformers says, whatever the batch."""

import pytest
import torch
from tiny_architectures import ARCHITECTURES, CONTEXT, metaspace_tokenizer, save

from lookuplab.models.local import load_local
from lookuplab.models.types import Decoding, Prompt

PROMPTS = [Prompt(f"p{i}", "x = client.\n" * (i % 4) + "import boto3  # naïve 名前"[: i % 17] + "\nclient.")
           for i in range(20)]
TOLERANCE = 1e-4


@pytest.fixture(scope="module", params=ARCHITECTURES)
def folder(request, tmp_path_factory):
    return save(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def model(folder):
    return load_local(folder, batch_size=7)


def flat(batches):
    return {(done.id, done.sample): done for batch in batches for done in batch}


def answers(model, decoding, prompts=PROMPTS):
    return flat(model.generate([(p, sample) for p in prompts for sample in range(decoding.n)], decoding))


def hf_generate(model, prompt, new):
    inputs = model.tokenizer([prompt.text], return_tensors="pt")
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    ids = model.module.generate(**inputs, max_new_tokens=new, do_sample=False, num_beams=1)[0].tolist()
    return ids[1:] if model.module.config.is_encoder_decoder else ids[inputs["input_ids"].shape[1] :]


def plain_logprobs(model, prompt, ids):
    """One forward pass without cache, padding or batch."""
    prompt_ids = model.tokenizer(prompt.text)["input_ids"]
    with torch.inference_mode():
        if model.module.config.is_encoder_decoder:
            start = model.module.config.decoder_start_token_id
            logits = model.module(input_ids=torch.tensor([prompt_ids]),
                                  decoder_input_ids=torch.tensor([[start, *ids[:-1]]])).logits[0]
        else:
            logits = model.module(input_ids=torch.tensor([[*prompt_ids, *ids]])).logits[0, len(prompt_ids) - 1 : -1]
    return logits.log_softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)].tolist()


def test_greedy_equals_generate_token_for_token(model):
    done = answers(model, Decoding(max_new_tokens=20))
    for prompt in PROMPTS[::3]:
        assert list(done[prompt.id, 0].token_ids) == hf_generate(model, prompt, 20), prompt.id


def test_logprobs_equal_a_plain_forward_pass(model):
    done = answers(model, Decoding(max_new_tokens=20))
    for prompt in PROMPTS[::3]:
        completion = done[prompt.id, 0]
        expected = plain_logprobs(model, prompt, completion.token_ids)
        assert completion.token_logprobs == pytest.approx(expected, abs=TOLERANCE)


SAMPLED = Decoding(max_new_tokens=12, temperature=0.8, top_p=0.9, n=2)


@pytest.mark.parametrize("decoding", [Decoding(max_new_tokens=20), SAMPLED], ids=["greedy", "sampled"])
def test_completions_are_the_same_at_batch_sizes_1_7_and_64(folder, decoding):
    one, seven, many = (answers(load_local(folder, batch_size=size), decoding) for size in (1, 7, 64))
    for key, alone in one.items():
        for other in (seven[key], many[key]):
            assert (alone.text, alone.token_ids) == (other.text, other.token_ids)
            assert alone.finish_reason == other.finish_reason
            assert alone.token_logprobs == pytest.approx(other.token_logprobs, abs=TOLERANCE)


def test_scoring_equals_a_plain_forward_pass(model):
    texts = ['put_object(Bucket="b")', "x", "", "é名\n"]
    pairs = [(prompt, texts[i % 4]) for i, prompt in enumerate(PROMPTS)]
    scored = flat(model.score(pairs))
    for prompt, text in pairs:
        done = scored[prompt.id, 0]
        assert done.text == text == "".join(done.tokens)
        expected = plain_logprobs(model, prompt, done.token_ids) if text else []
        assert done.token_logprobs == pytest.approx(expected, abs=TOLERANCE)


def test_tokens_spell_the_text(model):
    for completion in answers(model, Decoding(max_new_tokens=20)).values():
        assert "".join(completion.tokens) == completion.text
        assert len(completion.tokens) == len(completion.token_ids) == len(completion.token_logprobs) <= 20


@pytest.mark.parametrize("architecture", ["llama", "t5"])
def test_a_sentencepiece_like_vocabulary_spells_what_its_tokenizer_decodes(tmp_path, architecture):
    model = load_local(save(tmp_path, architecture, metaspace_tokenizer()))
    tokenizer, alone = model.tokenizer, model.module.config.is_encoder_decoder
    for prompt in PROMPTS:
        done = answers(model, Decoding(max_new_tokens=12), [prompt])[prompt.id, 0]
        before = [] if alone else tokenizer(prompt.text)["input_ids"]
        whole = tokenizer.decode(before + list(done.token_ids), skip_special_tokens=True)
        assert tokenizer.decode(before, skip_special_tokens=True) + done.text == whole


def test_rows_beyond_the_context_window_end_there(model):
    if model.context is None:
        assert model.module.config.is_encoder_decoder
        return
    completions = answers(model, Decoding(max_new_tokens=1000)).values()
    assert all(done.prompt_tokens + len(done.tokens) <= CONTEXT for done in completions)
    assert {done.finish_reason for done in completions} <= {"length", "eos"}
    full = [done for done in completions if done.finish_reason == "length"]
    assert all(done.prompt_tokens + len(done.tokens) == CONTEXT for done in full)
