"""The models and data that parameters name: there, before a kernel starts and finds them missing."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.load import CHAT, mini_models
from lookuplab.runner.profiles import Profile

_PATH_STARTS = ("data/", "runs/", "./", "../", "~", os.sep)  # such texts are paths; the first two are the checkout's
_PATH_NAMES = ("_file", "_folder")  # so are the values of such parameters, however they start


def check(notebook: str, values: Mapping[str, Any], hints: Mapping[str, str] | None = None) -> None:
    """Files, folders and models that a notebook's parameters name exist. Raises UserError.

    ``hints`` maps a parameter to what to do when its file or folder is missing. Models on the hub come last: asking
    for them takes seconds.
    """
    for name, value in values.items():
        if _names_a_model(name) and value in ([], ()):
            raise UserError(f"{notebook}: parameter {name!r} names no model; give at least one")
    named = [(name, item.removesuffix(CHAT)) for name, value in values.items()
             for item in (value if isinstance(value, (list, tuple)) else [value]) if _is_local_name(item)]
    for name, item in named:
        if _is_path(name, item):
            _check_path(notebook, name, item, (hints or {}).get(name))
    for name, item in named:
        if _names_a_model(name) and not _is_path(name, item):
            _check_mini_model(item) if item.startswith("mini-") else _check_hub_model(notebook, item)


def _is_local_name(item: Any) -> bool:
    """A text that is no address: an endpoint answers for itself when it is asked."""
    return isinstance(item, str) and "://" not in item and not item.startswith("openai:")


def _is_path(name: str, item: str) -> bool:
    return item.startswith(_PATH_STARTS) or bool(item and name.endswith(_PATH_NAMES))


def _check_path(notebook: str, name: str, item: str, hint: str | None) -> None:
    place = paths.ROOT / Path(item).expanduser()
    if not place.exists():
        to_do = " ".join(hint.split()) if hint else "check the path"
        raise UserError(f"{notebook}: parameter {name!r} names {item!r}, which does not exist; {to_do}")
    if _names_a_model(name) and not (place / "config.json").is_file():
        raise UserError(f"{notebook}: {item!r} is no checkpoint (a folder with config.json); "
                        "give one that save_pretrained wrote")


def check_needs(profile: Profile) -> None:
    """Every data set that the profile names has been fetched. Raises UserError with the command that fetches it."""
    from lookuplab import data_sources

    for need in profile.needs:
        source = data_sources.find(need)
        if not data_sources.is_fetched(source):
            raise UserError(f"profile {profile.name!r} needs {need!r}: run `lookuplab data get {need}`")


def as_named_here(name: str, item: Any) -> Any:
    """A path is meant from where the command was typed; the kernel runs elsewhere, so it gets the absolute one."""
    if not isinstance(item, str) or item.startswith(("data/", "runs/")):
        return item
    place, chat = item.removesuffix(CHAT), CHAT * item.endswith(CHAT)
    here = place and Path(place).exists() and (_names_a_model(name) or name.endswith(_PATH_NAMES))
    if item.startswith(_PATH_STARTS) or here:
        return str(Path(place).expanduser().resolve()) + chat
    return item


def _names_a_model(name: str) -> bool:
    return name in ("model", "models") or name.endswith(("_model", "_models"))


def _check_mini_model(name: str) -> None:
    known = mini_models()
    if name not in known:
        there = ", ".join(known) or "none yet: run `lookuplab train mini`"
        raise UserError(f"no mini model {name!r}; there are: {there}")


def _check_hub_model(notebook: str, model: str) -> None:
    """In the local cache, or on the hub and allowed: a run of hours should not fail at its first cell."""
    from huggingface_hub import HfApi, constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    if isinstance(try_to_load_from_cache(model, "config.json"), str):
        return
    here = f"{notebook}: model {model!r} is not in the local cache"
    if constants.HF_HUB_OFFLINE:
        raise UserError(f"{here}, and HF_HUB_OFFLINE forbids to fetch it (a folder is written with a leading ./ or /)")
    try:
        HfApi().model_info(model, timeout=15)
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise UserError(f"{here}, nor on the Hugging Face hub, or you have no right to it (`hf auth login`)") from error
    except Exception as error:  # whatever the hub's client raises when there is no network, by its version
        raise UserError(f"{here}, and the hub does not answer ({type(error).__name__}): connect, or name a folder"
                        ) from error
