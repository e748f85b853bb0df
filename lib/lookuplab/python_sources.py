"""Provides the Python sources that Jedi and pylint read and from which corpora are made. The set of
sources is pinned, so no answer depends on which other packages are installed.

``data/python-sources.txt`` pins wheels by version and sha256. ``lookuplab data get
python-sources``, which is part of the installation, downloads the wheels with pip and unpacks their
Python files, stubs and metadata into one folder. Of a compiled module, Jedi and pylint read the
stub, which is the same on every system, and not the module itself.

``$LOOKUPLAB_SOURCES`` may name a different folder, which has the libraries that your own repository
imports.

Packages whose code is executed, such as those that DS-1000's programs import, are installed into a
separate virtual environment (``environment``).
"""

import functools
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from importlib import machinery, metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.paths import file_hash, folder_hash

SOURCES_NAME = "python-sources"
PINS = paths.DATA / f"{SOURCES_NAME}.txt"
# endings of the files that are unpacked from a wheel; the metadata has versions and licences
_KEPT = (".py", ".pyi", "/py.typed", ".dist-info/METADATA", ".dist-info/RECORD")
# folders in a repository whose files are not the repository's own
FOREIGN = {"site-packages", "dist-packages", "node_modules", "__pypackages__", "__pycache__"}
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")  # a folder with one of these is an environment
# With these options, pip downloads the wheels whose hashes are pinned. Without them, pip would
# choose wheels for the system and the Python on which it runs.
_WHEELS = (
    "--implementation=cp",
    "--python-version=3.11.9",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux_2_17_x86_64",
    "--platform=manylinux2014_x86_64",
)


def folder() -> Path:
    """Return the folder of the sources: ``$LOOKUPLAB_SOURCES`` if it is set, otherwise the folder
    of the pinned sources, which are fetched if they are missing. Raises UserError if
    ``$LOOKUPLAB_SOURCES`` is not a folder, or if pip fails.
    """
    if own := os.environ.get("LOOKUPLAB_SOURCES"):
        if not Path(own).is_dir():
            raise UserError(
                f"LOOKUPLAB_SOURCES is {own!r}, which is not a folder; name one, or unset it"
            )
        return Path(own).resolve()
    return get()


def _place() -> Path:
    return paths.DOWNLOADS / SOURCES_NAME / file_hash(PINS)[:12]


def is_fetched() -> bool:
    return _place().is_dir()


def get() -> Path:
    """Return the folder of the sources that PINS pins. If the sources are missing, fetch and unpack
    them; the folder is either complete or absent. Raises UserError if pip fails.
    """
    place = _place()
    if place.is_dir():
        return place
    with TemporaryDirectory(dir=paths.make_folder(place.parent)) as temporary:
        wheels, unpacked = Path(temporary, "wheels"), Path(temporary, "sources")
        if said := download(wheels, "--require-hashes", *_WHEELS, "-r", str(PINS)):
            raise UserError(
                f"pip cannot download the sources of {PINS.name}: {said}; fix this, then run "
                f"`lookuplab data get {SOURCES_NAME}`"
            )
        for wheel in sorted(wheels.iterdir()):
            with zipfile.ZipFile(wheel) as content:
                content.extractall(
                    unpacked, [name for name in content.namelist() if name.endswith(_KEPT)]
                )
        try:
            unpacked.rename(place)
        except OSError:  # another process may have made the folder first
            if not place.is_dir():
                raise
    return place


def download(folder: Path, *wanted: str) -> str:
    """Download wheels to a folder with pip, without running any code in them. Return the last line
    in which pip reports an error, or "" if pip succeeds.
    """
    # -P: a module in the user's folder must not take the place of one in the standard library
    call = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    call += ["download", "--no-deps", "--only-binary=:all:", *wanted, "-d", str(folder)]
    # send pip's progress to stderr (2), because stdout is for results
    done = _run_pip(call, stdout=2, stderr=subprocess.PIPE, text=True)
    errors = re.findall("^ERROR: (.*)", done.stderr, re.MULTILINE) or ["pip was killed"]
    return errors[-1] if done.returncode else ""


