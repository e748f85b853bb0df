"""Records where a number comes from: the code, packages, models, data and machine with which it was
computed, and the notebook that this kernel executes, with its parameters.
"""

import ast
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from lookuplab import paths
from lookuplab.errors import UserError, check_choice
from lookuplab.work import env_int, processors

T = TypeVar("T")
# the packages whose versions can change a number
RECORDED_PACKAGES = """lookuplab torch transformers tokenizers accelerate peft numpy pandas scipy
scikit-learn rank-bm25 gensim sentence-transformers openai matplotlib seaborn jedi parso
pylint astroid tree-sitter tree-sitter-python rapidfuzz""".split()
INJECTED = "# Parameters\n"  # the first line of the cell that papermill adds
_ARTIFACT = re.compile(r"""\w+ = Artifact\(["']([^"']+)["'], ["']([^"']+)["'], profile\)""")

# 1. Code, packages, models, data and machine


def describe(models: Iterable[Any] = (), data: Iterable[str | Path] = ()) -> dict[str, Any]:
    """Return the provenance of numbers that this process computed: versions, machine, the
    identities of ``models`` and hashes of ``data``. The caller adds seeds, parameters and time. An
    item of ``models`` may be a model, or the dictionary that identifies a model; an item of
    ``data`` is a file or folder.
    """
    sources = paths.DATA / "python-sources.txt"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)figures")
    hashes: dict[str, str] = {}
    for path in data:
        name = publishable(path)
        found = content_hash(paths.located(path))
        # if two files outside the checkout have the same shortened name, the hash tells them apart
        hashes[name if hashes.get(name, found) == found else f"{name} ({found[:8]})"] = found
    return {
        "git": {
            "commit": git("rev-parse", "HEAD"),
            "dirty": None if changed is None else bool(changed),
        },
        "python": platform.python_version(),
        "packages": package_versions(),
        "python_sources": paths.file_hash(sources) if sources.is_file() else None,
        "processor": processor(),
        "device": device(),
        "threads": threads(),
        "models": [publishable(dict(getattr(model, "identity", model))) for model in models],
        "data": hashes,
    }


def git(*arguments: str) -> str | None:
    """Return the output of a git command in the checkout. Return None if git is not installed or
    fails, as outside a repository.
    """
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
    # Linux lists the processor's model and flags in this file; other systems state only the model
    info = Path("/proc/cpuinfo")
    text = info.read_text("utf-8") if info.is_file() else ""
    entries: dict[str, str] = dict(
        re.findall(r"^(model name|flags|Features)\s*: (.*)$", text, re.MULTILINE)
    )
    flags = entries.get("flags", entries.get("Features", "")).split()
    # only the widest vector extension is named, because the libraries compute with it
    widest = [flag for flag in ("amx_tile", "avx512f", "avx2", "asimd") if flag in flags][:1]
    model = entries.get("model name", platform.processor()).strip()
    return ", ".join(filter(None, (platform.machine(), model, *widest)))


def threads() -> int:
    """Return the number of threads that torch uses or, if it has not been imported, would use."""
    if torch := sys.modules.get("torch"):
        return int(torch.get_num_threads())
    return env_int("OMP_NUM_THREADS", processors())


