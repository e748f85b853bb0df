"""What can be run: the notebooks, the profiles, and the checked job that comes of a notebook under a profile.

Everything that can be wrong with a request is found here, before anything starts: an unknown parameter, a value of
another type, a model or file that is not there.
"""

import ast
import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lookuplab import data_sources, paths
from lookuplab.errors import UserError
from lookuplab.models.load import OPENAI, bare, is_model, is_remote, mini_models, split_revision

PROFILES = Path(__file__).with_name("profiles")
KEY_VARIABLE = "OPENAI_API_KEY"
_MODELS = re.compile(r"(^|_)models?$")  # parameters that name models
_FILES = re.compile(r"_(file|folder)$")  # and paths, however those start
_PATH = re.compile(r"data/|runs/|\.{0,2}/|~")  # the first two lie in the checkout
_ARTIFACT_LINE = re.compile(r"^\w+ = Artifact\(.*$", re.MULTILINE)
_ARTIFACT_NAME = re.compile(r"""Artifact\(\s*["']([\w-]+)["'],\s*["']([\w-]+)["']""")


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
    parameters: dict[str, Any] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()
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
    found = [one for one in known if paper in (None, one.paper)]
    if paper and not found:
        papers = sorted({one.paper for one in known})
        raise UserError(
            f"no paper {paper!r}{suggestion(paper, papers)}; there are: {', '.join(papers)}"
        )
    return found


def find(name: str) -> Notebook:
    """A notebook by path, by its own name or by that of an artifact, with or without the paper before it.

    Raises UserError with the nearest name.
    """
    if name.endswith(".ipynb") and Path(name).is_file():
        return read(Path(name).resolve())
    wanted, known = name.removesuffix(".ipynb").removeprefix("notebooks/"), all_notebooks()
    named = [(text, one) for one in known for text in (one.id, one.name)]
    made = [(text, one) for one in known for id in one.artifacts for text in (id, id.split("/")[1])]
    hits = [one for text, one in named if text == wanted] or [
        one for text, one in made if text == wanted
    ]
    if not hits:
        near = suggestion(wanted, [text for text, _ in named + made])
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
            ("".join(cell["source"]), cell["metadata"].get("tags", ()))
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
            if cell["cell_type"] == "code"
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a notebook in today's format: {error}") from error
    code = "\n".join(source for source, _ in cells)
    declared = "".join(source for source, tags in cells if "parameters" in tags)
    orders = paths.NOTEBOOKS / "order.yaml"
    groups = yaml.safe_load(orders.read_text(encoding="utf-8")) if orders.is_file() else {}
    id = f"{path.parent.name}/{path.stem}"
    return Notebook(
        path,
        declared_parameters(declared, str(path)),
        tuple(dict.fromkeys("/".join(match) for match in _ARTIFACT_NAME.findall(code))),
        next((order for order, names in groups.items() if id in names), "any"),
        "\n".join(
            [*_ARTIFACT_LINE.findall(code), *(text for text, tags in cells if "draw" in tags)]
        ),
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
        general = {"profile": self.name, **self.parameters}
        known = {name: value for name, value in general.items() if name in notebook.parameters}
        return {**known, **self.notebooks.get(notebook.id, {})}


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
        profile = Profile(file, **(yaml.safe_load(file.read_text(encoding="utf-8")) or {}))
        for names in (profile.parameters, profile.notebooks, *profile.notebooks.values()):
            dict(**names)
        return profile
    except (yaml.YAMLError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"profile {file}: {' '.join(str(error).split())}") from error


@dataclass(frozen=True)
class Job:
    """One notebook to execute: ``parameters`` are injected, ``values`` are all of its parameters after that.

    ``output`` is the executed copy, ``figures`` the folder above ``<profile>/<paper>`` for its artifacts, ``store`` the
    file of its completion store, if it is not the usual one.
    """

    notebook: Notebook
    profile: Profile
    parameters: dict[str, Any]
    output: Path
    figures: Path
    store: str = ""

    @property
    def values(self) -> dict[str, Any]:
        return self.notebook.parameters | self.parameters

    @property
    def title(self) -> str:
        """Cases of a sweep share the notebook; the number of their folder tells them apart."""
        case = self.output.parent.name
        return f"{self.notebook.id} [{case}]" if case.isdigit() else self.notebook.id

    def beside(self, suffix: str) -> Path:
        """A file beside the executed copy: its log, its answers, and what it ran with."""
        return self.output.with_suffix(suffix)

    def named(self) -> Iterator[tuple[str, str]]:
        """(parameter, text) for every text among the parameters' values, lists item by item."""
        for name, value in self.values.items():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str) and item:
                    yield name, item


