"""Clones the repositories of CodeSearchNet's Python part, which ToolGen's paper crawled (Sections
IV-B and IV-C). The paper does not say at which commits, so the data set's commits are used.
"""

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from lookuplab.errors import UserError
from lookuplab.paths import make_folder
from lookuplab.run.cli import HELP, Group, command, echo_counts
from lookuplab.work import watched

COLUMNS = ["repository_name", "func_code_url", "split_name"]
# Without the variable, Git would ask for a user name if a repository is gone.
CLONE = """export GIT_TERMINAL_PROMPT=0; git init -q; git fetch -q --depth 1 "$0" "$1"
git checkout -q FETCH_HEAD"""
LICENCE_FILE = re.compile("(un)?licen[cs]e|copying", re.IGNORECASE)


def listed(files: Sequence[str], split: str) -> dict[str, str]:
    """Return {OWNER/NAME: commit} for the repositories of one split ("train", "valid" or "test"),
    sorted by name.

    ``files`` are the Parquet files of the data set on the hub (code-search-net/code_search_net,
    Python). Raises UserError for other files, and if no row belongs to the split.
    """
    try:
        rows = pd.concat(pd.read_parquet(file, columns=COLUMNS) for file in files)
    except ValueError as error:
        raise UserError(f"no files of CodeSearchNet with {', '.join(COLUMNS)}: {error}") from None
    rows = rows[rows.split_name == split]
    if rows.empty:
        raise UserError(f"no row of these files belongs to the split {split!r}")
    commits = rows.func_code_url.str.extract("/blob/([0-9a-f]{40})/")[0]
    return dict(sorted(zip(rows.repository_name, commits, strict=True)))


def clone(address: str, commit: str, folder: Path) -> str:
    """Clone one commit, without its history. The folder ``folder`` appears only when the clone is
    complete. A repository without a licence file gets a hidden folder instead, which nothing reads.

    Return the last line of git's error, or "" if there was no error.
    """
    part = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(part, ignore_errors=True)
    words = ["sh", "-ec", CLONE, address, commit]
    done = subprocess.run(words, cwd=make_folder(part), capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().rpartition("\n")[2]
    files = [file.name for file in part.iterdir() if file.is_file()]
    part.rename(folder if any(map(LICENCE_FILE.match, files)) else hidden(folder))
    return ""


def hidden(folder: Path) -> Path:
    """Return the folder ``.OWNER--NAME`` for a repository ``OWNER--NAME`` without a licence file.
    The clone is kept there so that the repository is not cloned again.
    """
    return folder.with_name(f".{folder.name}")


@command("clone")
def main(
    split: Literal["train", "valid", "test"],
    files: tuple[str, ...],
    *,
    output: Path,
    host: str = "https://github.com",
) -> None:
    """Clone the repositories of one split of CodeSearchNet's Python part, for ToolGen's paper
    profile.

    FILES are the Parquet files of the data set (code-search-net/code_search_net on the hub), which
    name repositories and commits. Each repository becomes a folder OWNER--NAME at that commit,
    without its history. Failures are counted by reason. To resume a run or to retry what failed,
    repeat the command: it skips folders that exist. A repository without a licence file is left
    out: it becomes a hidden folder, .OWNER--NAME.

    \b
    Example:
      python notebooks/toolgen/repositories.py clone test python/*.parquet \\
        -o data/downloads/toolgen/repositories

    Args:
        output: Folder for the repositories.
        host: The part of an address before /OWNER/NAME.
    """
    refused = Counter[str]()
    for name, commit in watched(listed(files, split).items(), "cloning", "repositories"):
        folder = output / name.replace("/", "--")
        is_there = folder.exists() or hidden(folder).exists()
        if not is_there and (reason := clone(f"{host}/{name}", commit, folder)):
            refused[reason] += 1
        refused["no licence file"] += hidden(folder).exists()
    refused = +refused  # without the reasons that were counted 0 times
    echo_counts("left out:" if refused else "no repository was left out", refused)


if __name__ == "__main__":
    Group(commands={"clone": main}, context_settings=HELP).main(
        sys.argv[1:], prog_name="repositories.py"
    )
