"""What can be run: the notebooks, the profiles, and the checked job that comes of a notebook under a profile.

Everything that can be wrong with a request is found here, before anything starts: an unknown parameter, a value of
another type, a model or file that is not there.
"""

import ast
import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lookuplab import data_sources, paths
from lookuplab.errors import UserError
from lookuplab.models.load import OPENAI, bare, is_model, is_remote, mini_models, split_revision

PROFILES = Path(__file__).with_name("profiles")
KEY = "OPENAI_API_KEY"
_PATH_STARTS = ("data/", "runs/", "./", "../", "~", os.sep)  # the first two lie in the checkout
_PATH_NAMES = ("_file", "_folder")  # parameters whose name ends so hold a path, however it starts
_MADE = re.compile(r"^\w+ = Artifact\(.*$", re.MULTILINE)
_BEGIN = re.compile(r"""Artifact\(\s*["']([\w-]+)["'],\s*["']([\w-]+)["']""")


@dataclass(frozen=True)
class Notebook:
    """One notebook: its folder is its ``paper``; ``parameters`` are the values of its parameters cell.

    ``artifacts`` are the tables and figures that it saves, as ``paper/name``. ``order`` is its place in ``reproduce``
    (``notebooks/order.yaml``): ``first`` fills the stores for the others of its paper, ``alone`` measures time and runs
    with nothing beside it, all else is ``any``. ``alone`` and ``manual`` run only if they or their paper are named.
    ``drawing`` is the code that draws the pictures from the artifacts' CSVs: the lines ``name = Artifact(...)`` and the
    cells tagged ``draw``.
    """

    path: Path
    code: str = field(repr=False)
    parameters: dict[str, Any]
    artifacts: tuple[str, ...]
    order: str = "any"
    drawing: str = field(default="", repr=False)

    @property
    def paper(self) -> str:
        return self.path.parent.name

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"

    @property
    def on_demand(self) -> bool:
        return self.order in ("alone", "manual")


def all_notebooks(paper: str | None = None) -> list[Notebook]:
    """Every notebook (of one paper), sorted by id. Raises UserError for an unknown paper."""
    known = [read(file) for file in sorted(paths.NOTEBOOKS.glob("*/[!.]*.ipynb"))]
    papers = {one.paper for one in known}
    if paper is not None and paper not in papers:
        raise UserError(
            f"no paper {paper!r}{suggestion(paper, papers)}; there are: {', '.join(sorted(papers))}"
        )
    return [one for one in known if paper in (None, one.paper)]


def find(name: str) -> Notebook:
    """A notebook by path, by its own name or by that of an artifact, with or without the paper before it.

    Raises UserError with the nearest name.
    """
    if name.endswith(".ipynb") and Path(name).is_file():
        return read(Path(name).resolve())
    wanted, known = name.removesuffix(".ipynb").removeprefix("notebooks/"), all_notebooks()
    names = {one.id: {one.id, one.name} for one in known}
    made = {
        one.id: {text for full in one.artifacts for text in (full, full.split("/")[1])}
        for one in known
    }
    hits = [one for one in known if wanted in names[one.id]] or [
        one for one in known if wanted in made[one.id]
    ]
    if not hits:
        near = suggestion(wanted, set().union(*names.values(), *made.values()))
        raise UserError(f"no notebook {name!r}{near}; `lookuplab status` names them all")
    if len(hits) > 1:
        raise UserError(
            f"{name!r} names {len(hits)} notebooks: say {' or '.join(one.id for one in hits)}"
        )
    return hits[0]


def read(path: Path) -> Notebook:
    """Parse a notebook. Raises UserError if the file is none, or its parameters cell holds more than plain values."""
    try:
        cells = [
            cell
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
            if cell["cell_type"] == "code"
        ]
        sources = [("".join(cell["source"]), cell["metadata"].get("tags", ())) for cell in cells]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a notebook in today's format: {error}") from error
    code = "\n".join(source for source, _ in sources)
    declared = next((source for source, tags in sources if "parameters" in tags), "")
    orders = paths.NOTEBOOKS / "order.yaml"
    groups = yaml.safe_load(orders.read_text(encoding="utf-8")) if orders.is_file() else {}
    id = f"{path.parent.name}/{path.stem}"
    return Notebook(
        path,
        code,
        declared_parameters(declared, str(path)),
        tuple(dict.fromkeys("/".join(match) for match in _BEGIN.findall(code))),
        next((order for order, names in groups.items() if id in names), "any"),
        "\n".join([*_MADE.findall(code), *(text for text, tags in sources if "draw" in tags)]),
    )


