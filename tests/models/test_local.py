"""Tests that local models answer as Transformers does, whatever the batch size. Also tests stop
strings, sampling, scarce memory, long prompts and error messages.
"""

import gc
import json
import math
import shutil
import sys
import weakref
from dataclasses import replace
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest
import torch
from doors import refused
from peft import LoraConfig, PromptTuningConfig, get_peft_model
from safetensors.torch import load_file, save_file
from tiny_architectures import (
    CONTEXT,
    TOLERANCE,
    answered,
    assert_equal,
    assert_log_probabilities,
    by_request,
    byte_tokenizer,
    log_probabilities,
    save,
)
from transformers import AutoModelForCausalLM

from lookuplab import paths, work
from lookuplab.models import Decoding, Prompt, load
from lookuplab.models.decoding import TURNS, choose, distributions, nucleus, top_two
from lookuplab.models.local import LocalModel
from lookuplab.models.tokens import decode

PROMPTS = [
    Prompt(
        f"p{i}", "x = client.\n" * (i % 4) + "import boto3  # naïve 名前"[: i % 17] + "\nclient."
    )
    for i in range(20)
]
# a prompt that is six tokens shorter than the context
NEARLY = Prompt("nearly", "client." * 45)
LONG, SHORT = Decoding(max_new_tokens=20), Decoding(max_new_tokens=4)


# Llama takes the fast path, the others take the general path. The last two have a tokenizer like
# SentencePiece's, and T5 is an encoder-decoder.
@pytest.fixture(scope="module", params=["llama", "starcoder2", "pieces-gemma", "pieces-t5"])
def model(request, checkpoint):
    return LocalModel(checkpoint(request.param), batch_size=7)


@pytest.fixture(scope="module")
def llama(checkpoint):
    return checkpoint("llama")


@pytest.fixture(scope="module")
def plain(llama):
    """Return a model for tests that change nothing in it."""
    return LocalModel(llama)


def answers(model, decoding, *prompts):
    return answered(model, decoding, prompts or PROMPTS)


def answer(model, prompt, decoding):
    return answers(model, decoding, prompt)[prompt.id, 0]


def record_rows(model, fail_above=math.inf):
    """Return a list to which the number of rows of every forward pass is added. A pass with more
    than ``fail_above`` rows runs out of memory.
    """
    rows = []

    def note(_module, _arguments, options):
        rows.append(len(options["input_ids"]))
        if rows[-1] > fail_above:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    model.module.register_forward_pre_hook(note, with_kwargs=True)
    return rows


def test_greedy_equals_generate_and_log_probabilities_a_plain_forward_pass(model):
    done = answers(model, LONG)
    for prompt in PROMPTS[::3]:
        one = done[prompt.id, 0]
        read = model.prompt_ids(prompt.text)
        whole = model.module.generate(torch.tensor([read]), max_new_tokens=20)[0]
        before = read if model.causal else []
        # the output of an encoder-decoder begins with a start token, which is not part of the
        # answer
        assert one.token_ids == tuple(whole[len(before) or 1 :].tolist())
        assert_log_probabilities(model, prompt, one)
        start, whole = decode(model.tokenizer, [before, [*before, *one.token_ids]])
        assert start + one.text == whole


def test_samples_are_the_same_at_batch_sizes_1_7_and_64(model, monkeypatch):
    """The samples at batch size 7 are the expected ones. The test above compares greedy answers at
    this batch size with Transformers.
    """
    asked = model, Decoding(max_new_tokens=8, temperature=0.8, top_p=0.9, n=2), *PROMPTS[::4]
    expected = answers(*asked)
    for size in 1, 64:
        monkeypatch.setattr(model, "batch_size", size)
        assert_equal(answers(*asked), expected)


