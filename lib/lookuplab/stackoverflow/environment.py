"""The grader's own Python: DS-1000's references hold for the library versions of its time, not for the kit's.

`lookuplab data get ds1000-grader` makes it: a virtual environment with the pins of ``data/ds1000-grader.txt``. Nothing
of it is imported here; programs run in it in processes of their own.
"""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.provenance import file_hash

NAME = "ds1000-grader"
# What the problems import, and what the import name is where it differs from the package's.
IMPORTS = {"scikit-learn": "sklearn", "tensorflow-cpu": "tensorflow", "PyYAML": "yaml"}
SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "OMP_NUM_THREADS": "1"}
_VERSIONS = """import sys
from importlib.metadata import distributions
print(sys.version, sorted({(one.metadata["Name"], one.version) for one in distributions()}))"""
_POLL = 0.5  # seconds between two looks at what pip has done


def requirements(name: str = NAME) -> Path:
    """The file of pins: first what the problems import, then, after a comment, what libraries import in turn."""
    return paths.DATA / f"{name}.txt"


def folder(name: str = NAME) -> Path:
    """The virtual environment's place; it need not exist."""
    return paths.DOWNLOADS / name / "venv"


def environment(name: str = NAME) -> Path:
    """The Python of a complete grader environment: of a pinned one by name, or a Python's own path.

    Raises UserError that names what is missing and the command that repairs it.
    """
    if Path(name).is_file():
        return Path(name).absolute()  # not resolved: a virtual environment is known by its link's place
    if not requirements(name).is_file():
        raise UserError(f"no grader environment {name!r}: neither a Python's path nor "
                        f"{requirements(name).name} in data/")
    if problem := defect(name):
        raise UserError(f"the grader environment {name} is incomplete: {problem}; run `lookuplab data get {name}`")
    return folder(name) / "bin" / "python"


def defect(name: str = NAME) -> str:
    """What is wrong with an environment, found without starting a process; "" if nothing is."""
    if not (folder(name) / "bin" / "python").is_file():
        return f"there is no Python at {paths.DOWNLOADS.name}/{name}/venv"
    lacking = _lacking(name)
    if lacking:
        return f"{', '.join(lacking[:3])}{' ...' if lacking[3:] else ''} missing, or of another version"
    mark = _mark(name)
    if not mark.is_file() or mark.read_text(encoding="utf-8") != file_hash(requirements(name)):
        return "its packages were never imported to the end"
    return ""


def get(name: str = NAME) -> Path:
    """Make or repair an environment; return its Python. What is there and whole stays.

    A package that is there and does not import is named and installed anew. Raises UserError where pip or, after that,
    an import fails.
    """
    python = _virtual_environment(name)
    if _lacking(name):
        _pip(name, "-r", str(requirements(name)))
    direct, _ = pins(name)
    broken = _not_importable(python, direct)
    for pin in broken:
        tqdm.write(f"{name}: {pin} is there and does not import ({broken[pin]}); it is installed anew")
        _pip(name, "--force-reinstall", "--no-deps", pin)
    if broken and (still := _not_importable(python, direct)):
        pin, reason = next(iter(still.items()))
        raise UserError(f"{name}: {pin} does not import: {reason}; remove {folder(name)} and run the command again")
    _mark(name).write_text(file_hash(requirements(name)), encoding="utf-8")
    return python


def identity(python: Path) -> str:
    """A digest of a Python's version and of all installed packages with theirs: what a verdict depends on."""
    return hashlib.sha256(_said(python, _VERSIONS).encode()).hexdigest()


def _said(python: Path, code: str) -> str:
    try:
        call = [str(python), "-I", "-c", code]
        return subprocess.run(call, capture_output=True, check=True, text=True, env=_environ()).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"the Python {python} does not run: {error}; see `lookuplab data get {NAME}`") from None


def pins(name: str = NAME) -> tuple[list[str], list[str]]:
    """``package==version`` of what the problems import, and of what that needs."""
    first, _, rest = requirements(name).read_text(encoding="utf-8").partition("\n# what these need\n")
    return tuple([line for line in text.splitlines() if line and not line.startswith("#")] for text in (first, rest))


