"""The content of a checkpoint's folder, without what may be edited and leaves the model the same."""

import hashlib
from pathlib import Path

from tqdm import tqdm

LARGE = 2**30  # bytes from which hashing shows its progress
NOT_CONTENT = (".md", ".log", ".csv", "card.json")  # a card or a log may be edited without changing the model


def content_hash(folder: Path) -> str:
    """sha256 over the names and bytes of a checkpoint's files; cards, logs and hidden files do not count."""
    files = content_files(folder)
    total = sum(file.stat().st_size for file in files)
    digest = hashlib.sha256()
    with tqdm(total=total, unit="B", unit_scale=True, desc=f"hashing {folder.name}", disable=total < LARGE) as bar:
        for file in files:
            digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as stream:
                while block := stream.read(2**20):
                    digest.update(block)
                    bar.update(len(block))
    return digest.hexdigest()


def content_files(folder: Path) -> list[Path]:
    """The files that ``content_hash`` reads, sorted."""
    return sorted(file for file in folder.rglob("*") if file.is_file() and _is_content(file.relative_to(folder)))


def _is_content(path: Path) -> bool:
    return not any(part.startswith(".") for part in path.parts) and not path.name.endswith(NOT_CONTENT)