def test_scores_are_those_of_a_plain_forward_pass(model):
    texts = ['put_object(Bucket="b")', "x", "", "ï名\n"]
    pairs = [(prompt, texts[i % 4]) for i, prompt in enumerate(PROMPTS)]
    scored = by_request(model.score(pairs))
    for prompt, text in pairs:
        done = scored[prompt.id, 0]
        assert (done.text, "".join(done.tokens), done.finish_reason) == (text, text, "scored")
        if text:
            assert_log_probabilities(model, prompt, done)


def test_a_stop_string_ends_a_row_with_its_last_token_and_the_others_go_on_without_it(plain):
    free = answers(plain, LONG)
    rows = record_rows(plain)
    stop = {"".join(one.tokens[4:6]) for one in [*free.values()][::3]} - {""}
    done = answers(plain, replace(LONG, stop=("never written", *stop)))
    assert rows[-1] < rows[0] and rows == sorted(rows, reverse=True)
    for key, one in done.items():
        assert one.token_ids == free[key].token_ids[: len(one.tokens)]
        texts = one.text, "".join(one.tokens[:-1])
        assert [any(map(text.count, stop)) for text in texts] == [
            one.finish_reason == "stop",
            False,
        ]


def test_samples_of_one_prompt_read_it_once_and_differ(plain):
    rows = record_rows(plain)
    done = answers(plain, replace(SHORT, n=5, temperature=1.0), *PROMPTS[:2])
    assert rows[:2] == [2, 10] and len({one.token_ids for one in done.values()}) == 10


LOGITS = torch.log(torch.tensor([[0.1, 0.5, 0.15, 0.25]]))
FREE = Decoding(temperature=1.0)


@pytest.mark.parametrize(
    ("decoding", "counts"),
    [
        (FREE, [400, 2000, 600, 1000]),
        (replace(FREE, top_p=0.7), [0, 2667, 0, 1333]),
        # at temperature 0.5, a probability is proportional to its square at temperature 1
        (Decoding(temperature=0.5), [116, 2899, 261, 725]),
    ],
)
def test_sampling_follows_temperature_and_top_p(decoding, counts):
    logits = LOGITS.repeat(4000, 1)
    tokens, logprobs, _ = choose(logits, logits, (torch.arange(4000) + 0.5) / 4000, decoding)
    assert tokens.bincount(minlength=4).tolist() == pytest.approx(counts, abs=1)
    # log-probabilities are always given for temperature 1
    torch.testing.assert_close(logprobs, LOGITS[0, tokens])


@pytest.mark.parametrize(
    ("decoding", "chance", "masked", "expected"),
    [
        (Decoding(), 0, [], math.log(2)),  # the two highest probabilities are 0.5 and 0.25
        (Decoding(), 0, [3], math.log(0.5 / 0.15)),  # the masked 0.25 is not a choice
        (FREE, 0.25, [], 0.15),  # a chance in [0.1, 0.6) draws this token
        (FREE, 0.55, [], 0.05),
        (FREE, 0.55, [0, 1, 2], math.inf),  # no other token can be drawn
        # 0.5 + 0.25 is below 0.76, so the token of 0.15 is kept; a top_p of 0.75 would drop it
        (replace(FREE, top_p=0.76), 0.3, [], 0.01),
    ],
)
def test_the_margin_is_the_distance_to_another_choice(decoding, chance, masked, expected):
    scores = LOGITS.clone()
    scores[:, masked] = -math.inf
    margin = choose(
        LOGITS, scores, torch.tensor([chance]) if decoding.temperature else None, decoding
    )[2]
    assert margin.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("vocabulary", [3, 64, 100, 4096])
