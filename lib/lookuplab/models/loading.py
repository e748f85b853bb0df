"""Loads any model by its name.

Neither torch nor a client is imported before a model is loaded.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

from lookuplab.errors import UserError
from lookuplab.models.completions import Model
from lookuplab.models.names import VLLM, is_remote, split_options, table_name

NUMBERS = (int, float, int | None)  # annotations of options


def load(name: str, **options: Any) -> Model:
    """Return the model with that name, ready for ``complete``. Weights are read when the first
    answer needs them.

    ``mini-SIZE`` and ``mini-FAMILY-VARIANT`` (``mini-gpt-toolgen``) are the kit's own models; names
    such as ``gemma-3-270m`` are those that ``lookuplab data get`` put into
    ``data/downloads/models``. ``http(s)://HOST:PORT/v1#MODEL`` and ``openai:MODEL`` are remote
    (options: ``remote.RemoteModel``). ``vllm:`` before any other name lets vLLM run that model
    (options: ``vllm.VllmModel``). Everything else is a folder (a checkpoint, or an adapter that
    names its base model) or a name on the hub, which may have a revision (``OWNER/NAME@REVISION``:
    a commit, branch or tag); options: ``local.LocalModel``. Options may be part of the name:
    ``NAME?dtype=float32&chat=true``. UserError with one clear line for a missing model, a bad
    address or an unknown option.
    """
    place, stated = split_options(name)
    options = {**stated, **options}
    for option in "extra", "quantization_config":
        if not isinstance(value := options.get(option, {}), dict):
            told = f"{option} is {value!r}; it must be a JSON object"
            raise UserError(f"model {table_name(place)}: {told}")
    kind: Callable[..., Model]
    if is_remote(place):
        from lookuplab.models.remote import RemoteModel as kind
    elif place.startswith(VLLM):
        from lookuplab.models.vllm import VllmModel as kind
    else:
        from lookuplab.models.local import LocalModel as kind
    known = signature(kind).parameters
    for option, value in options.items():
        is_number = type(value) in (int, float) or value is None
        if not is_number and option in known and known[option].annotation in NUMBERS:
            raise UserError(f"model {table_name(place)}: {option} is {value!r}, not a number")
    try:
        return kind(place.removeprefix(VLLM), **options)
    except TypeError as error:  # an unknown option, or a value of the wrong type
        raise UserError(f"model {table_name(place)}: {error} (options: docs/own.md)") from error
