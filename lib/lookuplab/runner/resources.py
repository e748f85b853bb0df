"""The models and data that parameters name: there, before a kernel starts and finds them missing."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.adapters import is_model
from lookuplab.models.load import CHAT, OPENAI, is_remote, mini_models, split_revision, table_name
from lookuplab.runner.profiles import Profile

_PATH_STARTS = ("data/", "runs/", "./", "../", "~", os.sep)  # such texts are paths; the first two are the checkout's
KEY = "OPENAI_API_KEY"  # the variable that remote.RemoteModel reads
_PATH_NAMES = ("_file", "_folder")  # so are the values of such parameters, however they start


def check(notebook: str, values: Mapping[str, Any], hints: Mapping[str, str] | None = None) -> None:
    """Files, folders, models and keys that a notebook's parameters name exist. Raises UserError.

    ``hints`` maps a parameter to what to do when its file or folder is missing. Models on the hub come last: asking
    for them takes seconds.
    """
    check_names(notebook, values)
    for problem in missing(values, hints):
        raise UserError(f"{notebook}: {problem}")
    for _, model in models_of(values):
        if is_on_hub(model):
            _check_hub_model(notebook, model.removesuffix(CHAT))


def check_names(notebook: str, values: Mapping[str, Any]) -> None:
    """What is wrong on any machine: no model at all, or two that tables cannot tell apart. Raises UserError."""
    for name, value in values.items():
        if not _names_a_model(name) or not isinstance(value, (list, tuple)):
            continue
        if not value:
            raise UserError(f"{notebook}: parameter {name!r} names no model; give at least one")
        called, times = Counter(table_name(item) for item in value if isinstance(item, str)).most_common(1)[0]
        if times > 1:
            raise UserError(f"{notebook}: parameter {name!r} names {times} models that tables call {called!r}; "
                            "run them one at a time")


def missing(values: Mapping[str, Any], hints: Mapping[str, str] | None = None) -> Iterator[str]:
    """What the parameters name and this machine lacks, each with what to do; models on the hub are not asked for."""
    for name, value in values.items():
        items = [item.removesuffix(CHAT) for item in (value if isinstance(value, (list, tuple)) else [value])
                 if isinstance(item, str) and not is_remote(item)]
        yield from _missing_paths(name, [item for item in items if _is_path(name, item)], (hints or {}).get(name))
    for name, model in models_of(values):
        if model.startswith("mini-") and model.removesuffix(CHAT) not in mini_models():
            there = ", ".join(mini_models()) or "none yet: run `lookuplab train mini`"
            yield f"no mini model {model.removesuffix(CHAT)!r}; there are: {there}"
        elif model.startswith(OPENAI) and not os.environ.get(KEY, "").strip():
            way_out = _without(name, model, values[name])
            yield f"model {model!r} needs a key: set the environment variable {KEY}{way_out}"


def models_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(parameter, model) for every model that the parameters name, in their order."""
    return [(name, item) for name, value in values.items() if _names_a_model(name)
            for item in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(item, str) and item]


def pinned(name: str, value: Any) -> Any:
    """A parameter's value with every model on the hub at the revision that data/sources.toml pins for it."""
    from lookuplab import data_sources

    if isinstance(value, (list, tuple)):
        return [pinned(name, item) for item in value]
    if not _names_a_model(name) or not isinstance(value, str) or not is_on_hub(value):
        return value
    return data_sources.pinned(value.removesuffix(CHAT)) + CHAT * value.endswith(CHAT)


def is_on_hub(model: str) -> bool:
    """Neither an endpoint nor a mini model nor a folder."""
    return not (is_remote(model) or model.startswith("mini-") or _is_path("model", model.removesuffix(CHAT)))


def folder_of(place: str) -> Path:
    """Where a parameter's path lies: data/ and runs/ are the checkout's."""
    return paths.ROOT / Path(place).expanduser()


def snapshot_of(model: str) -> Path | None:
    """The folder of a model in the hub's local cache, None where its configuration is not there."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    name, revision = split_revision(model.removesuffix(CHAT))
    try:
        file = try_to_load_from_cache(name, "config.json", revision=revision)
    except HFValidationError:  # no name that the hub could have
        return None
    return Path(file).parent if isinstance(file, str) else None


def _is_path(name: str, item: str) -> bool:
    return item.startswith(_PATH_STARTS) or bool(item and name.endswith(_PATH_NAMES))


def _missing_paths(name: str, items: list[str], hint: str | None) -> Iterator[str]:
    places = {item: folder_of(item.removesuffix("/*")) for item in items}  # FOLDER/* is all that is in it
    if absent := [item for item, place in places.items() if not place.exists()]:
        to_do = " ".join(hint.split()) if hint else "check the path"
        listed = ", ".join(map(repr, absent)) + f", which {'does' if len(absent) == 1 else 'do'} not exist"
        yield f"parameter {name!r} names {listed}; {to_do}"
    for item, place in places.items():
        if place.exists() and _names_a_model(name) and not is_model(place):
            yield f"{item!r} is no checkpoint (a folder with config.json); give one that save_pretrained wrote"


def _without(name: str, model: str, value: Any) -> str:
    """How to leave one model of a list out, as far as there are others."""
    others = [split_revision(item)[0] for item in value if item != model] if isinstance(value, (list, tuple)) else []
    return f", or leave it out (`lookuplab run` takes -p {name}={','.join(others)})" if others else ""


def check_needs(profile: Profile) -> None:
    """Every data set that the profile names has been fetched. Raises UserError with the command that fetches it."""
    for problem in missing_needs(profile):
        raise UserError(problem)


def missing_needs(profile: Profile) -> list[str]:
    """What the profile needs and has not been fetched, with the command that fetches it."""
    from lookuplab import data_sources

    return [f"profile {profile.name!r} needs {need!r}: run `lookuplab data get {need}`"
            for need in profile.needs if not data_sources.is_fetched(data_sources.find(need))]


def as_named_here(name: str, item: Any) -> Any:
    """A path is meant from where the command was typed; the kernel runs elsewhere, so it gets the absolute one."""
    if not isinstance(item, str) or item.startswith(("data/", "runs/")):
        return item
    place, chat = item.removesuffix(CHAT), CHAT * item.endswith(CHAT)
    as_path = _names_a_model(name) or name.endswith(_PATH_NAMES) or os.sep in place or Path(place).suffix
    if item.startswith(_PATH_STARTS) or (place and as_path and Path(place).exists()):
        return str(Path(place).expanduser().resolve()) + chat
    return item


def _names_a_model(name: str) -> bool:
    return name in ("model", "models") or name.endswith(("_model", "_models"))


def _check_hub_model(notebook: str, model: str) -> None:
    """In the local cache, or on the hub and allowed: a run of hours should not fail at its first cell."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    if snapshot_of(model) is not None:
        return
    here = f"{notebook}: model {model!r} is not in the local cache"
    if constants.HF_HUB_OFFLINE:
        raise UserError(f"{here}, and HF_HUB_OFFLINE forbids to fetch it (a folder is written with a leading ./ or /)")
    name, revision = split_revision(model)
    try:
        HfApi().model_info(name, revision=revision, timeout=15)
    except RevisionNotFoundError as error:
        raise UserError(f"{here}, and the hub has no revision {revision!r} of it") from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise UserError(f"{here}, nor on the Hugging Face hub, or you have no right to it (`hf auth login`)") from error
    except Exception as error:  # whatever the hub's client raises when there is no network, by its version
        raise UserError(f"{here}, and the hub does not answer ({type(error).__name__}): connect, or name a folder"
                        ) from error
