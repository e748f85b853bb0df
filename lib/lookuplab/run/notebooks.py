"""Finds notebooks, loads profiles, and makes jobs. A job is a notebook with the parameters for one
run.

No notebook is run here. The user's mistakes are found before anything runs: an unknown parameter, a
value of the wrong type, a missing model or file.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lookuplab import paths
from lookuplab.errors import UserError, check_choice
from lookuplab.models import load
from lookuplab.models.names import (
    KEY_VARIABLE,
    OPENAI,
    VLLM,
    bare_name,
    is_mini,
    is_remote,
    model_folder,
    split_options,
    table_name,
)
from lookuplab.results.provenance import (
    assigned_values,
    convert,
    each_text,
    original_notebook,
    relative,
    saved_in,
    with_fields,
)
from lookuplab.run import downloads

PROFILES = Path(__file__).with_name("profiles")
# tasks whose frequency classes were counted in public code
PUBLIC_TASKS = "data/public/cloudapi/tasks.jsonl"
# (notebook, parameter) -> the parameter's smallest sensible value; for all other parameters it is 0
LEAST = {
    ("own/agent", "precision"): -1,  # -1 means BM25 alone; precisions in percent begin at 0
    ("own/package", "per_class"): 1,
    ("own/snippets", "shown"): 1,
}
# (notebook, parameter) of lists that may be empty; so may lists of models
MAY_BE_EMPTY = {
    ("stackoverflow/fig3_pass_at_k", "arms"),
    ("stackoverflow/fig4_perturbation_robustness", "closely"),
}
# (notebook, parameter) of a list in which a number may be repeated: sizes of repositories
MAY_REPEAT = ("mini/interval_coverage", "repositories")
# parameters that name the user's code or documents, which a notebook in the folder `own` examines
_MATERIALS = ("repository", "package", "corpus")
_MODELS = re.compile(r"(^|_)models?$")  # parameters that name models
_FILES = re.compile(r"_(file|folder)$")  # parameters whose values are always paths
# matches the beginning of a value that counts as a path; data/ and runs/ are in the checkout
_PATH = re.compile(r"data/|runs/|\.{0,2}/|~")
_YAML = (".yaml", ".yml")

# 1. Notebooks


@dataclass(frozen=True)
class Notebook:
    """One notebook. ``paper`` is the name of the notebook's folder, even if this folder belongs to
    no paper.

    - ``parameters`` are the values in the notebook's parameters cell.
    - ``artifacts`` are the tables and figures that the notebook saves, as ``paper/name``.
    - ``order`` says when `lookuplab reproduce` runs the notebook (``notebooks/order.yaml``):

      - ``first``: before the others, because it fills the stores from which other notebooks of its
        paper read;
      - ``alone``: only if the user names the notebook or its paper, and while nothing else runs,
        because it measures time;
      - ``manual``: only if the user names the notebook or its paper, because it is a lesson or
        a template, or takes long;
      - ``any``: at any time.

    - ``drawing`` is the code that draws the pictures from the artifacts' CSVs: the statements
      ``name = Artifact(...)`` and the cells tagged ``draw``.
    - ``opening`` are the paragraphs between the title and the first code cell, which explain the
      question and the method.
    - ``is_copy`` says that this notebook shares its id or an artifact with another notebook, which
      is the original. Examples are a duplicate made in Jupyter (``fig7a-Copy1``) and papermill's
      output (``out``).
    """

    path: Path
    parameters: dict[str, Any] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()
    order: str = "any"
    drawing: str = field(default="", repr=False)
    title: str = ""
    opening: str = field(default="", repr=False)
    is_copy: bool = False

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
    def home(self) -> str:
        """Return the profile that the parameters cell names, or "mini" if it names none."""
        named = self.parameters.get("profile")
        return named if named in profile_names() else "mini"

    @property
    def made(self) -> list[str]:
        """Return every name by which a user may call the notebook's artifacts: ``paper/name`` and
        ``name``.
        """
        return [*self.artifacts, *(id.partition("/")[2] for id in self.artifacts)]

    @property
    def on_demand(self) -> bool:
        return self.order in ("alone", "manual")

    def seconds(self, figures: Path) -> float:
        """Return how many seconds the notebook took when it last wrote its artifacts to the folder
        ``figures`` of a profile, or 0 if the artifacts' JSON files do not state the time.
        """
        found = 0.0
        for id in self.artifacts:
            with suppress(OSError, ValueError, KeyError, TypeError):
                found = max(
                    found, json.loads((figures / f"{id}.json").read_bytes())["wall_seconds"]
                )
        return found


def all_notebooks() -> list[Notebook]:
    """Return every notebook that is not a copy of another notebook, sorted by id."""
    return [notebook for notebook in with_copies() if not notebook.is_copy]


def with_copies(further: Path | None = None) -> list[Notebook]:
    """Return every notebook, sorted by id, and then the notebook ``further``, which may be in any
    folder. If several notebooks have the same artifact or id, all but the original are marked as
    copies. Raises UserError if the checkout has no notebooks.
    """
    files = sorted(paths.NOTEBOOKS.glob("*/[!.]*.ipynb"))
    if not files:
        raise UserError(f"{paths.ROOT} has no notebooks; LOOKUPLAB_HOME must name a checkout")
    notebooks = [read(file) for file in dict.fromkeys([*files, *filter(None, [further])])]
    saving: dict[str, set[Path]] = {}
    for notebook in notebooks:
        # ids are compared, too: two notebooks with one id would write the same executed copy
        for artifact in (*notebook.artifacts, notebook.id):
            saving.setdefault(artifact, set()).add(notebook.path)
    copied = {
        path
        for artifact, places in saving.items()
        if len(places) > 1
        for path in places - {original_notebook(artifact, places)}
    }
    return [replace(notebook, is_copy=notebook.path in copied) for notebook in notebooks]


def find(name: str) -> Notebook:
    """Return the notebook with this ``name``, which may be the path of a notebook, the notebook's
    name, or the name of one of its artifacts. Names may begin with the paper's folder
    (``paper/name``).

    Raises UserError if there is no such notebook, or more than one. The message suggests names.
    """
    if name.endswith(".ipynb") and Path(name).is_file():
        path = Path(name).resolve()
        return next(notebook for notebook in with_copies(path) if notebook.path == path)
    wanted = name.removesuffix(".ipynb").removeprefix("notebooks/")
    notebooks = with_copies()
    names = [name for each in notebooks for name in (each.id, each.name, *each.made)]
    check_choice("the notebook", wanted, dict.fromkeys(names), " (`lookuplab list` names them)")
    # the name of a notebook takes precedence over the name of an artifact
    matches = [each for each in notebooks if wanted in (each.id, each.name)]
    matches = matches or [each for each in notebooks if wanted in each.made and not each.is_copy]
    if len(matches) > 1:
        known = " or ".join(notebook.id for notebook in matches)
        raise UserError(f"{name!r} names {len(matches)} notebooks: use {known}")
    return matches[0]


def select(names: Iterable[str]) -> list[Notebook]:
    """Return the notebooks that ``names`` select, or all notebooks if there are no names. The name
    of a paper selects all notebooks of the paper. Any other name selects the notebook that ``find``
    returns. Raises UserError for an unknown name.
    """
    notebooks = all_notebooks()
    found = [] if names else notebooks
    for name in names:
        found += [one for one in notebooks if one.paper == name] or [find(name)]
    return list({notebook.id: notebook for notebook in found}.values())


def read(path: Path) -> Notebook:
    """Return the notebook in a file. Raises UserError if the file is not a notebook, if the
    parameters cell does more than assign plain values, or if the code gives the paper or the name
    of an artifact as anything but a plain text.
    """
    try:
        every = paths.parse(json.loads, path.read_bytes())["cells"]
        cells = [
            ("".join(cell["source"]), [*(cell["metadata"].get("tags") or ())])
            for cell in every
            if cell["cell_type"] == "code"
        ]
        heads = [
            "".join(cell["source"])
            for cell in takewhile(lambda cell: cell["cell_type"] == "markdown", every)
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a notebook in the current format: {error}") from error
    declared = "".join(source for source, tags in cells if "parameters" in tags)
    # papermill's inspect_notebook cannot be used, because it drops each line with two "=", even if
    # one of them is in a comment
    if (values := assigned_values(declared)) is None:
        raise UserError(f"{path}: the parameters cell holds more than plain values")
    code = "\n".join(source for source, _ in cells)
    artifacts = saved_in(code)
    if len(artifacts) < code.count("Artifact("):
        raise UserError(
            f"{path}: cannot read the names of every artifact; write "
            'artifact = Artifact("paper", "name", profile), with plain texts'
        )
    drawing = [*artifacts.values(), *(source for source, tags in cells if "draw" in tags)]
    orders = paths.NOTEBOOKS / "order.yaml"
    id = f"{path.parent.name}/{path.stem}"
    groups = _groups(orders.read_text("utf-8")) if orders.is_file() else {}
    order = next((order for order, names in groups.items() if id in names), "any")
    texts = "\n\n".join(head for head in heads if not head.startswith("## "))
    title, _, opening = texts.partition("\n")
    return Notebook(
        path,
        values,
        (*artifacts,),
        order,
        "\n".join(drawing),
        title.removeprefix("# "),
        opening.strip(),
    )


@cache
def _groups(orders: str) -> dict[str, list[str]]:
    """Return {order: ids of notebooks} from the text of ``order.yaml``. Raises UserError if the
    text is not YAML or has another form.
    """
    try:
        groups = paths.parse(yaml.safe_load, orders) or {}
        return {
            order: convert([""], names, f"order.yaml: {order!r}") for order, names in groups.items()
        }
    except (ValueError, AttributeError) as error:
        raise UserError(
            f"{paths.NOTEBOOKS / 'order.yaml'}: {error}; write lists, such as first: [own/model]"
        ) from error


# 2. Profiles


@dataclass(frozen=True)
class Profile:
    """The settings of a run: parameters from one YAML ``file`` and from the command line.

    - ``parameters`` apply to every notebook that declares them. ``notebooks[id]`` has parameters
      for one notebook, which must declare them.
    - ``committed`` says that the figures belong to the repository; otherwise they are written below
      ``runs/``.
    - ``by_model`` says that figures go to a separate folder, ``<profile>/<models>``, if the command
      line names models.
    - ``threads`` is the number of threads per notebook. 0 divides the cores among the notebooks
      that run at once, but then the last bits of floating-point numbers depend on how many run.
    - ``steps`` is {path: instructions}. If a parameter names a missing file or folder whose path
      begins with this path, the instructions tell the user how to make the file or folder.
    - ``given`` is {parameter: value} from the command line, and overrides all other values. If
      ``given`` is not empty, figures go below ``runs/`` and never replace committed figures. The
      only exception: with ``by_model``, if ``given`` has only models, figures go to the folder
      ``<profile>/<models>`` beside the committed figures.
    """

    file: Path
    description: str = ""
    committed: bool = False
    by_model: bool = False
    threads: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    notebooks: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the profile's name, such as ``paper``. With ``by_model``, models from the command
        line are part of the name: ``paper/bigcode--starcoder2-3b``.
        """
        models = [model for value in self._models for model in convert([""], value, "models")]
        addresses = dict.fromkeys(relative(_rename(model, _make_absolute)) for model in models)
        # "@" is kept, so that two revisions of a model have two folders: bigcode--starcoder2-3b and
        # bigcode--starcoder2-3b@main
        folders = (re.sub(r"[^\w.@=+-]+", "--", address).strip(".-") for address in addresses)
        return f"{self.file.stem}/{'+'.join(folders)}".rstrip("/")

    def covers(self, notebook: Notebook) -> bool:
        """Return whether this profile runs a notebook. The profile ``published`` runs the notebooks
        whose parameters cells name it. Every other profile runs all other notebooks.
        """
        return (notebook.home == paths.PUBLISHED) == (self.file.stem == paths.PUBLISHED)

    @property
    def _models(self) -> list[Any]:
        """Return the values from the command line that name models; [] without ``by_model``."""
        return [self.given[name] for name in filter(_MODELS.search, self.given) if self.by_model]

    @property
    def figures(self) -> Path:
        """Return the folder of the figures. Artifacts are in it as ``<profile>/<paper>/<name>``."""
        if self.committed and len(self._models) == len(self.given):
            return paths.FIGURES
        return paths.RUNS / "figures"