def declared_parameters(source: str, where: str) -> dict[str, Any]:
    """name -> value of each ``name = literal`` in a parameters cell. Raises UserError for anything else.

    Papermill's own ``inspect_notebook`` reads line by line and drops a line with a second ``=``, comments included.
    """
    try:
        return {one.targets[0].id: ast.literal_eval(one.value) for one in ast.parse(source).body}
    except (ValueError, SyntaxError, TypeError, AttributeError) as error:
        raise UserError(
            f"{where}: the parameters cell holds more than plain values: {error}"
        ) from error


@dataclass(frozen=True)
class Profile:
    """The same notebooks with other parameters, from one YAML ``file``; code never asks for it.

    ``parameters`` apply to every notebook that declares them, ``notebooks[id]`` to one notebook, which must.
    ``committed`` says that the figures are kept in the repository, else they are written under ``runs/``. ``threads``
    is how many a notebook computes with; 0 shares the cores among the notebooks that run at a time, but then the last
    bits of floating point depend on their number.
    """

    file: Path
    description: str = ""
    committed: bool = False
    threads: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    notebooks: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def figures(self) -> Path:
        """The folder above ``<profile>/<paper>/<artifact>``."""
        return paths.FIGURES if self.committed else paths.RUNS / "figures"

    def overrides(self, notebook: Notebook) -> dict[str, Any]:
        """What this profile sets in one notebook."""
        general = {"profile": self.name} | self.parameters
        known = {name: value for name, value in general.items() if name in notebook.parameters}
        return known | self.notebooks.get(notebook.id, {})


def profile_names() -> list[str]:
    """The profiles that come with the kit."""
    return sorted(file.stem for file in PROFILES.glob("*.yaml"))


def load_profile(name: str) -> Profile:
    """One of the kit's profiles by name, or your own by the path of its YAML file. Raises UserError."""
    file = Path(name) if name.endswith((".yaml", ".yml")) else PROFILES / f"{name}.yaml"
    if not file.is_file():
        known = profile_names()
        raise UserError(
            f"no profile {name!r}{suggestion(name, known)}; there are: {', '.join(known)}"
        )
    try:
        return Profile(file, **(yaml.safe_load(file.read_text(encoding="utf-8")) or {}))
    except (yaml.YAMLError, TypeError) as error:
        raise UserError(f"profile {file}: {' '.join(str(error).split())}") from error


@dataclass(frozen=True)
class Job:
    """One notebook to execute: ``parameters`` are injected, ``values`` are all of its parameters after that.

    ``output`` is the executed copy, ``figures`` the folder above ``<profile>/<paper>`` for its artifacts.
    """

    notebook: Notebook
    profile: Profile
    parameters: dict[str, Any]
    output: Path
    figures: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        return self.notebook.parameters | self.parameters

    def beside(self, suffix: str) -> Path:
        """A file beside the executed copy: its log, its answers, and what it ran with."""
        return self.output.with_suffix(suffix)


