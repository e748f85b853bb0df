"""Interprets the names of models, and loads a model by its name. A name stands for one of the kit's
own (mini) models, a folder, a model on the hub, or a model behind an endpoint.

Importing this module imports neither torch nor the openai client; ``load`` imports what it needs.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookuplab import paths
from lookuplab.errors import UserError

if TYPE_CHECKING:
    from lookuplab.models.completions import Model

OPENAI = "openai:"
KEY_VARIABLE = "OPENAI_API_KEY"  # the environment variable with the API key of remote models
VLLM = "vllm:"  # before a checkpoint's name, this prefix makes vLLM run the checkpoint
ADAPTER = "adapter_config.json"
# option -> the types that the option's value may have, and the same types in words
FORMS = (
    dict.fromkeys("chat trust_remote_code logprobs sampled".split(), ((bool,), "true or false"))
    | dict.fromkeys("batch_size context parallel".split(), ((int,), "a whole number above 0"))
    | dict.fromkeys("timeout total".split(), ((int, float), "a number above 0"))
    | dict.fromkeys("extra quantization_config".split(), ((dict,), "a JSON object"))
)
# options whose values are always text, even if they look like numbers (?revision=2024)
TEXTS = ("revision", "tokenizer", "key_variable", "dtype", "attn_implementation")


def load(name: str, **options: Any) -> "Model":
    """Return the model called ``name``, ready for ``complete``. Weights are read when the first
    answer must be generated.

    - ``mini-SIZE`` and ``mini-FAMILY-VARIANT`` (``mini-gpt-toolgen``) are the kit's own models.
    - Names such as ``gemma-3-270m`` are models that ``lookuplab data get`` has put into
      ``data/downloads/models``.
    - ``http(s)://HOST:PORT/v1#MODEL`` and ``openai:MODEL`` are remote models. Their options are
      those of ``remote.RemoteModel``.
    - ``vllm:`` before the name of a local model makes vLLM run that model. The options are those of
      ``vllm.VllmModel``.
    - Any other name is a folder (a checkpoint, or an adapter that names its base model) or a name
      on the hub, which may have a revision (``OWNER/NAME@REVISION``: a commit, branch or tag). The
      options are those of ``local.LocalModel``.

    Options may be part of the name: ``NAME?dtype=float32&chat=true``. Raises UserError for a
    missing model, an invalid address or an unknown option.
    """
    place, stated = split_options(name)
    options = {**stated, **options}
    kind: Callable[..., Model]
    if is_remote(place):
        from lookuplab.models.remote import RemoteModel as kind
    elif place.startswith(VLLM):
        from lookuplab.models.vllm import VllmModel as kind
    else:
        from lookuplab.models.local import LocalModel as kind
    try:
        return kind(place.removeprefix(VLLM), **options)
    except TypeError as error:  # an unknown option, or a value of the wrong type
        raise UserError(f"model {table_name(place)}: {error} (options: docs/own.md)") from error


def split_options(name: str) -> tuple[str, dict[str, Any]]:
    """Split a model's name at the ``?`` before its options. Return the bare name and the
    options: ``NAME?dtype=float32&batch_size=8`` gives ``{"dtype": "float32", "batch_size": 8}``.

    A value is read as JSON (a number, ``true``, ``false``) or, if it is not JSON, as text. The
    values of the options in ``TEXTS`` are always text. Raises UserError if ``FORMS`` does not allow
    a value, and for an option given twice.
    """
    # in ``http://HOST/v1?QUERY#MODEL?OPTIONS``, the first ? belongs to the address
    split = re.fullmatch(r"((?:.*#)?[^?#]+)\?([^#]+)", name)
    if not split:
        return name, {}
    found: dict[str, Any] = {}
    for option in split[2].split("&"):
        key, _, value = option.partition("=")
        if key in found:
            raise UserError(f"model option {key} is given twice")
        try:
            found[key] = value if key in TEXTS else paths.parse(json.loads, value)
        except ValueError:
            found[key] = value
        types, form = FORMS.get(key, ((type(found[key]),), ""))
        if type(found[key]) not in types or (form.endswith("above 0") and not found[key] > 0):
            raise UserError(f"model option {key} is {found[key]!r}; it must be {form}")
    return split[1], found


def bare_name(name: str) -> str:
    """Return a model's name without the prefix ``vllm:`` and without options."""
    return split_options(name)[0].removeprefix(VLLM)


