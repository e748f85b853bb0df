"""Fine-tuning tiny real checkpoints: what is learned, what is trained, what a killed run leaves, what is written."""

import json
from dataclasses import replace

import pytest
import torch
import yaml
from click.testing import CliRunner
from small_finetunes import KINDS_OF_MODELS, LORA, PAIRS, RECIPE, corpus_file, log_of, tune, weights
from tiny_architectures import byte_tokenizer, save

from lookuplab.cli import cli
from lookuplab.errors import UserError
from lookuplab.models.load import load
from lookuplab.models.types import Decoding, Prompt
from lookuplab.toolgen import lora
from lookuplab.toolgen.finetune import row
from lookuplab.toolgen.pairs import IGNORED, KINDS, Example, Pair, encode


@pytest.fixture(scope="module")
def tuned(bases, tmp_path_factory):
    """architecture, LoRA? -> (what finetune said, folder) of a ToolGen variant."""
    folder = tmp_path_factory.mktemp("tuned")
    return {(one, recipe.lora_rank is not None): tune(bases / one, folder / f"{one}{i}", recipe)
            for one in KINDS_OF_MODELS for i, recipe in enumerate((RECIPE, LORA))}


each = pytest.mark.parametrize("adapted", [False, True], ids=["full", "LoRA"])
every = pytest.mark.parametrize("architecture", KINDS_OF_MODELS)


@every
@each
def test_the_loss_falls_and_the_folder_loads_and_answers(tuned, architecture, adapted):
    done = tuned[architecture, adapted]
    lines = log_of(done.folder)
    assert [line["step"] for line in lines] == list(range(1, 11)) and done.steps == 10
    assert lines[-1]["loss"] == done.loss < lines[0]["loss"]
    model = load(str(done.folder))
    assert model.name == done.folder.name and "<COMP>" in model.tokenizer.get_added_vocab()
    ((answer,),) = model.generate([(Prompt("p", "def read(path):\n"), 0)], Decoding(max_new_tokens=4))
    assert answer.token_ids
    assert not list(done.folder.parent.glob(f"{done.folder.name} work/checkpoint-*"))


def test_whole_models_learn_to_write_the_mark_and_the_function(bases, tmp_path):
    pairs = [replace(PAIRS[0], id=str(i)) for i in range(32)]
    done = tune(bases / "llama", tmp_path / "m", replace(RECIPE, epochs=20, learning_rate=2e-2), pairs=pairs)
    model = load(str(done.folder))
    example = encode(model.tokenizer, PAIRS[0], "decoder")
    prompt = Prompt("p", model.tokenizer.decode(example.prompt))
    ((answer,),) = model.generate([(prompt, 0)], Decoding(max_new_tokens=60))
    assert list(answer.token_ids)[: len(example.answer) - 1] == example.answer[:-1] and done.loss < 0.5


@every
def test_lora_trains_the_attentions_projections_and_the_marks_rows_alone(bases, tuned, tmp_path, architecture):
    base, model = load(str(bases / architecture)).module, load(str(tuned[architecture, True].folder))
    mark = model.tokenizer.get_added_vocab()["<COMP>"]
    before, after = base.state_dict(), model.module.state_dict()
    attention = {"gpt2": ("attn.c_attn", "attn.c_proj"), "t5": tuple(f"Attention.{name}" for name in "qkvo"),
                 "llama": lora.LLAMA}[architecture]
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    projections = {name for name in changed if name.removesuffix(".weight").endswith(attention)}
    assert projections == {name for name in before if name.removesuffix(".weight").endswith(attention)}
    embeddings = changed - projections
    assert embeddings == {name for name in before if any(part in name for part in ("wte", "shared", "embed_tokens",
                                                                                   "lm_head"))}
    for name in embeddings:
        rows = (before[name] != after[name]).any(1).nonzero().flatten().tolist()
        assert rows == [mark], name