def plan(
    notebook: Notebook,
    profile: Profile,
    given: Mapping[str, str] | None = None,
    *,
    output: Path | None = None,
    figures: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Job:
    """A job whose parameters have the notebook's names and types.

    ``given`` are texts from the command line; with them, figures go under ``runs/``, never over committed ones. Models
    on the hub get the revision that ``data/sources.toml`` pins. Raises UserError for an unknown name or another type.
    """
    parameters = {
        name: typed(notebook, name, value, f"profile {profile.name!r}")
        for name, value in profile.overrides(notebook).items()
    }
    parameters |= {name: parsed(notebook, name, text) for name, text in (given or {}).items()}
    return Job(
        notebook,
        profile,
        {
            name: _pinned(value) if _names_models(name) else value
            for name, value in parameters.items()
        },
        output or paths.RUNS / profile.name / notebook.paper / f"{notebook.name}.ipynb",
        figures or (paths.RUNS / "figures" if given else profile.figures),
        dict(environment or {}),
    )


def typed(notebook: Notebook, name: str, value: Any, origin: str) -> Any:
    """``value`` if it has the type that the notebook declares. Raises UserError, also for an unknown name."""
    known = notebook.parameters
    if name not in known:
        raise UserError(
            f"{notebook.id} has no parameter {name!r} (from {origin}){suggestion(name, known)}; it has: "
            f"{', '.join(known) or 'none'}"
        )
    if not _fits(known[name], value):
        raise UserError(
            f"{notebook.id}: parameter {name!r} is of type {type(known[name]).__name__} (here {known[name]!r}), but "
            f"{origin} gives {value!r}"
        )
    return float(value) if isinstance(known[name], float) else value


def parsed(notebook: Notebook, name: str, text: str) -> Any:
    """A text from the command line as a value of the type that the notebook declares. Raises UserError."""
    declared, value = notebook.parameters.get(name), text
    if not isinstance(declared, str):
        if isinstance(declared, list) and not text.lstrip().startswith("["):
            text = f"[{text}]"
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:  # NAME?dtype=float32 in a list, say
            if isinstance(declared, list):
                value = [one.strip() for one in text.strip("[] ").split(",")]
        if isinstance(declared, float):
            with suppress(ValueError, TypeError):
                value = float(text)  # YAML 1.1 reads 1e-3 as a text
    value = typed(notebook, name, value, "the command line")
    return (
        [_absolute(name, one) for one in value]
        if isinstance(value, list)
        else _absolute(name, value)
    )


def suggestion(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'counts'?``, or nothing if no known name is near."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def missing(job: Job) -> Iterator[str]:
    """What the parameters name and this machine lacks, with what to do about it. Asks no network."""
    for name, item in named(job):
        is_ours = _names_models(name)
        if is_ours and item.startswith("mini-"):
            if bare(item) not in mini_models():
                yield f"no mini model {bare(item)!r}; there are: {', '.join(mini_models()) or 'none yet'}"
        elif item.startswith(OPENAI):
            if not os.environ.get(KEY, "").strip():
                yield f"model {item!r} needs a key: set the environment variable {KEY}, or leave it out of {name!r}"
        elif _is_path(name, item) and not folder_of(item).exists():
            yield f"parameter {name!r} names {item!r}, which does not exist; {job.profile.file} may say how it is made"
        elif is_ours and _is_path(name, item) and not is_model(folder_of(item)):
            yield f"{item!r} is not a checkpoint (a folder with config.json); name one that save_pretrained wrote"


def check(job: Job) -> None:
    """Everything that the parameters name is there, and models on the hub can be fetched: a run of hours should not
    fail at its third model. Raises UserError.
    """
    from huggingface_hub import hf_hub_download

    for problem in missing(job):
        raise UserError(f"{job.notebook.id}: {problem}")
    for name, model in named(job):
        if _names_models(name) and is_on_hub(model):
            repository, revision = split_revision(bare(model))
            try:
                hf_hub_download(repository, "config.json", revision=revision)
            except (
                Exception
            ) as error:  # network, rights, name: the hub's client has one exception for each
                raise UserError(
                    f"model {model!r} is not in the local cache, and the hub does not give it: "
                    f"{str(error).strip().partition(chr(10))[0]} (connect, `hf auth login`, or write a folder with a "
                    "leading ./ or /)"
                ) from error


def named(job: Job) -> Iterator[tuple[str, str]]:
    """(parameter, text) for every text among the parameters' values, lists item by item."""
    for name, value in job.values.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and item:
                yield name, item


def is_on_hub(model: str) -> bool:
    """Neither an endpoint nor a mini model nor a folder."""
    return not (is_remote(model) or model.startswith("mini-") or _is_path("model", model))


def folder_of(item: str) -> Path:
    """Where a parameter's path lies; ``FOLDER/*`` means all that is in the folder."""
    return paths.ROOT / Path(bare(item).removesuffix("/*")).expanduser()


def _names_models(name: str) -> bool:
    return re.search(r"(^|_)models?$", name) is not None


def _is_path(name: str, item: str) -> bool:
    return not is_remote(item) and (item.startswith(_PATH_STARTS) or name.endswith(_PATH_NAMES))


def _absolute(name: str, item: Any) -> Any:
    """A path is meant from where the command was typed, and the notebook runs elsewhere."""
    if not isinstance(item, str) or not item:
        return item
    place, options = Path(bare(item)).expanduser(), item[len(bare(item)) :]
    may_be = _names_models(name) or _is_path(name, item) or os.sep in item or place.suffix
    return f"{place.resolve()}{options}" if may_be and place.exists() else item


def _pinned(value: Any) -> Any:
    if isinstance(value, list):
        return [_pinned(item) for item in value]
    if not is_on_hub(value):
        return value
    return data_sources.pinned(bare(value)) + value[len(bare(value)) :]


def _fits(declared: Any, value: Any) -> bool:
    """int may stand for float, no other type for another; None declares nothing; a list's items fit its first."""
    if declared is None:
        return True
    if isinstance(declared, list) and isinstance(value, list):
        return all(_fits(declared[0] if declared else None, item) for item in value)
    return type(value) in ((int, float) if isinstance(declared, float) else (type(declared),))