def split_revision(name: str) -> tuple[str, str | None]:
    """Split a name on the hub at the ``@``. Return the name and the revision, which is None if the
    name has no ``@``. The name of a folder is never split. Raises UserError if nothing follows the
    ``@``.
    """
    split = re.fullmatch("([^./~@][^/@]*/[^/@]*)@(.*)", name)
    if not split or Path(name).exists():
        return name, None
    if not split[2]:
        raise UserError(
            f"model {name!r} names no revision after the @; write OWNER/NAME@REVISION, or leave "
            "the @ out"
        )
    return split[1], split[2]


def is_remote(name: str) -> bool:
    """Return whether the name stands for a model behind an endpoint, not for a local checkpoint."""
    return "://" in name or name.startswith(OPENAI)


def is_mini(name: str) -> bool:
    """Return whether the name has the form of the names of the kit's own models (``mini-large``),
    even if no such model exists. ``mini-org/model`` is different: it is a name on the hub.
    """
    return re.fullmatch("mini-[^/]*", bare_name(name)) is not None


def table_name(name: str) -> str:
    """Return the name that a model has in tables and in ``roles`` of a profile: ``name`` without
    address, folder, revision and options.
    """
    name = bare_name(name)
    if is_remote(name):
        return name.removeprefix(OPENAI).rpartition("#")[2]
    name = split_revision(name)[0]
    folder = paths.located(paths.expand_path(name))
    # A name on the hub has at most one slash, so a name with more is a folder. The folder need not
    # exist, because figures of a deleted model may be drawn again.
    is_folder = folder.is_dir() or name.count("/") > 1
    return os.path.basename(os.path.realpath(folder)) if is_folder else name


def mini_models() -> dict[str, Path]:
    """Return {name: folder} for the kit's own models, such as ``mini-large``. The models for
    CloudAPIBench come first, then those for ToolGen, then those that answer data-science questions.
    Each group is sorted by name.
    """
    parts = ("models", "toolgen", "questions")
    folders = (folder for part in parts for folder in sorted((paths.MINI / part).glob("*")))
    return {f"mini-{folder.name}": folder for folder in folders if is_model(folder)}


def model_folder(name: str) -> Path:
    """Return the folder of one of the kit's own models. Any other name is returned as a path, which
    need not exist.
    """
    name = bare_name(name)
    return mini_models().get(name) or Path(os.path.realpath(paths.expand_path(paths.located(name))))


def is_adapter(folder: Path) -> bool:
    """Return whether the folder contains an adapter and no whole model: it has PEFT's
    configuration, but no weights of a checkpoint. Some tools write the base's config.json beside
    the adapter.
    """
    is_whole = (folder / "config.json").is_file() and any(
        any(folder.glob(weights)) for weights in ("model*.safetensors", "pytorch_model*.bin")
    )
    return (folder / ADAPTER).is_file() and not is_whole


def is_model(folder: Path) -> bool:
    """Return whether ``load`` accepts the folder: it is a checkpoint or an adapter."""
    return any((folder / name).is_file() for name in ("config.json", ADAPTER))


def base_of(folder: Path) -> tuple[str, str | None]:
    """Return the base model of an adapter, as a path or a name on the hub, and the base's revision
    (None for a path).

    PEFT writes the base's name as it was given in training. If this is a relative path, it may
    start from the adapter's folder, from a folder above it, or from the folder where the command
    was typed; these are tried in this order. Raises UserError for a path that does not exist.
    """
    try:
        config = paths.parse(json.loads, (folder / ADAPTER).read_bytes())
        name = str(config.get("base_model_name_or_path") or "")
    except (ValueError, AttributeError) as error:
        raise UserError(f"adapter {folder.name}: {ADAPTER} is not a JSON object: {error}") from None
    # $PWD is the folder where the command was typed; the kernel of a notebook has another working
    # directory
    for place in folder, *folder.parents, Path(os.environ.get("PWD", "")), Path():
        if name and is_model(place / name):
            return str((place / name).resolve()), None
    # NAME or OWNER/NAME can be a name on the hub
    if not re.fullmatch(r"[^./~\\][^/\\]*(/[^/\\]+)?", name):
        raise UserError(
            f"adapter {folder.name}: its base {name!r} ({ADAPTER}) is not a model folder beside "
            "the adapter, above it or in the current folder"
        )
    return name, config.get("revision")
