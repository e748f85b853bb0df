"""One way to name any model: a mini model, a folder, a name on the hub, or an endpoint's address."""

from dataclasses import replace
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.adapters import is_model
from lookuplab.models.types import Model

CHAT = "#chat"  # at the end of a local model's name
OPENAI = "openai:"


def load(name: str, **options) -> Model:
    """The model of that name, ready for ``complete``.

    ``mini-SIZE`` and ``mini-FAMILY-VARIANT`` (``mini-gpt-toolgen``) are the kit's own models.
    ``http(s)://HOST:PORT/v1#MODEL`` and ``openai:MODEL`` are remote (options: see ``remote.RemoteModel``). Everything
    else is a folder, that of a checkpoint or that of an adapter which names its base model, or a checkpoint's name on
    the hub, which may carry a revision (``OWNER/NAME@REVISION``: a commit, branch or tag; options: see
    ``local.load_local``); ``#chat`` behind it asks an instruction-tuned model through its chat template. UserError with
    one clear line for a model that is not there, an endpoint's bad address and an unknown option.
    """
    if is_remote(name):
        from lookuplab.models.remote import RemoteModel

        return RemoteModel.from_name(name, **options)
    from lookuplab.models.local import load_local  # torch and transformers take seconds to import

    if name.endswith(CHAT):
        name, options = name.removesuffix(CHAT), {"chat": True, **options}
    name, revision = split_revision(_located(name))
    if revision is not None:
        if options.setdefault("revision", revision) != revision:
            raise UserError(f"model {name}: the name says revision {revision}, the option {options['revision']}")
    known = load_local.__kwdefaults__
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(f"model {name}: unknown option {unknown[0]!r} (there are {', '.join(sorted(known))})")
    return _mini(name, options) if name.startswith("mini-") else load_local(name, **options)


def load_tokenizer(name: str):
    """The Transformers tokenizer of a local model, named as for ``load``, without its weights."""
    from lookuplab.models.checkpoint import read_tokenizer

    name, revision = split_revision(_located(name.removesuffix(CHAT)))
    return read_tokenizer(str(mini_models().get(name, name)), revision)


def folder_of(name: str) -> Path:
    """The folder of one of the kit's own models, or that a name's path leads to, whether it is there or not."""
    return mini_models().get(name) or Path(_located(name)).expanduser().resolve()


def is_remote(name: str) -> bool:
    """An endpoint's address: whatever answers there, no checkpoint is needed here."""
    return "://" in name or name.startswith(OPENAI)


def split_revision(name: str) -> tuple[str, str | None]:
    """A name on the hub and the revision behind ``@``, None without one. Folders keep their name, whatever is in it.

    UserError for an ``@`` with nothing behind it.
    """
    place, at, revision = name.partition("@")
    if not at or name.startswith((".", "/", "~")) or Path(name).exists() or place.count("/") != 1:
        return name, None
    if not revision:
        raise UserError(f"model {name!r} names no revision behind the @; write OWNER/NAME@REVISION, or leave it out")
    return place, revision


def table_name(name: str) -> str:
    """How tables and ``roles`` call the model of that name: without address, folder, revision and ``#chat``."""
    if is_remote(name):
        return name.removeprefix(OPENAI).rpartition("#")[2].removesuffix("&chat")
    name = split_revision(name.removesuffix(CHAT))[0]
    return Path(name).resolve().name if Path(name).expanduser().is_dir() else name


def mini_models() -> dict[str, Path]:
    """Short name -> folder of every one of the kit's own models: CloudAPIBench's, ToolGen's, and those that answer
    questions, each sorted."""
    folders = (folder for room in ("models", "toolgen", "questions") for folder in sorted((paths.MINI / room).glob("*")))
    return {f"mini-{folder.name}": folder for folder in folders if is_model(folder)}


def _located(name: str) -> str:
    """``data/...`` and ``runs/...`` are the checkout's, wherever a notebook's kernel runs."""
    return str(paths.located(name)) if name.startswith(("data/", "runs/")) else name


def _mini(name: str, options: dict) -> Model:
    """One of the kit's own models, under its short name."""
    from lookuplab.models.local import load_local

    known = mini_models()
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "there is none yet: run `lookuplab train mini`"
        raise UserError(f"no mini model {name!r}; {there}")
    model = load_local(str(known[name]), **options)
    return replace(model, checkpoint=replace(model.checkpoint, name=name))