def test_the_two_largest_scores_are_found(vocabulary):
    scores = torch.randn(50, vocabulary, generator=torch.manual_seed(0))
    for found, expected in zip(top_two(scores), scores.topk(2), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("sharpness", [0, 0.5, 3, 9])
@pytest.mark.parametrize("is_tied", [False, True])
def test_the_nucleus_keeps_what_sorting_the_whole_vocabulary_keeps(sharpness, is_tied):
    scores = sharpness * torch.randn(50, 200, generator=torch.manual_seed(0)).double()
    chances = (scores.round() if is_tied else scores).softmax(-1)
    ranked, order = chances.sort(descending=True, stable=True)
    before = ranked.cumsum(-1) - ranked
    expected = torch.zeros_like(chances).scatter(-1, order, ranked * (before < 0.9))
    kept, margin = nucleus(chances, 0.9)
    assert torch.equal(kept, expected)
    assert torch.equal(margin, (before - 0.9).abs().amin(-1))


def test_out_of_memory_halves_the_batch_and_changes_no_answer(llama, plain):
    model = LocalModel(llama)
    rows = record_rows(model, fail_above=6)
    done, expected = answers(model, SHORT), answers(plain, SHORT)
    assert all(one.token_ids == expected[key].token_ids for key, one in done.items())
    assert rows[:2] == [20, 10]
    record_rows(model, fail_above=0)
    with refused("not enough memory for a single prompt"):
        answers(model, SHORT)


def test_memory_that_runs_out_later_repeats_no_answer_that_was_kept(llama, plain, monkeypatch):
    """NEARLY's answer reaches the end of the context, and so is complete before memory runs out."""
    monkeypatch.setattr("lookuplab.models.decoding.KEEP_SECONDS", 0)
    model = LocalModel(llama)
    passes = count()

    def fail_once(*_):
        if next(passes) == 12:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    model.module.register_forward_pre_hook(fail_once)
    done = list(model.generate([(prompt, 0) for prompt in (NEARLY, *PROMPTS[:3])], LONG))
    assert [one.id for one in done[0]] == [NEARLY.id] and sum(map(len, done)) == 4
    assert_equal(by_request(done), answers(plain, LONG, NEARLY, *PROMPTS[:3]))


class Asking:
    """A constraint that the engine treats as one that asks a tool. It records how many forward
    passes the engine has made before each token.
    """

    asks = True
    pending = None

    def __init__(self, work, *_):
        self.work = work
        self.passes = []

    def restrict(self, _):
        self.passes.append(self.work.passes)

    def push(self, *_): ...

    def log(self):
        return self.passes


def test_while_a_batch_waits_for_a_tool_a_gpu_computes_others(llama, plain, monkeypatch):
    model = LocalModel(llama)
    monkeypatch.setitem(TURNS, "cpu", 4)
    found = by_request(
        model.generate([(prompt, 0) for prompt in PROMPTS], SHORT, partial(Asking, model.work))
    )
    for key, one in answers(plain, SHORT).items():
        assert found[key].token_ids == one.token_ids
    # Between two tokens of an answer, its own batch makes one forward pass. Each of the three other
    # batches makes one, too, or two if it starts in this time.
    assert {one.record[1] - one.record[0] for one in found.values() if one.record[1:]} == {
        4,
        5,
        6,
        7,
    }


def test_options_of_transformers_are_passed_on_and_part_of_the_identity(llama, plain, monkeypatch):
    eager = load(f"{llama}?attn_implementation=eager")
    assert eager.module.config._attn_implementation == "eager"
    assert eager.identity == plain.identity | {"attn_implementation": '"eager"'}
    four = load(llama + '?quantization_config={"load_in_4bit":true}')
    assert four.identity["quantization_config"] == '{"load_in_4bit":true}'
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with refused("requires bitsandbytes"):
        answers(four, SHORT)


def test_batches_hold_prompts_of_similar_length_in_a_fixed_order(llama, monkeypatch):
    # all answers of a batch are yielded together, when its last answer ends
    monkeypatch.setattr("lookuplab.models.decoding.KEEP_SECONDS", math.inf)
    model = LocalModel(llama, batch_size=4)
    asked = [(Prompt(str(i), "again " * i + "client."), 0) for i in range(9)]

    def batches(requests):
        done = model.generate(requests, SHORT)
        return ["".join(one.id for one in batch) for batch in done]

    assert batches(asked) == batches(asked[::-1]) == ["8765", "4321", "0"]
    assert batches(asked[:5]) == ["4321", "0"], "also after a batch was kept"
    longest = len(model.prompt_ids(asked[8][0].text))
    # on the fast path, a batch may have twice as many tokens
    monkeypatch.setattr("lookuplab.models.decoding.CPU_TOKENS", longest)
    assert batches(asked)[:2] == ["87", "65"]


def test_a_prompt_longer_than_the_context_is_an_error_or_cut_on_the_left(plain):
    long = Prompt("long", "".join(f"name{i} = {i}\n" for i in range(60)))
    decoding = Decoding(10)
    with refused(r"'long' has .* tokens and the model's context is 96"):
        answers(plain, decoding, PROMPTS[0], long)
    decoding = replace(decoding, truncation="left")
    ids = plain.prompt_ids(long.text)
    done = answer(plain, long, decoding)
    same = answer(plain, Prompt("cut", plain.tokenizer.decode(ids[10 - CONTEXT :])), decoding)
    assert (done.prompt_tokens, done.prompt_dropped) == (CONTEXT - 10, len(ids) - CONTEXT + 10)
    assert done.token_ids == same.token_ids


def test_only_rotary_positions_go_on_beyond_the_checkpoint_s_context(checkpoint):
    assert LocalModel(checkpoint("llama"), context=97).context == 97
    with refused("context is 97; it has positions for 96 tokens"):
        LocalModel(checkpoint("gpt2"), context=97)


def with_rotation(folder, **rotation):
    """Write a Llama with these settings of rotary positions, and return its folder."""
    rotary = {"rope_theta": 10000.0, "original_max_position_embeddings": 48} | rotation
    return save(folder, "llama", settings={"rope_parameters": rotary})


def test_dynamic_positions_do_not_go_on_beyond_the_checkpoint_s_context(tmp_path):
    """Beyond the context, their angles depend on the longest text that was read before."""
    dynamic = str(with_rotation(tmp_path, rope_type="dynamic", factor=2.0))
    assert LocalModel(dynamic).context == CONTEXT
    with refused("context is 97; it has positions for 96 tokens"):
        LocalModel(dynamic, context=97)


def test_a_long_prompt_changes_no_rotation_of_a_short_one(tmp_path):
    """Transformers rotates a whole batch by other angles if one text passes the original length."""
    longrope = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
    model = LocalModel(str(with_rotation(tmp_path, **longrope)))
    short, long = Prompt("short", "x ="), Prompt("long", "client.\n" * 20)
    together = answers(model, LONG, short, long)
    assert len(model.prompt_ids(long.text)) > 48
    assert_equal(together, answers(model, LONG, short) | answers(model, LONG, long))


def test_an_empty_or_a_cut_prompt_begins_with_the_begin_of_text_token(llama):
    model = LocalModel(llama, context=5)
    decoding = Decoding(max_new_tokens=2, truncation="left")
    assert model.prompt_ids("") == [0]
    assert model.fit("p", [0, 11, 12, 13, 14], decoding) == [0, 13, 14]


CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
DATED = "  {{ strftime_now('%d %b %Y') }}" + CHAT
QUIET = CHAT + "{% if not enable_thinking and mood %}<{{ mood }}>{% endif %}"
REFUSING = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('No system role') }}{% endif %}" + CHAT
)


