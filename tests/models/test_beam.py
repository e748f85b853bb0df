"""Beam search: the answers of Transformers without constraints, the most probable permitted ones with them."""

import itertools
import math
from dataclasses import replace

import pytest
import tiny_chain
import torch
from tiny_architectures import EOS, VOCABULARY, save

from lookuplab.errors import UserError
from lookuplab.models.complete import complete
from lookuplab.models.constraint import NameTries
from lookuplab.models.first_call import first_call
from lookuplab.models.local import load_local
from lookuplab.models.remote import RemoteModel
from lookuplab.models.rows import Row
from lookuplab.models.stopping import stopping
from lookuplab.models.tokens import Encoded, Spelling
from lookuplab.models.types import Decoding, Prompt

PROMPTS = [Prompt(f"p{i}", "x = client.\n" * (i % 4) + "import boto3  # naïve 名前"[: 5 * i] + "\nclient.")
           for i in range(4)]
NAMES = ("put", "put_object", "put_objects", "get_waiter", "get_waiter_for_the_table", "naïve_名前", "名前", "wait")
MIXED = [replace(prompt, choices=NAMES[i % 3 :: 1 + i % 2] if i % 3 else None) for i, prompt in enumerate(PROMPTS)]
FREQUENT = (EOS, *range(10, VOCABULARY, 12))  # so many ends of text that beams finish at every length


