"""Models that answer prompts, local (transformers + accelerate, or vLLM) or remote
(OpenAI-compatible), and the store.

``complete(load(name), prompts, decoding)`` is all that a notebook needs. Nothing is imported before
it is used: neither torch nor the openai client before a model is loaded, nor the store by those who
only want a model's name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lookuplab.models.names import load

if TYPE_CHECKING:
    from lookuplab.models.completions import (
        Completion,
        Decoding,
        Model,
        Prompt,
        complete,
        score,
    )

__all__ = [
    "Completion",
    "Decoding",
    "Model",
    "Prompt",
    "complete",
    "load",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.completions"), name)
