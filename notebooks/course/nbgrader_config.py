"""Configures `nbgrader` for this folder: the notebooks here are the sources of one assignment,
`course`.

All output of nbgrader (student versions, submissions, grades) lies under runs/course, which git
ignores; `LOOKUPLAB_COURSE` names another folder.
"""

import os
import sys
from pathlib import Path
from shutil import copytree

import nbgrader

from lookuplab_notebooks.course.bundle import name_submissions

here = Path(__file__).resolve().parent
work = Path(os.environ.get("LOOKUPLAB_COURSE", here.parents[1] / "runs" / "course")).resolve()
work.mkdir(parents=True, exist_ok=True)
# nbgrader starts alembic by its name, and the environment may not be activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

c = get_config()  # traitlets defines it
c.CourseDirectory.course_id = "lookuplab"
c.CourseDirectory.root = str(work)
c.CourseDirectory.source_directory = os.path.relpath(here.parent, work)
c.CourseDirectory.ignore = [
    "*.md",
    "*.csv",  # an export in this folder would have everybody's grades
    "bundle.py",
    "nbgrader_config.py",
    ".ipynb_checkpoints",
    ".jupyter",
    "__pycache__",
    "*.pyc",
]
lessons = sorted(file.stem for file in here.glob("*.ipynb"))
for line in name_submissions(work / "submitted", lessons):
    print(line, file=sys.stderr)
c.Execute.timeout = 120  # seconds per cell; twice what a lesson may need

# The feedback's table of contents should name the exercises; nbgrader's shows "Test cell" for each.
templates = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
named = copytree(templates / "feedback", work / "templates" / "feedback", dirs_exist_ok=True)
page = (named / "index.html.j2").read_text(encoding="utf-8")
exercise = "{{ cell.metadata.nbgrader.grade_id.removesuffix('_check') }}"
for name in ("Test cell", "Written response"):
    page = page.replace(f">{name}<", f">{exercise}<")
page = page.replace(">Comment<", f">{exercise}: comment<")
# Missing in the page's Bootstrap: hints show that they can be opened, and pictures fit a phone.
style = "summary { display: list-item; cursor: pointer } img { max-width: 100%; height: auto }"
page = page.replace("</head>", f"<style>{style}</style>\n</head>")
(named / "index.html.j2").write_text(page, encoding="utf-8")
c.HTMLExporter.extra_template_basedirs = [str(named.parent), str(templates)]