def load_profile(name: str) -> Profile:
    """Return the profile ``name``: one of the kit's profiles, or the path of the user's own YAML
    file. ``paper/OWNER/MODEL`` is the profile ``paper`` with this model instead of the paper's.
    Raises UserError if there is no such profile.
    """
    stem, _, models = name.partition("/")
    file = PROFILES / f"{stem}.yaml"
    if name.endswith(_YAML):
        file, models = Path(name), ""
        # its figures would replace those of the kit's profile
        if file.stem in profile_names() and file.resolve().parent != PROFILES.resolve():
            raise UserError(f"profile {name}: the kit has a profile {file.stem!r}; rename the file")
    if not file.is_file():
        check_choice("--profile", name, profile_names())
    try:
        stated = paths.parse(yaml.safe_load, file.read_bytes()) or {}
        profile = with_fields(Profile(file), stated, f"profile {file}")
        for names in (profile.parameters, profile.notebooks, *profile.notebooks.values()):
            # raises TypeError for a key that is not a text
            dict(**names)
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(f"profile {file}: {error}; write it like {PROFILES}/mini.yaml") from error
    if name.endswith(_YAML):  # a user's file may name only notebooks and parameters that exist
        known = {notebook.id: notebook for notebook in all_notebooks()}
        for id in profile.notebooks:
            check_choice(f"profile {file}: the notebook", id, known)
        for parameter in profile.parameters:
            check_choice(f"profile {file}: the parameter", parameter, settable(known.values()))
    if models and not profile.by_model:
        raise UserError(f"profile {stem!r} has no folder for each model: leave out /{models}")
    return replace(profile, given={"models": models.split(",")}) if models else profile


