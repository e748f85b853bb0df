"""The ToolGen mini models before fine-tuning: functions, families, pre-training."""

import pytest
import torch

from lookuplab.mini.families import FAMILIES, FunctionLearner, build
from lookuplab.mini.functions import code_hash, file_functions, held_out_codes
from lookuplab.mini.pretrain import Recipe, arrays, epoch, pretrain
from lookuplab.toolgen.functions import locate
from lookuplab.toolgen.pairs import IGNORED, Example

EXAMPLES = [Example(str(i), [5 + i % 7, 6, 7], [8 + i % 5] * (1 + i % 9) + [0]) for i in range(60)]


def recipe(family="gpt", **changes):
    return Recipe(**{"family": family, "batch_tokens": 128, "epochs": 2} | changes)


def test_functions_with_and_without_docstring_keep_signature_and_body_apart(tmp_path):
    file = tmp_path / "a.py"
    file.write_text('class A:\n    def f(self,\n          x=1):\n        """Do it. Now."""\n        if x:\n            return x\n\n'
                    "    def g(self): return 1\n\n    def h(self):\n        return 2\n")
    first, second = file_functions("p/a.py", file)
    assert (first.docstring, first.signature) == ("Do it.", "def f(self,\n      x=1):")
    assert first.body == "    if x:\n        return x"
    assert (second.id, second.docstring, second.body) == ("p/a.py:A.h#10", "", "    return 2")


def test_code_of_held_out_repositories_is_known_whatever_its_layout():
    first = next(file_functions("requests", locate("requests").root / "api.py"))
    assert code_hash(first.signature + "  ", first.body.replace("    ", "\t")) in held_out_codes()


def test_every_function_is_in_one_batch_of_an_epoch_and_none_is_too_large():
    batches = epoch(EXAMPLES, recipe(), 0)
    assert sorted(i for batch in batches for i in batch) == list(range(len(EXAMPLES)))
    assert all(len(b) * max(len(EXAMPLES[i].prompt) + len(EXAMPLES[i].answer) for i in b) <= 128 for b in batches)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_transformers_own(family):
    model = build(family, 64, 0).eval()
    encoder_decoder = family == "t5"
    prompts, answers = arrays(EXAMPLES[:6], encoder_decoder)
    ours = FunctionLearner(model)(prompts, answers)
    if encoder_decoder:
        theirs = model(input_ids=prompts.clamp(min=0), attention_mask=(prompts >= 0).long(), labels=answers).loss
    else:
        logits = model(input_ids=prompts.clamp(min=0)).logits
        theirs = torch.nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=IGNORED)
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=1e-2)  # the products are bf16


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_that_was_interrupted_ends_with_the_same_weights(family, tmp_path):
    whole, facts = pretrain(EXAMPLES, recipe(family), 64, tmp_path / "whole", save_every=1e9)
    pretrain(EXAMPLES, recipe(family), 64, tmp_path / "parts", save_every=0, stop_at=5)
    resumed, _ = pretrain(EXAMPLES, recipe(family), 64, tmp_path / "parts", save_every=1e9)
    assert facts["steps"] > 6
    for before, after in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(before, after)


def test_functions_longer_than_the_limit_are_left_out(tmp_path):
    _, facts = pretrain(EXAMPLES, recipe(max_tokens=8, epochs=1), 64, tmp_path, save_every=1e9)
    assert facts["functions"] == sum(len(e.prompt) + len(e.answer) <= 8 for e in EXAMPLES) < len(EXAMPLES)
