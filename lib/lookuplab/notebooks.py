"""What can be run: the notebooks, the profiles, and the checked job that comes of a notebook under
a profile.

Everything that can be wrong with a request is found here, before anything starts: an unknown
parameter, a value of another type, a model or file that is not there.
"""

import ast
import difflib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from lookuplab import data_sources, paths
from lookuplab.errors import UserError
from lookuplab.models.adapters import is_model
from lookuplab.models.load import CHAT, OPENAI, is_remote, mini_models, split_revision, table_name

PROFILES = Path(__file__).with_name("profiles")
KEY = "OPENAI_API_KEY"
_PATH_STARTS = ("data/", "runs/", "./", "../", "~", os.sep)  # the first two lie in the checkout
_PATH_NAMES = ("_file", "_folder")  # parameters whose name ends so hold a path, however it starts
_BEGIN = re.compile(r"""Artifact\.begin\(\s*["']([\w-]+)["'],\s*["']([\w-]+)["']""")


@dataclass(frozen=True)
class Notebook:
    """One notebook: its folder is its ``paper``; ``parameters`` are the values of its parameters
    cell.

    ``artifacts`` are the tables and figures that it saves, as ``paper/name``. ``order`` is its
    place in ``reproduce``: ``first`` fills the stores for the others of its paper, ``alone``
    measures time and runs with nothing beside it, all else is ``any``. ``alone`` and ``manual`` run
    only if they or their paper are named.
    """

    path: Path
    code: str = field(repr=False)
    parameters: dict[str, Any]
    artifacts: tuple[str, ...]
    order: str = "any"

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
    files = sorted(
        file for file in paths.NOTEBOOKS.glob("*/*.ipynb") if not file.name.startswith(".")
    )
    papers = {file.parent.name for file in files}
    if paper is not None and paper not in papers:
        raise UserError(
            f"no paper {paper!r}{suggestion(paper, papers)}; there are: {', '.join(sorted(papers))}"
        )
    places = _orders()
    return [read(file, places) for file in files if paper in (None, file.parent.name)]


def find(name: str) -> Notebook:
    """A notebook by path, by its own name or by that of an artifact, with or without the paper
    before it.

    Raises UserError with the nearest name.
    """
    if name.endswith(".ipynb") and Path(name).is_file():
        return read(Path(name).resolve())
    wanted, known = name.removesuffix(".ipynb").removeprefix("notebooks/"), all_notebooks()
    for names_of in (
        lambda one: [one.id],
        lambda one: one.artifacts,
    ):  # a notebook's own name comes first
        hits = [
            one
            for one in known
            if any(wanted in (full, full.split("/")[1]) for full in names_of(one))
        ]
        if len(hits) == 1:
            return hits[0]
        if hits:
            raise UserError(
                f"{name!r} names {len(hits)} notebooks: say {' or '.join(one.id for one in hits)}"
            )
    names = {
        text
        for one in known
        for full in (one.id, *one.artifacts)
        for text in (full, full.split("/")[1])
    }
    raise UserError(
        f"no notebook {name!r}{suggestion(wanted, names)}; `lookuplab status` names them all"
    )


def read(path: Path, orders: Mapping[str, str] | None = None) -> Notebook:
    """Parse a notebook. ``orders`` is what ``notebooks/order.yaml`` says, by default read from it.

    Raises UserError if the file is not a notebook, or its parameters cell holds more than plain
    values.
    """
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
    orders = _orders() if orders is None else orders
    return Notebook(
        path,
        code,
        declared_parameters(declared, str(path)),
        tuple(dict.fromkeys("/".join(match) for match in _BEGIN.findall(code))),
        orders.get(f"{path.parent.name}/{path.stem}", "any"),
    )


def _orders() -> dict[str, str]:
    """id -> order, of the notebooks that ``notebooks/order.yaml`` names."""
    file = paths.NOTEBOOKS / "order.yaml"
    groups = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {name: order for order, names in groups.items() for name in names}


def declared_parameters(source: str, where: str) -> dict[str, Any]:
    """name -> value of each ``name = literal`` in a parameters cell. Raises UserError for anything
    else.

    Papermill's own ``inspect_notebook`` reads line by line and drops a line with a second ``=``,
    comments included.
    """
    declared = {}
    try:
        for statement in ast.parse(source).body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                ):
                    declared[name] = ast.literal_eval(statement.value)
                case _:
                    raise ValueError(f"line {statement.lineno} is not `name = value`")
    except (ValueError, SyntaxError, TypeError) as error:
        raise UserError(
            f"{where}: the parameters cell holds more than plain values: {error}"
        ) from error
    return declared


