"""Compares vLLM, in its build for CPUs, with the local engine. Without vLLM, the tests are skipped.
`.ci/run` installs vLLM in an environment of its own, and runs the tests there.
"""

from dataclasses import replace

import pytest
from doors import refused
from peft import LoraConfig
from scripted_model import CONTAINER
from test_local import PROMPTS
from tiny_architectures import answered, assert_equal, by_request, save

from lookuplab.models import Decoding, Prompt, load
from lookuplab.models.local import LocalModel
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.generation import ToolUse, generate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.rules import PACKAGE_RULES

pytest.importorskip("vllm")
WIDTH = 128  # vLLM's kernels for CPUs need heads of at least 32 dimensions
GREEDY = Decoding(max_new_tokens=20)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # vLLM's own


def free_constrained_and_scored(model):
    """Return three dictionaries {(prompt's id, sample): answer}. The first has free answers, the
    second has answers that begin with one of four names, the third has scored continuations.
    """
    names = ("client", "close", "put_object", "items")
    chosen = [replace(prompt, choices=names) for prompt in PROMPTS[:5]]
    pairs = [(prompt, "client.put_object(Key='名')" * (i % 3)) for i, prompt in enumerate(PROMPTS)]
    done = answered(model, GREEDY, PROMPTS), answered(model, GREEDY, chosen)
    return *done, by_request(model.score(pairs))


@pytest.mark.parametrize(
    "architecture", ["starcoder2", "gemma", "granite", "gpt_bigcode", "gpt2", "pieces-llama"]
)
def test_answers_and_scores_are_those_of_the_local_engine(architecture, tmp_path):
    folder = str(save(tmp_path, architecture, width=WIDTH))
    # the local engine comes first, because vLLM changes some of Transformers' classes
    expected = free_constrained_and_scored(LocalModel(folder))
    for answers, local in zip(
        free_constrained_and_scored(load(f"vllm:{folder}")), expected, strict=True
    ):
        assert_equal(answers, local)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return str(save(tmp_path_factory.mktemp("llama"), "llama", width=WIDTH))


def test_an_adapter_answers_as_it_does_in_the_local_engine(llama, tmp_path):
    base = LocalModel(llama)
    base.module.add_adapter(LoraConfig(target_modules=["q_proj"], init_lora_weights=False))
    base.module.save_pretrained(tmp_path)
    expected = answered(LocalModel(str(tmp_path)), GREEDY, PROMPTS)
    adapted = f"vllm:{tmp_path}"
    assert_equal(answered(load(adapted), GREEDY, PROMPTS), expected)
    # in 16 bits, answers may differ where two tokens are nearly tied
    halved = answered(load(f"{adapted}?dtype=bfloat16"), GREEDY, PROMPTS)
    assert sum(halved[key].tokens[:1] == expected[key].tokens[:1] for key in expected) > 15


def test_samples_depend_on_the_seed_and_their_number_alone(llama):
    model = load(f"vllm:{llama}")
    sampled = Decoding(8, temperature=0.8, top_p=0.9, n=3)
    alone, other = (answered(model, replace(sampled, seed=seed), PROMPTS[3:4]) for seed in (0, 1))
    together = answered(model, sampled, PROMPTS)
    assert_equal(alone, {key: together[key] for key in alone})
    assert len({one.token_ids for one in [*alone.values(), *other.values()]}) == 6


def test_what_was_answered_before_an_interruption_is_kept_and_the_rest_is_answered(llama):
    from lookuplab.models.vllm import RUNNING

    model = load(f"vllm:{llama}")
    expected = answered(model, GREEDY, PROMPTS)
    ended = replace(GREEDY, stop=("e",))
    generating = model.generate([(prompt, 0) for prompt in PROMPTS], ended)
    first = next(generating)
    assert 0 < len(first) < len(PROMPTS), "each answer comes when it ends"
    generating.close()
    assert not RUNNING
    assert_equal(answered(model, GREEDY, PROMPTS), expected)


def test_jedi_answers_while_the_row_is_out_of_the_engine(tmp_path):
    (tmp_path / "container.py").write_text(CONTAINER)
    functions = extract(tmp_path).functions
    # With at most 64 tokens per step, vLLM reads a prompt in several steps. It gives logits after
    # each of these steps, but only those after the last one choose a token.
    names = "mini-gpt-toolgen", "vllm:mini-gpt-toolgen?max_num_batched_tokens=64"
    for use in ToolUse("mark"), ToolUse("dot"), ToolUse("mark", PACKAGE_RULES):
        done = [
            generate(load(name), functions, JediTool(1), use, Decoding(64), False, progress=False)
            for name in names
        ]
        assert any(one.record for one in done[0].completions.values()), "Jedi was asked"
        assert_equal(done[1].completions, done[0].completions)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("vllm:mini-t5-base", "vLLM runs no encoder-decoder models; omit vllm:"),
        ("vllm:mini-small?batch_size=2", "unexpected keyword argument 'batch_size'"),
        ("vllm:mini-small?nonsense=2", "unexpected keyword argument 'nonsense'"),
        ("vllm:mini-small?quantization=odd", "mini-small: .*Unknown quantization method: odd"),
    ],
)
def test_what_vllm_refuses_is_one_line(name, problem):
    with refused(problem):
        answered(load(name), GREEDY, [Prompt("p", "client.", choices=("close",))])


def test_names_are_not_given_where_another_process_or_a_draft_chooses_tokens(llama):
    model = load(f"vllm:{llama}")
    named = [Prompt("p", "client.", choices=("close",))]
    answered(model, GREEDY, named)
    model.options["speculative_config"] = {"method": "ngram"}
    with refused("leave out tensor_parallel_size"):
        answered(model, GREEDY, named)


def test_options_that_may_change_an_answer_are_in_its_key(llama):
    plain = load(f"vllm:{llama}").identity
    assert plain == LocalModel(llama).identity | {"engine": "vllm"}
    assert load(f"vllm:{llama}?tensor_parallel_size=2&max_num_seqs=8").identity == plain
    other = load(f"vllm:{llama}?quantization=fp8").identity
    assert other == plain | {"engine": 'vllm {"quantization":"fp8"}'}
