"""Finds notebooks, and reads their parameters and the names of their artifacts.

No notebook is run here. ``run.jobs`` makes a job from a notebook and a profile.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from lookuplab import paths
from lookuplab.errors import UserError, check_choice
from lookuplab.results.provenance import assigned_values, original_notebook, saved_in

PROFILES = Path(__file__).with_name("profiles")


@dataclass(frozen=True)
class Notebook:
    """One notebook. Its ``paper`` is the name of the folder that it is in, even if this folder
    belongs to no paper.

    - ``parameters`` are the values in the notebook's parameters cell.
    - ``artifacts`` are the tables and figures that the notebook saves, as ``paper/name``.
    - ``order`` says when `lookuplab reproduce` runs the notebook (``notebooks/order.yaml``).
      Notebooks with the order ``first`` fill the stores for the other notebooks of their paper.
      Those with ``alone`` measure time, so nothing else runs at the same time. Those with
      ``manual`` are lessons and templates. All others have ``any``. Notebooks with ``alone`` or
      ``manual`` run only if the user names them or their paper.
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
        """Return the ids of the notebook's artifacts (``paper/name``), and also their names
        without the paper.
        """
        return [*self.artifacts, *(id.partition("/")[2] for id in self.artifacts)]

    @property
    def on_demand(self) -> bool:
        return self.order in ("alone", "manual")

    def seconds(self, figures: Path) -> float:
        """Return how many seconds the notebook took when it last wrote its artifacts to the folder
        ``figures`` of a profile, or 0 if the artifacts' JSON files do not state this.
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
        # two notebooks with the same id would write the same executed copy
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
    """Return the notebooks that ``names`` select, or all notebooks if there are no names. A name is
    either a paper's, which selects all notebooks of the paper, or any name that ``find`` accepts.
    Raises UserError for an unknown name.
    """
    notebooks = all_notebooks()
    found = [] if names else notebooks
    for name in names:
        found += [one for one in notebooks if one.paper == name] or [find(name)]
    return list({notebook.id: notebook for notebook in found}.values())


def read(path: Path) -> Notebook:
    """Return the notebook in a file. Raises UserError if the file is not a notebook, if the
    parameters cell has more than plain values, or if the names of artifacts in the code are not
    plain texts.
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
    # papermill's inspect_notebook cannot be used, because it drops lines with a second "=", even if
    # the second one is in a comment
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
    """Return {order: ids of notebooks} from the text of ``order.yaml``."""
    return dict(yaml.safe_load(orders))


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the kit."""
    return sorted(file.stem for file in PROFILES.glob("*.yaml"))
