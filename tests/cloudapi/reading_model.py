"""A model without weights that reads: it calls the first API documented in its prompt, else what it remembers."""

import re

from lookuplab.models.types import Completion

CERTAIN, UNSURE = (
    -0.01,
    -1.0,
)  # natural log-probabilities of a name that was read, and of one that was made up


class ReadingModel:
    """Deterministic; ``memory`` {task id: name}. Keeps every prompt that it was asked."""

    name = "reader"
    identity = {"name": "reader"}

    def __init__(self, memory):
        self.memory, self.asked = memory, []

    def generate(self, requests, decoding):
        for prompt, sample in requests:
            self.asked.append(prompt)
            read = re.search(r"^API name: (\w+)", prompt.text, re.MULTILINE)
            name = read[1] if read else self.memory[prompt.id]
            yield [
                Completion(
                    prompt.id,
                    sample,
                    name + "()",
                    (name, "()"),
                    (0, 1),
                    (CERTAIN if read else UNSURE, 0.0),
                    "stop",
                    len(prompt.text.split()),
                )
            ]