@pytest.mark.parametrize(
    ("options", "template", "system", "spelled"),
    [
        ("", CHAT, "Be short.", "<system>Be short.<user>client.<assistant>"),
        ("", CHAT, None, "<user>client.<assistant>"),
        ("", REFUSING, "Be short.", "<user>Be short.\nclient.<assistant>"),
        ("", DATED, None, "  26 Jul 2024<user>client.<assistant>"),
        ('&extra={"mood":"calm"}', QUIET, None, "<user>client.<assistant><calm>"),
    ],
)
def test_a_chat_prompt_goes_through_the_template(llama, plain, options, template, system, spelled):
    """A template that prints today's date gets the same date every day."""
    model = load(f"{llama}?chat=true{options}")
    model.tokenizer.chat_template = template
    usual = plain.identity | {"chat": "always"}
    assert (model.identity == usual) == (not options and template != DATED)
    asked = answer(model, Prompt("p", "client.", system), SHORT)
    same = answer(plain, Prompt("p", spelled), SHORT)
    assert (asked.token_ids, asked.prompt_tokens) == (same.token_ids, same.prompt_tokens)
    with refused("chat model cannot be restricted to given names"):
        answer(model, Prompt("p", "client.", choices=("a",)), SHORT)


def test_a_chat_prompt_keeps_the_end_of_text_token_of_its_template(llama):
    model = load(f"{llama}?chat=true")
    model.tokenizer.chat_template = "{% for m in messages %}{{ m.content }}</s>{% endfor %}"
    message = model.prompt_ids("client.")
    asked = answer(model, Prompt("p", "client."), SHORT)
    assert asked.prompt_tokens == len(message) + 1
    assert asked.token_logprobs == pytest.approx(
        log_probabilities(model, [*message, model.tokenizer.eos_token_id], list(asked.token_ids)),
        abs=TOLERANCE,
    )


