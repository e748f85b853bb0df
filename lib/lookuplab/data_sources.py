"""Downloads named in ``data/sources.toml``: fetched once, resumed where cut off, checked by size and sha256."""

import difflib
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from lookuplab import paths, python_sources
from lookuplab.errors import UserError
from lookuplab.models.facts import ModelFacts
from lookuplab.models.load import split_revision
from lookuplab.provenance import file_hash
from lookuplab.stackoverflow import environment

KINDS = ("file", "model", "dataset", "environment", "sources")
UNPINNED = "main"
ATTEMPTS = 4
TIMEOUT = 30.0  # seconds without a byte


@dataclass(frozen=True)
class Source:
    """One download. ``address`` is a URL for a file, ``owner/name`` on the Hugging Face hub for a model or data set.

    For an environment, a Python of its own, and for sources it is the file of the packages' versions in the checkout.

    Of a file that is ``recorded`` no hash is known here: the first download's is kept beside it and holds from then on.
    ``facts`` say of a model what its configuration and files on the hub say.
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
    facts: ModelFacts | None = None

    @property
    def path(self) -> Path:
        """Where a file comes to lie; hub models and data sets stay in the hub's own cache."""
        return paths.DOWNLOADS / self.name / self.address.rsplit("/", 1)[-1].split("?")[0]


def load(file: Path | None = None) -> dict[str, Source]:
    """name -> source. Raises UserError for an entry that lacks a field or has an unknown one."""
    file = file or paths.DATA / "sources.toml"
    try:
        entries = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{file}: {error}") from error
    return {name: _source(file, name, entry) for name, entry in entries.items()}


