"""Checks that every ``value [low, high]`` in prose is in a committed table, or in the comparison by
which a claim is judged. `python docs/quoted.py` prints the values that are in neither.

Blocks of code are not checked, because they may show output for a user's own material.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.results import claims, verify
from lookuplab.results.artifact import read_csv

NUMBER = r"[-+]?\d[\d,]*\.?\d*"
TRIPLE = re.compile(rf"({NUMBER})(?:%| points| pp)? \[({NUMBER}), ({NUMBER})\]")


def half_digits(*numbers: str) -> list[float]:
    """Return how far each printed number may be from the exact one: half a unit of its last digit.
    A whole number is treated as if it had as many decimals as the number with the most decimals.
    """
    places = [len(number.partition(".")[2]) for number in numbers]
    return [0.5 * 10 ** -(place or max(places)) * (1 + 1e-6) for place in places]


def known(folder: Path) -> np.ndarray:
    """Return an array (n, 3) with the value, the lower end and the upper end of all rows of the
    tables in ``folder``, and of all comparisons by which claims are judged.
    """
    files = [*folder.rglob("*.csv")]
    rows = pd.concat(read_csv(file)[["value", "ci_low", "ci_high"]] for file in files).dropna()
    runs = {file.parents[1] for file in files}
    stated = claims.load()
    judged = [one for run in runs for one in claims.judge_run(stated, run)]
    judged += [arm for one in judged for arm in one.arms.values()]
    compared = np.array([(c.value, c.low, c.high) for j in judged for c in j.comparisons])
    # prose may write a change of -4.0 [-7.2, -0.9] as a loss of 4.0 [0.9, 7.2] points
    return np.vstack([rows, compared, -compared[:, [0, 2, 1]]])


def unknown() -> list[str]:
    """Return a line for each ``value [low, high]`` that a page quotes but no committed table or
    comparison contains. The line names the page.
    """
    with TemporaryDirectory() as folder:
        for name, content in verify.committed_files("").items():
            file = Path(folder, name)
            paths.make_folder(file.parent)
            file.write_bytes(content)
        numbers = known(Path(folder))
    pages = [*paths.ROOT.glob("*.md"), *(paths.ROOT / "docs").glob("*.md")]
    pages += [*paths.NOTEBOOKS.rglob("*.md"), *paths.PAPER.glob("*.md"), *paths.MINI.rglob("*.md")]
    pages += (paths.ROOT / "data" / "public").rglob("*.md")
    lost = []
    for page in pages:
        prose = "".join(page.read_text(encoding="utf-8").split("```")[::2])
        for triple in TRIPLE.findall(prose):
            said = [float(number.replace(",", "")) for number in triple]
            if not (abs(numbers - said) <= half_digits(*triple)).all(axis=1).any():
                lost.append(f"{page.relative_to(paths.ROOT)}: {triple}")
    return lost


if __name__ == "__main__":
    print("\n".join(unknown()))