def test_the_last_model_is_freed_before_the_next_one_is_read(llama, monkeypatch):
    model = load(llama)
    first = weakref.ref(model.module)
    model = load(llama)
    seen = []
    collect = gc.collect
    assert "module" not in vars(model), "weights are read when an answer needs them"
    monkeypatch.setattr(gc, "collect", lambda: (collect(), seen.append(first())))
    answers(model, SHORT)
    assert seen == [None]


def test_sixteen_bits_keep_a_head_in_float32_beside_the_embeddings(llama):
    module = load(f"{llama}?dtype=bfloat16").module
    head, embeddings = module.get_output_embeddings(), module.get_input_embeddings()
    assert (head.weight.dtype, embeddings.weight.dtype) == (torch.float32, torch.bfloat16)


def test_on_a_gpu_only_the_kit_s_own_models_stay_in_float32(llama, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (load(llama).dtype, load("mini-small").dtype) == ("bfloat16", "float32")


def cards(monkeypatch, *free):
    """Pretend that there is a GPU for each number in ``free``, with as many free bytes."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(free))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda at: (free[at], 10**12))


def test_a_model_that_fits_on_one_card_uses_the_emptiest_and_others_spread(llama, monkeypatch):
    size = sum(each.numel() for each in LocalModel(llama).module.parameters())
    for dtype, bytes_each in ("float32", 4), ("bfloat16", 2):
        model = load(f"{llama}?dtype={dtype}")
        needed = int(size * bytes_each * 1.25)
        for free, expected in (((needed - 9, needed + 9), {"": 1}), ((needed - 9,) * 2, "auto")):
            with monkeypatch.context() as machine:
                cards(machine, *free)
                assert model._device_map(AutoModelForCausalLM) == expected
    assert LocalModel(llama, device_map="cpu")._device_map(None) == "cpu"


def test_a_model_larger_than_the_memory_is_refused_before_it_is_read(llama, monkeypatch):
    model = LocalModel(llama)
    monkeypatch.setattr(work, "free_memory", lambda: 9_000)
    # reading the weights would call None, and fail the test
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", None)
    with refused(r"needs .* GiB in float32 .* this job may use 0.00"):
        _ = model.module


def test_a_model_that_does_not_fit_on_the_gpus_is_refused(llama, monkeypatch):
    model = LocalModel(llama)
    _ = model.config
    spread = SimpleNamespace(hf_device_map={"a": 0, "b": "cpu"})
    told = {"missing_keys": [], "unexpected_keys": []}
    monkeypatch.setattr(model, "_read", lambda *_, **__: (spread, told))
    cards(monkeypatch, 10**12)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    with refused("does not fit on the GPUs in float32"):
        _ = model.module


NO_CONTENT = """card.json README.md Thumbs.db .DS_Store .git/HEAD __pycache__/x.pyc
runs/events.out.tfevents.1 events.out.tfevents.1 checkpoint-5/model.safetensors trainer_state.json
training_args.bin optimizer.pt scheduler.pt rng_state_0.pth eval_results.json nohup.out notes.txt
wandb/config.json original/consolidated.00.pth loss.png LICENSE slurm-12.out""".split()
CONTENT = """tokenizer_config.json model.safetensors tokenizer.json config.json vocab.txt merges.txt
tokenizer.model chat_template.jinja additional_chat_templates/tool.jinja own_tokenizer.py
generation_config.json pytorch_model.bin model.safetensors.index.json""".split()


def test_identity_is_the_content_of_the_folder_and_not_its_place(llama, plain, tmp_path):
    copy = shutil.copytree(llama, tmp_path / "a copy with spaces")
    assert load(f"{copy}?dtype=bfloat16").identity == plain.identity | {"dtype": "bfloat16"}
    for name in NO_CONTENT + CONTENT:
        before = load(str(copy)).identity
        (copy / name).parent.mkdir(exist_ok=True)
        with (copy / name).open("a") as file:
            file.write("\n")
        assert (load(str(copy)).identity != before) == (name in CONTENT), name


def test_an_adapter_is_part_of_the_identity(llama, plain, tmp_path):
    LoraConfig(base_model_name_or_path=llama).save_pretrained(tmp_path)
    identity = load(str(tmp_path)).identity
    assert identity.pop("adapter") and identity == plain.identity


def without(name):
    return lambda folder: (folder / name).unlink()


def written(name, text):
    return lambda folder: (folder / name).write_text(text)


def lost_link(folder):
    (folder / "generation_config.json").unlink()
    (folder / "generation_config.json").symlink_to("gone")


def with_weights(change, name="model.safetensors"):
    """Return a function of a checkpoint's folder. It applies ``change`` to the checkpoint's weights
    ({name: tensor}).
    """

    def changed(folder):
        weights = load_file(folder / name)
        change(weights)
        save_file(weights, folder / name, metadata={"format": "pt"})

    return changed


def half(folder):
    """Let a checkpoint's configuration state half as many layers as the weights have."""
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"num_hidden_layers": 1}))


