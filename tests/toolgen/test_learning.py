"""Cards and logs as rows, trained shares from shapes, and the mark's probability where a scripted model puts it."""

import json

import pytest
from scripted_model import END, scripted
from transformers import GPT2Config, LlamaConfig, T5Config

from lookuplab import data_sources
from lookuplab.errors import UserError
from lookuplab.models.load import load
from lookuplab.toolgen.learning import card_of, card_rows, loss_rows, mark_probabilities, mark_rows, trained_share
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.pairs import Pair, prompt_text
from lookuplab.toolgen.recipe import PAPER, Recipe

PAIR = Pair("r/f", "Double it.", "def f(x):", f"    return {MARK}x")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Two folders as a fine-tuning leaves them, without weights."""
    root = tmp_path_factory.mktemp("models")
    for name, trainable in (("llama-base", 4), ("llama-toolgen", 5)):
        (root / name).mkdir()
        recipe = {"epochs": 2, "learning_rate": 5e-6, "batch_size": 32, "seed": 42, "lora_rank": 16, "lora_alpha": 16}
        (root / name / "card.json").write_text(json.dumps({
            "recipe": recipe, "parameters": 2_000_000, "trainable": trainable * 1000, "pairs": 7, "steps": 1,
            "seconds": 1.0, "loss": 2.0}))
        (root / name / "log.csv").write_text("step,epoch,loss,learning_rate,seconds\n10,0.5,2.5,1e-3,1\n20,1.0,2,0,2\n")
    return [str(root / name) for name in ("llama-base", "llama-toolgen")]


def test_a_card_has_the_metrics_of_the_paper_s_recipe(tuned):
    rows = {(row["condition"], row["metric"]): row["value"] for row in card_rows(tuned)}
    assert rows == {("model", "parameters_million"): 2, ("training", "pairs"): 7, ("training", "epochs"): 2,
                    ("training", "learning_rate"): 5e-6, ("training", "batch_size"): 32, ("training", "seed"): 42,
                    ("lora", "rank"): 16, ("lora", "alpha"): 16, ("lora", "trainable_percent"): 0.2}
    assert {row["model"] for row in card_rows(tuned)} == {"llama"}


def test_losses_are_rows_by_step_and_variant(tuned):
    rows = [(row["model"], row["condition"], row["value"]) for row in loss_rows(tuned)]
    assert rows == [("llama", "step_10/base", 2.5), ("llama", "step_20/base", 2.0),
                    ("llama", "step_10/toolgen", 2.5), ("llama", "step_20/toolgen", 2.0)]


def test_a_model_that_was_not_fine_tuned_here_is_a_user_error(tmp_path):
    for ask in (card_of, lambda name: loss_rows([name])):
        with pytest.raises(UserError, match="lookuplab train toolgen"):
            ask(str(tmp_path))


def test_lora_on_four_projections_of_codellama_7b_is_the_paper_s_quarter_percent():
    trained, everything = trained_share(LlamaConfig(), PAPER["codellama"])
    assert everything == data_sources.of_model("codellama/CodeLlama-7b-Python-hf").facts["parameters"]
    assert trained == 32 * 4 * 2 * 16 * 4096 and round(100 * trained / everything, 2) == 0.25


def test_the_parameters_listed_for_the_paper_s_models_follow_from_their_shapes():
    facts = {name: source.facts for name, source in data_sources.load().items()}
    shapes = {"codegpt-small-py": GPT2Config(vocab_size=50001),
              "codet5-base": T5Config(vocab_size=32100, d_model=768, d_ff=3072, num_layers=12, num_heads=12)}
    for name, config in shapes.items():
        assert trained_share(config, Recipe()) == (facts[name]["parameters"],) * 2


def test_the_mark_s_probability_is_read_before_each_token(tmp_path):
    script = [{"    ": 0.9}, {"return": 0.9}, {" ": 0.6, MARK: 0.3}, {MARK: 0.8}, {"x": 0.5, MARK: 0.25}, {END: 0.9}]
    prompt = prompt_text(PAIR.docstring, PAIR.signature, "    ", "decoder")
    found = mark_probabilities(scripted(tmp_path, script=script, prompt=prompt), [PAIR])
    assert list(found.marked) == [False, False, False, True, False, False]
    assert list(found.written) == [False, False, False, True, False, False]
    assert list(found.probability)[2:5] == pytest.approx([0.3, 0.8, 0.25], abs=1e-3)
    rows = {(row["condition"], row["metric"]): row for row in mark_rows("m", "after", found)}
    assert rows["after/marked", "mark_probability_percent"]["value"] == pytest.approx(80, abs=0.1)
    assert (rows["after/unmarked", "mark_written_percent"]["value"], rows["after/unmarked", "mark_written_percent"]["n"]
            ) == (0, 5)


@pytest.mark.parametrize("name", ["gpt", "t5", "llama"])
def test_every_committed_family_expects_the_mark_where_it_was_taught_to(name):
    means = {}
    for variant in ("base", "toolgen"):
        found = mark_probabilities(load(f"mini-{name}-{variant}"), [PAIR])
        means[variant] = found.groupby("marked").probability.mean()
    assert means["toolgen"][True] > 10 * means["toolgen"][False] and means["base"][True] < 0.05