def device() -> str:
    """Return the names of the GPUs, or "cpu" if there is no GPU. Also return "cpu" if this process
    has not imported torch, because it then cannot have used a GPU.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return "cpu"
    return ", ".join(map(torch.cuda.get_device_name, range(torch.cuda.device_count())))


def content_hash(path: Path, pattern: str = "*") -> str:
    """Return the sha256 of a file's content. For a folder, return one sha256 over the names and
    contents of the folder's files that match ``pattern``. Raises UserError if ``path`` does not
    exist.
    """
    path = paths.ROOT / path
    if path.is_file():
        return paths.file_hash(path)
    if not path.is_dir():
        raise UserError(f"no data at {relative(path)}: its hash belongs in the provenance")
    files = sorted(file for file in path.rglob(pattern) if file.is_file())
    return paths.folder_hash(path, files, "lines")


def library_hash() -> str:
    """Return a hash of all code that notebooks import: the library, the recipes in
    ``data/recipes``, and the Python files in the notebooks' folders.
    """
    folders = Path(__file__).parents[1], paths.DATA / "recipes", paths.NOTEBOOKS
    hashes = [content_hash(folder, "*.py") for folder in folders if folder.is_dir()]
    return paths.hashed("".join(hashes))


def relative(value: Any) -> Any:
    """Return ``value`` with paths inside the checkout made relative to the checkout. The items of
    lists and the values of dictionaries are changed, too.
    """
    return each_text(value, lambda text: text.removeprefix(f"{paths.ROOT}{os.sep}"))


def publishable(value: Any) -> Any:
    """Return ``value`` with paths shortened, so that they reveal nothing about this machine. A path
    inside the checkout becomes relative to the checkout. Of a path outside the checkout, only the
    file's name is kept; ``/a/FOLDER/*`` becomes ``FOLDER/*``.
    """
    return each_text(relative(value), lambda text: re.sub(r"^/.*/(?=[^/*]+(/\*?)?$)", "", text))


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Return ``value`` with ``change`` applied to every text and path in it."""
    if isinstance(value, dict):
        return {name: each_text(item, change) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [each_text(item, change) for item in value]
    return change(str(value)) if isinstance(value, (str, Path)) else value


# 2. The notebook that this kernel executes, whatever started the kernel


def kernel_parameters() -> dict[str, Any]:
    """Return the notebook's parameters, such as ``{"models": ["mini-small"], "limit": 0}``, after
    checking the values that papermill injected. Outside a kernel, and before the parameters cell
    has run, return {}.

    Papermill injects values in a cell after the notebook's parameters cell, and only warns about
    names that the notebook does not declare. This function raises UserError for such a name, and
    for a value whose type differs from the declared type. If the notebook declares a list, a single
    value becomes a list with one item, and the notebook's variable is set to this list.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    declared: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for source in shell.user_ns["In"] if shell else ():
        values = assigned_values(source)
        if source.startswith(INJECTED) and declared:
            if values is None:
                raise UserError("the injected parameters are not all plain values")
            for name, value in values.items():
                check_choice("the notebook's parameter", name, declared)
                found[name] = convert(declared[name], value, f"parameter {name!r}")
                # if the notebook has since assigned another value to the variable, keep that value
                if shell.user_ns.get(name) == value:
                    shell.user_ns[name] = found[name]
        # every parameters cell of the kit declares the profile
        elif values and "profile" in values:
            declared, found = values, dict(values)
    return found


def assigned_values(source: str) -> dict[str, Any] | None:
    """Return {name: value} for the source of a cell that only assigns plain values to names, and
    None for any other source.
    """
    values = {}
    try:
        for statement in paths.parse(ast.parse, source).body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values[name] = paths.parse(ast.literal_eval, value)
                case _:
                    return None
    except ValueError:
        return None
    return values


def convert(declared: Any, value: Any, what: str) -> Any:
    """Return ``value`` with the type of the ``declared`` value:

    - If ``declared`` is a list, a single value becomes a list with one item. Each item must have
      the type of the first item of ``declared``.
    - If ``declared`` is a float, ``value`` may also be a whole number or a text such as ``1e-4``,
      which becomes a float.
    - If ``declared`` is a text or a list, None becomes an empty text or list.
    - If ``declared`` is None, any value is accepted.

    Raises UserError for a value of another type. ``what`` begins the message and says what the
    value is, such as ``parameter 'limit'``.
    """
    if value is None and isinstance(declared, str | list):
        return type(declared)()
    if isinstance(declared, list):
        items = value if isinstance(value, list | tuple) else [value]
        return [convert((declared or [None])[0], item, what) for item in items]
    kind = type(declared)
    if kind is float and type(value) in (int, str):
        with suppress(ValueError, OverflowError):
            return float(value)
    if declared is None or type(value) is kind:
        return value
    raise UserError(f"{what} is of type {kind.__name__} (here {declared!r}), not {value!r}")


def with_fields(defaults: T, values: Mapping[str, Any], what: str) -> T:
    """Return a copy of ``defaults``, an instance of a dataclass, with the fields in ``values``
    changed. Each value gets the type of its default (see ``convert``). ``what`` says what the
    instance is, such as ``profile own.yaml``. Raises UserError for an unknown field, and for a
    value of another type.
    """
    fields = vars(defaults)
    for name in values:
        check_choice(f"{what}: the field", name, fields)
    converted = {
        name: convert(fields[name], value, f"{what}: {name!r}") for name, value in values.items()
    }
    return replace(defaults, **converted)  # type: ignore[type-var]  # a dataclass


def figures_of(artifact: str) -> Path:
    """Return the folder below which this kernel writes an artifact (``paper/name``).

    The runner sets this folder in the environment variable LOOKUPLAB_FIGURES. Without the runner,
    the folder is ``runs/figures`` or, for a copy of a notebook such as ``out.ipynb``,
    ``runs/copies/out``. The command or session that started the kernel names the notebook that is
    executed. This notebook counts as a copy if it is not the artifact's original
    (``original_notebook``).
    """
    if folder := os.environ.get("LOOKUPLAB_FIGURES"):
        return Path(folder)
    if named := _notebooks():
        # the notebook's file is JSON, so a backslash precedes each quote in its code
        saving = [
            file
            for file in paths.NOTEBOOKS.glob("*/[!.]*.ipynb")
            if artifact in saved_in(file.read_text("utf-8").replace("\\", ""))
        ]
        if saving and original_notebook(artifact, saving).resolve() not in named:
            return paths.RUNS / "copies" / named[0].stem
    return paths.RUNS / "figures"


def saved_in(code: str) -> dict[str, str]:
    """Return {id of an artifact: the statement that creates it} for the code of a notebook. For
    example, ``{"paper/name": 'artifact = Artifact("paper", "name", profile)'}``.
    """
    return {f"{found[1]}/{found[2]}": found[0] for found in _ARTIFACT.finditer(code)}


def original_notebook(artifact: str, files: Collection[Path]) -> Path:
    """Return the original among the notebooks that save the same artifact. A file in the kit's
    folder of notebooks comes before all others. If there are several, a file that git tracks comes
    first, then a file that is named after the artifact, then the file with the shortest name.
    """
    known = git("ls-files", "--", "notebooks") if len(files) > 1 else ""

    # False sorts before True
    def rank(file: Path) -> tuple[bool, bool, bool, int, Path]:
        is_unknown = relative(file) not in (known or "")
        is_other = f"{file.parent.name}/{file.stem}" != artifact
        return paths.NOTEBOOKS not in file.parents, is_unknown, is_other, len(file.stem), file

    return min(files, key=rank)


def _notebooks() -> list[Path]:
    """Return the notebook files named by the command that started this kernel (papermill, jupyter
    execute) or by the kernel's JupyterLab session.
    """
    if "ipykernel.kernelapp" not in sys.modules:
        return []
    import psutil

    try:
        starter = psutil.Process().parent()
        named, folder = (starter.cmdline(), starter.cwd()) if starter else ([], "")
    except psutil.Error:  # the starting process has ended, or belongs to another user
        named, folder = [], ""
    named.append(os.environ.get("JPY_SESSION_NAME", ""))
    files = (Path(folder, name) for name in named if name.endswith(".ipynb"))
    return [file.resolve() for file in files if file.is_file()]