def profile_with_figures(name: str) -> Profile:
    """Return the profile ``name``. Raises UserError if the profile has no figures yet."""
    made = load_profile(name)
    if not any((made.figures / made.name).glob("*/*.csv")):
        raise UserError(
            f"no figures of profile {name!r} yet: `lookuplab run` and `lookuplab reproduce` make "
            "them, if -p sets only models"
        )
    return made


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the kit."""
    return sorted(file.stem for file in PROFILES.glob("*.yaml"))


# 3. Jobs


class NamedText(NamedTuple):
    """A text in the value of a job's parameter. The properties say what the text names."""

    parameter: str
    text: str

    @property
    def is_model(self) -> bool:
        return bool(_MODELS.search(self.parameter))

    @property
    def place(self) -> Path | None:
        """Return the path of the file or folder that the text names. The text may be a path, or the
        name of a model from the package index, which has a folder. Return None for any other text.
        """
        source = downloads.load().get(bare_name(self.text))
        if source and source.kind == "package":
            return source.folder
        is_path = _PATH.match(bare_name(self.text)) or _FILES.search(self.parameter)
        return path_of(self.text) if is_path and not is_remote(self.text) else None

    @property
    def is_on_hub(self) -> bool:
        is_loaded = self.is_model or self.parameter.endswith(("encoder", "tokenizer"))
        return is_loaded and not (is_remote(self.text) or is_mini(self.text) or self.place)


