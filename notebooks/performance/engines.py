"""Engines that should write the same greedy answers. Each takes a checkpoint's folder or name, is
loaded, and then turns prompts into texts of at most ``new`` tokens.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import torch
from tqdm import tqdm

from lookuplab.models import Decoding, Prompt, complete, load
from lookuplab.models.completions import StopRule
from lookuplab.models.local import LocalModel

Engine = Callable[[Sequence[Prompt]], list[str]]


def literal(model: LocalModel, new: int) -> Engine:
    """Return Transformers' ``generate``, one prompt at a time."""

    def run(prompts: Sequence[Prompt]) -> list[str]:
        texts = []
        for prompt in tqdm(prompts, "literally", mininterval=10):
            read = torch.tensor([model.prompt_ids(prompt.text)], device=model.module.device)
            written = model.module.generate(read, max_new_tokens=new, do_sample=False)[0]
            texts.append(model.tokenizer.decode(written[read.shape[1] :], skip_special_tokens=True))
        return texts

    return run


def kit(name: str, new: int, rule: type[StopRule] | None = None) -> Engine:
    """Return the kit's ``complete``, with the engine in the model's name (``vllm:``, or the kit's
    own).
    """
    model = load(name)
    decoding = Decoding(new, stop_rule=rule)

    def run(prompts: Sequence[Prompt]) -> list[str]:
        answers = complete(model, prompts, decoding, store=False, progress=False)
        return [answer.text for answer in answers]

    return run


def harness(place: str, new: int, backend: str, **options: Any) -> Engine | None:
    """Return lm-evaluation-harness with its backend ``huggingface.HFLM`` or
    ``vllm_causallms.VLLM``; None if it is not installed or does not start.
    """
    if not find_spec("lm_eval"):
        return None
    from importlib import import_module, metadata

    from lm_eval.api.instance import Instance

    module, _, name = backend.partition(".")
    try:
        kind = getattr(import_module(f"lm_eval.models.{module}"), name)
    # vLLM's build for CPUs has another package name, but the harness asks for the version of vllm
    except (ImportError, metadata.PackageNotFoundError) as error:
        print(f"no rows of {backend}: {error}")
        return None
    model = kind(pretrained=place, dtype="float32", **options)
    limits = {"until": [], "max_gen_toks": new, "do_sample": False}

    def run(prompts: Sequence[Prompt]) -> list[str]:
        asked = [
            Instance("generate_until", {}, (prompt.text, limits), at)
            for at, prompt in enumerate(prompts)
        ]
        return list(model.generate_until(asked, disable_tqdm=True))

    return run
