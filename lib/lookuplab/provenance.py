"""Where a number comes from: code, packages, models, data, machine. Kept beside every artifact as JSON."""

import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError

# The packages whose version can change a number.
PACKAGES = ("lookuplab", "torch", "transformers", "tokenizers", "accelerate", "numpy", "pandas", "scipy",
            "scikit-learn", "statsmodels", "rank-bm25", "gensim", "sentence-transformers", "openai", "matplotlib", "seaborn",
            "peft", "jedi", "parso", "pylint", "astroid", "codebleu", "tree-sitter", "tree-sitter-python", "rapidfuzz")


def describe(models: Iterable[Any] = (), data: Iterable[str | Path] = ()) -> dict[str, Any]:
    """Everything but the run itself. ``models`` have an ``identity`` (or are one), ``data`` are files or folders."""
    return {
        "git": git_state(),
        "python": platform.python_version(),
        "packages": package_versions(),
        "python_sources": file_hash(sources) if (sources := paths.DATA / "python-sources.txt").is_file() else None,
        "processor": processor(),
        "device": device(),
        "threads": _threads(),
        "models": [relative(dict(getattr(model, "identity", model))) for model in models],
        "data": {relative(path): content_hash(paths.located(path)) for path in data},
    }


def git_state() -> dict[str, Any]:
    """Commit of the checkout and whether tracked files other than figures differ from it; None outside a repository."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)figures")
    return {"commit": commit, "dirty": None if changed is None else bool(changed)}


def package_versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def processor() -> str:
    """Architecture, model and vector extension: on machines that agree in this text, equal runs give equal numbers."""
    model, flags = _cpu_info()
    widest = next((flag for flag in ("amx_tile", "avx512f", "avx2", "asimd") if flag in flags), "")
    return ", ".join(part for part in (platform.machine(), model, widest) if part)


def device() -> str:
    """The accelerators' names, or "cpu". Torch is asked only where the run has imported it."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return "cpu"
    return ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))


def peak_memory_mb() -> dict[str, float]:
    """This process's largest resident size, and the accelerator's largest allocation, in MB (10^6 bytes)."""
    try:
        import resource
    except ImportError:  # Windows has no such counter
        return {}
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss counts bytes on macOS and KiB on Linux
    peak = {"resident": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        devices = range(torch.cuda.device_count())
        peak["accelerator"] = round(sum(map(torch.cuda.max_memory_allocated, devices)) / 1e6, 1)
    return peak


def content_hash(path: Path) -> str:
    """sha256 of a file, or of a folder's files and names in sorted order. Raises UserError where it is missing."""
    path = path if path.is_absolute() else paths.ROOT / path
    if path.is_file():
        return file_hash(path)
    if not path.is_dir():
        raise UserError(f"no data at {relative(path)}: its hash belongs into the provenance")
    total = hashlib.sha256()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        total.update(f"{file.relative_to(path).as_posix()} {file_hash(file)}\n".encode())
    return total.hexdigest()


def file_hash(path: Path) -> str:
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def relative(value: Any) -> Any:
    """Paths inside the checkout without the checkout's own place; lists and mappings item by item."""
    if isinstance(value, dict):
        return {name: relative(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [relative(item) for item in value]
    if isinstance(value, (str, Path)) and str(value).startswith(str(paths.ROOT) + os.sep):
        return Path(value).relative_to(paths.ROOT).as_posix()
    return str(value) if isinstance(value, Path) else value


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(paths.ROOT), *arguments], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _cpu_info() -> tuple[str, set[str]]:
    """Model name and feature flags of the first processor; Linux tells both, others the name at most."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor(), set()
    found = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    return found.get("model name", platform.processor()), set(found.get("flags", found.get("Features", "")).split())


def _threads() -> int:
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch is not None else int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
