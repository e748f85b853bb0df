"""Makes engines that should write the same greedy answers. An engine is a function that answers
prompts with a model that is already loaded. An answer is a text of at most ``new`` tokens.
"""

import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import torch
from tqdm import tqdm

from lookuplab.models import Decoding, Model, Prompt, complete
from lookuplab.models.completions import StopRule
from lookuplab.models.local import LocalModel

Engine = Callable[[Sequence[Prompt]], list[str]]


def literal(model: LocalModel, new: int) -> Engine:
    """Return an engine that calls Transformers' ``generate`` for one prompt at a time."""

    def run(prompts: Sequence[Prompt]) -> list[str]:
        texts = []
        for prompt in tqdm(prompts, "literally", mininterval=10):
            read = torch.tensor([model.prompt_ids(prompt.text)], device=model.module.device)
            written = model.module.generate(read, max_new_tokens=new, do_sample=False)[0]
            texts.append(model.tokenizer.decode(written[read.shape[1] :], skip_special_tokens=True))
        return texts

    return run


def general_path(name: str) -> LocalModel:
    """Return a model that never takes the fast path of ``models.fast``."""
    model = LocalModel(name)
    model.module.register_forward_hook(lambda *_: None)  # the fast path skips a module with a hook
    return model


def kit(model: Model, new: int, rule: type[StopRule] | None = None) -> Engine:
    """Return an engine that calls the kit's ``complete`` with ``model``."""
    decoding = Decoding(new, stop_rule=rule)

    def run(prompts: Sequence[Prompt]) -> list[str]:
        answers = complete(model, prompts, decoding, store=False, progress=False)
        return [answer.text for answer in answers]

    return run


def harness(place: str, new: int, backend: str, **options: Any) -> Engine | None:
    """Return an engine that calls lm-evaluation-harness with its backend ``huggingface.HFLM`` or
    ``vllm_causallms.VLLM``. Return None if the harness is not installed or the backend does not
    start.
    """
    if not find_spec("lm_eval"):
        return None
    from importlib import import_module, metadata

    from lm_eval.api.instance import Instance

    module, _, name = backend.partition(".")
    try:
        kind = getattr(import_module(f"lm_eval.models.{module}"), name)
    # PackageNotFoundError: the harness looks up the version of the package vllm, but vLLM's build
    # for CPUs has another name
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


def least_seconds(model: LocalModel, prompts: Sequence[Prompt], texts: Sequence[str]) -> float:
    """Return a lower bound of the processor seconds that one thread needs to write ``texts``: the
    time of the model's matrix multiplications at the fastest speed that large square matrices reach
    on this machine.

    Each weight costs two operations per token. A beginning that several prompts share is read only
    once. The output head is computed once for each prompt and each written token. Attention, norms
    and everything else count as free.
    """
    side, speeds = 2048, []
    square = torch.rand(side, side)
    packed = torch.ops.mkldnn._reorder_linear_weight(square, 256)
    for _ in range(5):
        start = time.process_time()
        torch.ops.mkldnn._linear_pointwise(square, packed, None, "none", [], "")
        speeds.append(2 * side**3 / (time.process_time() - start))
    written = sum(map(len, model.tokenizer(list(texts), add_special_tokens=False)["input_ids"]))
    beginnings = {
        tuple(ids[:end])
        for ids in (model.prompt_ids(prompt.text) for prompt in prompts)
        for end in range(1, len(ids) + 1)
    }
    head = model.module.get_output_embeddings().weight.numel()
    body = sum(each.numel() for each in model.module.parameters() if each.ndim > 1) - head
    return 2 * (body * (len(beginnings) + written) + head * (len(prompts) + written)) / max(speeds)
