"""Tests the fine-tuning of tiny real checkpoints: which tokens count in the loss, which weights are
trained, how a killed run resumes, and which files are written.
"""

import json
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
import torch
from doors import call
from scripted_model import END, scripted
from tiny_architectures import byte_tokenizer, save
from transformers import set_seed
from waiting import until

from lookuplab import paths
from lookuplab.models import load
from lookuplab.models.decoding import distributions
from lookuplab.models.training import LLAMA, Recipe
from lookuplab.toolgen.finetuning import finetune, label_tokens, training_rows
from lookuplab.toolgen.pairs import IGNORED, MARK, Pair, add_mark, encode
from lookuplab_notebooks.toolgen.learned import mark_probabilities, mark_rows

BODIES = ["    for item in <COMP>items:\n        self.<COMP>print(item)\n", "    return <COMP>x\n"]
PAIRS = [
    Pair(f"p{i}", "Read the file.", f"def read{i}(path):", BODIES[i % 2] * (1 + i % 3))
    for i in range(40)
]
RECIPE = Recipe(epochs=2, learning_rate=2e-3, batch_size=8)
LORA = replace(RECIPE, lora_rank=4)
# the projections of the attention in GPT-2, T5 and Llama
ATTENTION = ("attn.c_attn", "attn.c_proj", "Attention", *LLAMA)


def tune(base, output, recipe=RECIPE, marked=True, pairs=PAIRS, **options):
    options = {"work": output.with_suffix(".work"), "log_every": 1, "save_every": 3} | options
    return finetune(base, pairs, output, recipe, marked=marked, **options)


def log_of(folder):
    return pd.read_csv(folder / "log.csv").loss.tolist()


def weights(folder):
    (file,) = folder.glob("*.safetensors")
    return file.read_bytes()


def command(base, folder, *more):
    """Return the arguments of `lookuplab` for training on PAIRS. The model goes to ``folder``/m."""
    marked = ({"marked_signature": pair.signature, "marked_body": pair.body} for pair in PAIRS)
    records = (vars(pair.unmarked()) | own for pair, own in zip(PAIRS, marked, strict=True))
    corpus = folder / "c.jsonl"
    paths.write_lines(corpus, (json.dumps(record, default=str) for record in records))
    words = "train", "toolgen", "--base", base, "--corpus", corpus, "-o", folder / "m"
    return [str(word) for word in (*words, "--work", folder / "w", *more)]


@pytest.fixture(scope="module", params=["gpt2", "t5", "llama"])
def tuned(request, bases, tmp_path_factory):
    """Return the base model's folder, and a folder with two ToolGen models that were fine-tuned
    from the base model: ``transformers``, a whole model, and ``peft``, an adapter.
    """
    base = bases / request.param
    folder = tmp_path_factory.mktemp("tuned")
    for library, recipe in {"transformers": RECIPE, "peft": LORA}.items():
        # CodeLlama is trained in bfloat16
        tune(base, folder / library, replace(recipe, bf16=base.name == "llama"))
    return base, folder


@pytest.mark.parametrize("library", ["transformers", "peft"])
def test_the_loss_falls_the_card_says_so_and_the_folder_loads(tuned, library):
    folder = tuned[1] / library
    card = json.loads((folder / "card.json").read_text())
    log = log_of(folder)
    assert (card["pairs"], card["steps"], len(log)) == (40, 10, 10)
    assert log[-1] == card["loss"] < log[0]
    assert f"library_name: {library}" in (folder / "README.md").read_text()
    assert MARK in load(str(folder)).tokenizer.get_added_vocab()
    assert not list(folder.parent.glob("*.work/*/checkpoint-*"))


def test_lora_trains_the_attentions_projections_and_the_marks_rows_alone(tuned):
    base, model = (load(str(folder)) for folder in (tuned[0], tuned[1] / "peft"))
    mark = model.tokenizer.get_added_vocab()[MARK]
    after = model.module.state_dict()
    for name, weight in base.module.state_dict().items():
        changed = (weight != after[name]).any(-1).nonzero().flatten().tolist()
        if any(part in name for part in ("wte", "shared", "embed_tokens", "lm_head")):
            assert changed == [mark], name
        else:
            trained = any(part in name for part in ATTENTION) and "bias" not in name
            assert bool(changed) == trained, name