def renamed(old, new):
    return lambda weights: weights.update(
        {name.replace(old, new): weights.pop(name) for name in [*weights]}
    )


def not_a_number(weights):
    weights["model.norm.weight"][0] = math.nan


def with_token(special, template=None):
    def change(folder):
        tokenizer = byte_tokenizer()
        tokenizer.add_tokens(["<|x|>"], special_tokens=special)
        tokenizer.chat_template = template
        tokenizer.save_pretrained(folder)

    return change


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
FAILING = "{{ messages[0].nothing.at_all }}"


@pytest.mark.parametrize(
    ("change", "asked", "message"),
    [
        (without("tokenizer.json"), "x", "no usable tokenizer|cannot load model"),
        (without("model.safetensors"), "x", "cannot load model"),
        (without("config.json"), "x", "is not a checkpoint: it has no config.json"),
        (written("config.json", "[]"), "x", "cannot load model"),
        (written("generation_config.json", '{"eos_'), "x", "generation_config.json is damaged"),
        (written("generation_config.json", "[]"), "x", "generation_config.json is damaged"),
        (written("generation_config.json", '{"eos_token_id": "</s>"}'), "x", "has '</s>', which"),
        (written("generation_config.json", '{"eos_token_id": [[1]]}'), "x", r"has \[1\], which"),
        (written("model.safetensors", LFS), "x", "Git LFS pointer.*git lfs pull"),
        (lost_link, "x", "generation_config.json .a broken link.: No such file"),
        (
            with_weights(lambda weights: weights.pop("model.norm.weight")),
            "x",
            "lacks weights .model.norm.weight",
        ),
        (with_weights(renamed("model.", "_orig_mod.model.")), "x", "lacks weights .model."),
        (half, "x", r"does not use .model.layers.1.input_layernorm.* 9 tensors"),
        (with_weights(not_a_number), "x", "not finite numbers .in float16.*dtype=bfloat16"),
        (with_token(False), "x", r"token '<.x.>' .* id 388, but its embedding has only 388 rows"),
        (with_token(True), "<|x|>", r"token '<.x.>' .* id 388"),
        (with_token(True, "<|x|>"), "chat", r"token '<.x.>' .* id 388"),
        (written("chat_template.jinja", FAILING), "chat", "its chat template fails: .*nothing"),
    ],
)
def test_what_is_no_whole_checkpoint_is_one_clear_line(tmp_path, change, asked, message):
    change(save(tmp_path, "llama", vocabulary=0))
    with refused(message):
        answer(load(str(tmp_path), chat=asked == "chat"), Prompt("p", asked), SHORT)