def _mark(name: str) -> Path:
    """Written once all imports went well: the hash of the pins that did."""
    return folder(name) / "imported.txt"


def _virtual_environment(name: str) -> Path:
    """A Python that runs, made anew if the one that is there does not."""
    python = folder(name) / "bin" / "python"
    if python.is_file() and _runs(python, "import pip")[0]:
        return python
    folder(name).parent.mkdir(parents=True, exist_ok=True)
    made, said = _runs(Path(sys.executable), "", "-m", "venv", "--clear", str(folder(name)))
    if not made:
        raise UserError(f"{name}: cannot make a virtual environment at {folder(name)}: {said}; "
                        "install Python's venv module, free the disk or remove that folder")
    return python


def _lacking(name: str) -> list[str]:
    """Pins without an installed distribution of that version, or whose import package is gone."""
    sites = list((folder(name) / "lib").glob("python3*/site-packages"))
    installed = _installed(name)
    direct, rest = pins(name)
    lacking = [pin for pin in [*direct, *rest] if _canonical(pin) not in installed]
    gone = [pin for pin in direct if pin not in lacking and not any((site / module(pin)).is_dir() for site in sites)]
    return lacking + gone


def _installed(name: str) -> set[str]:
    """``package==version`` of every distribution, from the names of the folders in which pip notes them."""
    notes = (folder(name) / "lib").glob("python3*/site-packages/*.dist-info")
    return {_canonical("==".join(note.name.removesuffix(".dist-info").rsplit("-", 1))) for note in notes}


def _canonical(pin: str) -> str:
    """Package names compare without case and separators, versions without the build (``+cpu``)."""
    package, _, version = pin.partition("==")
    return f"{re.sub('[-_.]+', '-', package).lower()}=={version.partition('+')[0]}"


def module(pin: str) -> str:
    """The name to import for a pin of what the problems import."""
    package = pin.partition("==")[0]
    return IMPORTS.get(package, package)


def _not_importable(python: Path, direct: list[str]) -> dict[str, str]:
    """pin -> the error's last line, each imported in a process of its own, so that one cannot hide another's fault."""
    failed = {}
    for pin in tqdm(direct, desc="importing", unit=" packages"):
        works, said = _runs(python, f"import {module(pin)}")
        if not works:
            failed[pin] = said
    return failed


def _runs(python: Path, code: str, *arguments: str) -> tuple[bool, str]:
    """Whether a call of a Python ends well, and the last line it said if not."""
    call = [str(python), *(arguments or ("-I", "-c", code))]
    try:
        done = subprocess.run(call, capture_output=True, text=True, env=_environ())
    except OSError as error:
        return False, str(error.strerror)
    return done.returncode == 0, (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]


def _environ() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | SETTINGS


def _pip(name: str, *arguments: str) -> None:
    """pip's install, with a bar of the packages collected and then installed; what it says is kept beside the venv."""
    log = folder(name).parent / "pip.log"
    total = sum(map(len, pins(name)))
    call = [str(folder(name) / "bin" / "python"), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    with open(log, "w", encoding="utf-8") as out, tqdm(total=2 * total, desc=name, unit=" steps") as bar:
        with subprocess.Popen([*call, *arguments], stdout=out, stderr=subprocess.STDOUT, env=_environ()) as pip:
            while pip.poll() is None:
                time.sleep(_POLL)
                bar.n = min(_collected(log), total) + min(len(_installed(name)), total)
                bar.refresh()
    if pip.returncode:
        errors = [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("ERROR")]
        raise UserError(f"{name}: pip failed: {errors[-1] if errors else 'see the log'} ({log}); what came is kept, "
                        f"and the same command goes on from there")


def _collected(log: Path) -> int:
    return len(re.findall("^(?:Collecting|Processing|Requirement already)", log.read_text(encoding="utf-8"), re.M))