def find(name: str) -> Source:
    """One source by name. Raises UserError with the nearest name."""
    sources = load()
    if name not in sources:
        close = difflib.get_close_matches(name, sources, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UserError(f"no download {name!r}{hint}; `lookuplab data list` names them")
    return sources[name]


def of_model(name: str) -> Source | None:
    """The source of a model on the hub, named with or without a revision; None for a model that is not listed."""
    if not (paths.DATA / "sources.toml").is_file():  # a checkout of one's own notebooks needs no list
        return None
    address = split_revision(name)[0]
    return next((source for source in load().values() if (source.kind, source.address) == ("model", address)), None)


def pinned(name: str) -> str:
    """A model on the hub at the revision that is pinned for it, unless the name says another or none is pinned."""
    source = of_model(name)
    if source is None or source.revision == UNPINNED or split_revision(name)[1] is not None:
        return name
    return f"{name}@{source.revision}"


def is_fetched(source: Source) -> bool:
    """A file of the right size is there (its hash was checked when it came), or the hub's cache has the repository."""
    if source.kind == "file":
        return source.path.is_file() and (source.recorded or source.path.stat().st_size == source.size)
    if source.kind == "environment":
        return not environment.defect(source.name)
    if source.kind == "sources":
        return python_sources.is_fetched()
    if source.streamed:
        return True
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(source.address, repo_type=source.kind, revision=source.revision, local_files_only=True)
    except Exception:  # not cached, or only in part: the hub's client has one exception for each
        return False
    return True


def get(source: Source) -> Path:
    """Fetch a source unless it is there; return where it lies.

    Raises UserError where the address does not answer, or answers with other bytes than the size and hash say. An
    environment is made, or repaired where something of it is missing or does not import.
    """
    if source.kind == "environment":
        return environment.get(source.name)
    if source.kind == "sources":
        return python_sources.get()
    if source.kind != "file":
        return _get_from_hub(source)
    if is_fetched(source):
        return source.path
    part = source.path.with_name(source.path.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    _download(source, part)
    size, digest = part.stat().st_size, file_hash(part)
    expected, where = (source.size, source.sha256), "sources.toml"
    if source.recorded:
        expected, where = _record(source, size, digest)
    if (size, digest) != expected:
        aside = part.replace(source.path.with_name(source.path.name + ".wrong"))
        raise UserError(f"{source.name}: {source.address} gave {size:,} bytes with sha256 {digest}, not the "
                        f"{expected[0]:,} bytes with {expected[1]} of {where}; what came is kept as {aside}")
    part.replace(source.path)
    return source.path


def _record(source: Source, size: int, digest: str) -> tuple[tuple[int, str], str]:
    """Size and hash of the first download, and the file that keeps them: this one's where there was none before."""
    record = source.path.with_name(source.path.name + ".sha256")
    if not record.exists():
        record.write_text(f"{size} {digest}\n", encoding="utf-8")
    first, known = record.read_text(encoding="utf-8").split()
    return (int(first), known), str(record)


def _download(source: Source, part: Path) -> None:
    """Append to ``part`` until it is whole. Attempts that bring nothing are counted, with longer pauses."""
    import httpx
    from tqdm import tqdm

    fruitless = 0
    with tqdm(total=source.size or None, unit="B", unit_scale=True, desc=source.name) as bar:
        while fruitless < ATTEMPTS:
            before = _size(part)
            try:
                _append(source, part, bar)
                return
            except httpx.HTTPStatusError as error:
                status = error.response.status_code
                if status < 500 and status != 429:
                    raise UserError(f"{source.name}: {source.address} answers {status}; "
                                    "its place may have changed: see data/sources.toml") from error
                reason = f"answers {status}"
            except httpx.HTTPError as error:
                reason = f"does not answer, or not to the end ({type(error).__name__}: {error})"
            fruitless = 0 if _size(part) > before else fruitless + 1
            time.sleep(2**fruitless / 2 * _PAUSE)
    raise UserError(f"{source.name}: {source.address} {reason}, {ATTEMPTS} times; "
                    "what came is kept and the same command goes on from there")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


_PAUSE = 1.0  # seconds before an attempt after one that brought nothing; doubled each time


def _append(source: Source, part: Path, bar: object) -> None:
    """One request for the missing bytes. A server that ignores ``Range`` sends all: then the file starts anew."""
    import httpx

    have = _size(part)
    if not source.recorded and have >= source.size:
        return
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    with httpx.stream("GET", source.address, headers=headers, timeout=TIMEOUT, follow_redirects=True) as response:
        if response.status_code == 416:  # nothing from there on: the part is no beginning of this file
            part.unlink()
            raise httpx.ReadError("the part on disk does not fit the file")
        response.raise_for_status()
        resumed = response.status_code == 206
        bar.n = have if resumed else 0
        with open(part, "ab" if resumed else "wb") as out:
            for chunk in response.iter_bytes():  # as they come: a fixed size would hold back the last
                out.write(chunk)
                bar.update(len(chunk))
    if (have := _size(part)) < source.size:
        raise httpx.ReadError(f"cut off after {have:,} of {source.size:,} bytes")


def _get_from_hub(source: Source) -> Path:
    from huggingface_hub import snapshot_download

    if source.streamed:
        raise UserError(f"{source.name} is streamed from the hub while it is used, never fetched whole "
                        f"({source.address})")
    try:
        return Path(snapshot_download(source.address, repo_type=source.kind, revision=source.revision))
    except Exception as error:  # network, rights, name: the hub's client has one exception for each
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"{source.name}: the Hugging Face hub does not give {source.address}: {reason}; connect, and "
                        f"accept the licence there where it asks (`hf auth login`; {source.licence})") from error


def _source(file: Path, name: str, entry: dict) -> Source:
    try:
        facts = ModelFacts(**entry["facts"]) if "facts" in entry else None
        source = Source(name, **{**entry, "facts": facts})
    except TypeError as error:
        raise UserError(f"{file}: [{name}]: {str(error).partition('.__init__() ')[2] or error}") from error
    if source.kind not in KINDS:
        raise UserError(f"{file}: [{name}]: kind {source.kind!r} is none of {', '.join(KINDS)}")
    if source.kind == "file" and not source.recorded and not (source.size and len(source.sha256) == 64):
        raise UserError(f"{file}: [{name}]: a file needs its size in bytes and its sha256")
    return source
