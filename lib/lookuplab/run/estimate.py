"""What each model will be asked, counted before anything is fetched or paid for: prompts, tokens,
hours on a GPU. Nothing is generated, and the network is not used.

Beside a paper's notebooks, ``asks.py`` says which passes over its tasks each of them makes; the
benchmarks make the prompts. Equal questions count once, and stored answers not at all.
"""

import math
import runpy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from lookuplab.errors import UserError, check_choice
from lookuplab.models import load, record
from lookuplab.models.completions import keys_of
from lookuplab.models.names import OPENAI, VLLM, bare, is_remote, model_folder, split_options
from lookuplab.models.store import CompletionStore
from lookuplab.run import downloads
from lookuplab.run.notebooks import Job, Named

CHARACTERS = 3.5  # in a token, where the model's own tokenizer is not here
GPUS = Path(__file__).with_name("gpus.yaml")
# the key of an answer -> its prompt's tokens, and the most that it may have (0: a text is scored)
Questions = Mapping[str, tuple[int, int]]


class RoughTokenizer:
    """Stands for a tokenizer that is not here: every ``CHARACTERS`` characters are a token."""

    is_fast = True

    def __call__(self, text: str, **_: object) -> dict[str, Any]:
        count = math.ceil(len(text) / CHARACTERS)
        ends = [round(CHARACTERS * number) for number in range(1, count + 1)]
        return {"input_ids": ends, "offset_mapping": [*pairwise([0, *ends])]}


def lines(jobs: Sequence[Job], gpu: str) -> list[str]:
    """What the jobs ask of each model, and which notebooks cannot be counted: nobody has written
    down what they ask, or something that they read is not here yet.

    ``gpu``: one of ``gpus.yaml``; raises UserError for another one.
    """
    asked: dict[str, dict[str, tuple[int, int]]] = {}
    said = []
    for job in jobs:
        try:
            for name in job.models():
                asked.setdefault(name, {}).update(questions(job, name))
        except (UserError, OSError, KeyError):
            said.append(f"not counted: {job.notebook.id}")
    return [_line(name, of_model, gpu) for name, of_model in asked.items()] + said


def questions(job: Job, name: str) -> Questions:
    """What a job asks a model. Raises UserError, OSError or KeyError where that is not known."""
    model = _stand_in(name)[0]
    found = {}
    asks = runpy.run_path(str(job.notebook.path.with_name("asks.py")))["asks"]
    for benchmark, scored in asks(job.notebook.name, job.values):
        suited = benchmark.for_model(model)
        decoding = None if scored else suited.decoding
        prompts = [suited.prompt(task) for task in suited.tasks]
        requests = [
            (prompt, text, sample)
            for prompt, text in zip(prompts, scored or [""] * len(prompts), strict=True)
            for sample in range(decoding.n if decoding else 1)
        ]
        most = decoding.max_new_tokens + getattr(model, "thinking_tokens", 0) if decoding else 0
        keys = keys_of(model.identity, decoding, requests)
        for (prompt, *_), (key, _) in zip(requests, keys, strict=True):
            found[key] = _length(model.tokenizer, f"{prompt.system or ''}{prompt.text}"), most
    return found


@cache
def _length(tokenizer: Any, text: str) -> int:
    return len(tokenizer(text, verbose=False)["input_ids"])


def _line(name: str, asked: Questions, gpu: str) -> str:
    """Tokens out: as many as the stored answers have on average, if there are any, and at most."""
    stored = record.rows(CompletionStore.name, asked)
    if CompletionStore.default_path().is_file():
        with CompletionStore() as store:
            stored |= store.get(asked)
    speeds = yaml.safe_load(GPUS.read_text("utf-8"))
    check_choice("--gpu", gpu, speeds)
    model, parameters = _stand_in(name)
    left = [tokens for key, tokens in asked.items() if key not in stored]
    read = sum(one for one, _ in left)
    outs = [sum(most for _, most in left)]
    if lengths := [len(answer["tokens"]) for key, answer in stored.items() if asked[key][1]]:
        mean = sum(lengths) / len(lengths)
        outs.insert(0, round(sum(min(mean, most) for _, most in left)))

    about = "about " if isinstance(model.tokenizer, RoughTokenizer) else ""
    text = f"{name}: {len(left):,} answers to make, {len(stored):,} stored; {about}{read:,} tokens "
    text += f"in, {' to '.join(f'{out:,}' for out in outs)} out at most"
    if parameters:
        reading, writing = (parameters / 1e9 / speed for speed in speeds[gpu])
        seconds = [read * reading + out * writing for out in outs]
        unit, size = ("h", 3600) if seconds[-1] >= 3600 else ("min", 60)
        times = (f"{one / size:,.2f}" for one in seconds)
        text += f"; estimate: {' to '.join(times)} {unit} on {gpu}"
    return text


@cache
def _stand_in(name: str) -> tuple[Any, int]:
    """A model as far as prompts and keys need it, and its number of parameters (0 if unknown).

    A model that is not here has a rough tokenizer, and an identity of which nothing is stored.
    """
    place, options = split_options(name)
    chat = options.get("chat", place.startswith(OPENAI))
    model: Any = SimpleNamespace(chat=chat, identity={"name": name}, tokenizer=RoughTokenizer())
    source = downloads.on_hub(bare(name)) if Named("model", name).is_on_hub else None
    parameters = source.facts.get("parameters", 0) if source else 0
    with suppress(UserError, OSError):
        if is_remote(place):
            model.identity = load(name).identity
        elif not source:
            weights = model_folder(name).glob("*.safetensors")
            model = load(name)
            parameters = sum(file.stat().st_size for file in weights) // 2
        elif folder := downloads.cached(source):
            local: Any = load(f"{VLLM if place.startswith(VLLM) else ''}{folder}", **options)
            assert local.tokenizer  # read from the cache's folder, without the network
            local.source = source.address, source.revision
            model = local
    return model, parameters
