"""Makes engines that should write the same greedy answers. An engine is a function that answers
prompts with a model that is already loaded. An answer is a text of at most ``new`` tokens.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import torch
from tqdm import tqdm

from lookuplab.models import Decoding, Model, Prompt, complete
from lookuplab.models.completions import StopRule
from lookuplab.models.local import LocalModel
from lookuplab.paths import ROOT

# takes the library of a commit from git, and answers each line of prompts with a line of answers
EARLIER = """
import io, json, os, subprocess, sys, tarfile, tempfile
commit, place, new = sys.argv[1:]
lib = subprocess.run(["git", "archive", commit, "lib"], capture_output=True, check=True).stdout
with tempfile.TemporaryDirectory() as folder:
    tarfile.open(fileobj=io.BytesIO(lib)).extractall(folder, filter="data")
    os.chdir(f"{folder}/lib")  # python -c imports from here first
    from lookuplab.models import Decoding, Prompt, complete, load
    model, replies, sys.stdout = load(place), sys.stdout, sys.stderr
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        asked = [Prompt(str(at), text) for at, text in enumerate(json.loads(line))]
        answers = complete(model, asked, Decoding(int(new)), store=False, progress=False)
        print(json.dumps([one.text for one in answers]), file=replies, flush=True)
"""

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


def build_of(commit: str, place: str, new: int) -> Engine | None:
    """Return an engine that calls the kit as it was at ``commit`` of this repository, in a process
    of its own. Return None if a shallow clone lacks the commit, or if its code does not run here.
    """
    call = [sys.executable, "-c", EARLIER, commit, place, str(new)]
    process = Popen(call, cwd=ROOT, text=True, bufsize=1, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    if not process.stdout.readline():
        print(f"no row of {commit}: a shallow clone lacks it, or its code does not run here")
        return None

    def run(prompts: Sequence[Prompt]) -> list[str]:
        print(json.dumps([one.text for one in prompts]), file=process.stdin)
        return json.loads(process.stdout.readline())

    return run


def harness(place: str, new: int, **options: Any) -> Engine | None:
    """Return an engine that calls lm-evaluation-harness with Transformers. Return None if the
    harness is not installed.
    """
    if not find_spec("lm_eval"):
        return None
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=place, dtype="float32", **options)
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