@dataclass(frozen=True)
class Job:
    """One notebook to execute under a profile.

    - ``parameters`` are the values that are injected into the notebook. ``values`` are all of the
      notebook's parameters after the injection.
    - ``output`` is the path of the executed copy.
    - Artifacts go to the folder ``<profile>/<paper>`` in the folder ``figures``.
    - ``notes`` are lines for the user about models of the profile that are left out because their
      API key is not set.
    - ``environment`` has additional environment variables for the notebook's process.
    """

    notebook: Notebook
    profile: Profile
    parameters: dict[str, Any]
    output: Path
    figures: Path
    notes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        return self.notebook.parameters | self.parameters

    @property
    def place(self) -> Path:
        """Return the folder for the job's artifacts."""
        return self.figures / self.profile.name / self.notebook.paper

    @property
    def title(self) -> str:
        """Return the notebook's id, followed by the number of the case if the job is one of a
        sweep: ``cloudapibench/fig1_perplexity [002]``.
        """
        case = self.output.parent.name
        return f"{self.notebook.id} [{case}]" if case.isdigit() else self.notebook.id

    def path_with_suffix(self, suffix: str) -> Path:
        """Return the path of a file about the run. It is in the folder of the executed copy, and
        has ``suffix`` in place of .ipynb: ".log" is the log, ".answers.csv" the list of answers,
        ".ran" the fingerprint.
        """
        return self.output.with_suffix(suffix)

    def named_texts(self) -> Iterator[NamedText]:
        """Yield every text that is the value of a parameter, or an item of such a value. Empty
        texts and the profile are left out.
        """
        for name, value in self.values.items():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str) and item and name != "profile":
                    yield NamedText(name, item)

    def models(self) -> list[str]:
        """Return the texts that name models in the job's parameters."""
        return [named.text for named in self.named_texts() if named.is_model]


