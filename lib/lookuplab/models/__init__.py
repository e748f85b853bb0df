"""Runs models and stores their answers. A model runs on this machine (Transformers and accelerate,
or vLLM) or behind an OpenAI-compatible endpoint.

``complete(load(name), prompts, decoding)`` is all that a notebook needs. Modules are imported only
when they are used: torch and the openai client when a model is loaded, and the store when answers
are looked up.
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
