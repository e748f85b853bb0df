"""Models that answer prompts, local (transformers + accelerate) or remote (OpenAI-compatible), and
the store.

``complete(load(name), prompts, decoding)`` is all that a notebook needs. Neither torch nor the
openai client is imported before a model is loaded.
"""

from lookuplab.models.complete import Completion, Decoding, Model, Prompt, complete, score
from lookuplab.models.load import load
from lookuplab.models.store import CompletionStore

__all__ = [
    "Completion",
    "CompletionStore",
    "Decoding",
    "Model",
    "Prompt",
    "complete",
    "load",
    "score",
]
