"""A deterministic model without weights, for the tests of the store; as a program it answers prompts until killed.

    python toy_model.py STORE LOG PROMPTS      writes one line a generated answer to LOG
"""

import hashlib
import sys
import time

from lookuplab.models.complete import complete
from lookuplab.models.types import Completion, Decoding, Prompt

BATCH = 4


class ToyModel:
    """Answers with a hash of what it was asked, ``BATCH`` requests at a time; counts and logs what it generates."""

    name = "toy"

    def __init__(self, log=None, seconds=0.0, identity=None):
        self.identity = identity or {"name": "toy", "revision": "1", "dtype": "float32"}
        self.log, self.seconds, self.calls = log, seconds, []

    def generate(self, requests, decoding):
        for start in range(0, len(requests), BATCH):
            yield [self.answer(prompt, sample, decoding) for prompt, sample in requests[start:start + BATCH]]
            time.sleep(self.seconds)

    def score(self, requests):
        for prompt, continuation in requests:
            self.calls.append((prompt.id, continuation))
            yield [Completion(prompt.id, 0, continuation, (continuation,), (1,), (-0.1,), "stop", len(prompt.text))]

    def answer(self, prompt, sample, decoding):
        self.calls.append((prompt.id, sample))
        if self.log:
            with open(self.log, "a", encoding="utf-8") as log:
                log.write(f"{prompt.id}/{sample}\n")
        asked = (prompt.text, sample) if decoding.temperature == 0 else (prompt.text, prompt.id, decoding.seed, sample)
        number = int(hashlib.sha256(repr(asked).encode()).hexdigest()[:8], 16)
        return Completion(prompt.id, sample, f" {number}", (" ", str(number)), (0, number), (-0.5, -1 / (1 + number)),
                          "eos", len(prompt.text))


def many_prompts(count):
    return [Prompt(f"task/{number}", f"client = make({number})\n") for number in range(count)]


if __name__ == "__main__":
    complete(ToyModel(log=sys.argv[2], seconds=0.02), many_prompts(int(sys.argv[3])), Decoding(n=2), store=sys.argv[1],
             progress=False)
