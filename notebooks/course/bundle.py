"""Builds the students' package, runs/course/lookuplab-course.zip. `make course` runs this program.

The package is a copy of the kit in which nbgrader has removed the solutions and the hidden tests
from the lessons. Only committed files are copied. The package leaves out the instructor's version
of the lessons, the tests, the output of runs, and the models, answers and pictures that no lesson
needs. The program needs nbgrader and git.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = Path(os.environ.get("LOOKUPLAB_COURSE", ROOT / "runs" / "course")).resolve()
KIT = (
    "CITATION.cff CLAIMS.md LICENSE Makefile RESULTS.md binder constraints.txt data docs figures "
    "lib notebooks pyproject.toml"
)
COURSE = "notebooks/course/"
# the files that students need from the lessons' folder, in addition to the lessons
BESIDE = "check.py", "drawings.py", ".jupyter/"
# no lesson needs the files in KIT whose paths begin like this
LEFT_OUT = (
    "data/mini/models/large",
    "data/mini/models/medium-",
    "data/mini/models/small-",
    "data/mini/questions/",
    "data/mini/record/",
    "data/mini/toolgen/gpt-base/",
    "data/mini/toolgen/llama",
    "data/mini/toolgen/t5",
    "figures/gemma/",
    "figures/mini/answers.csv.gz",
    "figures/paper/",
)


def release() -> list[Path]:
    """Let nbgrader write the student versions of all lessons to ``WORK``/release/course, and return
    their paths. Without nbgrader, or if it fails, print why and exit.
    """
    if find_spec("nbgrader") is None:
        sys.exit("error: no nbgrader here: use `make course`, which installs it")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "course", "--force"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: nbgrader cannot make the student versions: {done.stderr.strip()}")
    return sorted((WORK / "release" / "course").glob("*.ipynb"))


def kit() -> list[Path]:
    """Return the paths of the committed files that students need in addition to the lessons. Files
    that are not committed, such as an instructor's own results, are never included.
    """
    command = ["git", "-C", str(ROOT), "ls-tree", "-r", "-z", "--name-only", "HEAD", "--"]
    message = "error: only committed files go to students, and git"
    try:
        done = subprocess.run([*command, *KIT.split()], capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"{message}, which lists them, is missing: {error}")
    if done.returncode:
        sys.exit(f"{message} lists none: {done.stderr.strip()}")
    names = [name for name in done.stdout.split("\0") if name and _is_needed(name)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def _is_needed(name: str) -> bool:
    if name.startswith(COURSE):
        return name.removeprefix(COURSE).startswith(BESIDE)
    return not name.startswith(LEFT_OUT)


def name_submissions(submitted: Path, lessons: Sequence[str]) -> list[str]:
    """Rename submissions to the names of their lessons, and return a message about each file that
    has another name, such as ``lesson0_tokens (1).ipynb`` after a second download.

    If a student handed in several such files for a lesson and none has the right name, the newest
    file is renamed. nbgrader does not grade the other files, and the messages say so.
    """
    said = []
    files = (file for file in submitted.glob("*/*/*.ipynb") if file.stem not in lessons)
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        place = file.relative_to(submitted)
        lesson = next((name for name in lessons if file.stem.startswith(name)), None)
        right = file.with_stem(lesson) if lesson else None
        if right is None:
            said.append(f"{place} is not graded: it is named after no lesson")
        elif right.exists():
            said.append(f"{place} is not graded: {right.name} is there, too")
        else:
            file.rename(right)
            said.append(f"{place} is now {right.name}")
    return said


def main() -> None:
    print("1 of 2: the student versions of the lessons, by nbgrader (about a minute)", flush=True)
    lessons = release()
    print("2 of 2: the bundle of committed files", flush=True)
    places = {"README.md": HERE / "STUDENTS.md"}
    places |= {file.relative_to(ROOT).as_posix(): file for file in kit()}
    places |= {f"{COURSE}{file.name}": file for file in lessons}
    output, partial = WORK / "lookuplab-course.zip", WORK / ".lookuplab-course.zip"
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as bundle:
        for place, file in places.items():
            bundle.write(file, f"lookuplab-course/{place}")
    partial.replace(output)
    size = output.stat().st_size / 1e6
    print(f"{output}: {len(lessons)} notebooks without solutions, {size:.0f} MB")
    print("give out this file and nothing else; to see it as students do: make course-lab")


if __name__ == "__main__":
    main()