def test_an_adapter_has_the_new_row_of_a_full_vocabulary_and_names_its_base_relatively(tmp_path):
    base = save(tmp_path / "a" / "base", "llama", byte_tokenizer(), context=256, vocabulary=0)
    tune(base, tmp_path / "a" / "m", LORA, half=True)
    (tmp_path / "a").rename(tmp_path / "moved")
    base, first, second = (load(str(tmp_path / "moved" / name)) for name in ("base", "m", "m"))
    assert first.identity["content"] == base.identity["content"]
    heads = [model.module.state_dict()["lm_head.weight"] for model in (base, first, second)]
    assert len(heads[0]) == len(base.tokenizer) == len(heads[1]) - 1
    assert torch.equal(*heads[1:])


@pytest.mark.parametrize("marked", [True, False])
def test_the_marked_form_decides_for_both_variants_which_pairs_are_left_out(bases, marked):
    """With its marks, the pair ``long`` has too many tokens. Therefore it is left out for the base
    variant, too, although that variant is trained without marks.
    """
    model = load(str(bases / "gpt2"))
    long = Pair("long", "Doc.", "def f():", "    self.<COMP>x\n" * 8)
    [bare] = encode(model.tokenizer, [long.unmarked()], "decoder")
    recipe = replace(RECIPE, max_tokens=len(bare.prompt) + len(bare.answer))
    [row], left_out = training_rows(model, [PAIRS[1], long], recipe, marked)
    assert left_out.total() == 1
    assert (len(model.tokenizer) in row["labels"]) == marked  # the id that the mark gets


def test_a_decoders_loss_covers_the_signature_if_it_is_that_of_the_function(bases):
    """The loss covers the docstring only if ``loss_on`` is "all"."""
    tokenizer = load(str(bases / "gpt2")).tokenizer
    example = encode(tokenizer, [PAIRS[0].unmarked()], "decoder")[0]

    def learned(loss_on):
        labels = label_tokens(example, "decoder", loss_on)["labels"]
        return tokenizer.decode([label for label in labels if label != IGNORED])

    assert learned("answer") == f"{PAIRS[0].unmarked().body}</s>"
    assert learned("function").split() == ["def", "read0(path):", *learned("answer").split()]
    assert learned("all").startswith("def read0(path):\n    '''Read the file.'''\n    for")


def test_of_the_checkpoints_the_one_is_taken_that_is_best_on_pairs_that_were_kept_apart(
    bases, tmp_path
):
    """At this learning rate, a tiny model soon knows its pairs by heart."""
    base = bases / "llama"
    recipe = replace(RECIPE, epochs=12, learning_rate=0.02, validation=8)
    pairs = [replace(pair, body=f"    return {i * 7919}") for i, pair in enumerate(PAIRS)]
    card = tune(base, tmp_path / "m", recipe, False, pairs)
    assert card["pairs"] == 32 and card["taken_step"] < card["steps"] == 48
    assert MARK not in load(str(tmp_path / "m")).tokenizer.get_added_vocab()
    tune(base, tmp_path / "n", recipe, False, pairs, save_every=card["taken_step"])
    assert weights(tmp_path / "m") == weights(tmp_path / "n")


def test_the_loss_is_that_of_the_answers_tokens_alone(bases, tmp_path):
    """The first loss in the log must be the mean over all answer tokens of the first batch. This
    mean is computed here without dropout.
    """
    tune(bases / "llama", tmp_path / "m", replace(RECIPE, epochs=1, batch_size=40))
    model = load(str(bases / "llama"))
    set_seed(RECIPE.seed)
    add_mark(model.tokenizer, model.module)
    losses = []
    for example in encode(model.tokenizer, PAIRS, "decoder"):
        logs = distributions(model.module, example.prompt, example.answer).log()
        losses.append(-logs[range(len(logs)), example.answer])
    expected = torch.cat(losses).mean().item()
    assert log_of(tmp_path / "m")[0] == pytest.approx(expected, rel=1e-4)


