"""Every folder the kit reads or writes. Notebooks never build a path themselves."""

import os
from pathlib import Path


def _root() -> Path:
    """The checkout: where ``lookuplab`` was installed from, or ``$LOOKUPLAB_HOME``."""
    named = os.environ.get("LOOKUPLAB_HOME")
    return Path(named).resolve() if named else Path(__file__).resolve().parents[2]


ROOT = _root()
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
PAPER = DATA / "paper"  # what the papers report
MINI = DATA / "mini"  # inputs and models of the mini profile, committed
DOWNLOADS = DATA / "downloads"  # fetched, pinned by size and sha256; ignored by git
FIGURES = ROOT / "figures"
RUNS = ROOT / "runs"  # executed notebooks, stores, logs; ignored by git
STORE = RUNS / "completions.sqlite"


def located(path: Path | str) -> Path:
    """A relative path is meant from the working directory where it exists there, else from the checkout."""
    return Path(path) if Path(path).exists() else ROOT / path