def _folder(material: str) -> str:
    """Return the name of the folder for the figures about a package, repository or corpus. If this
    is a path, the folder's name includes a digest of the whole path, because paths such as A/src
    and B/src have the same last part.
    """
    name = Path(material).name
    return f"{name}-{paths.digest(material)[:8]}" if material.startswith("/") else name


def plan(notebook: Notebook, profile: Profile, given: Mapping[str, Any] | None = None) -> Job:
    """Return the job that runs a notebook under a profile. The job's parameters have the names and
    types that the notebook declares.

    ``given`` has further values from the command line, under names that the notebook must declare.
    Parameters of the profile that the notebook does not declare are ignored. Models on the hub get
    the revision that ``data/sources.toml`` pins. Models of the profile whose API key is not set are
    left out, unless none would remain. Raises UserError for an unknown name or a wrong type.
    """
    if not profile.covers(notebook):
        raise UserError(
            f"{notebook.id} does not run in the profile {profile.name}: give --profile "
            f"{notebook.home}"
        )
    declared = notebook.parameters
    given = given or {}
    profile = replace(profile, given={**profile.given, **given})
    own = profile.notebooks.get(notebook.id, {})
    for name in (*own, *given):
        check_choice(f"the parameter for {notebook.id}", name, settable([notebook]))
    requested = {**profile.parameters, **own, **profile.given, "profile": profile.name}
    parameters: dict[str, Any] = {}
    notes: list[str] = []
    for name, value in declared.items():
        is_model = _MODELS.search(name)
        if name in requested:
            value = convert(value, requested[name], f"{notebook.id}: parameter {name!r}")
        if name in profile.given:
            value = _rename(value, _make_absolute)
        elif is_model and isinstance(value, list):
            keyed = [model for model in value if not missing_key(model)]
            if keyless := [model for model in value if model not in keyed]:
                notes.append(f"{notebook.id}: left out, no key for {', '.join(keyless)}")
            value = keyed or value
        if name in requested or value != declared[name]:
            parameters[name] = _rename(value, downloads.pinned_name) if is_model else value
    # a run with the user's own parameters must not replace the profile's executed copy
    is_own = profile.given and profile.figures != paths.FIGURES
    output = paths.RUNS / ("own" if is_own else "") / profile.name / f"{notebook.id}.ipynb"
    figures = profile.figures
    if notebook.is_copy:  # a copy must not overwrite the files of its original
        figures = paths.RUNS / "copies" / notebook.name
        output = figures / profile.name / f"{notebook.id}.ipynb"
    if is_own and notebook.paper == "own":  # each material has its own figures and executed copy
        material = [_folder(parameters[name]) for name in _MATERIALS if name in profile.given][:1]
        figures = figures.joinpath(*material)
        output = paths.RUNS.joinpath("own", *material, profile.name, f"{notebook.id}.ipynb")
    return Job(notebook, profile, parameters, output, figures, tuple(notes))