NEEDLESS = """model.layers.0.self_attn.rotary_emb.inv_freq v_head.summary.weight
mtp.0.eh_proj.weight h.0.attn.masked_bias
vision_tower.patch.weight model.layers.0.attn.k_scale""".split()


def test_weights_and_a_special_token_that_the_prompt_needs_not_do_no_harm(tmp_path):
    """For example, CodeLlama-Python's embeddings have no rows for the infilling tokens. Gemma 3's
    have no rows for the image tokens.
    """
    save(tmp_path, "llama", vocabulary=0)
    with_token(True)(tmp_path)
    with_weights(lambda own: own.update({name: torch.ones(2) for name in NEEDLESS}))(tmp_path)
    assert answer(load(str(tmp_path)), PROMPTS[0], SHORT).text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (renamed("base_model.", "_orig_mod.base_model."), "lacks weights .base_model.*, 8 of 8"),
        (renamed("layers.1.self_attn.v_proj.lora_B", "x"), r"v_proj.lora_B.weight ..., 1 of 8"),
        (lambda weights: weights.update(x=torch.ones(2)), r"that its base lacks .x ..., 1 of 8"),
    ],
)
def test_an_adapter_whose_weights_do_not_match_is_not_answered_by_its_base(
    llama, tmp_path, change, message
):
    lora = LoraConfig(target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(llama), lora).save_pretrained(tmp_path)
    assert answer(load(str(tmp_path)), PROMPTS[0], SHORT) != answer(
        LocalModel(llama), PROMPTS[0], SHORT
    )
    with_weights(change, "adapter_model.safetensors")(tmp_path)
    with refused(f"adapter {tmp_path.name} .*{message}"):
        answer(load(str(tmp_path)), PROMPTS[0], SHORT)


def save_adapter(folder, base, config):
    """Write an adapter with random weights for ``base``, and return its PEFT model."""
    adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(base), config)
    with torch.no_grad():
        for weight in filter(lambda each: each.requires_grad, adapted.parameters()):
            weight.normal_(0, 0.3)
    adapted.save_pretrained(folder, save_embedding_layers=False)
    return adapted.eval()


@pytest.mark.parametrize(
    "options",
    [
        {"target_modules": ["lm_head"]},
        {"target_modules": ["embed_tokens"]},
        {"target_modules": ["q_proj"], "layer_replication": [(0, 2), (1, 2)]},
    ],
)
def test_an_adapter_on_a_shared_weight_changes_only_the_layers_that_it_names(tmp_path, options):
    """The base's embeddings and head share a weight, and so do the layers that PEFT repeats."""
    tied = save(tmp_path / "base", "llama", settings={"tie_word_embeddings": True})
    adapted = save_adapter(tmp_path / "adapter", tied, LoraConfig(**options))
    model = load(str(tmp_path / "adapter"))
    done = answer(model, PROMPTS[0], LONG)
    before = model.prompt_ids(PROMPTS[0].text)
    chances = distributions(adapted.base_model.model, before, list(done.token_ids))
    expected = chances.log()[torch.arange(len(done.token_ids)), list(done.token_ids)]
    assert done.token_logprobs == pytest.approx(expected.tolist(), abs=TOLERANCE)


