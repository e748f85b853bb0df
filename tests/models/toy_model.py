"""Provides a deterministic model without weights, for the tests of the store."""

import time
from dataclasses import replace
from multiprocessing import get_context
from zlib import crc32

from lookuplab.models import Completion, Decoding, Prompt, complete
from lookuplab.models.store import AnswerStore

BATCH = 4
SAMPLED = Decoding(n=2, temperature=0.5)


class Kept(AnswerStore):
    """A store of judgements, for tests of a store that does not hold completions."""

    name = "judgements"


class ToyModel:
    """A model that answers each request with a hash of the request, ``BATCH`` requests at a time.
    ``changes[i]`` has the fields that are replaced in sample i ({field: value}). ``calls`` and the
    file ``log`` list the requests that the model has answered.
    """

    name = "toy"

    def __init__(self, log=None, seconds=0.0, chat=False, changes=({},) * 9, **identity):
        self.identity = {"name": "toy"} | identity
        self.log = log
        self.seconds = seconds
        self.calls = []
        self.chat = chat
        self.changes = changes

    def generate(self, requests, decoding):
        for start in range(0, len(requests), BATCH):
            batch = requests[start : start + BATCH]
            yield [self.answer(prompt, sample, decoding) for prompt, sample in batch]
            time.sleep(self.seconds)

    def score(self, pairs):
        for prompt, text in pairs:
            self.calls.append((prompt.id, text))
            yield [Completion(prompt.id, 0, text, (text,), (1,), (-0.1,), "scored", 1)]

    def answer(self, prompt, sample, decoding):
        self.calls.append((prompt.id, sample))
        if self.log:
            with open(self.log, "a", encoding="utf-8") as log:
                log.write(f"{prompt.id}/{sample}\n")
        seed = (prompt.id, decoding.seed) if decoding.temperature else ()
        number = crc32(repr((prompt.text, sample, *seed)).encode())
        pieces = (" ", str(number))
        logprobs = (-0.5, -1 / (1 + number))
        made = Completion(prompt.id, sample, f" {number}", pieces, (0, number), logprobs, "eos", 1)
        return replace(made, **self.changes[sample])


def ask(prompts, decoding=Decoding(), store=None, **model):
    """Return the answers of a new ToyModel, and the requests whose answers it had to make."""
    model = ToyModel(**model)
    return complete(model, prompts, decoding, store, progress=False), model.calls


def many_prompts(count):
    return [Prompt(f"task/{number}", f"client = make({number})\n") for number in range(count)]


def begun(run, *given, **options):
    """Call a function in a new process, and return the process. It is forked, so it need not import
    anything again. If a test fails, the process ends with the test process at the latest.
    """
    process = get_context("fork").Process(target=run, args=given, kwargs=options, daemon=True)
    process.start()
    return process