def settable(notebooks: Iterable[Notebook]) -> list[str]:
    """Return the parameters of these notebooks that the command line and a profile may set."""
    names = {name for notebook in notebooks for name in notebook.parameters}
    return sorted(names - {"profile"})


def missing_key(model: str) -> str:
    """Return the name of the environment variable that must hold the model's API key, but is not
    set. Return "" if the model needs no key, or if the variable is set.
    """
    place, options = split_options(model)
    variable = options.get("key_variable", KEY_VARIABLE)
    return variable if place.startswith(OPENAI) and not os.environ.get(variable, "").strip() else ""


# 4. What a job needs


def problems(job: Job) -> Iterator[str]:
    """Yield a line for each problem of a job: something that this machine lacks, or a value that
    the notebook cannot use. The line says how to solve the problem.

    Downloads that ``check`` fetches do not count as missing. The network is not used.
    """
    fetched = {source.path for source in needed_downloads(job)}
    if roles := job.profile.given.get("roles"):
        from lookuplab.results.paper import unknown_roles  # reads tables, which takes time

        yield from unknown_roles(roles, [job.notebook.paper])
    if any(map(_MODELS.search, job.values)) and not job.models():
        yield "no parameter names a model: name at least one"
    yield from senseless_values(job)
    models = Counter(map(table_name, set(job.models())))
    for name, count in models.items():
        if count > 1:
            yield f"two models would be {name!r} in the tables: rename a folder, or run each alone"
    for named, times in Counter(job.named_texts()).items():
        name, text, place = *named, named.place
        if times > 1:  # the same answers would count several times
            yield f"parameter {name!r} names {text!r} {times} times: name it once"
        elif key := missing_key(text):
            yield f"model {text!r} needs a key: set the environment variable {key}"
        elif place and (paths.is_special(place) or not place.exists()) and place not in fetched:
            steps = [step for path, step in job.profile.steps.items() if text.startswith(path)]
            if place == paths.fetched_model(place.name):
                steps.append(f"`lookuplab data get {place.name}`")
            what = "is neither a file nor a folder" if place.exists() else "does not exist"
            missing = f"parameter {name!r} names {text!r}, which {what}"
            yield ": ".join([missing, *steps[:1]])
        elif named.is_model and not named.is_on_hub:
            try:
                load(text)
            except UserError as error:
                yield str(error)
    yield from foreign_tasks(job)


