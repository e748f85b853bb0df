"""Architectures are answered as by their own forward passes without a cache, or refused."""

import pytest
from architectures import PROMPTS, save, tried

RIGHT = """falcon_h1 bamba jamba qwen3_next lfm2 granitemoehybrid mpt bloom falcon llama4_text
gemma3_text gpt_oss cohere2 modernbert-decoder bart""".split()
WRONG = "mamba mamba2 falcon_mamba rwkv recurrent_gemma minimax".split()


@pytest.mark.parametrize("name", RIGHT)
def test_an_architecture_answers_alone_and_in_a_batch_as_without_a_cache(tmp_path, name):
    for equal, apart in tried(save(tmp_path, name)).values():
        assert equal == len(PROMPTS) and apart < 1e-4


@pytest.mark.parametrize("name", WRONG)
def test_an_architecture_that_would_answer_otherwise_is_refused_in_one_line(tmp_path, name):
    said = tried(save(tmp_path, name))
    assert f"its architecture ({name}) cannot generate token by token in a batch here: " in said
    assert "\n" not in said


@pytest.mark.parametrize("name", ["whisper", "qwen2_audio", "musicgen"])
def test_a_model_that_does_not_read_text_alone_is_refused_in_one_line(tmp_path, name):
    said = tried(save(tmp_path, name))
    assert "cannot load model" in said and "\n" not in said