def test_the_marks_row_stays_as_it_was_made_where_the_recipe_says_so(bases, tmp_path):
    done = tune(bases / "llama", tmp_path / "m", replace(LORA, train_mark=False))
    before, after = load(str(bases / "llama")).module.state_dict(), load(str(done.folder)).module.state_dict()
    assert torch.equal(before["lm_head.weight"], after["lm_head.weight"])
    assert done.trainable == 2 * 4 * (32 + 32 + 32 + 16 + 32 + 16 + 32 + 32)  # layers x rank x (in + out) of q, k, v, o


def test_a_new_row_of_the_vocabulary_travels_with_the_adapter(tmp_path):
    tokenizer = byte_tokenizer(vocabulary=420)  # every row of the embedding is a token
    base = save(tmp_path / "base", "llama", tokenizer, context=256)
    rows = load(str(base)).module.config.vocab_size
    tokenizer.add_tokens([f"<{i}>" for i in range(rows - len(tokenizer))])
    tokenizer.save_pretrained(base)
    done = [tune(base, tmp_path / name, replace(LORA, train_mark=name == "a")) for name in "ab"]
    for one in done:
        first, second = (load(str(one.folder)).module.state_dict() for _ in range(2))
        assert first["lm_head.weight"].shape[0] == rows + 1
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_merged_into_the_weights_an_adapter_answers_as_beside_them(bases, tuned):
    from peft import PeftModel

    from lookuplab.models.checkpoint import read_checkpoint

    for architecture in KINDS_OF_MODELS:
        folder = tuned[architecture, True].folder
        merged, base = load(str(folder)), read_checkpoint(str(bases / architecture), None, "float32", "cpu")
        assert merged.identity["adapter"].endswith(" merged")
        beside = PeftModel.from_pretrained(base.module, folder).eval()
        ids = torch.arange(5, 60)[None]
        ids[0, 7] = merged.tokenizer.get_added_vocab()["<COMP>"]
        rest = {"decoder_input_ids": ids} if architecture == "t5" else {}
        with torch.no_grad():
            expected, found = (module(input_ids=ids, **rest).logits for module in (beside, merged.module))
        torch.testing.assert_close(found, expected, atol=1e-3, rtol=0)


def test_in_16_bits_an_adapter_stays_beside_the_weights(tuned):
    model = load(str(tuned["llama", True].folder), dtype="bfloat16")
    assert "merged" not in model.identity["adapter"]
    assert any("lora_A" in name for name, _ in model.module.named_parameters())


def test_an_adapters_base_is_named_relative_to_its_folder_and_both_decide_the_identity(tmp_path):
    save(tmp_path / "a" / "llama", "llama", context=256)
    done = tune(tmp_path / "a" / "llama", tmp_path / "a" / "tuned", LORA)
    assert json.loads((done.folder / "adapter_config.json").read_text())["base_model_name_or_path"] == "../llama"
    (tmp_path / "a").rename(tmp_path / "moved")
    identity = load(str(tmp_path / "moved" / "tuned")).identity
    assert identity["content"] == load(str(tmp_path / "moved" / "llama")).identity["content"]
    save(tmp_path / "moved" / "llama", "llama", context=128)
    assert load(str(tmp_path / "moved" / "tuned")).identity["content"] != identity["content"]
    (tmp_path / "moved" / "llama").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="its base model .*llama is not there"):
        load(str(tmp_path / "moved" / "tuned"))


def test_the_base_variant_has_no_mark_and_learns_the_unmarked_functions(bases, tmp_path):
    done = tune(bases / "gpt2", tmp_path / "m", marked=False)
    assert "<COMP>" not in load(str(done.folder)).tokenizer.get_added_vocab()
    stripped = [replace(pair, body=pair.body.replace("<COMP>", "")) for pair in PAIRS]
    tune(bases / "gpt2", tmp_path / "n", marked=False, pairs=stripped)
    assert weights(tmp_path / "m") == weights(tmp_path / "n")