def test_an_adapter_that_cannot_be_merged_is_one_line(llama, tmp_path):
    prompt_tuning = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
    save_adapter(tmp_path, llama, prompt_tuning)
    with refused(f"adapter {tmp_path.name} cannot be merged into its base: "):
        answer(load(str(tmp_path)), PROMPTS[0], SHORT)


def test_an_adapter_beside_the_weights_of_a_whole_model_is_refused(llama, tmp_path):
    """Transformers would load the adapter's base in place of these weights. Beside config.json
    alone, as Axolotl writes it, an adapter is an adapter.
    """
    both = shutil.copytree(llama, tmp_path / "both")
    LoraConfig(base_model_name_or_path=llama).save_pretrained(both)
    with refused(f"model both: {both} has adapter_config.json"):
        load(str(both))
    LoraConfig(base_model_name_or_path=str(both)).save_pretrained(tmp_path / "on_both")
    with refused(f"model on_both: {both} has adapter_config.json"):
        load(str(tmp_path / "on_both"))
    (both / "model.safetensors").unlink()
    model = load(str(both))
    assert (model.adapter, model.source) == (both, (llama, None))


@pytest.mark.parametrize(
    ("named", "typed"),
    [("models/base", ""), ("./models/base", ""), ("../base", "models/sub"), ("base", "models")],
)
def test_an_adapter_s_base_is_found_beside_it_above_it_and_where_the_command_was_typed(
    llama, tmp_path, monkeypatch, named, typed
):
    base = shutil.copytree(llama, tmp_path / "models" / "base")
    (tmp_path / "models" / "sub").mkdir()
    monkeypatch.setenv("PWD", str(tmp_path / typed if typed else tmp_path.parent))
    LoraConfig(base_model_name_or_path=named).save_pretrained(tmp_path / "out" / "plain")
    assert load(str(tmp_path / "out" / "plain")).source == (str(base), None)


@pytest.mark.parametrize("named", ["a/b/base", "./base", "/no/base", ""])
def test_an_adapter_s_base_that_is_nowhere_is_one_line_with_its_name(tmp_path, named):
    LoraConfig(base_model_name_or_path=named).save_pretrained(tmp_path)
    with refused(rf"its base '{named}' \(adapter_config.json\)"):
        load(str(tmp_path))


def test_a_tokenizer_of_the_checkpoint_s_own_code_runs_if_it_is_trusted(tmp_path):
    """A tokenizer that exists only in Python is refused even then, because it would decode the
    whole answer again after each token.
    """
    save(tmp_path, "llama")
    (tmp_path / "own.py").write_text(
        "from transformers import ByT5Tokenizer, PreTrainedTokenizerFast\n"
        "class Own(PreTrainedTokenizerFast): pass\nclass Slow(ByT5Tokenizer): pass\n"
    )
    config = tmp_path / "tokenizer_config.json"
    config.write_text('{"auto_map": {"AutoTokenizer": [null, "own.Own"]}}')
    with refused(r"custom code .*trust_remote_code=true runs it"):
        answer(load(str(tmp_path)), PROMPTS[0], SHORT)
    assert answer(load(f"{tmp_path}?trust_remote_code=true"), PROMPTS[0], SHORT).token_ids
    config.write_text('{"auto_map": {"AutoTokenizer": ["own.Slow", null]}}')
    with refused("its tokenizer exists only in Python"):
        load(f"{tmp_path}?trust_remote_code=true").tokenizer  # noqa: B018


SMALL = str(paths.MINI / "models" / "small")


@pytest.mark.parametrize(
    ("place", "stated", "used"), [(SMALL, None, 2), ("mini-small", None, 1), ("mini-small", "3", 3)]
)
def test_a_model_uses_no_more_threads_than_its_job_has_and_a_mini_one_one_unless_stated(
    monkeypatch, place, stated, used
):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    monkeypatch.setattr(work, "processors", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if stated:
        monkeypatch.setenv("OMP_NUM_THREADS", stated)
    try:
        assert load(place).module and torch.get_num_threads() == used
    finally:
        torch.set_num_threads(before)
