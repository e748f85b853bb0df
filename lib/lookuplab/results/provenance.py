"""Collects the provenance of a number: code, packages, models, data and machine."""

import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.paths import file_hash, folder_hash
from lookuplab.work import processors

# the packages whose versions can change a number
RECORDED_PACKAGES = """lookuplab torch transformers tokenizers accelerate peft numpy pandas scipy
scikit-learn statsmodels rank-bm25 gensim sentence-transformers openai matplotlib seaborn jedi parso
pylint astroid tree-sitter tree-sitter-python rapidfuzz""".split()


def describe(models: Iterable[Any] = (), data: Iterable[str | Path] = ()) -> dict[str, Any]:
    """Return the provenance of numbers that were computed here: versions, machine, ``models`` and
    hashes of ``data``. The caller adds seeds, parameters and time. ``models`` are objects with an
    ``identity``, or identities; ``data`` are files or folders.
    """
    sources = paths.DATA / "python-sources.txt"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)figures")
    hashes: dict[str, str] = {}
    for path in data:
        name = public(path)
        found = content_hash(paths.located(path))
        # two files outside the checkout may have the same public name
        hashes[name if hashes.get(name, found) == found else f"{name} ({found[:8]})"] = found
    return {
        "git": {
            "commit": git("rev-parse", "HEAD"),
            "dirty": None if changed is None else bool(changed),
        },
        "python": platform.python_version(),
        "packages": package_versions(),
        "python_sources": file_hash(sources) if sources.is_file() else None,
        "processor": processor(),
        "device": device(),
        "threads": threads(),
        "models": [public(dict(getattr(model, "identity", model))) for model in models],
        "data": hashes,
    }


def git(*arguments: str) -> str | None:
    """Return the output of git in the checkout; None outside a repository or without git."""
    command = ["git", "-C", str(paths.ROOT), *arguments]
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True).strip()
    return None


def package_versions() -> dict[str, str]:
    versions = {}
    for name in RECORDED_PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def processor() -> str:
    """Return the processor's architecture, model and vector extension as a text. Machines for which
    this text is equal compute equal numbers.
    """
    # Linux reports the processor's model and flags, other systems at most the model
    info = Path("/proc/cpuinfo")
    text = info.read_text("utf-8") if info.is_file() else ""
    entries: dict[str, str] = dict(
        re.findall(r"^(model name|flags|Features)\s*: (.*)$", text, re.MULTILINE)
    )
    flags = entries.get("flags", entries.get("Features", "")).split()
    widest = [flag for flag in ("amx_tile", "avx512f", "avx2", "asimd") if flag in flags][:1]
    model = entries.get("model name", platform.processor()).strip()
    return ", ".join(filter(None, (platform.machine(), model, *widest)))


def threads() -> int:
    """Return the number of threads that torch uses, or would use if the run had imported it."""
    if torch := sys.modules.get("torch"):
        return int(torch.get_num_threads())
    return int(os.environ.get("OMP_NUM_THREADS", processors()))


def device() -> str:
    """Return the accelerators' names, or "cpu". Torch is consulted only if the run has
    imported it.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return "cpu"
    return ", ".join(map(torch.cuda.get_device_name, range(torch.cuda.device_count())))


def content_hash(path: Path, pattern: str = "*") -> str:
    """Return the sha256 of a file's content. For a folder, return the sha256 of the sorted names
    and contents of its files that match ``pattern``. Raises UserError if the path is missing.
    """
    path = paths.ROOT / path
    if path.is_file():
        return file_hash(path)
    if not path.is_dir():
        raise UserError(f"no data at {relative(path)}: its hash belongs in the provenance")
    files = sorted(file for file in path.rglob(pattern) if file.is_file())
    return folder_hash(path, files, "lines")


def library_hash() -> str:
    """Return a hash of all code that notebooks import: the library, the recipes in
    ``data/recipes``, and the Python files in the notebooks' folders.
    """
    folders = Path(__file__).parents[1], paths.DATA / "recipes", paths.NOTEBOOKS
    hashes = [content_hash(folder, "*.py") for folder in folders if folder.is_dir()]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def relative(value: Any) -> Any:
    """Return a value in which paths inside the checkout are relative to it. The items of lists and
    the values of mappings are changed, too.
    """
    return _each_text(value, lambda text: text.removeprefix(f"{paths.ROOT}{os.sep}"))


def public(value: Any) -> Any:
    """Return a value whose paths can be published. A path inside the checkout becomes relative to
    it. Of a path outside the checkout only the last part is kept (of ``FOLDER/*`` the last two),
    which reveals nothing about this machine.
    """
    return _each_text(relative(value), lambda text: re.sub(r"^/.*/(?=[^/*]+(/\*?)?$)", "", text))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: _each_text(item, change) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each_text(item, change) for item in value]
    return change(str(value)) if isinstance(value, (str, Path)) else value