def test_both_variants_leave_out_the_same_pairs(bases, tmp_path):
    """One pair fits only without its marks."""
    tokenizer = load(str(bases / "gpt2")).tokenizer
    long = Pair("long", "Doc.", "def f():", "    self.<COMP>x\n" * 8)
    bare = replace(long, body=long.body.replace("<COMP>", ""))
    size = sum(map(len, (encode(tokenizer, bare, "decoder").prompt, encode(tokenizer, bare, "decoder").answer)))
    huge = Pair("huge", "Doc.", "def g():", "    return <COMP>x\n" * 200)
    recipe = replace(RECIPE, epochs=1, max_tokens=size)
    for marked in (True, False):
        done = tune(bases / "gpt2", tmp_path / str(marked), recipe, marked, [*PAIRS[1::2], long, huge])
        assert done.left_out[f"longer than max_tokens ({size})"] >= 1
        assert done.left_out["longer than the model's context of 256 tokens"] == 1
        assert done.pairs + done.left_out.total() == len(PAIRS) // 2 + 2
    first, second = (json.loads((tmp_path / str(marked) / "card.json").read_text()) for marked in (True, False))
    assert first["left_out"] == second["left_out"] and first["pairs"] == second["pairs"]


@each
def test_equal_runs_give_equal_files(bases, tuned, tmp_path, adapted):
    done = tune(bases / "gpt2", tmp_path / "again", LORA if adapted else RECIPE)
    assert weights(done.folder) == weights(tuned["gpt2", adapted].folder)
    if adapted:
        one, two = (json.loads((f / "adapter_config.json").read_text()) for f in (done.folder,
                                                                                  tuned["gpt2", True].folder))
        assert {**one, "base_model_name_or_path": ""} == {**two, "base_model_name_or_path": ""}


def test_the_prompt_has_no_loss_unless_it_is_asked_for():
    example = Example("p", [5, 6], [7, 8, 1])
    assert row(example, "decoder") == {"input_ids": [5, 6, 7, 8, 1], "labels": [IGNORED, IGNORED, 7, 8, 1]}
    assert row(example, "decoder", "all")["labels"] == [5, 6, 7, 8, 1]
    assert row(example, "encoder-decoder") == {"input_ids": [5, 6], "labels": [7, 8, 1]}
    assert set(KINDS) == {"decoder", "encoder-decoder"}


def test_the_loss_is_that_of_the_answers_tokens_alone(bases, tmp_path):
    """The first line of the log, by hand: one batch, no dropout, mean over all answers' tokens of the batch."""
    done = tune(bases / "llama", tmp_path / "m", replace(RECIPE, epochs=1, batch_size=40))
    model = load(str(bases / "llama"))
    from transformers import set_seed

    from lookuplab.toolgen.pairs import add_mark

    set_seed(RECIPE.seed)
    add_mark(model.tokenizer, model.module)
    total = count = 0
    for pair in PAIRS:
        example = encode(model.tokenizer, pair, "decoder")
        ids = torch.tensor([example.prompt + example.answer])
        with torch.no_grad():
            logs = model.module(input_ids=ids).logits[0].log_softmax(-1)
        at = range(len(example.prompt) - 1, ids.shape[1] - 1)
        total -= sum(logs[i, ids[0, i + 1]].item() for i in at)
        count += len(at)
    assert log_of(done.folder)[0]["loss"] == pytest.approx(total / count, rel=1e-4)


def test_the_card_says_what_the_run_was(tuned):
    for adapted in (False, True):
        done = tuned["llama", adapted]
        card = json.loads((done.folder / "card.json").read_text())
        text = (done.folder / "README.md").read_text()
        assert (card["pairs"], card["steps"], card["trainable"]) == (40, 10, done.trainable)
        assert card["recipe"]["epochs"] == 2 and len(card["hash"]) == 64 and "transformers" in card["versions"]
        assert yaml.safe_load(text.split("---")[1])["library_name"] == ("peft" if adapted else "transformers")
        assert f"| 10 | 2.00 | {done.loss:.3f} |" in text


def test_fp16_halves_the_file_and_loads(bases, tuned, tmp_path):
    done = tune(bases / "llama", tmp_path / "m", half=True)
    assert len(weights(done.folder)) < 0.6 * len(weights(tuned["llama", False].folder))
    assert load(str(done.folder)).identity["dtype"] == "float32"