def _run_pip(call: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run pip or venv in a new session, so that Ctrl-C reaches only the kit's own process. That
    process then ends pip or venv, and removes the folder with the temporary files.
    """
    with paths.temporary_folder() as folder:
        # Jupyter's kernels ask for colours, in which ``download`` would not find pip's errors
        given = os.environ | {"TMPDIR": folder, "PIP_NO_COLOR": "1"}
        return subprocess.run(call, env=given, start_new_session=True, **options)


def has_environment(name: str) -> bool:
    """Return whether the virtual environment ``name`` is installed with the packages of its current
    list of pins, ``data/NAME.txt``.
    """
    mark = paths.DOWNLOADS / name / "venv/installed.txt"
    return mark.is_file() and mark.read_text() == file_hash(paths.DATA / f"{name}.txt")


def environment(name: str) -> Path:
    """Return the path of the Python executable in the virtual environment ``name``. If the
    environment is missing or out of date, create it and install its pinned packages. Raises
    UserError if venv or pip fails.
    """
    folder = paths.DOWNLOADS / name / "venv"
    pins = paths.DATA / f"{name}.txt"
    python = folder / "bin/python"
    if not has_environment(name):
        try:
            _run_pip([sys.executable, "-P", "-m", "venv", str(folder)], check=True)
            pip = [str(python), "-P", "-m", "pip", "install", "--no-input", "-r", str(pins)]
            _run_pip(pip, check=True)
        except subprocess.CalledProcessError as error:
            raise UserError(
                f"{name}: {error}; what was installed is kept: repeat the command to continue"
            ) from None
        (folder / "installed.txt").write_text(file_hash(pins))
    return python


@functools.cache
def identity(*analysers: str) -> str:
    """Return a text that becomes part of the keys of the analysers' stored answers. It contains
    the versions of the ``analysers`` and a hash of the sources. An answer also depends on the
    repository and on Python's version; the caller must add both to the key.
    """
    read = file_hash(PINS)
    if os.environ.get("LOOKUPLAB_SOURCES"):
        files = sorted(file for file in folder().rglob("*.py*") if file.suffix in (".py", ".pyi"))
        read = folder_hash(folder(), filter(Path.is_file, files), "digests")
    return ", ".join(
        [*(f"{name} {metadata.version(name)}" for name in analysers), f"sources {read}"]
    )


def python_files(root: Path) -> list[Path]:
    """Return every ``*.py`` file under ``root`` that belongs to the repository, sorted. Links are
    not followed. Hidden folders, virtual environments, installed packages and build output are left
    out. Folders that cannot be read are left out, too, with a warning.
    """
    found = []
    for folder, folders, names in os.walk(root):
        at = Path(folder)
        folders[:] = [name for name in folders if _is_own(at / name)]
        found += [at / name for name in names if name.endswith(".py")]
    return sorted(path for path in found if os.path.isfile(path) and not path.is_symlink())


def _is_own(folder: Path) -> bool:
    built = folder.name in ("build", "dist") and not os.path.exists(folder / "__init__.py")
    foreign = folder.name.startswith(".") or folder.name in FOREIGN
    installed = any(os.path.lexists(folder / name) for name in _ENVIRONMENT)
    if built or foreign or installed or folder.is_symlink():
        return False
    return os.access(folder, os.R_OK | os.X_OK) or _is_left_out(folder)


@functools.cache  # warns once, although a notebook lists the files of a repository several times
def _is_left_out(folder: Path) -> bool:
    print(f"warning: {str(folder)!r} cannot be read: left out", file=sys.stderr)
    return False


def search_path() -> list[str]:
    """Return the folders where imports are looked up: Python's own library, then the sources."""
    library = Path(os.__file__).parent
    return [str(library), str(library / "lib-dynload"), str(folder())]


def restrict() -> None:
    """Make this process import only from ``search_path``, without the import hooks of installed
    packages.

    Import the analyser itself before the call, because it may not be importable afterwards.
    """
    sys.path[:] = search_path()
    sys.meta_path[:] = [machinery.BuiltinImporter, machinery.FrozenImporter, machinery.PathFinder]
    importlib.util.find_spec = _find_spec  # type: ignore[assignment]
    for name, module in list(sys.modules.items()):
        if hasattr(module, "__path__") and not getattr(module, "__file__", None):
            # this is an installed namespace package; astroid would find it in ``sys.modules``
            del sys.modules[name]
    importlib.invalidate_caches()


def _find_spec(name: str, _package: str | None = None) -> machinery.ModuleSpec | None:
    """Find a top-level module as ``importlib.util.find_spec`` does, but ignore what this process
    has already imported.
    """
    return next(filter(None, (finder.find_spec(name, None) for finder in sys.meta_path)), None)
