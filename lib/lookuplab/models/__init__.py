"""Models answer prompts: local (transformers + accelerate) and remote (OpenAI-compatible) ones, and the store.

``complete(load(name), prompts, decoding)`` is all that a notebook needs. The names below are imported when they are
first used, so that ``import lookuplab.models`` needs neither torch nor the openai client.
"""

from importlib import import_module

PLACES = {
    "Prompt": "types", "Decoding": "types", "Completion": "types", "Model": "types",
    "complete": "complete", "score": "complete", "Completions": "complete",
    "CompletionStore": "store",
    "load": "load",
    "LocalModel": "local",
    "RemoteModel": "remote",
}
__all__ = list(PLACES)


def __getattr__(name: str):
    """Import the module behind a public name (PEP 562)."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *PLACES])
