"""Models answer prompts: local (transformers + accelerate) and remote (OpenAI-compatible) ones, and the store.

``complete(load(name), prompts, decoding)`` is all that a notebook needs. Neither torch nor the openai client is
imported before a model is loaded.
"""

from importlib import import_module

# at once, not lazily: two of these functions share their name with their module, and the function must win
from lookuplab.models.complete import Completions, complete, score
from lookuplab.models.load import load
from lookuplab.models.store import CompletionStore
from lookuplab.models.types import Completion, Decoding, Model, Prompt

HEAVY = {"LocalModel": "local", "RemoteModel": "remote"}
__all__ = ["Completion", "CompletionStore", "Completions", "Decoding", "Model", "Prompt", "complete", "load", "score",
           *HEAVY]


def __getattr__(name: str):
    """Import the module behind a heavy public name when it is first used (PEP 562)."""
    if name not in HEAVY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HEAVY[name]}"), name)
