"""One way to name any model: a mini model, a folder, a name on the hub, or an endpoint's address."""

from dataclasses import replace
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.types import Model

CHAT = "#chat"  # at the end of a local model's name


def load(name: str, **options) -> Model:
    """The model of that name, ready for ``complete``.

    ``mini-SIZE`` is one of the kit's own models. ``http(s)://HOST:PORT/v1#MODEL`` and ``openai:MODEL`` are remote
    (options: see ``remote.RemoteModel``). Everything else is a checkpoint's folder or its name on the hub (options:
    see ``local.load_local``); ``#chat`` behind it asks an instruction-tuned model through its chat template. UserError with one clear line for a model that is not there, an endpoint's bad address
    and an unknown option.
    """
    if "://" in name or name.startswith("openai:"):
        from lookuplab.models.remote import RemoteModel

        return RemoteModel.from_name(name, **options)
    from lookuplab.models.local import load_local  # torch and transformers take seconds to import

    if name.endswith(CHAT):
        name, options = name.removesuffix(CHAT), {"chat": True, **options}
    known = load_local.__kwdefaults__
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(f"model {name}: unknown option {unknown[0]!r} (there are {', '.join(sorted(known))})")
    return _mini(name, options) if name.startswith("mini-") else load_local(name, **options)


def mini_models() -> dict[str, Path]:
    """Short name -> folder of every model that ``lookuplab train mini`` wrote, sorted."""
    folders = sorted(file.parent for file in (paths.MINI / "models").glob("*/config.json"))
    return {f"mini-{folder.name}": folder for folder in folders}


def _mini(name: str, options: dict) -> Model:
    """One of the models that ``lookuplab train mini`` wrote, under its short name."""
    from lookuplab.models.local import load_local

    known = mini_models()
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "there is none yet: run `lookuplab train mini`"
        raise UserError(f"no mini model {name!r}; {there}")
    model = load_local(str(known[name]), **options)
    return replace(model, checkpoint=replace(model.checkpoint, name=name))
