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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from lookuplab import data_sources, paths
from lookuplab.errors import UserError
from lookuplab.models.load import (
    OPENAI,
    bare,
    is_model,
    is_remote,
    mini_models,
    split_options,
    split_revision,
    table_name,
)
from lookuplab.paper import unknown_role
from lookuplab.provenance import relative

PROFILES = Path(__file__).with_name("profiles")
KEY_VARIABLE = "OPENAI_API_KEY"
PUBLIC_TASKS = "data/public/cloudapi/tasks.jsonl"  # their classes are counted over public code
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
    bits of floating point depend on their number. ``steps`` says of paths among the parameters how you make them, of
    those below a path, too. ``given`` are texts from the command line, over all else; with them, figures go under
    ``runs/``, never over committed ones, unless the profile is ``by_model`` and they name nothing but models: then
    those models have a folder of their own, ``<profile>/<models>``.
    """

    file: Path
    description: str = ""
    committed: bool = False
    by_model: bool = False
    threads: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    notebooks: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``paper``, or ``paper/bigcode--starcoder2-3b`` where the command line names the models."""
        if not self._of_models:
            return self.file.stem
        models = [
            _each(item, _absolute) for text in self.given.values() for item in fitted([""], text)
        ]
        folder = "+".join(dict.fromkeys(_folder_name(relative(model)) for model in models))
        return f"{self.file.stem}/{folder}"

    @property
    def _of_models(self) -> bool:
        return self.by_model and bool(self.given) and all(map(_MODELS.search, self.given))

    @property
    def figures(self) -> Path:
        """The folder above ``<profile>/<paper>/<artifact>``."""
        is_kept = self.committed and (self._of_models or not self.given)
        return paths.FIGURES if is_kept else paths.RUNS / "figures"

    def models_run(self) -> list[str]:
        """Models with figures of their own, as ``<profile>/MODEL`` names them."""
        folder = self.figures / self.name
        return sorted({_model_name(file.parts[-3]) for file in folder.glob("*/*/*.csv")})

    def overrides(self, notebook: Notebook) -> dict[str, Any]:
        """What this profile sets in one notebook."""
        general = {"profile": self.name, **self.parameters}
        known = {name: value for name, value in general.items() if name in notebook.parameters}
        return {**known, **self.notebooks.get(notebook.id, {})}


def profile_names() -> list[str]:
    """The profiles that come with the kit."""
    return sorted(file.stem for file in PROFILES.glob("*.yaml"))


def load_profile(name: str) -> Profile:
    """One of the kit's profiles by name, or your own by the path of its YAML file; ``paper/OWNER/MODEL`` is the paper
    profile with that model in place of the paper's. Raises UserError.
    """
    is_file = name.endswith((".yaml", ".yml"))
    stem, _, models = (name, "", "") if is_file else name.partition("/")
    file = Path(name) if is_file else PROFILES / f"{stem}.yaml"
    if not file.is_file():
        known = profile_names()
        raise UserError(
            f"no profile {name!r}{suggestion(name, known)}; there are: {', '.join(known)}"
        )
    try:
        profile = Profile(file, **(yaml.safe_load(file.read_text(encoding="utf-8")) or {}))
        for names in (profile.parameters, profile.notebooks, *profile.notebooks.values()):
            dict(**names)
    except (yaml.YAMLError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"profile {file}: {' '.join(str(error).split())}") from error
    if not models:
        return profile
    if not profile.by_model:
        raise UserError(f"profile {stem!r} has no folder for each model: leave out /{models}")
    return replace(profile, given={"models": models if "/" in models else _model_name(models)})


def with_figures(profile: Profile) -> Profile:
    """The profile if it has figures, else the same with the one model that has. Raises UserError if none or several
    have.
    """
    if any((profile.figures / profile.name).glob("*/*.csv")):
        return profile
    command, models = f"lookuplab reproduce --profile {profile.file.stem}", profile.models_run()
    if len(models) == 1:
        return replace(profile, given={"models": models[0]})
    if models:
        named = ", ".join(f"{profile.name}/{model}" for model in models)
        raise UserError(f"profile {profile.name!r} was run model by model: name one of {named}")
    raise UserError(f"no figures of profile {profile.name!r} yet; `{command}` makes them")