UNTRAINABLE = """\
--base no/such/folder/here | cannot load model no/such/folder/here
-o . | exists; delete it
--base http://127.0.0.1:9/v1#m | is not a local checkpoint
--limit 0 | nothing to train on: 0 pairs
-s epochs=0 | must be at least 1
-s seed=9223372036854775807 | seed <2**32
-s lora_rank=half | of type int
-s lora_rank=2 -s lora_targets=q | of type tuple
-s lora_rank=2 -s lora_alpha=0 | lora_alpha is 0; it must be at least 1
-s lora_rank=2 -s lora_dropout=1 | lora_dropout <1
-s validation=40 | 40 pairs are too few to hold out 40
-s max_tokens=3 | nothing to train on: 40 pairs
-s accumulation=3 | a batch of 32 cannot be divided into 3 parts
-s learning_rate=1e18 -s epochs=1 | loss or weights are no longer finite
-s learning_rate=1e18 -s epochs=1 --limit 9 | loss or weights are no longer finite"""


@pytest.mark.parametrize("line", UNTRAINABLE.splitlines())
def test_what_cannot_be_trained_ends_the_command_with_one_line(bases, tmp_path, line):
    words, message = line.split(" | ")
    said = call(*command(bases / "gpt2", tmp_path, *words.split()))
    [error] = [line for line in said.output.splitlines() if line.startswith("error: ")]
    assert said.exit_code == 2 and message in error
    assert not (tmp_path / "m").exists()


def test_a_killed_command_goes_on_from_its_last_checkpoint(bases, tmp_path):
    """GPT-2 has dropout, so the state of the random numbers must be restored, too. An epoch has 5
    steps, and a checkpoint is written after every third step. A checkpoint that is incomplete
    because the command was killed is not used.
    """
    lean = {"accumulation": 2, "bf16": True, "checkpoint_activations": True, "lora_rank": 4}
    given = {"epochs": 2, "batch_size": 8, "group_by_length": True, "loss_on": "answer", **lean}
    settings = [f"-s{name}={value}" for name, value in given.items()]
    words = command(bases / "gpt2", tmp_path, "--save-every", 3, *settings)
    process = subprocess.Popen([sys.executable, "-m", "lookuplab", *words])
    whole = until(lambda: [*tmp_path.glob("w/*/*/complete")])
    process.kill()
    process.wait()
    assert not (tmp_path / "m").exists()
    paths.write_lines(whole[0].parents[1] / "checkpoint-9" / "trainer_state.json", ())
    said = call(*words)
    assert said.exit_code == 0 and "40 pairs, 10 steps" in said.output, said.output
    tune(bases / "gpt2", tmp_path / "n", Recipe(**given), save_every=100)
    assert weights(tmp_path / "m") == weights(tmp_path / "n")


def test_the_packages_lora_trains_and_stores_embedding_and_head(bases, tmp_path):
    tune(bases / "llama", tmp_path / "m", replace(LORA, lora_embeddings=True, lora_dropout=0.05))
    old, new = (load(str(one)).module.state_dict() for one in (bases / "llama", tmp_path / "m"))
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        assert (old[name] != new[name][: len(old[name])]).any(-1).sum() > 10


def test_the_marks_probability_is_read_before_each_token(tmp_path):
    pair = Pair("r/f", "Double it.", "def f(x):", f"    {MARK}x")
    script = [{"    ": 0.6, MARK: 0.3}, {MARK: 0.8}, {"x": 0.5, MARK: 0.25}, {END: 0.9}]
    model = scripted(tmp_path, script=script, prompt=pair.prompt("decoder"))
    found = mark_probabilities(model, [pair])
    assert list(found.marked) == list(found.written) == [False, True, False, False]
    assert list(found.probability)[:3] == pytest.approx([0.3, 0.8, 0.25], abs=1e-3)
    *marked, _, unmarked = mark_rows("m", "after", found)
    assert [row["value"] for row in marked[:2]] == pytest.approx([80, 100], abs=0.1)
    assert (unmarked["value"], unmarked["n"]) == (0, 3)
