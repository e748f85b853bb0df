"""An own Python package in place of AWS and Azure: its API index, read from what is installed.

The result is an index in the committed one's format (provider ``python``, service: the package), so validity, DAG and
its policies work on it unchanged: a call is valid iff it binds to the signature that ``inspect`` reports.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.cloudapi import specs
from lookuplab.cloudapi.build import flagged
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, from_json, to_json
from lookuplab.errors import UserError

_READER = (sys.executable, "-m", "lookuplab.cloudapi.inspection")


@dataclass
class Package:
    """What one package offers. ``left_out`` counts modules and names that could not be read, by reason; ``version`` is
    empty for a package that is not installed, ``folder`` where its sources lie (None: all of it is compiled)."""

    name: str
    version: str
    folder: Path | None
    specs: list[ApiSpec] = field(default_factory=list)
    documentation: dict[str, str] = field(default_factory=dict)
    left_out: Counter = field(default_factory=Counter)

    def counts(self) -> dict[str, int]:
        """How many APIs of which kind: what a benchmark cannot ask for is named with the reason."""
        called = [spec for spec in self.specs if "property" not in spec.flags]
        asked = [spec for spec in called if spec.operation]
        return {
            "public callables": len(called),
            "functions and classes": sum(not spec.module for spec in called),
            "methods of classes": sum(bool(spec.module) for spec in called),
            "further names of the same (re-exports, aliases)": sum(len(spec.also) for spec in called),
            "no operation (exceptions, class and static methods, methods of foreign bases)": len(called) - len(asked),
            "without a signature that Python can tell": sum("no_signature" in spec.flags for spec in asked),
            "signature that takes anything": sum("open_signature" in spec.flags for spec in asked),
            "without a docstring": sum(spec.id not in self.documentation for spec in asked),
        }


def inspected(name: str, progress: bool = True) -> Package:
    """Read a package by import name (``networkx``, or a part: ``networkx.algorithms``) or by its folder.

    It is imported in a process of its own; a module that ends this process or does not return is left out and counted.
    Raises UserError for a package that does not import, or that offers nothing to call.
    """
    name, root = _located(name)
    skipped: list[str] = []
    while True:
        found, last, end = _read(name, root, skipped, progress)
        if isinstance(found, Package):
            break
        if last == name or last in skipped:
            raise UserError(f"{name} ended the process that imported it ({end}): guard what runs on import with "
                            '`if __name__ == "__main__"`')
        skipped.append(last)
    if not any(spec.operation for spec in found.specs):
        raise UserError(f"{name} offers nothing public to call: no function, class or method without an underscore")
    found.specs = sorted(flagged(found.specs), key=lambda spec: spec.id)
    return found


def _located(name: str) -> tuple[str, Path | None]:
    """(import name, folder that makes it importable or None)."""
    if os.sep in name or name.startswith("."):
        folder = Path(name).expanduser().resolve()
        if not folder.is_dir() or not folder.name.isidentifier():
            raise UserError(f"{name} is no package's folder; give the folder that holds its __init__.py, or its name")
        return folder.name, folder.parent
    if not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"{name!r} is no import name: write it as after `import` (scikit-learn is `sklearn`)")
    return name, None


def _read(name: str, root: Path | None, skipped: Sequence[str], progress: bool) -> tuple[Package | None, str, str]:
    """(package or None, the module imported last, how the process ended)."""
    way = os.pathsep.join(filter(None, [str(root or ""), os.environ.get("PYTHONPATH", "")]))
    quiet = {"PYTHONWARNINGS": "ignore", "MPLBACKEND": "Agg"} | ({"PYTHONPATH": way} if way else {})
    with tempfile.TemporaryFile() as noise, subprocess.Popen(
        [*_READER, name, *skipped], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=noise,
        encoding="utf-8", env=os.environ | quiet,
    ) as process, tqdm(desc=f"reading {name}", unit=" modules", delay=1, leave=False, disable=not progress) as bar:
        found, last, whole = Package(name, _version(name), root and root / name), name, False
        for line in _lines(process):
            if "importing" in line:
                last = line["importing"]
                bar.update()
            elif "failed" in line:
                raise UserError(_failure(name, line["failed"]))
            elif "left_out" in line:
                found.left_out, found.folder, whole = Counter(line["left_out"]), _folder(line["folder"]), True
            else:
                spec = from_json(line["api"])
                found.specs.append(spec)
                found.documentation |= {spec.id: line["documentation"]} if line["documentation"] else {}
    code = process.returncode
    return found if whole else None, last, f"signal {-code}" if code < 0 else f"exit code {code}"


def _lines(process: subprocess.Popen) -> Iterator[dict]:
    for line in process.stdout or ():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:  # cut off by the end of the process
            return


def _failure(name: str, said: str) -> str:
    if said.startswith("ModuleNotFoundError") and f"'{name.partition('.')[0]}'" in said:
        return f"no package {name!r} here: install it into this environment, or give its folder"
    return f"{name} does not import: {said}"


def _folder(place: str) -> Path | None:
    return Path(place) if place else None


def _version(name: str) -> str:
    """Of the distribution that the import name belongs to, "" where there is none."""
    top = name.partition(".")[0]
    owners = importlib.metadata.packages_distributions().get(top, [])
    return importlib.metadata.version(owners[0]) if owners else ""


def index_of(packages: Sequence[Package]) -> ApiIndex:
    """One index of several packages, as ``save`` writes it."""
    return ApiIndex(sorted((spec for package in packages for spec in package.specs), key=lambda spec: spec.id))


def save(packages: Sequence[Package], folder: Path) -> ApiIndex:
    """Write ``index.jsonl.xz`` and ``documentation.jsonl.xz`` into ``folder``; return the index as read from there."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {api: text for package in packages for api, text in package.documentation.items()}
    specs.write_rows(folder / specs.INDEX.name, map(to_json, index_of(packages).specs))
    specs.write_rows(folder / specs.DOCUMENTATION.name,
                     ({"id": api, "documentation": pages[api]} for api in sorted(pages)))
    specs.load_index.cache_clear()  # an index that is built anew in one process has the path of the old one
    specs.load_documentation.cache_clear()
    return specs.load_index(folder / specs.INDEX.name)


def folder_of(packages: Sequence[str]) -> Path:
    """Where the material of these packages is kept unless another folder is named."""
    return paths.RUNS / "packages" / "-".join(Path(name).name for name in packages)
