"""One way to name any model: a folder, a name on the hub, or an endpoint's address."""

from lookuplab.errors import UserError
from lookuplab.models.types import Model


def load(name: str, **options) -> Model:
    """The model of that name, ready for ``complete``.

    ``http(s)://HOST:PORT/v1#MODEL`` and ``openai:MODEL`` are remote (options: see ``remote.RemoteModel``), everything
    else is a checkpoint's folder or its name on the hub (options: see ``local.load_local``). UserError with one clear
    line for a model that is not there, an endpoint's bad address and an unknown option.
    """
    if "://" in name or name.startswith("openai:"):
        from lookuplab.models.remote import RemoteModel

        return RemoteModel.from_name(name, **options)
    from lookuplab.models.local import load_local  # torch and transformers take seconds to import

    known = load_local.__kwdefaults__
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(f"model {name}: unknown option {unknown[0]!r} (there are {', '.join(sorted(known))})")
    return load_local(name, **options)
