"""`make course`: what students get, runs/course/lookuplab-course.zip.

That is a copy of the kit whose lessons have neither solutions nor hidden tests: nbgrader takes them
out. Only committed files are copied: the sources of the lessons, the tests and what runs leave
behind stay here. Needs nbgrader and git.
"""

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = Path(os.environ.get("LOOKUPLAB_COURSE", ROOT / "runs" / "course")).resolve()
KIT = "CITATION.cff LICENSE Makefile constraints.txt data docs figures lib notebooks pyproject.toml"
LEFT_OUT = ("figures/paper/", "notebooks/course/")


def stop(why: str) -> NoReturn:
    print(f"error: {why}", file=sys.stderr)
    raise SystemExit(2)


def release() -> list[Path]:
    """The student versions of all lessons, made by nbgrader in ``WORK``/release/course."""
    if find_spec("nbgrader") is None:
        stop("no nbgrader here: pip install -c constraints.txt nbgrader, or use `make course`")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "course", "--force"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        stop(f"nbgrader cannot make the student versions: {done.stderr.strip()}")
    return sorted((WORK / "release" / "course").glob("*.ipynb"))


def kit() -> list[Path]:
    """The committed files that students need beside the lessons: nothing else that lies here, such
    as an instructor's own results, leaves the house.
    """
    command = ["git", "-C", str(ROOT), "ls-tree", "-r", "-z", "--name-only", "HEAD", "--"]
    try:
        done = subprocess.run([*command, *KIT.split()], capture_output=True, text=True)
    except OSError as error:
        stop(f"only committed files go to students, and git, which knows them, is missing: {error}")
    if done.returncode:
        stop(f"only committed files go to students, and git knows none: {done.stderr.strip()}")
    names = [name for name in done.stdout.split("\0") if name and not name.startswith(LEFT_OUT)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def main() -> None:
    lessons = release()
    places = {"README.md": HERE / "STUDENTS.md"}
    places |= {file.relative_to(ROOT).as_posix(): file for file in kit()}
    places |= {f"notebooks/course/{file.name}": file for file in lessons}
    output, partial = WORK / "lookuplab-course.zip", WORK / ".lookuplab-course.zip"
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as bundle:
        for place, file in places.items():
            bundle.write(file, f"lookuplab-course/{place}")
    partial.replace(output)
    size = output.stat().st_size / 1e6
    print(f"{output}: {len(lessons)} lessons without solutions, {size:.0f} MB")


if __name__ == "__main__":
    main()