@pytest.fixture(autouse=True)
def one_thread():
    """Models as small as these are slower on several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=["gpt2", "t5", "llama"])
def folder(request, tmp_path_factory):
    return save(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return load_local(save(tmp_path_factory.mktemp("llama"), "llama"))


def loaded(folder, batch_size, ends=(EOS,)):
    model = load_local(folder, batch_size=batch_size)
    model.module.generation_config.eos_token_id = list(ends)
    return model


def answers(model, decoding, prompts=PROMPTS):
    return {done.id: done for batch in model.generate([(prompt, 0) for prompt in prompts], decoding) for done in batch}


def hf_generate(model, prompt, **settings):
    inputs = model.tokenizer([prompt.text], return_tensors="pt")
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    ids = model.module.generate(**inputs, do_sample=False, length_penalty=1.0, **settings)[0].tolist()
    return ids[1:] if model.module.config.is_encoder_decoder else ids[inputs["input_ids"].shape[1] :]


@pytest.mark.parametrize("beams", [1, 3, 5])
def test_beams_equal_generate_token_for_token_at_batch_sizes_1_and_4(folder, beams):
    decoding = Decoding(max_new_tokens=12, beams=beams)
    whole = answers(loaded(folder, 64), decoding)
    met = {EOS}.union(*(answer.token_ids[4:] for answer in whole.values()))  # ends that beams meet on their way
    for ends, reason in (((EOS,), "length"), (met, "eos")):
        one, four = (loaded(folder, prompts_a_batch * beams, ends) for prompts_a_batch in (1, 4))
        expected = {prompt.id: hf_generate(one, prompt, max_new_tokens=12, num_beams=beams) for prompt in PROMPTS}
        for model in (one, four):
            done = answers(model, decoding)
            assert {name: list(answer.token_ids) for name, answer in done.items()} == expected
            assert reason in {answer.finish_reason for answer in done.values()}


def test_a_stop_string_ends_beams_where_generate_ends_them(folder):
    model = loaded(folder, 64)
    whole = answers(model, Decoding(max_new_tokens=16, beams=3))
    for prompt in PROMPTS:
        stop = next((piece for piece in whole[prompt.id].tokens[3:] if piece and piece.isascii()), "t")
        done = answers(model, Decoding(max_new_tokens=16, beams=3, stop=(stop,)), [prompt])[prompt.id]
        assert list(done.token_ids) == hf_generate(model, prompt, max_new_tokens=16, num_beams=3, stop_strings=[stop],
                                                   tokenizer=model.tokenizer)


def test_each_beam_reads_its_own_text_for_the_first_call(llama):
    done = answers(llama, Decoding(max_new_tokens=30, beams=4, stop_rule="first_call"))
    assert "stop" in {answer.finish_reason for answer in done.values()}
    for answer in done.values():
        assert first_call(answer.text).over == (answer.finish_reason == "stop")
        assert not first_call("".join(answer.tokens[:-1])).over


@pytest.mark.parametrize("decoding", [Decoding(max_new_tokens=20, beams=3),
                                      Decoding(max_new_tokens=20, beams=3, choices_below=0.2)], ids=["always", "gated"])
def test_answers_are_the_same_in_any_batch(folder, decoding):
    one, some, all_ = (answers(loaded(folder, size, FREQUENT), decoding, MIXED) for size in (1, 7, 64))
    for prompt in MIXED:
        for other in (some[prompt.id], all_[prompt.id]):
            assert (one[prompt.id].token_ids, one[prompt.id].finish_reason) == (other.token_ids, other.finish_reason)
            assert one[prompt.id].token_logprobs == pytest.approx(other.token_logprobs, abs=1e-4)


def test_log_probabilities_are_those_of_the_free_model(folder):
    model = loaded(folder, 64)
    done = answers(model, Decoding(max_new_tokens=12, beams=3), MIXED)
    for prompt in MIXED:
        ids = list(done[prompt.id].token_ids)
        before = model.tokenizer(prompt.text)["input_ids"]
        with torch.inference_mode():
            if model.module.config.is_encoder_decoder:
                start = model.module.config.decoder_start_token_id
                logits = model.module(input_ids=torch.tensor([before]),
                                      decoder_input_ids=torch.tensor([[start, *ids[:-1]]])).logits[0]
            else:
                logits = model.module(input_ids=torch.tensor([before + ids])).logits[0, len(before) - 1 : -1]
        expected = logits.log_softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)].tolist()
        assert done[prompt.id].token_logprobs == pytest.approx(expected, abs=1e-4)


# Greedy takes b, and then the best is .6 * .4 = .24; c leads to .4 * .9 = .36.
DETOUR = {"a": {"b": 0.6, "c": 0.4}, "b": {"d": 0.4, "e": 0.3, "f": 0.3}, "c": {"g": 0.9, "h": 0.1}}


def test_two_beams_find_the_more_probable_answer_that_greedy_misses(tmp_path):
    model = load_local(tiny_chain.save(tmp_path, DETOUR))
    greedy, beam = (answers(model, Decoding(max_new_tokens=2, beams=k), [Prompt("p", "a")])["p"] for k in (1, 2))
    assert (greedy.text, beam.text) == ("bd", "cg")
    assert [math.exp(logprob) for logprob in beam.token_logprobs] == pytest.approx([0.4, 0.9], abs=1e-4)


def test_ends_of_text_below_the_best_k_continuations_finish_nothing(tmp_path):
    """Of $, b, ! and c two count: $ is finished and b goes on, with c beside it, and a second answer is looked for.

    Were ! finished too (log .2 a token), the search would be over at bd, (log .3 + log .1) / 2, and $ the answer.
    """
    chain = {"a": {"$": 0.4, "b": 0.3, "!": 0.2, "c": 0.1}, "b": {"d": 0.1, "$": 1e-6, "!": 1e-6}, "d": {"d": 0.999}}
    model = load_local(tiny_chain.save(tmp_path, chain | {text: {} for text in "efghijklmnop"}))
    model.module.generation_config.eos_token_id = model.tokenizer.convert_tokens_to_ids(["$", "!"])
    done = answers(model, Decoding(max_new_tokens=8, beams=2), [Prompt("p", "a")])["p"]
    assert done.text == "bddddddd"
    assert list(done.token_ids) == hf_generate(model, Prompt("p", "a"), max_new_tokens=8, num_beams=2)


# Free, the model writes x. Of the names, b begins more probably, but bd as a whole has .3 * .1 and cg has .2 * .9.
# Renormalised over the names, bd would have .6 * 1 and cg .4 * 1: the measure that beams are not compared in.
NAMED = {"a": {"x": 0.5, "b": 0.3, "c": 0.2}, "b": {"d": 0.1, "e": 0.9}, "c": {"g": 0.9, "h": 0.1},
         "d": {"(": 1.0}, "g": {"(": 1.0}}


def test_two_beams_find_the_name_that_is_more_probable_as_a_whole(tmp_path):
    model = load_local(tiny_chain.save(tmp_path, NAMED))
    prompt = Prompt("p", "a", choices=("bd", "cg"))
    greedy, beam = (answers(model, Decoding(max_new_tokens=3, beams=beams), [prompt])["p"] for beams in (1, 2))
    assert (greedy.text, beam.text) == ("bd(", "cg(")
    assert [math.exp(logprob) for logprob in beam.token_logprobs] == pytest.approx([0.2, 0.9, 1.0], abs=1e-4)


def test_with_a_beam_for_every_text_the_best_text_is_found(tmp_path):
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        chain = {last: dict(zip("abc$", torch.rand(4, generator=generator).softmax(-1).tolist(), strict=True))
                 for last in "abc"}
        texts = ["".join(text) for length in (1, 2, 3) for text in itertools.product("abc$", repeat=length)]
        texts = [text for text in texts if "$" not in text[:-1] and (len(text) == 3 or text[-1] == "$")]
        best = max(texts, key=lambda text: sum(math.log(chain[last][new]) for last, new in
                                               zip("a" + text, text, strict=False)) / len(text))
        model = load_local(tiny_chain.save(tmp_path / str(seed), chain))
        done = answers(model, Decoding(max_new_tokens=3, beams=64), [Prompt("p", "a")])["p"]
        assert done.text == best.rstrip("$") and len(done.tokens) == len(best)


class Chain:
    """After a first token that it leaves free it writes the 7, 8 and 9 that follow; it never asks for a mask."""

    below = 1.0

    def __init__(self, seen=()):
        self.seen = list(seen)

    def allowed(self):
        return None

    def condition(self):
        return None

    def push(self, token, logprob, masked):
        self.seen.append((token, masked))

    def forced(self):
        return (7, 8, 9) if len(self.seen) == 1 else ()

    def copy(self):
        return Chain(self.seen)


def test_forced_tokens_are_written_by_every_beam(llama, monkeypatch):
    monkeypatch.setattr(NameTries, "constraint", lambda self, prompt_ids, names, below: Chain())
    rows = []
    monkeypatch.setattr(Row, "completion", lambda row, plain=Row.completion: rows.append(row) or plain(row))
    done = answers(llama, Decoding(max_new_tokens=6, beams=3), [Prompt("p", "client.", choices=("a",))])["p"]
    assert done.token_ids[1:4] == (7, 8, 9)
    assert [token for token, _ in rows[0].constraint.seen] == list(done.token_ids)
    assert [masked for _, masked in rows[0].constraint.seen] == [False, True, True, True, False, False]
    cut = answers(llama, Decoding(max_new_tokens=3, beams=3), [Prompt("p", "client.", choices=("a",))])["p"]
    assert cut.token_ids[1:] == (7, 8)


def test_every_first_name_is_one_of_the_choices(folder):
    model = loaded(folder, 64)
    for prompt in MIXED:
        if prompt.choices:
            done = answers(model, Decoding(max_new_tokens=40, beams=4), [prompt])[prompt.id]
            assert any(done.text == name or done.text.startswith(name) and not f"a{done.text[len(name)]}".isidentifier()
                       for name in prompt.choices)


def test_a_copied_row_goes_on_by_itself(llama):
    ids = llama.tokenizer('put("名前", x)', add_special_tokens=False)["input_ids"]
    other = llama.tokenizer("q.r é)", add_special_tokens=False)["input_ids"]
    for cut in range(len(ids)):  # between the bytes of a character too
        row = Row(Prompt("p", ""), 0, Encoded([5]), 99, stopping(Decoding(stop_rule="first_call", stop=("z",))),
                  Spelling(llama.tokenizer, [5]))
        for token in ids[:cut]:
            row.push(token, 0.0, frozenset())
        twin = row.copy()
        for token in other:
            twin.push(token, 0.0, frozenset())
        for token in ids[cut:]:
            row.push(token, 0.0, frozenset())
        assert row.completion().text == 'put("名前", x)' and row.finish_reason == "stop"
        assert len(twin.tokens) == cut + len(other)


def test_a_batch_holds_as_many_rows_as_it_may_whatever_the_beams(llama, monkeypatch):
    model = replace(llama, batch=replace(llama.batch, rows=7))
    forward, rows = model.module.forward, []
    monkeypatch.setattr(model.module, "forward", lambda *args, **kwargs: rows.append(len(kwargs["input_ids"]))
                        or forward(*args, **kwargs))
    monkeypatch.setattr("lookuplab.models.states.accepts", lambda module, *names: dict.fromkeys(names, True))
    answers(model, Decoding(max_new_tokens=5, beams=3))
    assert set(rows) == {2, 6} and rows.count(2) == len(PROMPTS) / 2  # the prompts; two of them with three beams each


@pytest.mark.parametrize(("change", "message"), [
    ({"beams": 0}, "beams is 0; it must be at least 1"), ({"beams": 2, "temperature": 0.5}, "set temperature to 0"),
    ({"beams": 2, "n": 3}, "n to 1")])
def test_beams_that_cannot_be_are_refused(llama, change, message):
    with pytest.raises(UserError, match=message):
        complete(llama, PROMPTS, Decoding(**change), store=False, progress=False)


def test_an_endpoint_is_not_asked_for_beams():
    with pytest.raises(UserError, match="no beam search"):
        complete(RemoteModel("http://127.0.0.1:9/v1", "m"), PROMPTS, Decoding(beams=2), store=False, progress=False)