@dataclass(frozen=True)
class Profile:
    """The same notebooks with other parameters, from one YAML ``file``; code never asks for it.

    ``parameters`` apply to every notebook that declares them, ``notebooks[id]`` to one notebook,
    which must. ``committed`` says that the figures are kept in the repository, else they are
    written under ``runs/``. ``threads`` is how many a notebook computes with; 0 shares the cores
    among the notebooks that run at a time, but then the last bits of floating point depend on their
    number.
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
        return {
            name: value for name, value in general.items() if name in notebook.parameters
        } | self.notebooks.get(notebook.id, {})


def profile_names() -> list[str]:
    """The profiles that come with the kit."""
    return sorted(file.stem for file in PROFILES.glob("*.yaml"))


def load_profile(name: str) -> Profile:
    """One of the kit's profiles by name, or your own by the path of its YAML file. Raises
    UserError.
    """
    file = Path(name) if name.endswith((".yaml", ".yml")) else PROFILES / f"{name}.yaml"
    known = profile_names()
    if not file.is_file():
        raise UserError(
            f"no profile {name!r}{suggestion(name, known)}; there are: {', '.join(known)} "
            "(or the path of a YAML file)"
        )
    try:
        found = Profile(file, **(yaml.safe_load(file.read_text(encoding="utf-8")) or {}))
    except (yaml.YAMLError, UnicodeDecodeError, TypeError) as error:
        said = " ".join(str(error).split()).removeprefix("lookuplab.notebooks.Profile.__init__() ")
        raise UserError(f"profile {file}: {said}") from error
    default = Profile(file)
    for name in (one.name for one in fields(Profile)[1:]):
        if not _fits(getattr(default, name), getattr(found, name)):
            raise UserError(
                f"profile {file}: {name} is {getattr(found, name)!r}; it must be of type "
                f"{type(getattr(default, name)).__name__}"
            )
    return found


@dataclass(frozen=True)
class Job:
    """One notebook to execute: ``parameters`` are injected, ``values`` are all of its parameters
    after that.

    ``output`` is the executed copy, ``figures`` the folder above ``<profile>/<paper>`` for its
    artifacts.
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
        """A file beside the executed copy: its log, progress, answers, and what it ran with."""
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

    ``given`` are texts from the command line; with them, figures go under ``runs/``, never over
    committed ones. Models on the hub get the revision that ``data/sources.toml`` pins. Raises
    UserError for an unknown name, another type, no model, and two models that tables would call the
    same.
    """
    parameters = {
        name: typed(notebook, name, value, f"profile {profile.name!r}")
        for name, value in profile.overrides(notebook).items()
    }
    parameters |= {name: parsed(notebook, name, text) for name, text in (given or {}).items()}
    for name, value in (notebook.parameters | parameters).items():
        models = value if isinstance(value, list) and _names_models(name) else ["one"]
        [(called, times)] = Counter(map(table_name, models)).most_common(1) or [("", 0)]
        if times != 1:
            said = (
                f"names {times} models that tables call {called!r}" if times else "names no model"
            )
            raise UserError(f"{notebook.id}: parameter {name!r} {said}")
    return Job(
        notebook,
        profile,
        {name: _pinned(name, value) for name, value in parameters.items()},
        output or paths.RUNS / profile.name / notebook.paper / f"{notebook.name}.ipynb",
        figures or (paths.RUNS / "figures" if given else profile.figures),
        dict(environment or {}),
    )


def typed(notebook: Notebook, name: str, value: Any, origin: str) -> Any:
    """``value`` if it has the type that the notebook declares. Raises UserError, also for an
    unknown name.
    """
    known = notebook.parameters
    if name not in known:
        raise UserError(
            f"{notebook.id} has no parameter {name!r} (from {origin}){suggestion(name, known)}; it has: "
            f"{', '.join(known) or 'none'}"
        )
    if not _fits(known[name], value):
        raise UserError(
            f"{notebook.id}: parameter {name!r} is of type {type(known[name]).__name__} (here "
            f"{known[name]!r}), but {origin} gives {value!r}"
        )
    return float(value) if isinstance(known[name], float) else value


def parsed(notebook: Notebook, name: str, text: str) -> Any:
    """A text from the command line as a value of the type that the notebook declares. Raises
    UserError.
    """
    declared, value = notebook.parameters.get(name), text
    if not isinstance(declared, str):
        if isinstance(declared, list) and not text.lstrip().startswith("["):
            text = f"[{text}]"
        with suppress(yaml.YAMLError):
            value = yaml.safe_load(text)
        if isinstance(declared, float) and isinstance(value, str):
            with suppress(ValueError):
                value = float(value)  # YAML 1.1 reads 1e-3 as a text
    value = typed(notebook, name, value, "the command line")
    return (
        [_absolute(name, one) for one in value]
        if isinstance(value, list)
        else _absolute(name, value)
    )


def suggestion(name: str, known: Any) -> str:
    """``; did you mean 'counts'?``, or nothing if no known name is near."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def missing(job: Job) -> Iterator[str]:
    """What the parameters name and this machine lacks, with what to do about it. Asks no network."""
    of_profile = job.profile.overrides(job.notebook)
    for name, item in named(job):
        place = folder_of(item)
        if _names_models(name) and item.startswith("mini-"):
            if item.removesuffix(CHAT) not in mini_models():
                there = ", ".join(mini_models()) or "none yet: run `lookuplab train mini`"
                yield f"no mini model {item.removesuffix(CHAT)!r}; there are: {there}"
        elif item.startswith(OPENAI) and not os.environ.get(KEY, "").strip():
            yield f"model {item!r} needs a key: set the environment variable {KEY}, or leave it out of {name!r}"
        elif _is_path(name, item) and not place.exists():
            way = (
                f"{job.profile.file} says how it is made"
                if item in str(of_profile.get(name))
                else "check the path"
            )
            yield f"parameter {name!r} names {item!r}, which does not exist; {way}"
        elif _is_path(name, item) and _names_models(name) and not is_model(place):
            yield f"{item!r} is not a checkpoint (a folder with config.json); name one that save_pretrained wrote"