def test_bf16_and_recomputed_activations_learn_too(bases, tmp_path):
    recipe = replace(LORA, precision="bf16", checkpoint_activations=True)
    done = tune(bases / "llama", tmp_path / "m", recipe)
    assert done.loss < log_of(done.folder)[0]["loss"]


def test_tensorboard_has_the_losses_of_the_log(tuned):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    done = tuned["gpt2", False]
    events = EventAccumulator(str(done.folder.parent / f"{done.folder.name} work" / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("train/loss")] == list(range(1, 11))
    assert [event.value for event in events.Scalars("train/loss")] == pytest.approx(
        [line["loss"] for line in log_of(done.folder)])


def test_fine_tuned_mini_models_have_short_names(tuned, tmp_path, monkeypatch):
    from lookuplab.models.load import mini_models
    from lookuplab.notebooks import check, load_profile, plan, read

    monkeypatch.setattr("lookuplab.paths.MINI", tmp_path)
    (tmp_path / "toolgen").mkdir()
    (tmp_path / "toolgen" / "gpt-toolgen").symlink_to(tuned["gpt2", False].folder)
    (tmp_path / "toolgen" / "llama-toolgen").symlink_to(tuned["llama", True].folder)
    assert list(mini_models()) == ["mini-gpt-toolgen", "mini-llama-toolgen"]
    assert load("mini-gpt-toolgen").name == "mini-gpt-toolgen"
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": [{
        "cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "models = ['mini-llama-toolgen']\nmodel = ''"}]}))
    notebook = read(tmp_path / "n.ipynb")
    check(plan(notebook, load_profile("smoke"), {"models": "mini-llama-toolgen", "model": str(tuned["llama", True].folder)}))
    with pytest.raises(UserError, match="no mini model 'mini-t5-toolgen'; there are: mini-gpt-toolgen, mini-llama-"):
        check(plan(notebook, load_profile("smoke"), {"models": "mini-t5-toolgen"}))


@pytest.mark.parametrize(("options", "message"), [
    ({"recipe": replace(RECIPE, max_tokens=3)}, "nothing to train on: 40 are longer than max_tokens"),
    ({"pairs": []}, "no pair has a mark"), ({"pairs": [], "marked": False}, "nothing to train on: there are no pairs"),
    ({"recipe": replace(RECIPE, accumulation=3)}, "a batch of 8 does not divide into 3 parts"),
    ({"recipe": replace(RECIPE, schedule="steep")}, "recipe: steep is not a valid SchedulerType"),
    ({"recipe": replace(LORA, lora_targets=("nothing",))}, "LoRA finds no nothing in a gpt2 model"),
    ({"recipe": replace(RECIPE, learning_rate=1e30)}, "the loss is not finite any more at step")])
def test_what_cannot_be_trained_is_one_clear_line(bases, tmp_path, options, message):
    with pytest.raises(UserError, match=message) as caught:
        tune(bases / "gpt2", tmp_path / "m", **options)
    assert "\n" not in str(caught.value) and not (tmp_path / "m").exists()


@pytest.mark.parametrize(("words", "message"), [
    (["--base", "no/such/folder/here"], "there is no checkpoint folder no/such/folder/here"),
    (["-s", "epochs=0"], "epochs is 0; it must be above 0"), (["--corpus", "nowhere"], "does not exist"),
    (["--variant", "other"], "Invalid value for '--variant'"), (["--output", "."], "exists; delete it")])
def test_bad_input_ends_the_command_with_one_line(bases, tmp_path, words, message):
    corpus = corpus_file(tmp_path / "c.jsonl")
    said = CliRunner().invoke(cli, ["train", "toolgen", "--base", str(bases / "gpt2"), "--corpus", str(corpus), "-o",
                                    str(tmp_path / "m"), "--work", str(tmp_path / "w"), *words])
    assert said.exit_code == 2 and said.output.count("\n") == 1 and message in said.output, said.output