def senseless_values(job: Job) -> Iterator[str]:
    """Yield a line for each parameter that the command line sets to a value that makes no sense: an
    empty list, a number below 0 (or below the number in LEAST), a number too large for a count, or
    a list that repeats a number.
    Only the kit's notebooks are checked, because a user's notebook may have a use for such values.
    """
    for name in job.profile.given if paths.NOTEBOOKS in job.notebook.path.parents else ():
        value = job.values.get(name)
        items = value if isinstance(value, list) else [value]
        declared = job.notebook.parameters.get(name)
        # ``problems`` checks whether the job has a model at all
        may_be_empty = _MODELS.search(name) or (job.notebook.id, name) in MAY_BE_EMPTY
        if not items and declared and not may_be_empty:
            yield f"parameter {name!r} is empty: give at least one value"
        least = LEAST.get((job.notebook.id, name), 0)
        numbers = [item for item in items if isinstance(item, int | float)]
        # the comparison also rejects NaN and infinity
        if not all(least <= number <= sys.maxsize for number in numbers):
            yield f"parameter {name!r} is {value!s:.40}; it must be at least {least}, not too large"
        elif len({*numbers}) < len(numbers) and (job.notebook.id, name) != MAY_REPEAT:
            yield f"parameter {name!r} is {value!s:.40}: give each number once"


def foreign_tasks(job: Job) -> Iterator[str]:
    """Yield a line if the job gives the mini tasks to models other than the mini models. The
    frequency classes of these tasks were counted in the mini models' training corpus, and say
    nothing about other models.
    """
    folder = path_of(job.values.get("tasks_file", "")).resolve().parent
    strangers = [model for model in job.models() if paths.MINI not in model_folder(model).parents]
    own_benchmark = job.values.get("benchmark")  # own/model: the benchmark has its own tasks
    if folder == paths.MINI / "cloudapi" and strangers and not own_benchmark:
        names = ", ".join(dict.fromkeys(map(table_name, strangers)))
        yield (
            f"the mini tasks' frequency classes mean nothing for {names}, which learned from "
            f"other code: use --profile paper, or -p tasks_file={PUBLIC_TASKS}"
        )


def needed_downloads(job: Job) -> list[downloads.Source]:
    """Return the downloads that a job's parameters name, fetched or not: models on the hub, and
    environments and files in ``data/sources.toml``.
    """
    needed = []
    for named in job.named_texts():
        place = path_of(named.text)
        # the names of a corpus's downloads begin with the name of the corpus
        is_corpus = named.parameter in ("corpus", "queries_of")
        needed += [
            source
            for source in downloads.load().values()
            if source.kind in ("environment", "file")
            and (
                source.name == named.text
                or source.path == place
                or (is_corpus and source.name.startswith(f"{named.text}-"))
            )
        ]
        if named.is_on_hub:
            needed.append(downloads.hub_source(bare_name(named.text)))
    return list({(source.name, source.revision): source for source in needed}.values())


def check(job: Job) -> None:
    """Check that this machine has everything that the job's parameters name. Fetch missing
    downloads. Of a model on the hub, fetch only the configuration, to check that the model exists.
    Raises UserError if something is missing.

    Without this check, a run could fail at its third model, after hours.
    """
    for problem in problems(job):
        raise UserError(f"{job.notebook.id}: {problem}")
    for source in needed_downloads(job):
        downloads.get(source, whole=source.kind != "model")


def path_of(item: str) -> Path:
    """Return the path that a parameter's value names. For ``FOLDER/*``, return the folder."""
    return paths.ROOT / paths.expand_path(bare_name(item).removesuffix("/*"))


def _rename(value: Any, change: Callable[[str], str]) -> Any:
    """Return ``value`` with ``change`` applied to every text in it. The prefix ``vllm:`` and the
    options after a model's name stay as they are.
    """

    def renamed(text: str) -> str:
        engine = VLLM if text.startswith(VLLM) else ""
        name = bare_name(text)
        return engine + change(name) + text.removeprefix(engine + name)

    return each_text(value, renamed)


def _make_absolute(item: str) -> str:
    """Return an existing path as an absolute path, and any other text unchanged. Paths are relative
    to the folder in which the command was typed, but the notebook runs in another folder.
    """
    place = paths.expand_path(item)
    return str(place.resolve()) if item and place.exists() else item