def check(job: Job) -> None:
    """Everything that the parameters name is there, and models on the hub can be fetched. Raises
    UserError.
    """
    for problem in missing(job):
        raise UserError(f"{job.notebook.id}: {problem}")
    for model in filter(
        is_on_hub, models_of(job)
    ):  # a run of hours should not fail at its third model
        snapshot_of(model)


def named(job: Job) -> Iterator[tuple[str, str]]:
    """(parameter, text) for every text among the parameters' values, lists item by item."""
    for name, value in job.values.items():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, str) and item:
                yield name, item


def models_of(job: Job) -> list[str]:
    """The models that a job's parameters name, each once."""
    return list(dict.fromkeys(item for name, item in named(job) if _names_models(name)))


def is_on_hub(model: str) -> bool:
    """Neither an endpoint nor a mini model nor a folder."""
    return not (is_remote(model) or model.startswith("mini-") or _is_path("model", model))


def folder_of(item: str) -> Path:
    """Where a parameter's path lies; ``FOLDER/*`` means all that is in the folder."""
    return paths.ROOT / Path(item.removesuffix(CHAT).removesuffix("/*")).expanduser()


def snapshot_of(model: str, **options: Any) -> Path:
    """The folder of a model in the hub's local cache. Raises UserError if it is not there and
    cannot be fetched.

    Fetches the configuration alone: it says whether the model exists and is allowed.
    """
    from huggingface_hub import hf_hub_download

    name, revision = split_revision(model.removesuffix(CHAT))
    try:
        return Path(hf_hub_download(name, "config.json", revision=revision, **options)).parent
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"model {model!r} is not in the local cache, and the hub does not give it: {said} (connect, "
            "`hf auth login`, or write a folder with a leading ./ or /)"
        ) from error


def _names_models(name: str) -> bool:
    return re.search(r"(^|_)models?$", name) is not None


def _is_path(name: str, item: str) -> bool:
    return not is_remote(item) and (item.startswith(_PATH_STARTS) or name.endswith(_PATH_NAMES))


def _absolute(name: str, item: Any) -> Any:
    """A path is meant from where the command was typed, and the notebook runs elsewhere."""
    if not isinstance(item, str) or item.startswith(("data/", "runs/")):
        return item
    place = Path(item.removesuffix(CHAT)).expanduser()
    looks_like_one = (
        _names_models(name) or name.endswith(_PATH_NAMES) or os.sep in item or place.suffix
    )
    if item.startswith(_PATH_STARTS) or (item and looks_like_one and place.exists()):
        return str(place.resolve()) + CHAT * item.endswith(CHAT)
    return item


def _pinned(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_pinned(name, item) for item in value]
    if not isinstance(value, str) or not _names_models(name) or not is_on_hub(value):
        return value
    return data_sources.pinned(value.removesuffix(CHAT)) + CHAT * value.endswith(CHAT)


def _fits(declared: Any, value: Any) -> bool:
    """int may stand for float, no other type for another; None declares nothing; a list's items
    fit its first.
    """
    if declared is None:
        return True
    if isinstance(declared, bool) or isinstance(value, bool):
        return type(declared) is type(value)
    if isinstance(declared, list):
        return isinstance(value, list) and all(
            _fits(declared[0] if declared else None, item) for item in value
        )
    return isinstance(value, (int, float) if isinstance(declared, float) else type(declared))
