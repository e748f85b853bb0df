"""Which notebooks there are and which parameters they declare."""

import ast
import difflib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError

ORDERS = ("first", "any", "alone", "manual")


@dataclass(frozen=True)
class Notebook:
    """One notebook. ``paper`` is its folder, ``name`` its file name; ``parameters`` are the declared defaults.

    ``order`` is its place in ``reproduce``: ``first`` fills the stores for the others of its paper; ``alone`` measures
    time, so it runs at the end and nothing beside it; all else is ``any``. ``manual`` and ``alone`` run only where they
    or their paper are named.
    """

    path: Path
    paper: str
    name: str
    parameters: dict[str, Any]
    order: str = "any"

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"

    @property
    def on_demand(self) -> bool:
        """Whether it runs only where it or its paper is named."""
        return self.order in ("alone", "manual")


def all_notebooks(paper: str | None = None) -> list[Notebook]:
    """Every notebook (of one paper), sorted by id. Raises UserError for an unknown paper."""
    files = _files()
    papers = sorted({file.parent.name for file in files})
    if paper is not None and paper not in papers:
        raise UserError(f"no paper {paper!r}{_suggest(paper, papers)}; there are: {', '.join(papers) or 'none'}")
    return [read(file) for file in files if paper in (None, file.parent.name)]


def find(name: str) -> Notebook:
    """By path, by ``paper/artifact`` or by ``artifact``. Raises UserError with the nearest names."""
    if name.endswith(".ipynb") and Path(name).is_file():
        return read(Path(name).resolve())
    known = {f"{file.parent.name}/{file.stem}": file for file in _files()}
    wanted = name.removesuffix(".ipynb").removeprefix("notebooks/")
    hits = [file for id, file in known.items() if wanted in (id, file.stem)]
    if len(hits) == 1:
        return read(hits[0])
    if hits:
        choices = " or ".join(f"{file.parent.name}/{file.stem}" for file in hits)
        raise UserError(f"{name!r} names {len(hits)} notebooks: say {choices}")
    raise UserError(f"no notebook {name!r}{_suggest(wanted, [*known, *(file.stem for file in known.values())])}; "
                    "`lookuplab run --list` names them all")


def read(path: Path) -> Notebook:
    """Parse a notebook file. Raises UserError where it is no notebook or its parameters are no plain values."""
    cells = [source for tags, source in code_cells(path) if "parameters" in tags]
    declared = declared_parameters(cells[0], str(path)) if cells else {}
    paper, name = path.parent.name, path.stem
    return Notebook(path, paper, name, declared, _order().get(f"{paper}/{name}", "any"))


def code_cells(path: Path) -> list[tuple[list[str], str]]:
    """(tags, source) of the code cells. Raises UserError where the file is no notebook.

    A notebook of today's format is read as the JSON that it is: to import nbformat takes two seconds.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("nbformat") != 4:
            import nbformat

            document = nbformat.read(path, as_version=4)
        cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
        return [(cell["metadata"].get("tags", []), "".join(cell["source"])) for cell in cells]
    except Exception as error:  # json's, nbformat's own, and whatever comes of a part that is missing
        raise UserError(f"{path} is not a notebook: {str(error).splitlines()[0]}") from error


def declared_parameters(source: str, where: str) -> dict[str, Any]:
    """name -> value of each ``name = literal`` line in a parameters cell. Raises UserError for anything else.

    Literals only: then the types are known, and can be checked, without starting a kernel.
    """
    declared = {}
    try:
        for statement in ast.parse(source).body:
            match statement:
                case (ast.Assign(targets=[ast.Name(id=name)], value=value)
                      | ast.AnnAssign(target=ast.Name(id=name), value=value)):
                    declared[name] = ast.literal_eval(value)
                case _:
                    raise ValueError(f"line {statement.lineno} is no `name = value`")
    except (ValueError, SyntaxError, TypeError) as error:
        raise UserError(f"{where}: the parameters cell holds more than plain values: {error}") from error
    return declared


def _files() -> list[Path]:
    return sorted(file for file in paths.NOTEBOOKS.glob("*/*.ipynb") if not file.name.startswith("."))


def _order() -> dict[str, str]:
    return _read_order(paths.NOTEBOOKS / "order.yaml")


@lru_cache(maxsize=8)
def _read_order(file: Path) -> dict[str, str]:
    import yaml

    if not file.exists():
        return {}
    groups = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    if unknown := set(groups) - set(ORDERS):
        raise UserError(f"{file}: {sorted(unknown)} is none of {', '.join(ORDERS)}")
    return {name: order for order, names in groups.items() for name in names or ()}


def _suggest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
