"""Configures `nbgrader` for this folder, whose notebooks are the sources of one assignment,
`course`.

All files of nbgrader (student versions, submissions, grades) are in runs/course, which git ignores.
The environment variable `LOOKUPLAB_COURSE` can name another folder.
"""

import os
import sys
from pathlib import Path

from lookuplab_notebooks.course.bundle import HERE, WORK, name_submissions

WORK.mkdir(parents=True, exist_ok=True)
# nbgrader starts the program alembic by its name, so the folder of this Python must be in PATH even
# if the environment is not activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

c = get_config()  # traitlets defines this function when it runs the file
c.CourseDirectory.course_id = "lookuplab"
c.CourseDirectory.root = str(WORK)
c.CourseDirectory.source_directory = os.path.relpath(HERE.parent, WORK)
c.CourseDirectory.ignore = [
    "*.md",
    "*.csv",  # grades of all students, if nbgrader exported them to this folder
    "bundle.py",
    "nbgrader_config.py",
    ".ipynb_checkpoints",
    ".jupyter",
    "__pycache__",
    "*.pyc",
]
lessons = sorted(file.stem for file in HERE.glob("*.ipynb"))
for line in name_submissions(WORK / "submitted", lessons):
    print(line, file=sys.stderr)
c.Execute.timeout = 120  # seconds per cell; a whole lesson may take at most half as long
