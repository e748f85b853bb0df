"""Downloads named in ``data/sources.toml``: fetched once, resumed if cut off, checked by size
and sha256.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookuplab import paths, python_sources
from lookuplab.errors import UserError
from lookuplab.provenance import file_hash

KINDS = ("file", "model", "dataset", "environment", "sources")
UNPINNED = "main"


@dataclass(frozen=True)
class Source:
    """One download. ``address`` is a URL for a file, ``owner/name`` on the Hugging Face hub for a
    model or data set; for an environment (a Python of its own) and for sources it is the file with
    the packages' versions.

    No hash is known of a file that is ``recorded``: that of the first download is kept beside it
    and holds from then on. ``facts`` are a model's architecture, number of parameters and the dtype
    of its files.
    """

    name: str
    kind: str
    address: str
    licence: str
    purpose: str
    size: int = 0
    sha256: str = ""
    revision: str = UNPINNED
    streamed: bool = False
    recorded: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where a file is kept; hub models and data sets stay in the hub's own cache."""
        return paths.DOWNLOADS / self.name / self.address.rsplit("/", 1)[-1].split("?")[0]


def load() -> dict[str, Source]:
    """name -> source. Raises UserError for an entry that lacks a field or has an unknown one."""
    file, found = paths.DATA / "sources.toml", {}
    try:
        for name, entry in tomllib.loads(file.read_text(encoding="utf-8")).items():
            found[name] = source = Source(name, **entry)
            known = source.recorded or (source.size and len(source.sha256) == 64)
            if source.kind not in KINDS or (source.kind == "file" and not known):
                raise TypeError(
                    f"the kind is one of {', '.join(KINDS)}, and a file needs its size and sha256"
                )
    except (OSError, tomllib.TOMLDecodeError, TypeError) as error:
        raise UserError(f"{file}, after {list(found)[-1:]}: {error}") from error
    return found


def find(name: str) -> Source:
    """One source by name. Raises UserError for an unknown one."""
    if source := load().get(name):
        return source
    raise UserError(f"no download {name!r}; `lookuplab data list` names them")


def pinned(name: str) -> str:
    """A model on the hub at the revision that is pinned for it, unless the name says another or none is pinned."""
    if not (
        paths.DATA / "sources.toml"
    ).is_file():  # a checkout of your own notebooks needs no list
        return name
    for source in load().values():
        if (source.kind, source.address) == ("model", name) and source.revision != UNPINNED:
            return f"{name}@{source.revision}"
    return name


def is_fetched(source: Source) -> bool:
    """Whether it is there: a file (whose hash was checked when it came), or a repository in the
    hub's cache.
    """
    if source.kind == "file":
        return source.path.is_file() and (
            source.recorded or source.path.stat().st_size == source.size
        )
    if source.kind == "environment":
        from lookuplab.stackoverflow import grader

        return grader.is_made(source.name)
    if source.kind == "sources":
        return python_sources.is_fetched()
    try:
        return not source.streamed and bool(_snapshot(source, local_files_only=True))
    except Exception:
        return False


def get(source: Source) -> Path:
    """Fetch a source unless it is there; return where it lies.

    An environment is made, or repaired if something of it is missing or does not import. Raises
    UserError if the address does not answer, or answers with other bytes than size and hash say.
    """
    if source.kind == "environment":
        from lookuplab.stackoverflow import grader

        return grader.make(source.name)
    if source.kind == "sources":
        return python_sources.get()
    if source.streamed:
        raise UserError(
            f"{source.name} is streamed from the hub while it is used, never fetched whole "
            f"({source.address})"
        )
    if is_fetched(source):
        return (
            source.path if source.kind == "file" else Path(_snapshot(source, local_files_only=True))
        )
    try:
        return _get_file(source) if source.kind == "file" else Path(_snapshot(source))
    except Exception as error:  # network, rights, name: the hub's client has one exception for each
        if isinstance(error, UserError):
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"{source.name}: {source.address} does not give it: {reason}; connect, and if it is on the hub, "
            f"accept its licence there (`hf auth login`; {source.licence})"
        ) from error


def _snapshot(source: Source, **options: Any) -> str:
    from huggingface_hub import snapshot_download

    return snapshot_download(
        source.address, repo_type=source.kind, revision=source.revision, **options
    )


def _get_file(source: Source) -> Path:
    """The hub's own downloader takes any address: it resumes, tries again and shows its progress."""
    from huggingface_hub.file_download import http_get

    part = source.path.with_name(source.path.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    with open(part, "ab") as stream:
        http_get(
            source.address,
            stream,
            resume_size=stream.tell(),
            expected_size=source.size or None,
            displayed_filename=source.name,
        )
    came = f"{part.stat().st_size} {file_hash(part)}"
    expected, record = (
        f"{source.size} {source.sha256}",
        source.path.with_name(source.path.name + ".sha256"),
    )
    if source.recorded:
        if not record.exists():
            record.write_text(came, encoding="utf-8")
        expected = record.read_text(encoding="utf-8").strip()
    if came != expected:
        aside = part.replace(source.path.with_name(source.path.name + ".wrong"))
        raise UserError(
            f"{source.name}: {source.address} gave size and sha256 {came}, not the {expected} of "
            f"{record if source.recorded else 'sources.toml'}; what came is kept as {aside}"
        )
    return part.replace(source.path)
