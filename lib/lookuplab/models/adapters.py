"""Folders of LoRA adapters: which model they belong to. Reads JSON only, so that it is cheap to ask."""

import json
from pathlib import Path

from lookuplab.errors import UserError

CONFIG = "adapter_config.json"


def is_adapter(folder: Path) -> bool:
    """An adapter's folder: PEFT's configuration, and no checkpoint beside it."""
    return (folder / CONFIG).is_file() and not (folder / "config.json").is_file()


def is_model(folder: Path) -> bool:
    """A folder that ``models.load`` takes: a checkpoint or an adapter."""
    return (folder / "config.json").is_file() or is_adapter(folder)


def base_of(folder: Path) -> tuple[str, str | None]:
    """The model that an adapter belongs to, and its revision: a path (a relative one is meant from the adapter's
    folder) or a name on the hub. UserError where the configuration names none."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        name, revision = str(config["base_model_name_or_path"] or ""), config.get("revision")
    except (OSError, ValueError, KeyError, TypeError):
        name, revision = "", None
    if not name:
        raise UserError(f"adapter {folder} does not name its base model (base_model_name_or_path in {CONFIG})")
    if (folder / name).is_dir() or name.startswith("."):
        return str((folder / name).resolve()), None
    return name, revision
