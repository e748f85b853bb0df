"""The committed mini models: sizes, formats, cards, and that they answer as models of their kind should."""

import json

import pytest
from transformers import AutoTokenizer

from lookuplab import paths
from lookuplab.cloudapi.benchmark import load_tasks
from lookuplab.models import Decoding, Prompt, complete, load
from lookuplab.stackoverflow import ds1000

SIZES = ("small", "medium", "large")
FOLDERS = [paths.MINI / "models" / size for size in SIZES]


def test_weights_are_fp16_and_three_sizes_grow():
    types = [json.loads((folder / "config.json").read_text())["dtype"] for folder in FOLDERS]
    sizes = [(folder / "model.safetensors").stat().st_size for folder in FOLDERS]
    assert set(types) == {"float16"} and sizes == sorted(sizes) and 8e6 <= sizes[-1] <= 16e6


@pytest.mark.parametrize("folder", FOLDERS, ids=SIZES)
def test_a_tokenizer_gives_prompts_back(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for task in load_tasks(limit=30):
        assert tokenizer.decode(tokenizer(task.prompt)["input_ids"]) == task.prompt


def test_a_model_that_answers_questions_writes_one_line_and_ends():
    model = load("mini-questions-small")
    problem = next(
        one
        for one in ds1000.load(paths.MINI / "stackoverflow/problems.jsonl.gz")
        if one.library == "Numpy"
    )
    (answer,) = complete(
        model, [Prompt("p", problem.prompt)], Decoding(48, stop=ds1000.STOP), store=False
    )
    solution = ds1000.solution_of(answer.text).strip()
    assert solution.startswith("result = ") and "\n" not in solution