@dataclass(frozen=True)
class Job:
    """One notebook to execute: ``parameters`` are injected, ``values`` are all of its parameters after that.

    ``output`` is the executed copy, ``figures`` the folder above ``<profile>/<paper>`` for its artifacts, ``store`` the
    file of its completion store, if it is not the usual one. ``without`` are models of the profile that are left out
    because their key is not set.
    """

    notebook: Notebook
    profile: Profile
    parameters: dict[str, Any]
    output: Path
    figures: Path
    store: str = ""
    without: tuple[str, ...] = ()

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

    @property
    def said_without(self) -> str:
        """``without openai:gpt-4o: no key in OPENAI_API_KEY``"""
        keys = ", ".join(sorted({*map(missing_key, self.without)}))
        return f"without {', '.join(self.without)}: no key in {keys}"

    def keys_needed(self) -> list[str]:
        """The variables without which none of the profile's models of a parameter can be asked."""
        found = [
            missing_key(model) for name, model in self.models() if name not in self.profile.given
        ]
        return sorted({*found} - {""})

    def models(self) -> Iterator[tuple[str, str]]:
        """(parameter, model) for every model that it names."""
        return ((name, item) for name, item in self.named() if _MODELS.search(name))


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

    ``given`` are texts from the command line, names that this notebook must declare; of those of the profile it takes
    what it declares. Models on the hub get the revision that ``data/sources.toml`` pins. Where a list of the profile's
    models has some whose key is not set, the others are run. Raises UserError for an unknown name or another type.
    """
    known, given = notebook.parameters, given or {}
    profile = replace(profile, given={**profile.given, **given})
    source = f"profile {profile.name!r}"
    asked = [(name, value, source) for name, value in profile.overrides(notebook).items()]
    asked += [
        (name, text, "the command line")
        for name, text in profile.given.items()
        if name in known or name in given
    ]
    parameters, without = {}, []
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
        if name in profile.given:
            value = _each(value, _absolute)
        parameters[name] = _each(value, _pinned) if _MODELS.search(name) else value
    for name, value in (known | parameters).items():
        if _MODELS.search(name) and isinstance(value, list) and name not in profile.given:
            lacking = [model for model in value if missing_key(model)]
            if 0 < len(lacking) < len(value):
                parameters[name] = [model for model in value if model not in lacking]
                without += lacking
    return Job(
        notebook,
        profile,
        parameters,
        output or paths.RUNS / profile.name / notebook.paper / f"{notebook.name}.ipynb",
        figures or profile.figures,
        str(store),
        tuple(without),
    )


def plan_all(
    notebooks: Iterable[Notebook], profile: Profile, given: Mapping[str, str]
) -> list[Job]:
    """A job for each notebook, which takes of ``given`` what it declares. Raises UserError for a name that none does."""
    chosen = list(notebooks)
    known = {name for one in chosen for name in one.parameters}
    for name in given:
        if name not in known:
            papers = ", ".join(sorted({one.paper for one in chosen}))
            near = suggestion(name, known)
            raise UserError(f"the notebooks of {papers} have no parameter {name!r}{near}")
    changed = replace(profile, given={**profile.given, **given})
    return [plan(one, changed) for one in chosen]


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


def missing_key(model: str) -> str:
    """The variable with the key that a model needs, if it is not set; else nothing."""
    place, options = split_options(model)
    variable = options.get("key_variable", KEY_VARIABLE)
    return variable if place.startswith(OPENAI) and not os.environ.get(variable, "").strip() else ""


def missing(job: Job) -> Iterator[tuple[str, str]]:
    """What the parameters name and this machine lacks, and how you make it, if the profile says so. What is fetched of
    itself is not missing. Asks no network.
    """
    fetched = {source.path for source in downloads(job)}
    papers = {artifact.split("/")[0] for artifact in job.notebook.artifacts}
    if problem := unknown_role(job.values.get("roles") or {}, papers):
        yield problem, ""
    for name, item in job.named():
        names_a_model = _MODELS.search(name)
        if names_a_model and item.startswith("mini-"):
            if bare(item) not in mini_models():
                there = ", ".join(mini_models()) or "none yet"
                yield f"no mini model {bare(item)!r}; there are: {there}", ""
        elif item.startswith(OPENAI):
            if key := missing_key(item):
                yield (
                    f"model {item!r} needs a key",
                    f"set the environment variable {key}, or leave it out of {name!r}",
                )
        elif names_a_model and item.startswith("http") and "#" not in item:
            yield (
                f"model {item!r} is an address without a model",
                "name it: http://HOST:PORT/v1#MODEL",
            )
        elif _is_path(name, item):
            place = folder_of(item)
            if not place.exists() and place not in fetched:
                is_of_index = place == paths.fetched_model(place.name)
                step = f"`lookuplab data get {place.name}`" if is_of_index else ""
                steps = (text for path, text in job.profile.steps.items() if item.startswith(path))
                yield f"parameter {name!r} names {item!r}, which does not exist", next(steps, step)
            elif place.exists() and names_a_model and not is_model(place):
                how = "name one that save_pretrained wrote"
                yield f"{item!r} is not a checkpoint (a folder with config.json)", how


def foreign_tasks(job: Job) -> str:
    """Why models should not answer the job's tasks, "" if they may: the classes of the mini tasks are counts in the
    corpus that the mini models learned from.
    """
    tasks, strangers = job.values.get("tasks_file"), {}
    if tasks and folder_of(tasks).resolve().parent == paths.MINI / "cloudapi":
        for _, model in job.models():
            is_own = _is_path("", model) and paths.MINI in folder_of(model).resolve().parents
            if not (is_own or model.startswith("mini-")):
                strangers[table_name(model)] = None
    if not strangers:
        return ""
    return (
        f"the mini tasks' frequency classes mean nothing to {', '.join(strangers)}, which learned from other code: give "
        f"--profile paper, or -p tasks_file={PUBLIC_TASKS} (--anyway runs it all the same)"
    )


def downloads(job: Job) -> list[data_sources.Source]:
    """What a job fetches, or has fetched, over the network: models from the hub, and entries of ``data/sources.toml``."""
    known = data_sources.load()
    found = []
    for name, item in job.named():
        if item in known and known[item].kind == "environment":
            found.append(known[item])
        elif name in ("corpus", "queries_of"):
            parts = ("snippets",) if name == "corpus" else ("valid", "test")
            found += [known[f"{item}-{part}"] for part in parts if f"{item}-{part}" in known]
        elif (_MODELS.search(name) or name == "encoder") and _is_on_hub(item):
            address, revision = split_revision(bare(item))
            listed = [
                one for one in known.values() if (one.kind, one.address) == ("model", address)
            ]
            page = "see its page on the hub"
            found += listed[:1] or [data_sources.Source(address, "model", address, page, "")]
            if revision:
                found[-1] = replace(found[-1], revision=revision)
        else:
            found += [
                one for one in known.values() if one.kind == "file" and one.path == folder_of(item)
            ]
    return list({(one.name, one.revision): one for one in found}.values())


def check(job: Job, anyway: bool = False) -> None:
    """Everything that the parameters name is there or is fetched now, and models on the hub can be fetched: a run of
    hours should not fail at its third model. ``anyway`` allows any model on the mini tasks. Raises UserError.
    """
    from huggingface_hub import hf_hub_download

    problems = [": ".join(filter(None, problem)) for problem in missing(job)]
    for problem in filter(None, [*problems, "" if anyway else foreign_tasks(job)]):
        raise UserError(f"{job.notebook.id}: {problem}")
    for source in downloads(job):
        if source.kind != "model":
            data_sources.get(source)
    for _, model in job.models():
        if _is_on_hub(model):
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


def _folder_name(model: str) -> str:
    """``bigcode--starcoder2-3b``, ``bigcode--starcoder2-3b@main``: no two models on the hub share it."""
    return re.sub(r"[^\w.@=+-]+", "--", model).strip(".-")


def _model_name(folder: str) -> str:
    return folder.replace("--", "/").replace("+", ",")


def _absolute(item: Any) -> Any:
    """A path is meant from where the command was typed, and the notebook runs elsewhere."""
    place = Path(bare(str(item))).expanduser()
    is_path = isinstance(item, str) and item and place.exists()
    return f"{place.resolve()}{item[len(bare(item)) :]}" if is_path else item


def _pinned(model: Any) -> Any:
    if not _is_on_hub(model):
        return model
    return data_sources.pinned(bare(model)) + model[len(bare(model)) :]
