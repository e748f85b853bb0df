"""The models and data that parameters name: there, before a kernel starts and finds them missing."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.runner.profiles import Profile

_PATH_STARTS = ("data/", "runs/", "./", "../", "~", os.sep)  # other texts are no paths; two are the checkout's


def check(notebook: str, values: Mapping[str, Any]) -> None:
    """Files, folders and models that a notebook's parameters name exist. Raises UserError."""
    for name, value in values.items():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if not isinstance(item, str) or "://" in item or item.startswith("openai:"):
                continue  # an endpoint answers for itself when it is asked
            if item.startswith(_PATH_STARTS):
                if not (paths.ROOT / Path(item).expanduser()).exists():
                    raise UserError(f"{notebook}: parameter {name!r} names {item!r}, which does not exist")
            elif _names_a_model(name):
                _check_mini_model(item) if item.startswith("mini-") else _check_hub_model(notebook, item)


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
    if item.startswith(_PATH_STARTS) or (_names_a_model(name) and item and Path(item).is_dir()):
        return str(Path(item).expanduser().resolve())
    return item


def _names_a_model(name: str) -> bool:
    return name in ("model", "models") or name.endswith(("_model", "_models"))


def _check_mini_model(name: str) -> None:
    folder = paths.MINI / "models"
    known = sorted(f"mini-{file.parent.name}" for file in folder.glob("*/config.json"))
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