def plan(
    notebook: Notebook,
    profile: Profile,
    given: Mapping[str, str] | None = None,
    *,
    output: Path | None = None,
    figures: Path | None = None,
    store: Path | str = "",
) -> Job:
    """A job whose parameters have the notebook's names and types.

    ``given`` are texts from the command line; with them, figures go under ``runs/``, never over committed ones. Models
    on the hub get the revision that ``data/sources.toml`` pins. Raises UserError for an unknown name or another type.
    """
    origin, known = f"profile {profile.name!r}", notebook.parameters
    asked = [(name, value, origin) for name, value in profile.overrides(notebook).items()]
    asked += [(name, text, "the command line") for name, text in (given or {}).items()]
    parameters = {}
    for name, value, origin in asked:
        if name not in known:
            raise UserError(
                f"{notebook.id} has no parameter {name!r} (from {origin}){suggestion(name, known)}; it has: "
                f"{', '.join(known) or 'none'}"
            )
        try:
            value = fitted(known[name], value)
        except TypeError:
            kind = type(known[name]).__name__
            raise UserError(
                f"{notebook.id}: parameter {name!r} is of type {kind} (here {known[name]!r}), but {origin} gives {value!r}"
            ) from None
        if name in (given or {}):
            value = _each(value, _absolute)
        parameters[name] = _each(value, _pinned) if _MODELS.search(name) else value
    return Job(
        notebook,
        profile,
        parameters,
        output or paths.RUNS / profile.name / notebook.paper / f"{notebook.name}.ipynb",
        figures or (paths.RUNS / "figures" if given else profile.figures),
        str(store),
    )


def fitted(declared: Any, value: Any) -> Any:
    """``value``, or what a text stands for, with the type of ``declared``: an int may be a float, a list's items fit its
    first one, and None declares nothing. Raises TypeError for another type.
    """
    if isinstance(declared, list):
        items = value.strip(" []").split(",") if isinstance(value, str) else value
        items = [item.strip(" '\"") if isinstance(item, str) else item for item in items]
        return [fitted((declared or [None])[0], item) for item in items if item != ""]
    if isinstance(value, str) and not isinstance(declared, str):
        value = value_of(value)
    if isinstance(declared, float) and type(value) is int:
        value = float(value)
    if declared is not None and type(value) is not type(declared):
        raise TypeError
    return value


def value_of(text: str) -> Any:
    """What a text stands for: a number, true, false, null or a mapping, else the text itself."""
    for read_as in (json.loads, yaml.safe_load):  # YAML 1.1 takes 1e-3 for a text
        with suppress(ValueError, yaml.YAMLError):
            return read_as(text)
    return text


def suggestion(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'counts'?``, or nothing if no known name is near."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def missing(job: Job) -> Iterator[str]:
    """What the parameters name and this machine lacks, with what to do about it. Asks no network."""
    for name, item in job.named():
        names_a_model = _MODELS.search(name)
        if names_a_model and item.startswith("mini-"):
            if bare(item) not in mini_models():
                yield f"no mini model {bare(item)!r}; there are: {', '.join(mini_models()) or 'none yet'}"
        elif item.startswith(OPENAI):
            if not os.environ.get(KEY_VARIABLE, "").strip():
                yield f"model {item!r} needs a key: set the environment variable {KEY_VARIABLE}, or leave it out of {name!r}"
        elif _is_path(name, item):
            place = folder_of(item)
            if not place.exists():
                way = f"{job.profile.file} may say how it is made"
                if place.parent == paths.DOWNLOADS / "models":
                    way = f"`lookuplab data get {place.name}` fetches it"
                yield f"parameter {name!r} names {item!r}, which does not exist; {way}"
            elif names_a_model and not is_model(place):
                yield f"{item!r} is not a checkpoint (a folder with config.json); name one that save_pretrained wrote"


def check(job: Job) -> None:
    """Everything that the parameters name is there, and models on the hub can be fetched: a run of hours should not
    fail at its third model. Raises UserError.
    """
    from huggingface_hub import hf_hub_download

    for problem in missing(job):
        raise UserError(f"{job.notebook.id}: {problem}")
    for name, model in job.named():
        if _MODELS.search(name) and _is_on_hub(model):
            repository, revision = split_revision(bare(model))
            try:
                hf_hub_download(repository, "config.json", revision=revision)
            # network, rights, name: the hub's client has one exception for each
            except Exception as error:
                raise UserError(
                    f"model {model!r} is not in the local cache, and the hub does not give it: "
                    f"{str(error).strip().splitlines()[0]} (connect, `hf auth login`, or write a folder with a "
                    "leading ./ or /)"
                ) from error


def folder_of(item: str) -> Path:
    """Where a parameter's path lies; ``FOLDER/*`` means all that is in the folder."""
    return paths.ROOT / Path(bare(item).removesuffix("/*")).expanduser()


def _is_path(name: str, item: str) -> bool:
    return not is_remote(item) and bool(_PATH.match(item) or _FILES.search(name))


def _is_on_hub(model: str) -> bool:
    return not (is_remote(model) or model.startswith("mini-") or _is_path("model", model))


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    return [change(item) for item in value] if isinstance(value, list) else change(value)


def _absolute(item: Any) -> Any:
    """A path is meant from where the command was typed, and the notebook runs elsewhere."""
    place = Path(bare(str(item))).expanduser()
    is_path = isinstance(item, str) and item and place.exists()
    return f"{place.resolve()}{item[len(bare(item)) :]}" if is_path else item


def _pinned(model: Any) -> Any:
    if not _is_on_hub(model):
        return model
    return data_sources.pinned(bare(model)) + model[len(bare(model)) :]
